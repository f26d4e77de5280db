from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_the_full_report(export: Any) -> None:
    path = export("crowdflower")
    question = read_project(path).get_question()
    assert question.name == "mood"
    assert rows(question.crowd) == [("501", "31", "good"), ("501", "32", "bad"), ("502", "31", "bad")]
    assert question.excluded == {"tainted": 1}
    assert wc.read_truth(path, question="mood").to_dict() == {"501": "good"}
    assert question.groups is not None
    assert question.groups.to_dict() == {"31": "elite", "32": "neodev"}
    assert question.crowd.time[0] == 1436898836.0  # the month comes first
    assert sorted(question.seconds["seconds"]) == [10.0, 10.0, 10.0]  # a page of two units took twenty seconds


def test_questions_without_gold_are_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "full.csv"
    path.write_text("_unit_id,_worker_id,_trust,mood,text\n1,a,1,good,Hi\n1,b,1,bad,Hi\n2,a,1,good,Oh\n")
    assert list(read_project(path).questions) == ["mood"]


def test_several_answers_stand_on_lines(tmp_path: Path) -> None:
    path = tmp_path / "full.csv"
    path.write_text('_unit_id,_worker_id,_trust,tags\n1,a,1,"fur\ntail"\n1,b,1,fur\n')
    assert rows(read_project(path).get_question().crowd) == [("1", "a", "fur|tail"), ("1", "b", "fur")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("_unit_id,_worker_id,_trust,mood\n", "there are no judgments"),
        ("_unit_id,mood,mood:confidence\n1,good,0.9\n", "the aggregated report has no workers"),
        (
            "_unit_id,_worker_id,_trust,mood\n1,a,1,good\n1,b,1,good\n",
            'the columns of the answers cannot be recognised.*format="csv", label="NAME"',
        ),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "full.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "full.csv", "crowdflower")
