"""Map of the workers: workers with similar confusion matrices are close to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.map import map_workers
from wisecrowd.report.workers import ShownWorkers
from wisecrowd.utils.text import count_noun, format_number, format_percent

#: Size of the picture and of its margin, in pixels.
WIDTH, HEIGHT, MARGIN = 720, 440, 40
#: Radius of the smallest and of the largest point, in pixels.
MIN_RADIUS, MAX_RADIUS = 3.0, 11.0


def build_map(diagnosis: Diagnosis, shown: ShownWorkers, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Build the content of the map.

    `wisecrowd.diagnose.map` computes the positions. Two reference workers help to read the map: one who is always right, and
    one who guesses by the frequency of the classes.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers on the page.
    rows : list of dict
        Rows of the table of workers.

    Returns
    -------
    dict or None
        Variables of the template; None where there are too few workers or classes.
    """
    positions = map_workers(shown.confusion, diagnosis.model.posterior_.mean(axis=0)[shown.classes])
    if positions is None:
        return None
    references = [positions.perfect_worker, positions.guessing_worker]
    x, y = _scale_to_picture(np.concatenate([positions.workers, references]))
    radius = _compute_radii(np.array([row["n_votes"] for row in rows], dtype=float))
    return {
        "width": WIDTH,
        "height": HEIGHT,
        # Large points are drawn first, so that they do not hide small ones.
        "order": np.argsort(-radius, kind="stable").tolist(),
        "points": [
            {
                "x": round(float(x[number]), 1),
                "y": round(float(y[number]), 1),
                "r": round(float(radius[number]), 1),
                "shape": (row["flags"] or ["none"])[0],
                "title": _describe_point(row),
            }
            for number, row in enumerate(rows)
        ],
        "marks": [
            {"x": round(float(x[position]), 1), "y": round(float(y[position]), 1), "name": name}
            for position, name in ((-2, "always right"), (-1, "guesses"))
        ],
        "explained_share": format_percent(positions.explained_share),
    }


def _describe_point(row: dict[str, Any]) -> str:
    flags = f", {', '.join(row['flags'])}" if row["flags"] else ""
    return f"{row['name']}: {count_noun(int(row['n_votes']), 'vote')}, accuracy {format_number(row['accuracy'])}{flags}"


def _scale_to_picture(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coordinates in pixels; both axes have the same unit, so that distances are not distorted."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    unit = float((size / np.maximum(high - low, 1e-9)).min())
    centre = (low + high) / 2
    return WIDTH / 2 + unit * (points[:, 0] - centre[0]), HEIGHT / 2 - unit * (points[:, 1] - centre[1])


def _compute_radii(n_votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return radii whose squares grow with the number of votes."""
    return np.asarray(MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * np.sqrt(n_votes / max(n_votes.max(), 1)))
