"""Simulated polygons with known objects and known workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.polygon_rings import PolygonRings
from wisecrowd.data.polygons import PolygonCrowd, format_polygons
from wisecrowd.errors import UsageError
from wisecrowd.simulate.marks import SimulatedMarks, simulate_boxes


def simulate_polygons(
    *, n_vertices: int = 12, vertex_error: float = 0.05, random_state: int = 0, **options: Any
) -> SimulatedMarks[PolygonCrowd]:
    """Simulate workers who draw polygons around elliptic objects of images.

    A worker sees the box of an object as in `simulate_boxes` and draws an ellipse into it, with an error of every vertex.

    Parameters
    ----------
    n_vertices : int, default=12
        Number of vertices of a polygon.
    vertex_error : float, default=0.05
        Standard deviation of the distance of a vertex from the centre, relative to the distance.
    random_state : int, default=0
        Seed.
    **options
        Options of `simulate_boxes`, such as n_tasks, n_workers and detection_rate.

    Returns
    -------
    SimulatedMarks

    Raises
    ------
    UsageError
        If a size or a rate is outside its range.

    Examples
    --------
    >>> simulation = simulate_polygons(n_tasks=10, n_workers=5, votes_per_task=2)
    >>> simulation.crowd.n_votes
    20
    """
    if n_vertices < 3 or not 0 <= vertex_error < 0.3:
        raise UsageError(
            f"polygons need three or more vertices and a vertex_error from 0 to 0.3; got {n_vertices} and {vertex_error}"
        )
    made = simulate_boxes(random_state=random_state, **options)
    rng = np.random.default_rng([random_state, 1])
    boxes = made.crowd
    jitter = 1 + vertex_error * np.clip(rng.standard_normal((boxes.n_marks, n_vertices)), -3, 3)
    crowd = PolygonCrowd(
        boxes.task, boxes.worker, boxes.mark, boxes.label, _draw_ellipses(boxes.coordinates, jitter),
        tasks=boxes.tasks, workers=boxes.workers, classes=boxes.classes.str.replace("box", "polygon"),
    )  # fmt: skip
    sides = made.truth[["x", "y", "width", "height"]].to_numpy(dtype=np.float64)
    rings = _draw_ellipses(sides, np.ones((len(sides), n_vertices)))
    truth = made.truth.drop(columns=["x", "y", "width", "height"])
    truth.insert(1, "polygon", pd.Series(format_polygons(rings), dtype=object))
    return SimulatedMarks(crowd, truth.replace({"label": {"box": "polygon"}}), made.workers)


def _draw_ellipses(boxes: NDArray[np.float64], radius: NDArray[np.float64]) -> PolygonRings:
    """Return polygons in boxes, with a relative distance of every vertex from the centre."""
    n, n_vertices = radius.shape
    angle = 2 * np.pi * np.arange(n_vertices) / n_vertices
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    centre, half = boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:] / 2
    points = centre[:, None, :] + half[:, None, :] * unit[None] * radius[:, :, None]
    return PolygonRings(np.arange(n + 1) * n_vertices, points.reshape(-1, 2))
