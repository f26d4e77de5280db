"""Geometries: merged places are valid marks, and the radius of points is found."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.structured import _geometry
from wisecrowd.aggregate.structured._geometry import BoxGeometry, PointGeometry, SpanGeometry, estimate_radius
from wisecrowd.data.points import PointCrowd
from wisecrowd.simulate.marks import simulate_boxes, simulate_points, simulate_spans


def test_merged_boxes_have_the_sides_of_their_marks() -> None:
    crowd = simulate_boxes(
        n_tasks=1, n_workers=4, votes_per_task=4, objects_per_task=30, false_alarms=0, random_state=3
    ).crowd
    merged = BoxGeometry().merge(crowd, np.zeros(crowd.n_marks, dtype=np.int64), np.ones(1))
    assert (merged.coordinates[0, 2:] > 0).all()
    assert (merged.coordinates[0] >= crowd.coordinates.min(axis=0) - 1e-9).all()
    assert BoxGeometry().measure(np.array([[0.0, 0, 2, 3]])).tolist() == [6]


def test_merged_spans_are_among_those_given() -> None:
    crowd = simulate_spans(n_tasks=1, n_workers=5, votes_per_task=5, objects_per_task=30, false_alarms=0).crowd
    merged = SpanGeometry().merge(crowd, np.zeros(crowd.n_marks, dtype=np.int64), np.ones(1))
    assert merged.coordinates[0].tolist() in crowd.coordinates.tolist()
    assert SpanGeometry().measure(np.array([[2.0, 5.0]])).tolist() == [3]


def test_the_radius_follows_the_noise_and_not_the_distance_of_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    radii = [estimate_radius(simulate_points(boundary_error=error, worker_spread=0).crowd) for error in (2.0, 8.0)]
    assert radii[1] == pytest.approx(4 * radii[0], rel=0.2)
    assert 3 < radii[0] / 2 < 6
    monkeypatch.setattr(_geometry, "MAX_RADIUS_PAIRS", 2000)  # a sample of the tasks
    assert estimate_radius(simulate_points(boundary_error=2.0, worker_spread=0).crowd) == pytest.approx(
        radii[0], rel=0.2
    )


def test_one_worker_has_no_radius_to_estimate() -> None:
    crowd = PointCrowd.from_frame({"task": [1, 1], "worker": [1, 1], "x": [0, 5], "y": [0, 5]})
    assert estimate_radius(crowd) == 1.0
    assert PointGeometry(1.0).measure(crowd.coordinates).tolist() == [1, 1]
