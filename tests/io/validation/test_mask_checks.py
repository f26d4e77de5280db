"""Checks of masks at their thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd import MaskCrowd, check_votes
from wisecrowd.io.validation.mask_checks import check_masks
from wisecrowd.simulate.masks import simulate_masks

CROWD = simulate_masks(n_tasks=6, n_workers=3, votes_per_task=3, height=10, width=10, specificity=1.0).crowd


def change(rows: Any, array: Any) -> MaskCrowd:
    """Return the crowd with other masks in some rows."""
    arrays = [CROWD.masks.to_array(row) for row in range(CROWD.n_votes)]
    for row in np.flatnonzero(rows):
        arrays[row] = array
    frame = CROWD.to_frame()
    return MaskCrowd.from_arrays(frame["task"].tolist(), frame["worker"].tolist(), arrays)


def names(crowd: MaskCrowd) -> list[str]:
    return [finding.name for finding in check_masks(crowd)]


def test_sound_masks_have_no_findings() -> None:
    assert names(CROWD) == []


def test_full_and_empty_masks() -> None:
    assert names(change(np.arange(CROWD.n_votes) == 2, np.ones((10, 10)))) == ["full-masks"]
    assert names(change(CROWD.worker == 1, np.zeros((10, 10)))) == ["one-answer-workers"]
    assert names(CROWD.take([])) == ["empty-file"]
    unsized: dict[str, Any] = {"task": ["i"] * 3, "worker": [1, 2, 3], "mask": [None] * 3}
    assert "unknown-sizes" in names(MaskCrowd.from_frame(unsized))


def test_tables_are_recognised() -> None:
    report = check_votes(CROWD.to_frame())
    assert report.ok
    assert "masks" in report.notes[0].message
    assert check_votes(CROWD).summary.startswith("MaskCrowd")
    damaged = CROWD.to_frame().assign(mask='{"size": [10, 10], "counts": [99]}')
    message = next(finding.message for finding in check_votes(damaged).errors)
    assert message.startswith("the counts of mask 0 have the sum 99")
