"""Colours of heat maps."""

from __future__ import annotations

import numpy as np

from wisecrowd.report.heat_maps import COLOUR_STEPS, MIN_STEP, build_heat_map, colour_steps


def test_errors_and_right_labels_have_scales_of_their_own() -> None:
    heat = build_heat_map(np.array([[0.9, 0.1], [0.05, 0.95]]))
    steps = [[cell["step"] for cell in row] for row in heat["cells"]]
    assert steps == [[MIN_STEP, COLOUR_STEPS], [COLOUR_STEPS // 2, COLOUR_STEPS]]
    assert [(scale["kind"], scale["name"], scale["low"], scale["high"]) for scale in heat["scales"]] == [
        ("d", "right", 0.9, 0.95),
        ("o", "wrong", 0.0, 0.1),
    ]


def test_close_values_look_different() -> None:
    """On a scale from 0 to 1, the shares 0.92, 0.95 and 0.98 would have the same colour."""
    shares = np.array([[1.0, 0.92, 0.95], [0.92, 1.0, 0.98], [0.95, 0.98, 1.0]])
    cells = build_heat_map(shares, errors=False)["cells"]
    assert len({cells[0][1]["step"], cells[0][2]["step"], cells[1][2]["step"]}) == 3
    assert cells[0][0]["step"] == 0  # a method agrees with itself


def test_empty_cells_have_no_colour() -> None:
    heat = build_heat_map(np.array([[np.nan, 0.5], [0.7, np.nan]]), errors=False)
    assert [[cell["step"] for cell in row] for row in heat["cells"]] == [[0, MIN_STEP], [COLOUR_STEPS, 0]]
    assert build_heat_map(np.full((2, 2), np.nan))["scales"] == []


def test_equal_values_have_one_colour() -> None:
    (scale,) = build_heat_map(np.full((2, 2), 0.8), errors=False)["scales"]
    assert len(scale["steps"]) == 1
    assert colour_steps(np.array([0.0, 0.5]), 0.5, 0.5).tolist() == [0, MIN_STEP]
