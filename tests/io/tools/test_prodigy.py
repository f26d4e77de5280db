from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def written(folder: Path, making: Any, records: list[dict[str, Any]]) -> Path:
    path = folder / "answers.jsonl"
    path.write_bytes(making.lines(records))
    return path


def test_choices(export: Any) -> None:
    question = read_project(export("prodigy")).get_question()
    assert (question.name, question.kind) == ("choice", "single")
    assert rows(question.crowd) == [("101", "news-ann", "good"), ("101", "news-bob", "bad"), ("102", "news-bob", "bad")]
    assert question.crowd.classes.tolist() == ["good", "bad"]  # as the options are listed
    assert question.excluded == {"ignored": 1}
    assert question.crowd.time.tolist() == [1700000101.0, 1700000101.0, 1700000102.0]


def test_several_choices_and_none(tmp_path: Path, making: Any) -> None:
    style = {"config": {"choice_style": "multiple"}}
    records = [
        making.example("a", 1, "ann", "accept", "good", "bad") | style,
        making.example("a", 1, "bob", "accept") | style,
        making.example("a", 1, "cy", "reject", "bad") | style,
    ]
    question = read_project(written(tmp_path, making, records)).get_question()
    assert question.kind == "multiple"
    assert rows(question.crowd) == [("1", "news-ann", "bad|good"), ("1", "news-bob", "∅")]
    assert rows(question.options["good"]) == [("1", "news-ann", "yes"), ("1", "news-bob", "no")]
    assert question.excluded == {"rejected": 1}


def test_accept_and_reject_answer_a_label(tmp_path: Path, making: Any) -> None:
    records = [
        {
            "text": "a",
            "_input_hash": 1,
            "label": label,
            "answer": answer,
            "_session_id": f"x-{who}",
            "_view_id": "classification",
        }
        for label, answer, who in (("SPORT", "accept", "ann"), ("SPORT", "reject", "bob"), ("NEWS", "ignore", "ann"))
    ]
    project = read_project(written(tmp_path, making, records))
    assert rows(project.questions["SPORT"].crowd) == [("1", "x-ann", "accept"), ("1", "x-bob", "reject")]
    assert project.questions["NEWS"].crowd.n_votes == 0
    assert project.questions["NEWS"].excluded == {"ignored": 1}


def test_proposed_spans_are_left_out(tmp_path: Path, making: Any) -> None:
    record = {"text": "a", "_input_hash": 1, "spans": [{"start": 0, "end": 1}], "_view_id": "ner", "answer": "accept"}
    with pytest.raises(InputError, match=r"left out ner examples \(1\)"):
        read_project(written(tmp_path, making, [record]))


def test_no_hash_and_no_session(tmp_path: Path, making: Any) -> None:
    record = making.example("a", 1, "ann", "accept", "good")
    with pytest.raises(InputError, match="line 1 has no _input_hash"):
        read_project(
            written(tmp_path, making, [{key: record[key] for key in record if key != "_input_hash"}]), "prodigy"
        )
    anonymous = {key: record[key] for key in record if key not in ("_session_id", "_annotator_id")}
    with pytest.raises(InputError, match=r"the session needs an id.*\(line 1\)"):
        read_project(written(tmp_path, making, [anonymous]))
