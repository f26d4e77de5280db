from __future__ import annotations

import math

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.exported_structures import (
    AnswerSheet,
    ExportedMark,
    ExportedStructure,
    add_sheets,
    count_text_units,
    get_structure,
    parse_place,
    parse_span,
)


def make_export() -> ExportedAnswers:
    export = ExportedAnswers()
    get_structure(export, "names", "spans")
    get_structure(export, "note", "texts")
    return export


def test_a_sheet_without_marks_is_a_vote_and_without_a_text_none() -> None:
    export = make_export()
    add_sheets(
        export,
        [AnswerSheet("t1", "ann", {"names": [ExportedMark((0, 3), "X")], "note": "hi"}), AnswerSheet("t1", "bob", {})],
    )
    names, note = export.structures["names"], export.structures["note"]
    assert (names.worker, names.answers) == (["ann", "bob"], [(ExportedMark((0, 3), "X"),), ()])
    assert (note.worker, note.answers, note.excluded["empty"]) == (["ann"], ["hi"], 1)


def test_models_vote_on_the_questions_that_they_answer() -> None:
    export = make_export()
    get_structure(export, "terms", "spans")
    sheets = [
        AnswerSheet("t1", "bert", {"names": [ExportedMark((0, 3), "X")]}, machine=True),
        AnswerSheet("t2", "bert", {}, machine=True),
    ]
    add_sheets(export, sheets)
    assert export.structures["names"].task == ["t1", "t2"]
    assert export.structures["names"].machine == [True, True]
    assert export.structures["terms"].task == []


def test_own_predictions_are_the_consensus() -> None:
    export = make_export()
    marks = [ExportedMark((0, 3), "X", 0.8)]
    sheets = [
        AnswerSheet("t1", "wisecrowd span-consensus", {"names": marks}, machine=True, score=0.7),
        AnswerSheet("t2", "wisecrowd span-consensus", {}, machine=True),
    ]
    add_sheets(export, sheets)
    assert export.structures["names"].consensus == {"t1": (tuple(marks), 0.7)}
    assert export.structures["names"].task == []


def test_gold_is_truth() -> None:
    export = make_export()
    gold = [ExportedMark((0, 3), "X")]
    sheets = [
        AnswerSheet("t1", "", {"names": gold}, is_gold=True),
        AnswerSheet("t2", "", {}, is_gold=True, is_empty=True),  # nothing is there
        AnswerSheet("t3", "", {}, is_gold=True),  # gold of another question
    ]
    add_sheets(export, sheets)
    assert export.structures["names"].truth == {"t1": tuple(gold), "t2": ()}
    assert export.structures["note"].truth == {}


def test_kinds_of_marks_are_separate_questions() -> None:
    export = ExportedAnswers()
    export.get_question("tag")
    assert get_structure(export, "tag", "boxes").name == "tag.boxes"
    assert get_structure(export, "objects", "boxes") is get_structure(export, "objects", "boxes")
    assert get_structure(export, "objects", "points").name == "objects.points"


def test_contradictory_sizes_are_a_problem() -> None:
    structure = ExportedStructure("objects", "boxes")
    structure.set_size("t1", 640, 480)
    structure.set_size("t1", None, None)
    structure.set_size("t1", 640.0, 480.0)
    assert structure.problems == []
    structure.set_size("t1", 320, 240)
    assert "640 x 480 pixels for one worker and 320 x 240 for another" in structure.problems[0]


def test_invalid_marks_are_problems_of_their_question() -> None:
    structure = ExportedStructure("names", "spans")
    marks = structure.parse_marks(lambda entry: parse_span(*entry, "line 1"), [(0, 3, "X"), ("a", 3, "X")])
    assert [mark.place for mark in marks] == [(0, 3)]
    assert structure.problems == ["the place of a span of line 1 must be numbers; got 'a', 3"]


@pytest.mark.parametrize("value", [None, True, "3", math.nan, [1]])
def test_places_are_numbers(value: object) -> None:
    with pytest.raises(InputError, match="the place of a box of image 3 must be numbers"):
        parse_place([1, value], "box", "image 3")


def test_lengths_of_texts_count_emojis_twice() -> None:
    assert count_text_units("a🍜b") == 4
    assert count_text_units(None) is None
