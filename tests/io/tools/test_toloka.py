from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_assignments(export: Any) -> None:
    path = export("toloka")
    question = read_project(path).get_question()
    assert question.name == "result"
    assert rows(question.crowd) == [("t1", "w1", "cat"), ("t1", "w2", "dog"), ("t2", "w1", "dog")]
    assert question.excluded == {"rejected": 1}
    assert wc.read_truth(path).to_dict() == {"t1": "cat"}
    # Two tasks share a page of thirty seconds.
    assert sorted(question.seconds["seconds"]) == [10.0, 15.0, 15.0]
    assert question.crowd.time[0] == 1614852030.0


def test_without_ids_a_task_is_what_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "assignments.tsv"
    path.write_text("INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\na.jpg\tcat\tw1\na.jpg\tdog\tw2\n")
    assert rows(read_project(path).get_question().crowd) == [("a.jpg", "w1", "cat"), ("a.jpg", "w2", "dog")]
    path.write_text("INPUT:l\tINPUT:r\tOUTPUT:result\tASSIGNMENT:worker_id\na\tb\tleft\tw1\n")
    assert read_project(path).get_question().crowd.tasks.tolist() == ['{"INPUT:l": "a", "INPUT:r": "b"}']


def test_lists_are_several_choices(tmp_path: Path) -> None:
    path = tmp_path / "assignments.tsv"
    path.write_text('INPUT:x\tOUTPUT:tags\tASSIGNMENT:worker_id\na\t["fur", "tail"]\tw1\na\t[]\tw2\n'.replace('"', '"'))
    question = read_project(path).get_question()
    assert rows(question.crowd) == [("a", "w1", "fur|tail"), ("a", "w2", "∅")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INPUT:x\tOUTPUT:y\n", "there are no assignments"),
        ("INPUT:x\tOUTPUT:y\na\tb\n", "no columns such as OUTPUT:result and ASSIGNMENT:worker_id"),
        ("OUTPUT:y\tASSIGNMENT:worker_id\nb\tw1\n", "line 2 has neither ASSIGNMENT:task_id nor an INPUT: column"),
        ("INPUT:x\tOUTPUT:y\tASSIGNMENT:worker_id\na\tb\t\n", r"the worker needs an id.*\(line 2\)"),
        ("INPUT:x\tOUTPUT:y\tASSIGNMENT:worker_id\na\tb\n", "line 2 has 2 columns, not 3"),
        ("INPUT:x\tOUTPUT:y\tOUTPUT:y\tASSIGNMENT:worker_id\na\tb\tb\tc\n", "several columns called 'OUTPUT:y'"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "a.tsv", "toloka")
