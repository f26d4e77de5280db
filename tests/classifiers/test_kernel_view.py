"""Views of the features."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.classifiers.kernel_view import FeatureTransform, compute_median_distance, compute_squared_distances


@pytest.fixture
def X() -> np.ndarray:  # noqa: N802
    return np.random.default_rng(0).normal(size=(30, 4)) * [1, 10, 100, 0]


def test_clipping_bounds_outliers_and_keeps_the_order(X: np.ndarray) -> None:
    transform = FeatureTransform("clipped").fit(X)
    far = transform.apply(X + np.array([1e6, 0, 0, 0]))
    assert np.abs(far).max() <= 3
    assert (transform.apply(X)[:, 0].argsort() == X[:, 0].argsort()).all()


def test_roots_have_length_one_and_a_row_of_means_stays_zero(X: np.ndarray) -> None:
    transform = FeatureTransform("roots").fit(X)
    np.testing.assert_allclose(np.linalg.norm(transform.apply(X), axis=1), 1)
    constant = FeatureTransform("roots").fit(np.ones((3, 2)))
    assert (constant.apply(np.ones((3, 2))) == 0).all()


def test_shift_and_scale_are_those_of_the_training_tasks(X: np.ndarray) -> None:
    transform = FeatureTransform("clipped").fit(X)
    np.testing.assert_allclose(transform.apply(X)[:5], transform.apply(X[:5]))


def test_distances_are_euclidean_and_never_negative(X: np.ndarray) -> None:
    distances = compute_squared_distances(X, X[:7])
    np.testing.assert_allclose(distances, ((X[:, None] - X[None, :7]) ** 2).sum(axis=2), atol=1e-8)
    assert (distances >= 0).all()


@pytest.mark.parametrize("rows", [np.ones((5, 2)), np.ones((1, 2)), np.ones((0, 2))])
def test_the_median_distance_of_equal_rows_is_one(rows: np.ndarray) -> None:
    assert compute_median_distance(rows) == 1.0
