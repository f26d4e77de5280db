"""Simulated polygons lie in the boxes that they were drawn into."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data.polygon_rings import parse_polygons
from wisecrowd.errors import UsageError
from wisecrowd.simulate.marks import simulate_boxes
from wisecrowd.simulate.polygons import simulate_polygons


def test_polygons_fill_their_boxes() -> None:
    made = simulate_polygons(n_tasks=8, n_workers=4, votes_per_task=3, vertex_error=0, random_state=3)
    boxes = simulate_boxes(n_tasks=8, n_workers=4, votes_per_task=3, random_state=3)
    truth = parse_polygons(made.truth["polygon"].tolist())
    sides = boxes.truth[["x", "y", "width", "height"]].to_numpy()
    assert truth.boxes == pytest.approx(sides, rel=1e-6)
    assert truth.area == pytest.approx(sides[:, 2:].prod(axis=1) * 0.75, rel=1e-6)  # a regular twelve-gon
    assert np.sort(made.crowd.coordinates[:, 0]) == pytest.approx(np.sort(boxes.crowd.coordinates[:, 0]))
    assert made.crowd.classes.tolist() == made.truth["label"].unique().tolist() == ["polygon"]


def test_wrong_options_are_refused() -> None:
    with pytest.raises(UsageError, match="three or more vertices"):
        simulate_polygons(n_vertices=2)
