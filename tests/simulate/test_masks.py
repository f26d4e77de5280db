"""Simulated masks have the rates that they were drawn with."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data.vote_patterns import find_vote_patterns
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.mask_metrics import score_masks
from wisecrowd.simulate import masks as module
from wisecrowd.simulate.masks import simulate_masks


def test_rates_of_pixels() -> None:
    made = simulate_masks(n_tasks=20, n_workers=3, votes_per_task=3, boundary_noise=0, sensitivity=0.8, specificity=0.9)
    crowd = made.crowd
    for number in range(3):
        rows = np.flatnonzero(crowd.worker == number)
        truth = [made.truth.to_array(task) for task in crowd.task[rows]]
        marks = [crowd.masks.to_array(row) for row in rows]
        hits = np.concatenate([mask[true] for mask, true in zip(marks, truth, strict=True)]).mean()
        alarms = np.concatenate([mask[~true] for mask, true in zip(marks, truth, strict=True)]).mean()
        assert hits == pytest.approx(made.workers["sensitivity"].iloc[number], abs=0.02)
        assert 1 - alarms == pytest.approx(made.workers["specificity"].iloc[number], abs=0.01)


def test_smooth_masks_differ_at_the_boundary_only(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"n_tasks": 10, "sensitivity": 1.0, "specificity": 1.0, "random_state": 4}
    exact = simulate_masks(boundary_noise=0, **options)  # type: ignore[arg-type]  # mixed types
    assert score_masks(exact.crowd.masks, exact.truth.take(exact.crowd.task))["iou"].min() == 1
    rough = simulate_masks(boundary_noise=0.1, **options)  # type: ignore[arg-type]  # mixed types
    assert 0.6 < score_masks(rough.crowd.masks, rough.truth.take(rough.crowd.task))["iou"].mean() < 0.95
    assert find_vote_patterns(rough.crowd).n_pixels.sum() == 10 * 40 * 50
    monkeypatch.setattr(module, "PIXELS_PER_CHUNK", 3 * 40 * 50 * 5)
    assert simulate_masks(boundary_noise=0.1, **options).crowd == rough.crowd  # type: ignore[arg-type]  # mixed types


def test_wrong_sizes_and_rates_are_refused() -> None:
    with pytest.raises(UsageError, match="votes_per_task=9"):
        simulate_masks(n_workers=3, votes_per_task=9)
    with pytest.raises(UsageError, match="sensitivity and specificity"):
        simulate_masks(sensitivity=0)
