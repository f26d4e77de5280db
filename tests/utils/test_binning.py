"""Bins of predicted probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.utils.binning import assign_bins, check_bins


def test_bins_by_mass_hold_about_equally_many() -> None:
    confidence = np.random.default_rng(0).beta(8, 2, size=1000)
    counts = np.bincount(assign_bins(confidence, 10, "mass"))
    np.testing.assert_allclose(counts, 100, atol=1)


@pytest.mark.parametrize("bins", ["width", "mass"])
def test_equal_confidences_share_a_bin(bins: str) -> None:
    confidence = np.repeat([0.5, 0.8, 1.0], [5, 90, 5])
    assigned = assign_bins(confidence, 10, bins)
    assert len({(value, number) for value, number in zip(confidence, assigned, strict=True)}) == 3


def test_invalid_bins() -> None:
    with pytest.raises(UsageError, match="n_bins must be one or more; got 0"):
        check_bins(0, "width")
    with pytest.raises(UsageError, match="bins must be one of 'width', 'mass'; got 'weight'"):
        check_bins(5, "weight")
