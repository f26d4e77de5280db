"""Checks of boxes, points and spans at their thresholds."""

from __future__ import annotations

from typing import Any

import pandas as pd

from wisecrowd import BoxCrowd, PointCrowd, PolygonCrowd, SpanCrowd, check_votes
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.mark_checks import check_marks


def rows(n_tasks: int = 6, workers: str = "xyz") -> pd.DataFrame:
    """Return boxes of all workers on all tasks, and a task without any."""
    table = pd.DataFrame([(task, who) for task in range(n_tasks) for who in workers], columns=["task", "worker"])
    table = table.assign(x=10.0, y=10.0, width=5.0, height=5.0, label="cat")
    table.loc[table["task"] == 0, ["x", "y", "width", "height", "label"]] = None
    return table


def check(frame: pd.DataFrame, kind: Any = BoxCrowd) -> dict[str, Finding]:
    return {finding.name: finding for finding in check_marks(kind.from_frame(frame))}


def test_sound_boxes_have_no_findings() -> None:
    assert check(rows()) == {}


def test_missing_empty_votes_are_a_warning() -> None:
    findings = check(rows().dropna())
    assert findings["no-empty-votes"].severity == "warning"
    assert "assignments" in findings["no-empty-votes"].fix


def test_silent_workers_are_named() -> None:
    frame = rows(workers="wxyz")
    frame.loc[frame["worker"] == "w", ["x", "y", "width", "height", "label"]] = None
    assert check(frame)["silent-workers"].examples == ("w",)


def test_objects_that_a_worker_marked_twice() -> None:
    again = rows().dropna().head(1).assign(x=10.1)
    assert check(pd.concat([rows(), again]))["objects-marked-twice"].count == 1
    assert "objects-marked-twice" not in check(pd.concat([rows(), again.assign(x=13.0)]))
    assert "objects-marked-twice" not in check(pd.concat([rows(), again]), PointCrowd)


def test_polygons_that_a_worker_drew_twice() -> None:
    square, shifted, triangle = "[0, 0, 50, 0, 50, 50, 0, 50]", "[1, 0, 51, 0, 51, 50, 1, 50]", "[0, 0, 50, 0, 0, 50]"
    frame = pd.DataFrame({"task": [1, 1, 1, 2], "worker": list("aaba"), "polygon": [square, shifted, square, square]})
    assert check(frame, PolygonCrowd)["objects-marked-twice"].count == 1
    frame.loc[1, "polygon"] = triangle  # the same box, another shape
    assert "objects-marked-twice" not in check(frame, PolygonCrowd)


def test_places_outside_and_in_other_units() -> None:
    frame = rows()
    assert check(frame.assign(x=frame["x"] - 11))["negative-coordinates"].count == 15
    frame.loc[3, ["width", "height"]] = 0.01
    assert check(frame)["extreme-sizes"].count == 1


def test_nothing_to_decide() -> None:
    frame = rows().assign(x=None, y=None, width=None, height=None, label=None)
    assert "no-marks" in check(frame)
    assert "empty-file" in check(rows().head(0))


def test_tables_are_recognised_and_problems_named() -> None:
    spans = {"task": ["a", "a"], "worker": ["x", "y"], "start": [3, 4], "end": [5, 4], "label": ["P", "P"]}
    assert "reversed-spans: 1 span that ends at or before its start (row 1)" in str(check_votes(spans))
    report = check_votes(spans | {"end": [5, 6]})
    assert report.ok
    assert "spans" in report.notes[0].message
    assert check_votes(SpanCrowd.from_frame(spans | {"end": [5, 6]})).summary.startswith("SpanCrowd")
