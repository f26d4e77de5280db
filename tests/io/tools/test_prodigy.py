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


def make_spans(key: int, who: str, *spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "text": "Ann left Rome.", "_input_hash": key, "spans": list(spans), "_view_id": "ner_manual", "answer": "accept",
        "_session_id": f"x-{who}", **more,
    }  # fmt: skip


def test_marked_spans_are_votes(tmp_path: Path, making: Any) -> None:
    person = {"start": 0, "end": 3, "label": "PER", "token_start": 0, "token_end": 0}
    records = [
        make_spans(1, "ann", person),
        make_spans(1, "bob"),  # marked nothing
        make_spans(1, "cy", person, answer="ignore"),
        make_spans(1, "dan", answer="reject"),
        make_spans(1, "eve", person, _annotator_id="eve", _timestamp=1700000000),
    ]
    path = written(tmp_path, making, records)
    spans = wc.read_spans(path)
    assert (spans.n_votes, spans.n_marks, spans.workers.tolist()) == (3, 2, ["eve", "x-ann", "x-bob"])
    assert read_project(path).structured["spans"].excluded == {"ignored": 1, "rejected": 1}


def test_spans_and_choices_of_one_example_are_two_questions(tmp_path: Path, making: Any) -> None:
    record = making.example("Ann left.", 1, "ann", "accept", "good") | {"_view_id": "blocks", "spans": []}
    project = read_project(written(tmp_path, making, [record]))
    assert (list(project.questions), list(project.structured)) == (["choice"], ["spans"])


def test_boxes_of_images(tmp_path: Path, making: Any) -> None:
    box = {"x": 10, "y": 20, "width": 30, "height": 40, "type": "rect", "label": "cat"}
    corners = {"points": [[10, 20], [10, 60], [40, 60], [40, 20]], "label": "cat"}
    outline = {"points": [[1, 1], [5, 5], [1, 5]], "type": "polygon", "label": "cat"}
    image = {"image": "a.jpg", "width": 100, "height": 80, "_view_id": "image_manual"}
    records = [make_spans(1, "ann", box, outline, **image), make_spans(1, "bob", corners, **image)]
    question = read_project(written(tmp_path, making, records)).structured["boxes"]
    assert isinstance(question.crowd, wc.BoxCrowd)
    assert question.crowd.coordinates.tolist() == [[10, 20, 30, 40]] * 2
    assert question.excluded == {"polygon shapes": 1}


def test_texts_that_workers_wrote(tmp_path: Path, making: Any) -> None:
    record = {"audio": "a.wav", "_input_hash": 1, "_view_id": "blocks", "answer": "accept", "_session_id": "x-ann"}
    path = written(tmp_path, making, [record | {"user_input": "a cat"}])
    assert wc.read_texts(path).text.tolist() == ["a cat"]
    assert "user_input" not in read_project(path).tasks["1"]


def test_invalid_spans_do_not_hide_other_questions(tmp_path: Path, making: Any) -> None:
    record = making.example("Ann left.", 1, "ann", "accept", "good") | {"_view_id": "blocks", "spans": [{"start": "x"}]}
    path = written(tmp_path, making, [record])
    assert wc.read(path).n_votes == 1
    with pytest.raises(InputError, match="the place of a span of line 1 must be numbers"):
        wc.read_spans(path, question="spans")
    long = make_spans(1, "ann", {"start": 0, "end": 99, "label": "PER"})
    with pytest.raises(InputError, match=r"1 span outside the text.*has 14 characters"):
        wc.read_spans(written(tmp_path, making, [long]))
