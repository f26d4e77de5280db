"""Crowds of marks: construction, invalid input, selection and output, for all kinds of marks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.points import PointCrowd
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import InputError

FRAME = pd.DataFrame(
    {
        "task": ["b", "b", "a", "a", "c"],
        "worker": ["y", "x", "x", "x", "y"],
        "x": [1, 2, 3, 5, None],
        "y": [1, 2, 3, 5, None],
        "width": [4, 4, 4, 4, None],
        "height": [4, 4, 4, 4, None],
        "label": ["cat", "dog", "cat", "cat", None],
    }
)


def test_rows_without_coordinates_are_assignments_without_marks() -> None:
    crowd = BoxCrowd.from_frame(FRAME)
    assert (crowd.n_votes, crowd.n_marks, crowd.n_tasks, crowd.n_workers, crowd.n_classes) == (4, 4, 3, 2, 2)
    assert np.diff(crowd.offset).tolist() == [2, 1, 1, 0]
    assert crowd.votes_per_task.tolist() == [1, 2, 1]
    assert crowd.marks_per_worker.tolist() == [3, 1]


def test_assignments_add_workers_who_marked_nothing() -> None:
    seen = {"task": ["a", "a", "d"], "worker": ["x", "y", "z"]}
    crowd = BoxCrowd.from_frame(FRAME, assignments=seen)
    assert crowd.tasks.tolist() == ["a", "b", "c", "d"]
    assert crowd.workers.tolist() == ["x", "y", "z"]
    assert crowd.n_votes == 6


def test_row_order_and_repeated_marks_change_nothing() -> None:
    crowd = BoxCrowd.from_frame(FRAME)
    assert BoxCrowd.from_frame(FRAME.iloc[::-1]) == crowd
    assert BoxCrowd.from_frame(pd.concat([FRAME, FRAME.iloc[:2]])) == crowd
    assert hash(BoxCrowd.from_frame(FRAME.iloc[::-1])) == hash(crowd)


def test_a_table_survives_the_round_trip() -> None:
    crowd = BoxCrowd.from_frame(FRAME)
    frame = crowd.to_frame()
    assert len(frame) == 5
    assert frame["x"].isna().sum() == 1
    assert BoxCrowd.from_frame(frame) == crowd
    spans = SpanCrowd.from_frame({"task": [1, 2], "worker": [1, 1], "start": [0, None], "end": [2, None]})
    assert SpanCrowd.from_frame(spans.to_frame()) == spans
    assert spans.to_frame()["start"].dtype == "Int64"


def test_texts_are_read_as_numbers() -> None:
    table = {"task": ["a", "a"], "worker": ["x", "y"], "x": ["1.5", ""], "y": [" 2", ""]}
    crowd = PointCrowd.from_frame(table)
    assert crowd.coordinates.tolist() == [[1.5, 2.0]]
    assert crowd.n_votes == 2
    with pytest.raises(InputError, match="column x must hold numbers"):
        PointCrowd.from_frame(table | {"x": ["far", ""]})


def test_columns_can_have_other_names() -> None:
    table = {"image": ["a"], "who": ["x"], "x": [1.0], "y": [2.0], "kind": ["cat"]}
    crowd = PointCrowd.from_frame(table, columns={"task": "image", "worker": "who", "label": "kind"})
    assert crowd.classes.tolist() == ["cat"]


def test_selection_keeps_vocabularies_and_splits_all_votes() -> None:
    crowd = BoxCrowd.from_frame(FRAME)
    visible, heldout = crowd.hide(0.5, random_state=1)
    assert visible.n_votes + heldout.n_votes == crowd.n_votes
    assert visible.n_marks + heldout.n_marks == crowd.n_marks
    assert visible.tasks.equals(crowd.tasks)
    assert crowd.take(np.zeros(4, dtype=bool)).n_votes == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": [4, 4, 4, -1, None]}, "1 invalid box, for example x=5.*worker 'x' on task 'a'.*positive width"),
        ({"x": [np.inf, 2, 3, 5, None]}, "expected finite numbers"),
        ({"x": [None, 2, 3, 5, None]}, "1 row with some coordinates missing"),
        ({"label": [None, "dog", "cat", "cat", None]}, "label"),
        ({"x": [True, True, True, True, None]}, "expected numbers"),
    ],
)
def test_invalid_boxes_are_refused(change: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BoxCrowd.from_frame(FRAME.assign(**change))


def test_missing_columns_and_classes_are_named() -> None:
    with pytest.raises(InputError, match="boxes need task, worker, x, y, width, height"):
        BoxCrowd.from_frame(FRAME.drop(columns="width"))
    with pytest.raises(InputError, match="no label column"):
        BoxCrowd.from_frame(FRAME.drop(columns="label"), classes=["a", "b"])


def test_codes_must_match() -> None:
    index = pd.Index(["a"])
    with pytest.raises(InputError, match="one per mark"):
        PointCrowd([0], [0], [0], [0, 0], [[1, 2]], tasks=index, workers=index, classes=index)
    with pytest.raises(InputError, match="1 repeated assignment"):
        PointCrowd([0, 0], [0, 0], [], [], [], tasks=index, workers=index, classes=index)


def test_a_description_names_sizes() -> None:
    crowd: MarkCrowd = BoxCrowd.from_frame(FRAME)
    assert repr(crowd) == "BoxCrowd(4 boxes in 4 votes: 3 tasks x 2 workers, 2 classes)"
    assert "4 boxes" in crowd._repr_html_()
