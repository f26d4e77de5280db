"""The map of the worker space: workers whose matrices are alike stand near each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.report import _words as words
from wisecrowd.report._workers import Shown

WIDTH, HEIGHT, EDGE = 720, 440, 40
#: Radius of the smallest and of the largest point.
RADII = (3.0, 11.0)


def drawn(found: Diagnosis, shown: Shown, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Points with their places on the picture; None where there is nothing to compare.

    Distances are those of Hellinger between matrices that are drawn toward the crowd's, each true class counting as often as
    it occurs. They are scaled to two dimensions classically, which for these distances is the singular value decomposition.
    Two workers that nobody hired help to read it: one who is always right, and one who guesses by the classes' shares.
    """
    n_workers, n_classes = shown.matrices.shape[:2]
    if n_workers < 3 or n_classes < 2:
        return None
    share = found.model.posterior_.mean(axis=0)[shown.classes]
    share = share / share.sum()
    guess = np.broadcast_to(share, (n_classes, n_classes))
    flat = _flat(shown.matrices, share)
    centre = flat.mean(axis=0)
    _, size, axes = np.linalg.svd(flat - centre, full_matrices=False)
    total = float((size**2).sum())
    if total < 1e-12:
        return None
    marks = _flat(np.stack([np.eye(n_classes), guess]), share)
    x, y = _fitted(_turned(np.concatenate([(part - centre) @ axes[:2].T for part in (flat, marks)])))
    radius = _radii(np.array([row["n_labels"] for row in rows], dtype=float))
    points = [
        {
            "x": round(float(x[number]), 1),
            "y": round(float(y[number]), 1),
            "r": round(float(radius[number]), 1),
            "shape": (row["flags"] or ["none"])[0],
            "title": f"{row['name']}: {int(row['n_labels']):,} votes, accuracy {words.number(row['accuracy'])}"
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
        "held": words.percent(float((size[:2] ** 2).sum()) / total),
    }


def _flat(matrices: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(matrices * share[:, None]).reshape(len(matrices), -1))


def _turned(place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turned, which changes no distance, so that the way from guessing to being always right leads to the right."""
    along, up = place[-2] - place[-1]
    length = float(np.hypot(along, up)) or 1.0
    turned = place @ np.array([[along, -up], [up, along]]) / length
    # A sign for the other direction that does not depend on the machine.
    furthest = turned[np.abs(turned[:, 1]).argmax(), 1]
    return np.asarray(turned * [1.0, -1.0 if furthest < 0 else 1.0])


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
