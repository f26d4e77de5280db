"""Pseudo-random numbers from keys."""

from __future__ import annotations

import numpy as np

from wisecrowd.utils.hashing import mix_bits, to_unit_interval


def test_hashes_of_consecutive_keys_are_uniform_and_uncorrelated() -> None:
    uniform = to_unit_interval(mix_bits(np.arange(100_000, dtype=np.uint64)))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    np.testing.assert_allclose(np.histogram(uniform, bins=10, range=(0, 1))[0] / len(uniform), 0.1, atol=0.005)
    assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.01


def test_the_largest_key_stays_below_one() -> None:
    assert to_unit_interval(np.array([2**64 - 1], dtype=np.uint64))[0] < 1
