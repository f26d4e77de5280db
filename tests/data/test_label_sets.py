"""Label sets: reading of cells, empty sets, repeated rows and selections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.errors import InputError, UsageError

SETS = [["b", "a"], [], ["a"], ["c"]]
FRAME = {"task": ["t1", "t1", "t2", "t3"], "worker": ["ann", "bob", "ann", "cy"], "labels": SETS}


@pytest.mark.parametrize(
    "cells",
    [SETS, ["b|a", "", "a", "c"], ["b; a", "∅", "a", "c"], ["b,a", "", "a", "c"], ['["b", "a"]', "[]", '["a"]', "c"]],
    ids=["lists", "bars", "semicolons", "commas", "json"],
)
def test_all_spellings_give_the_same_sets(cells: list[object]) -> None:
    crowd = LabelSetCrowd.from_frame(FRAME | {"labels": cells})
    assert crowd == LabelSetCrowd.from_frame(FRAME)
    assert crowd.to_frame()["labels"].tolist() == [["a", "b"], [], ["a"], ["c"]]


def test_a_given_separator_is_used() -> None:
    frame = {"task": ["t"], "worker": ["ann"], "labels": ["New York, NY/Boston, MA"]}
    assert LabelSetCrowd.from_frame(frame, separator="/").labels.tolist() == ["Boston, MA", "New York, NY"]


def test_marks_with_and_without_assignments() -> None:
    marks = pd.DataFrame({"task": ["t1", "t1", "t2"], "worker": ["ann", "ann", "bob"], "label": ["a", "b", "none"]})
    crowd = LabelSetCrowd.from_marks(marks, empty_label="none")
    assert crowd.to_frame()["labels"].tolist() == [["a", "b"], []]
    seen = {"task": ["t1", "t1"], "worker": ["ann", "bob"]}
    both = LabelSetCrowd.from_marks(marks.iloc[:2], assignments=seen)
    assert both.to_frame()["labels"].tolist() == [["a", "b"], []]
    assert both.votes_per_task.tolist() == [2]


def test_repeated_rows_follow_the_rule() -> None:
    frame = {"task": ["t", "t"], "worker": ["ann", "ann"], "labels": ["a", "b"]}
    with pytest.raises(InputError, match="worker 'ann' answered task 't' twice"):
        LabelSetCrowd.from_frame(frame)
    for rule, labels in (("first", ["a"]), ("last", ["b"]), ("union", ["a", "b"])):
        crowd = LabelSetCrowd.from_frame(frame, duplicates=rule)  # type: ignore[arg-type]  # one of the literals
        assert crowd.to_frame()["labels"].tolist() == [labels]


def test_counts_and_order() -> None:
    crowd = LabelSetCrowd.from_frame(FRAME)
    assert crowd.mark_counts.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    shuffled = pd.DataFrame(FRAME).sample(frac=1, random_state=1)
    assert LabelSetCrowd.from_frame(shuffled) == crowd
    assert "4 votes: 3 tasks x 3 workers, 3 labels, 1.0 labels/vote" in repr(crowd)
    assert "<table" in crowd._repr_html_()


def test_selections_keep_the_vocabularies() -> None:
    crowd = LabelSetCrowd.from_frame(FRAME)
    visible, heldout = crowd.hide(0.5)
    assert visible.n_votes == heldout.n_votes == 2
    assert visible.labels.equals(crowd.labels)
    assert len(visible.label) + len(heldout.label) == len(crowd.label)
    assert crowd.take([1]).to_frame()["labels"].tolist() == [[]]
    with pytest.raises(UsageError, match="between 0 and 1"):
        crowd.hide(1.0)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (None, "1 label set missing"),
        ('["a"', "is no list of labels"),
        ('[["a"]]', "something that is no label"),
        ("[1.5]", "no label"),
    ],
)
def test_unreadable_cells_are_named(cell: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelSetCrowd.from_frame({"task": ["t", "u"], "worker": ["ann", "ann"], "labels": [cell, "a"]})


def test_codes_are_validated() -> None:
    index = pd.Index(["x"])
    with pytest.raises(InputError, match="label"):
        LabelSetCrowd([0], [0], [0], [-1], tasks=index, workers=index, labels=index)
    with pytest.raises(InputError, match="assignment"):
        LabelSetCrowd([0], [0], [1], [0], tasks=index, workers=index, labels=index)
    with pytest.raises(InputError, match="marked twice"):
        LabelSetCrowd([0], [0], [0, 0], [0, 0], tasks=index, workers=index, labels=index)
    with pytest.raises(ValueError, match="read-only"):
        LabelSetCrowd.from_frame(FRAME).label[0] = np.int32(1)


def test_distinct_sets_are_numbered_by_size_and_labels() -> None:
    frame = {"task": [1, 2, 3, 4, 5], "worker": ["w"] * 5, "labels": ["a|b", "b|a", "", "c", "a|c"]}
    sets = LabelSetCrowd.from_frame(frame).distinct_sets
    assert sets.code.tolist() == [2, 2, 0, 1, 3]
    assert [sets.label[begin:end].tolist() for begin, end in zip(sets.offset, sets.offset[1:], strict=False)] == [
        [], [2], [0, 1], [0, 2],
    ]  # fmt: skip


def test_distinct_sets_of_no_votes() -> None:
    empty = LabelSetCrowd.from_frame({"task": ["t"], "worker": ["w"], "labels": ["a"]}).take([False])
    assert empty.distinct_sets.offset.tolist() == [0]
