"""Polygons: objects, merged outlines, and persistence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd import PolygonConsensus, load, score_objects
from wisecrowd.data.polygon_rings import parse_polygons
from wisecrowd.data.polygons import PolygonCrowd
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.simulate.polygons import simulate_polygons


@pytest.fixture(scope="module")
def made() -> Any:
    return simulate_polygons(n_tasks=40, n_workers=8, n_classes=2, boundary_error=0.08, random_state=1)


@pytest.fixture(scope="module")
def fitted(made: Any) -> PolygonConsensus:
    with ignore_fit_warnings():
        return PolygonConsensus().fit(made.crowd)


def test_objects_are_found(made: Any, fitted: PolygonConsensus) -> None:
    assert score_objects(fitted.objects_, made.truth, kind="polygons").f1 > 0.85
    # Merged outlines are nearer to the truth than those of single workers.
    marks = made.crowd.to_frame().dropna()
    shares = [
        score_objects(table, made.truth, kind="polygons", min_iou=0.85, match_labels=False).recall
        for table in (fitted.objects_, marks[marks["worker"] == marks["worker"].iloc[0]])
    ]
    assert shares[0] > shares[1] + 0.2


def test_models_survive(fitted: PolygonConsensus, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    restored: Any = load(tmp_path / "model")
    assert restored.candidates_.equals(fitted.candidates_)
    restored.vertex_offset_ = restored.vertex_offset_ + 1
    with pytest.raises(ValueError, match="vertex_offset_ must ascend"):
        restored.check_restored()
    restored.vertex_offset_ = fitted.vertex_offset_
    restored.object_coordinates_ = fitted.object_coordinates_ * 0
    with pytest.raises(ValueError, match="the position of their vertices"):
        restored.check_restored()


def test_most_workers_decide_the_outline() -> None:
    square, large = [[0, 0], [10, 0], [10, 10], [0, 10]], [[0, 0], [14, 0], [14, 10], [0, 10]]
    rows = {"task": ["i"] * 3, "worker": list("abc"), "polygon": [str(square), str(square), str(large)]}
    with ignore_fit_warnings():
        objects = PolygonConsensus().fit(PolygonCrowd.from_frame(rows)).objects_
    ring = parse_polygons(objects["polygon"].tolist())
    assert ring.boxes[0] == pytest.approx([0, 0, 10, 10], abs=0.3)
    assert ring.area[0] == pytest.approx(100, rel=0.02)


def test_a_single_polygon_stays_as_it_was_drawn() -> None:
    polygon = "[[0, 0], [7, 1], [3, 9.5]]"
    with ignore_fit_warnings():
        fitted = PolygonConsensus().fit({"task": ["i", "j"], "worker": ["a", "a"], "polygon": [polygon, None]})
    assert fitted.candidates_["polygon"].tolist() == [polygon]
    assert np.isfinite(fitted.workers_["detection_rate"]).all()
