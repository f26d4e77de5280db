"""Standardisation of features."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from wisecrowd.classifiers.standardiser import Standardiser

X = np.random.default_rng(0).normal(5, 3, (50, 4))


def test_it_equals_scikit_learn() -> None:
    np.testing.assert_allclose(Standardiser().fit(X).apply(X[:7] + 1), StandardScaler().fit(X).transform(X[:7] + 1))


def test_the_first_data_count() -> None:
    standardiser = Standardiser().fit(X)
    expected = standardiser.apply(X)
    np.testing.assert_array_equal(standardiser.fit(X * 100).apply(X), expected)


def test_constant_features_become_zero() -> None:
    """The mean of equal numbers is rounded, so that their deviation is not exactly zero."""
    constant = np.full((1000, 1), 0.1) + 1e6
    assert np.abs(Standardiser().fit(constant).apply(constant)).max() < 1e-6


def test_one_row_is_enough() -> None:
    assert Standardiser().fit(X[:1]).apply(X[:1]).tolist() == [[0, 0, 0, 0]]
