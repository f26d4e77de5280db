"""The map of the worker space: workers whose matrices are alike stand near each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.map import plane
from wisecrowd.report.workers import Shown
from wisecrowd.utils.text import format_number, format_percent

WIDTH, HEIGHT, EDGE = 720, 440, 40
#: Radius of the smallest and of the largest point.
RADII = (3.0, 11.0)


def drawn(found: Diagnosis, shown: Shown, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Points with their places on the picture; None where there is nothing to compare.

    `wisecrowd.diagnose.map` says where workers stand; two that nobody hired help to read it: one who is always right, and one
    who guesses by the classes' shares.
    """
    places = plane(shown.matrices, found.model.posterior_.mean(axis=0)[shown.classes])
    if places is None:
        return None
    x, y = _fitted(np.concatenate([places.workers, [places.right, places.guess]]))
    radius = _radii(np.array([row["n_votes"] for row in rows], dtype=float))
    points = [
        {
            "x": round(float(x[number]), 1),
            "y": round(float(y[number]), 1),
            "r": round(float(radius[number]), 1),
            "shape": (row["flags"] or ["none"])[0],
            "title": f"{row['name']}: {int(row['n_votes']):,} votes, accuracy {format_number(row['accuracy'])}"
            + (f", {', '.join(row['flags'])}" if row["flags"] else ""),
        }
        for number, row in enumerate(rows)
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        # The large ones first, so that they do not hide the small ones.
        "order": np.argsort(-radius, kind="stable").tolist(),
        "points": points,
        "marks": [
            {"x": round(float(x[place]), 1), "y": round(float(y[place]), 1), "name": name}
            for place, name in ((-2, "always right"), (-1, "guesses"))
        ],
        "held": format_percent(places.held),
    }


def _fitted(place: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both coordinates within the picture; one unit is as long across as it is up, or distances would lie."""
    low, high = place.min(axis=0), place.max(axis=0)
    room = np.array([WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE])
    unit = float((room / np.maximum(high - low, 1e-9)).min())
    middle = (low + high) / 2
    return WIDTH / 2 + unit * (place[:, 0] - middle[0]), HEIGHT / 2 - unit * (place[:, 1] - middle[1])


def _radii(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    small, large = RADII
    return np.asarray(small + (large - small) * np.sqrt(votes / max(votes.max(), 1)))
