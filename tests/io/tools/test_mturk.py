from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_results_of_a_batch(export: Any) -> None:
    project = read_project(export("mturk"))
    assert {name: question.kind for name, question in project.questions.items()} == {
        "category": "single", "topics": "multiple", "seen": "single",
    }  # fmt: skip
    category = project.questions["category"]
    assert rows(category.crowd) == [("h1", "w1", "cat"), ("h1", "w2", "dog"), ("h2", "w2", "dog")]
    assert category.excluded == {"rejected": 1}
    assert category.crowd.time[0] == 1544469822.0  # 19:23:42 UTC
    assert category.seconds["seconds"].tolist() == [30.0, 60.0, 60.0]
    assert rows(project.questions["topics"].crowd) == [("h1", "w1", "fur|tail"), ("h1", "w2", "fur"), ("h2", "w2", "∅")]
    assert rows(project.questions["seen"].crowd) == [("h1", "w1", "day"), ("h1", "w2", "night"), ("h2", "w2", "day")]
    assert project.tasks["h1"] == {"Input.image_url": "a.jpg"}


def test_boxes(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text(
        "HITId,WorkerId,Answer.has.fur,Answer.has.tail,Answer.sure.on\nh1,w1,true,true,true\nh1,w2,false,false,false\n"
    )
    project = read_project(path)
    assert rows(project.questions["has"].crowd) == [("h1", "w1", "fur|tail"), ("h1", "w2", "∅")]
    assert rows(project.questions["sure"].crowd) == [("h1", "w1", "true"), ("h1", "w2", "false")]


def test_answers_in_json(tmp_path: Path) -> None:
    forms = [
        {"mood": {"label": "good"}, "has": {"fur": True, "tail": True}, "stars": 4, "note": ""},
        {"mood": {"label": "bad"}, "has": {"fur": True, "tail": False}, "stars": 5, "note": "hm"},
    ]
    lines = ["HITId,WorkerId,Answer.taskAnswers"]
    lines += [f"h1,w{place}," + '"' + json.dumps([form]).replace('"', '""') + '"' for place, form in enumerate(forms)]
    path = tmp_path / "batch.csv"
    path.write_text("\n".join(lines) + "\n")
    project = read_project(path)
    assert rows(project.questions["mood"].crowd) == [("h1", "w0", "good"), ("h1", "w1", "bad")]
    assert rows(project.questions["has"].crowd) == [("h1", "w0", "fur|tail"), ("h1", "w1", "fur")]
    assert rows(project.questions["stars"].crowd) == [("h1", "w0", "4"), ("h1", "w1", "5")]
    assert project.questions["note"].excluded == {"empty": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HITId,WorkerId,Answer.x\n", "there are no assignments"),
        ("HITId,Answer.x\nh,1\n", "columns HITId, WorkerId and Answer"),
        ("HITId,WorkerId,Answer.x\n,w,1\n", r"the HIT needs an id.*\(line 2\)"),
        ("HITId,WorkerId,Answer.taskAnswers\nh,w,[1\n", r"Answer\.taskAnswers on line 2 is not JSON"),
        ("HITId,WorkerId,Answer.taskAnswers\nh,w,[1]\n", "should hold an object; got 1"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "batch.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "batch.csv", "mturk")
