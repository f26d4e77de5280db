"""Logarithms of probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kernels.expectation import MIN_PROB, log_table


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_count_as_the_smallest_probability(dtype: type) -> None:
    table = np.array([[1.0, 0.5], [0.0, MIN_PROB / 4]], dtype=dtype)
    logs = log_table(table)
    assert logs.dtype == dtype
    np.testing.assert_allclose(logs, [[0, np.log(0.5)], [np.log(MIN_PROB)] * 2], rtol=1e-6)
    assert table[1, 0] == 0, "the argument is not changed"


def test_a_nan_stays() -> None:
    assert np.isnan(log_table(np.array([np.nan]))).all()
