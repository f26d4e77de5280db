"""Majority vote on pixels, with and without weights."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import MaskCrowd, MaskMajority
from wisecrowd.errors import UsageError

RNG = np.random.default_rng(2)
STACK = RNG.random((4, 5, 6)) < 0.5
CROWD = MaskCrowd.from_arrays(["i"] * 4, list("abcd"), list(STACK))


def test_half_of_the_workers_decide() -> None:
    fitted = MaskMajority().fit(CROWD)
    assert (fitted.mask_of("i") == (STACK.mean(axis=0) >= 0.5)).all()
    assert fitted.probability_of("i") == pytest.approx(STACK.mean(axis=0))
    chosen = fitted.mask_of("i")
    assert fitted.sensitivity_ == pytest.approx([mask[chosen].mean() for mask in STACK])
    assert fitted.specificity_ == pytest.approx([1 - mask[~chosen].mean() for mask in STACK])
    assert fitted.iou_ == pytest.approx([(mask & chosen).sum() / (mask | chosen).sum() for mask in STACK])


def test_weights_by_overlap() -> None:
    """The result is a fixed point of weights and weighted vote, as in SegmentationRASA."""
    fitted = MaskMajority(weights="task", max_iter=50).fit(CROWD)
    chosen = fitted.mask_of("i")
    distance = np.array([1 - (mask & chosen).sum() / (mask | chosen).sum() for mask in STACK])
    weight = np.log1p(1 / np.maximum(distance, 0.01))
    assert (chosen == (np.tensordot(weight / weight.sum(), STACK, 1) >= 0.5)).all()
    assert fitted.converged_


def test_weights_of_workers_are_learnt_on_other_tasks() -> None:
    disc = np.add.outer((np.arange(12) - 6) ** 2, (np.arange(12) - 6) ** 2) < 16
    noise = RNG.random((6, 12, 12)) < 0.5
    masks = [mask for number in range(6) for mask in (disc, np.roll(disc, 1, 0), noise[number])]
    crowd = MaskCrowd.from_arrays(np.repeat(np.arange(6), 3).tolist(), ["a", "b", "spam"] * 6, masks)
    # On task 0, the spammer and b happen to agree on nothing else.
    fitted = MaskMajority(weights="worker").fit(crowd)
    assert fitted.workers_["iou"].idxmin() == "spam"


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="weights"):
        MaskMajority(weights="x").fit(CROWD)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(UsageError, match="shrinkage must be 0 or more"):
        MaskMajority(shrinkage=-1).fit(CROWD)
