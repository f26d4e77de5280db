from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import find_format, read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_lists_of_workers_and_labels(export: Any) -> None:
    project = read_project(export("hugging-face"))
    assert list(project.questions) == ["labels"]
    assert rows(project.get_question().crowd) == [("a", "u1", "good"), ("a", "u2", "bad"), ("b", "u1", "bad")]
    assert project.tasks["a"] == {"id": "a", "text": "Lovely!"}


def test_a_column_for_each_worker(export: Any) -> None:
    question = read_project(export("hugging-face-columns")).get_question()
    assert rows(question.crowd) == [
        ("a", "annotator_1", "good"),
        ("a", "annotator_2", "bad"),
        ("b", "annotator_1", "bad"),
    ]
    assert question.excluded == {"empty": 1}


def test_a_list_of_objects(tmp_path: Path, making: Any) -> None:
    records = [{"id": 1, "annotations": [{"annotator": "u1", "label": "x"}, {"annotator": "u2", "label": "y"}]}]
    path = tmp_path / "data.jsonl"
    path.write_bytes(making.lines(records))
    assert rows(read_project(path, "hugging-face").get_question().crowd) == [("1", "u1", "x"), ("1", "u2", "y")]


def test_names_of_classes_come_with_the_table(tmp_path: Path, making: Any) -> None:
    feature = {"feature": {"names": ["bad", "good", "odd"], "_type": "ClassLabel"}, "_type": "Sequence"}
    told = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    columns = {"task": [7, 8], "workers": [["u1", "u2"], ["u1"]], "label": [[1, 0], [-1]]}
    path = tmp_path / "data.parquet"
    path.write_bytes(making.parquet(columns, told))
    question = read_project(path).get_question()
    assert rows(question.crowd) == [("7", "u1", "good"), ("7", "u2", "bad")]
    assert question.crowd.classes.tolist() == ["bad", "good", "odd"]
    assert question.excluded == {"empty": 1}


def test_several_questions_numbers_and_sets(tmp_path: Path, making: Any) -> None:
    columns = {
        "id": ["a"], "annotator_ids": [[1, 2]], "mood": [["good", "bad"]], "score": [[0.5, 1.0]], "tags": [[["x", "y"], ["x"]]],
        "image": [{"bytes": b"\x00", "path": "a.png"}], "tokens": [["Oh", "no"]], "others": [["p"]],
    }  # fmt: skip
    path = tmp_path / "data.parquet"
    path.write_bytes(making.parquet(columns))
    project = read_project(path)
    assert {name: question.kind for name, question in project.questions.items()} == {
        "mood": "single", "score": "number", "tags": "multiple",
    }  # fmt: skip
    assert project.questions["score"].crowd.label.tolist() == [0.5, 1.0]
    assert rows(project.questions["tags"].crowd) == [("a", "1", "x|y"), ("a", "2", "x")]
    assert project.excluded == {"lists 'others' of another length": 1}


def test_a_row_per_vote_stays_a_table(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text('{"task": "a", "worker": "x", "label": "p"}\n')
    assert find_format(path).name == "jsonl"
    wc.write(wc.read(path), tmp_path / "votes.parquet")
    assert find_format(tmp_path / "votes.parquet").name == "parquet"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": 1, "text": "x"}, "the workers cannot be recognised.*annotator_1"),
        (
            {"id": 1, "annotators": ["u1"], "labels": ["x", "y"]},
            "row 1 has 2 labels for 1 annotators; there must be one for each",
        ),
        ({"id": 1, "annotators": [None], "labels": ["x"]}, r"the worker needs an id.*\(row 1\)"),
    ],
)
def test_bad_rows(tmp_path: Path, record: Any, message: str) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "data.jsonl", "hugging-face")


def test_a_task_has_one_row(tmp_path: Path, making: Any) -> None:
    (tmp_path / "data.jsonl").write_bytes(making.lines([making.HUGGING_FACE[0]] * 2))
    with pytest.raises(InputError, match="row 2 repeats the task 'a'; there must be one row per task"):
        read_project(tmp_path / "data.jsonl")


def test_minus_one_is_an_answer_where_nobody_says_otherwise(tmp_path: Path, making: Any) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(making.lines([{"id": "a", "annotators": ["u1", "u2", "u3"], "labels": [-1, 1, None]}]))
    question = read_project(path).get_question()
    assert rows(question.crowd) == [("a", "u1", "-1"), ("a", "u2", "1")]
    assert question.excluded == {"empty": 1}


def test_an_object_of_lists_that_do_not_match(tmp_path: Path) -> None:
    row = {"id": "a", "annotations": {"annotator": ["ann", "bob"], "label": ["cat"]}}
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match="the workers cannot be recognised"):
        read_project(tmp_path / "data.jsonl", "hugging-face")
