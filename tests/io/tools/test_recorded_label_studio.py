"""Exports, pages of tasks and webhooks as a real Label Studio 1.23.2 wrote them (tests/recorded/label_studio)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project
from wisecrowd.io.tools.label_studio import parse_tasks
from wisecrowd.io.tools.projects import Project, build_project

RECORDED = Path(__file__).parents[2] / "recorded" / "label_studio"
#: What three people said of six tasks; two more nobody labelled.
MOODS = [
    ["good", "good", "good"], ["bad", "bad", "good"], ["good", "good", "bad"], ["bad", "bad", "bad"], ["good", "bad"],
    ["good", "good", "good"],
]  # fmt: skip


@pytest.fixture(scope="module")
def exported() -> Project:
    """The server's own export in JSON."""
    return read_project(RECORDED / "export_json.json")


@pytest.fixture(scope="module")
def pages() -> list[dict[str, Any]]:
    """Tasks as the server's list of them tells, of which a pull is made."""
    found: list[dict[str, Any]] = json.loads((RECORDED / "tasks.json").read_text(encoding="utf-8"))["tasks"]
    return found


def said(crowd: wc.Crowd) -> list[list[str]]:
    """The labels of each task in the order of its workers."""
    frame = crowd.to_frame()
    return [
        frame[frame["task"] == task].sort_values("worker")["label"].tolist() for task in sorted(crowd.tasks, key=int)
    ]


def test_votes_of_people_in_json(exported: Project) -> None:
    assert exported.format == "label-studio"
    assert list(exported.questions) == ["mood", "topics", "stars"]
    assert said(exported.questions["mood"].people) == MOODS
    topics, stars = exported.questions["topics"], exported.questions["stars"]
    assert (topics.kind, stars.kind) == ("multiple", "single")
    assert topics.crowd.classes is not None
    assert topics.crowd.classes.tolist() == ["food", "food|price", "food|staff", "price", "staff"]
    assert said(stars.crowd)[0] == ["5", "4", "5"]
    assert topics.control == {"from_name": "topics", "to_name": "text", "type": "choices"}


def test_tasks_that_nobody_labelled_are_there(exported: Project) -> None:
    assert len(exported.tasks) == 8
    assert exported.questions["mood"].crowd.n_tasks == 6
    assert [task["data"]["text"] for task in exported.tasks.values()][2:4] == [
        "Grüße, 東京 🍜",
        'He said "fine",\nand left',
    ]


def test_gold_skipped_and_drafted_answers_are_no_votes(exported: Project) -> None:
    mood = exported.questions["mood"]
    assert mood.truth is not None
    assert mood.truth.tolist() == ["good"]
    assert exported.excluded == {"cancelled": 1, "drafts": 1}
    assert mood.excluded == {"cancelled": 1, "drafts": 1, "gold": 1}


def test_predictions_that_an_annotator_was_shown_are_whole(exported: Project) -> None:
    """The export lists predictions by number; what an annotator was shown stands beside the annotation."""
    raw = json.loads((RECORDED / "export_json.json").read_text(encoding="utf-8"))
    assert all(isinstance(number, int) for task in raw for number in task["predictions"])
    mood = exported.questions["mood"]
    assert mood.machines == ["bert-1"]
    assert mood.scores["score"].tolist() == [0.75] * 4


def test_predictions_by_number_alone_are_counted(tmp_path: Path) -> None:
    raw = json.loads((RECORDED / "export_json.json").read_text(encoding="utf-8"))
    for task in raw:
        for annotation in task["annotations"]:
            annotation["prediction"] = {}
    (tmp_path / "export.json").write_text(json.dumps(raw))
    project = read_project(tmp_path / "export.json")
    assert project.excluded["predictions told by number"] == 4
    assert project.questions["mood"].machines == []


def test_answers_of_deleted_accounts_are_nobodys(tmp_path: Path) -> None:
    """The server keeps them, and sets who gave them to null."""
    for name, key in (("export_json", "completed_by"), ("export_json_min", "annotator")):
        raw = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
        for told in raw if key == "annotator" else [one for task in raw for one in task["annotations"]]:
            told[key] = None if told[key] == 3 else told[key]
        (tmp_path / "export.json").write_text(json.dumps(raw))
        mood = read_project(tmp_path / "export.json", duplicates="distinct").questions["mood"]
        assert said(mood.people) == [labels[:2] for labels in MOODS]
        assert mood.excluded["of deleted accounts"] == 5


def test_json_min_says_the_same_of_votes(exported: Project) -> None:
    path = RECORDED / "export_json_min.json"
    with pytest.raises(InputError, match="question 'mood'"):  # it does not tell gold, so that somebody voted twice
        read_project(path)
    project = read_project(path, duplicates="distinct")
    assert project.format == "label-studio-min"
    assert set(project.questions) == {"mood", "topics", "stars"}
    assert len(project.tasks) == 8
    for name, question in project.questions.items():
        assert said(question.crowd) == said(exported.questions[name].people), name
    assert project.questions["topics"].kind == "multiple"


def test_pages_say_the_same_as_the_export(exported: Project, pages: list[dict[str, Any]]) -> None:
    project = build_project(parse_tasks(pages), "label-studio")
    assert project.excluded == exported.excluded, "draft_exists shows a draft of another user"
    assert project.tasks.keys() == exported.tasks.keys()
    for name, question in project.questions.items():
        assert question.crowd == exported.questions[name].crowd, name
        assert question.scores.equals(exported.questions[name].scores)


def test_tokens_and_addresses_were_left_out_of_recordings() -> None:
    for path in RECORDED.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert '"token": "' not in text.replace(f'"token": "{"0" * 40}"', ""), path.name
        assert text.count("@") == text.count("@example.com"), path.name
        assert "eyJ" not in text, path.name


@pytest.mark.parametrize(
    "name", ["annotation_created", "annotation_created_ground_truth", "annotation_created_cancelled"]
)
def test_a_webhook_tells_what_an_export_does(name: str) -> None:
    body = json.loads((RECORDED / "webhooks" / f"{name}.json").read_text(encoding="utf-8"))
    task = {**body["task"], "annotations": [body["annotation"]]}
    gathered = parse_tasks([task])
    if body["annotation"]["was_cancelled"]:
        assert gathered.excluded == {"cancelled": 1}
    elif body["annotation"]["ground_truth"]:
        assert list(gathered.get_question("mood").truth.values()) == [("bad",)]
    else:
        assert gathered.get_question("topics").labels == [("food", "price")]
        assert gathered.get_question("mood").worker == ["1"]
