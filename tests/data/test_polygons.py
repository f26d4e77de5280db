"""Crowds of polygons: tables, order of contents, and selections."""

from __future__ import annotations

from typing import Any

import pandas as pd

from wisecrowd.data.polygons import PolygonCrowd
from wisecrowd.simulate.polygons import simulate_polygons

ROWS: dict[str, Any] = {
    "task": ["b", "a", "a", "a"],
    "worker": ["ann", "bob", "ann", "bob"],
    "polygon": ["[[0, 0], [4, 0], [0, 2]]", [[1, 1], [4, 0], [0, 2]].__str__(), None, "[[0, 0], [4, 0], [0, 2]]"],
    "label": ["x", "y", None, "y"],
}


def test_tables_survive_and_rows_have_no_order() -> None:
    crowd = PolygonCrowd.from_frame(ROWS)
    assert (crowd.n_votes, crowd.n_marks, len(crowd.rings)) == (3, 3, 2)
    assert PolygonCrowd.from_frame(crowd.to_frame()) == crowd
    assert PolygonCrowd.from_frame(pd.DataFrame(ROWS).iloc[::-1]) == crowd
    lists = {**ROWS, "polygon": [[0, 0, 4, 0, 0, 2], [1, 1, 4, 0, 0, 2], None, [0, 0, 4, 0, 0, 2]]}
    assert PolygonCrowd.from_frame(lists) == crowd


def test_a_polygon_that_a_worker_drew_twice_counts_once() -> None:
    twice = {"task": ["a", "a"], "worker": ["ann", "ann"], "polygon": [ROWS["polygon"][0]] * 2}
    assert PolygonCrowd.from_frame(twice).n_marks == 1


def test_selections_have_their_rings() -> None:
    crowd = simulate_polygons(n_tasks=5, n_workers=4, votes_per_task=3).crowd
    part = crowd.take(crowd.task == 2)
    expected = crowd.to_frame()
    assert part.to_frame()["polygon"].tolist() == expected[expected["task"] == "t2"]["polygon"].tolist()
    visible, heldout = crowd.hide(0.4)
    assert visible.n_marks + heldout.n_marks == crowd.n_marks
    # Equal boxes, different vertices.
    other = PolygonCrowd.from_frame({**ROWS, "polygon": ["[[0, 0], [4, 0], [4, 2]]", *ROWS["polygon"][1:]]})
    assert other != PolygonCrowd.from_frame(ROWS)
