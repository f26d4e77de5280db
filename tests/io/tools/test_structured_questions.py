from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.exported_structures import ExportedMark, ExportedStructure
from wisecrowd.io.tools.structured_questions import (
    StructuredQuestion,
    build_structured_crowd,
    build_structured_questions,
    list_classes,
)


def make_boxes(**more: object) -> ExportedStructure:
    structure = ExportedStructure("objects", "boxes", unit="pixels", sizes={"i1": (100, 80)}, **more)  # type: ignore[arg-type]
    structure.add_answer("i1", "ann", [ExportedMark((10, 10, 20, 20), "cat"), ExportedMark((50, 40, 20, 20), None)])
    structure.add_answer("i1", "bob", [])
    return structure


def test_answers_without_marks_are_votes() -> None:
    crowd = build_structured_crowd(make_boxes())
    assert isinstance(crowd, wc.BoxCrowd)
    assert (crowd.n_votes, crowd.n_marks, crowd.classes.tolist()) == (2, 2, ["box", "cat"])


def test_marks_outside_the_image_are_refused() -> None:
    structure = make_boxes()
    structure.add_answer("i1", "cy", [ExportedMark((90, 70, 50, 20), "cat")])
    message = "1 box outside its image, for example x=90, y=70, width=50, height=20 of worker 'cy' on task 'i1', whose image is "
    with pytest.raises(InputError, match=f"question 'objects': {message}100 x 80 pixels"):
        build_structured_crowd(structure)


def test_places_that_were_rounded_over_the_edge_are_clipped() -> None:
    structure = ExportedStructure("objects", "boxes", unit="pixels", sizes={"i1": (100, 80)})
    structure.add_answer("i1", "ann", [ExportedMark((-0.4, 10, 100.8, 70.5), "cat")])
    crowd = build_structured_crowd(structure)
    assert isinstance(crowd, wc.BoxCrowd)
    assert crowd.coordinates.tolist() == [[0, 10, 100, 70]]


def test_percent_beyond_100_are_probably_pixels() -> None:
    structure = ExportedStructure("eyes", "points", unit="percent")
    structure.add_answer("i1", "ann", [ExportedMark((320, 50), "eye")])
    with pytest.raises(InputError, match=r"1 point outside its image.*100 x 100 percent.*check the unit"):
        build_structured_crowd(structure)


def test_spans_end_within_the_text() -> None:
    structure = ExportedStructure("names", "spans", lengths={"t1": 10})
    structure.add_answer("t1", "ann", [ExportedMark((0, 10), "PER")])
    assert build_structured_crowd(structure).n_votes == 1
    structure.add_answer("t1", "bob", [ExportedMark((4, 11), "PER")])
    with pytest.raises(InputError, match=r"1 span outside the text, for example start=4, end=11 .* has 10 characters"):
        build_structured_crowd(structure)


@pytest.mark.parametrize("place", [(5, 2), (-1, 3), (0.5, 2)])
def test_reversed_negative_and_broken_spans_are_refused(place: tuple[float, float]) -> None:
    structure = ExportedStructure("names", "spans")
    structure.add_answer("t1", "ann", [ExportedMark(place, "PER")])
    with pytest.raises(InputError, match=r"question 'names': 1 invalid span.*0 ≤ start < end"):
        build_structured_crowd(structure)


def test_problems_are_told() -> None:
    structure = make_boxes(problems=["units are mixed", "sizes differ"])
    with pytest.raises(InputError, match="question 'objects': units are mixed \\(and 1 more problems\\)"):
        build_structured_crowd(structure)


@pytest.mark.parametrize(("rule", "ends"), [("first", [3]), ("last", [5]), ("keep", [3, 5])])
def test_repeated_answers(rule: str, ends: list[int]) -> None:
    structure = ExportedStructure("names", "spans")
    structure.add_answer("t1", "ann", [ExportedMark((0, 5), "PER")], time=200)
    structure.add_answer("t1", "ann", [ExportedMark((0, 3), "PER")], time=100)
    with pytest.raises(InputError, match="worker 'ann' has several answers about task 't1'"):
        build_structured_crowd(structure)
    crowd = build_structured_crowd(structure, duplicates=rule)
    assert isinstance(crowd, wc.SpanCrowd)
    assert crowd.coordinates[:, 1].tolist() == ends
    with pytest.raises(UsageError, match="duplicates must be one of"):
        build_structured_crowd(structure, duplicates="some")


def test_texts_cannot_be_united() -> None:
    structure = ExportedStructure("note", "texts")
    structure.add_answer("t1", "ann", "one")
    structure.add_answer("t1", "ann", "two")
    with pytest.raises(InputError, match="several answers"):
        build_structured_crowd(structure, duplicates="keep")
    crowd = build_structured_crowd(structure, duplicates="last")
    assert isinstance(crowd, wc.TextCrowd)
    assert crowd.text.tolist() == ["two"]


def test_machines_and_people_of_one_name() -> None:
    structure = make_boxes()
    structure.add_suggestion("i1", "ann", [ExportedMark((10, 10, 20, 20), "cat")])
    question = StructuredQuestion(name="objects", kind="boxes", structure=structure)
    assert question.kinds.to_dict() == {"ann": "person", "bob": "person", "machine:ann": "machine"}
    assert question.machines == ["machine:ann"]
    assert question.crowd.workers.tolist() == ["ann", "bob", "machine:ann"]


def test_truth_and_consensus_are_tables() -> None:
    structure = make_boxes()
    structure.truth["i1"] = (ExportedMark((1, 2, 3, 4), "cat"),)
    structure.add_suggestion("i1", "wisecrowd box-consensus", [ExportedMark((1, 2, 3, 4), "cat", 0.9)], 0.8)
    question = StructuredQuestion(name="objects", kind="boxes", structure=structure)
    assert question.truth is not None
    assert question.truth.drop(columns="confidence").values.tolist() == [["i1", 1, 2, 3, 4, "cat"]]
    assert question.consensus is not None
    assert question.consensus.values.tolist() == [["i1", 1, 2, 3, 4, "cat", 0.9]]
    texts = ExportedStructure("note", "texts")
    texts.add_suggestion("t1", "wisecrowd rover", "a cat", 0.5)
    note = StructuredQuestion(name="note", kind="texts", structure=texts)
    assert note.consensus is not None
    assert note.consensus.to_dict("index") == {"t1": {"text": "a cat", "confidence": 0.5}}
    assert note.truth is None


def test_empty_annotations_are_not_left_out() -> None:
    export = ExportedAnswers(structures={"objects": make_boxes()})
    export.excluded.update(empty=2, cancelled=1)
    export.structures["objects"].excluded["gold"] += 1
    assert build_structured_questions(export)["objects"].excluded == {"cancelled": 1, "gold": 1}


def test_classes_are_in_the_order_of_the_tool() -> None:
    structure = make_boxes(options={"dog": None})
    assert list_classes(structure) == ["dog", "cat"]
    assert np.isnan(structure.answers[0][0].score)  # type: ignore[union-attr]
