"""STAPLE: recovered rates, and results better than a majority."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import MaskCrowd, MaskMajority, Staple, score_masks
from wisecrowd.simulate.masks import simulate_masks


def test_rates_are_recovered() -> None:
    made = simulate_masks(n_tasks=40, n_workers=8, sensitivity=0.85, specificity=0.95, boundary_noise=0, random_state=1)
    fitted = Staple(region="image").fit(made.crowd)
    assert fitted.sensitivity_ == pytest.approx(made.workers["sensitivity"].to_numpy(), abs=0.02)
    assert fitted.specificity_ == pytest.approx(made.workers["specificity"].to_numpy(), abs=0.01)
    iou = score_masks(fitted.runs_, made.truth)["iou"].mean()
    # With errors of the model, the expected overlap is the real one.
    assert fitted.expected_iou_.mean() == pytest.approx(iou, abs=0.02)


def test_unequal_workers_weigh_unequally() -> None:
    made = simulate_masks(
        n_tasks=30, n_workers=10, sensitivity=0.8, specificity=0.9, boundary_noise=0, worker_spread=1.5, random_state=3
    )
    overlap = [
        score_masks(method.fit(made.crowd).runs_, made.truth)["iou"].mean() for method in (Staple(), MaskMajority())
    ]
    assert overlap[0] > overlap[1] + 0.02


def test_a_pixel_that_nobody_marked_is_never_chosen() -> None:
    empty = MaskCrowd.from_arrays(
        ["i", "i", "j"], ["a", "b", "a"], [np.zeros((2, 2)), np.zeros((2, 2)), np.ones((2, 2))]
    )
    fitted = Staple().fit(empty)
    assert fitted.runs_.area.tolist() == [0, 4]
    assert np.isfinite(fitted.expected_iou_).all()
