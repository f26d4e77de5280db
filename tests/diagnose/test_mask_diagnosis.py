"""Diagnosis of masks: planted workers are flagged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import MaskCrowd, Staple, diagnose_masks, simulate_boxes, simulate_masks
from wisecrowd.diagnose import MaskDiagnosis
from wisecrowd.errors import InputError, UsageError


def draw(worker: int, rng: np.random.Generator) -> Any:
    """Draw a disc of radius 8; w0 draws too small, w1 too large, w2 nothing, w3 the background, w4 beside it, w5 elsewhere."""
    y, x = np.mgrid[:30, :40]
    radius = {0: 6.0, 1: 10.5}.get(worker, 8.0) + rng.normal(0, 0.2)
    centre = np.array([15, 20]) + (rng.choice([-1, 1], 2) * 2.2 if worker == 4 else rng.normal(0, 0.2, 2))
    centre = np.array([6, 6]) if worker == 5 else centre
    disc = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 < radius**2
    return np.zeros_like(disc) if worker == 2 else ~disc if worker == 3 else disc


@pytest.fixture(scope="module")
def diagnosis() -> MaskDiagnosis:
    rng = np.random.default_rng(0)
    rows = [(f"t{task:02d}", f"w{worker:02d}", draw(worker, rng)) for task in range(12) for worker in range(14)]
    return diagnose_masks(MaskCrowd.from_arrays(*zip(*rows, strict=True)))


def test_planted_workers_are_flagged(diagnosis: MaskDiagnosis) -> None:
    workers = diagnosis.workers
    flags = workers["flags"].to_dict()
    assert "too-small" in flags["w00"]
    assert "too-large" in flags["w01"]
    assert flags["w02"] == "silent"
    assert flags["w03"] == "inverted"
    assert flags["w04"] == "imprecise"
    assert flags["w05"] == "elsewhere"
    assert (workers["flags"].iloc[6:] == "").all()
    assert "of the area of the results" in workers["why"]["w00"]
    assert diagnosis.overview["flagged_workers"] == 6
    assert "flagged workers: 6" in repr(diagnosis)


def test_the_table_has_rates_areas_and_agreement(diagnosis: MaskDiagnosis) -> None:
    workers = diagnosis.workers
    assert workers.loc["w00", "area_ratio"] == pytest.approx(36 / 64, abs=0.1)
    assert workers.loc["w02", "empty_share"] == 1
    assert workers.loc["w00", "sensitivity"] < workers.loc["w06", "sensitivity"]
    assert workers.loc["w06", "agreement"] > workers.loc["w06", "pairwise_iou"] > workers.loc["w04", "pairwise_iou"]
    assert diagnosis.overview["agreement"] == pytest.approx(diagnosis.agreement.mean_dice, abs=1e-4)
    assert diagnosis.tasks["confidence"].is_monotonic_increasing


def test_good_workers_and_few_masks_have_no_flags() -> None:
    crowd = simulate_masks(n_tasks=12, n_workers=5, votes_per_task=4, worker_spread=0.1, random_state=0).crowd
    assert (diagnose_masks(crowd, model="mask-majority").workers["flags"] == "").all()
    few = MaskCrowd.from_arrays(["i", "i", "i"], list("abc"), [[[1, 0]], [[1, 0]], [[0, 0]]])
    assert (diagnose_masks(few, model=Staple().fit(few)).workers["flags"] == "").all()
    empty = MaskCrowd.from_arrays(["i", "i"], list("ab"), [[[0, 0]], [[0, 0]]])
    assert np.isnan(diagnose_masks(empty).workers["area_ratio"]).all()


def test_other_votes_and_methods_are_refused() -> None:
    boxes = simulate_boxes(n_tasks=2, n_workers=3, votes_per_task=2).crowd
    with pytest.raises(InputError, match="expected a MaskCrowd; got BoxCrowd"):
        diagnose_masks(boxes)  # type: ignore[arg-type]
    masks = MaskCrowd.from_arrays(["i"], ["a"], [[[1, 0]]])
    with pytest.raises(UsageError, match="model must infer masks, such as 'staple'"):
        diagnose_masks(masks, model="dawid-skene")
