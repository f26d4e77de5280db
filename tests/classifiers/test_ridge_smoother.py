"""Kernel ridge regression and its leave-one-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.classifiers.kernel_view import compute_squared_distances
from wisecrowd.classifiers.ridge_smoother import RidgeSmoother

RIDGE = 0.3


@pytest.fixture(scope="module")
def X() -> np.ndarray:  # noqa: N802
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture(scope="module")
def Y() -> np.ndarray:  # noqa: N802
    return np.random.default_rng(1).normal(size=(40, 2))


@pytest.fixture(scope="module")
def kernel(X: np.ndarray) -> np.ndarray:
    return np.exp(-compute_squared_distances(X, X) / 5)


def test_left_out_predictions_are_those_of_a_regression_without_the_task(kernel: np.ndarray, Y: np.ndarray) -> None:
    left_out = RidgeSmoother.from_kernel(kernel).predict_left_out(Y, RIDGE)
    values, vectors = np.linalg.eigh(kernel)
    features = vectors * np.sqrt(np.maximum(values, 0))
    centred = features - features.mean(axis=0)
    penalty = RIDGE * (centred**2).sum() / len(centred) * np.eye(len(centred))
    for task in (0, 17):
        others, targets = np.delete(features, task, axis=0), np.delete(Y, task, axis=0)
        mean, target_mean = others.mean(axis=0), targets.mean(axis=0)
        design = others - mean
        slopes = np.linalg.solve(design.T @ design + penalty, design.T @ (targets - target_mean))
        np.testing.assert_allclose(left_out[task], target_mean + (features[task] - mean) @ slopes, atol=1e-8)


def test_landmarks_at_all_tasks_are_exact(kernel: np.ndarray, Y: np.ndarray) -> None:
    exact, landmarks = RidgeSmoother.from_kernel(kernel), RidgeSmoother.from_landmarks(kernel.copy(), kernel)
    np.testing.assert_allclose(landmarks.predict_left_out(Y, RIDGE), exact.predict_left_out(Y, RIDGE), atol=1e-5)
    fits = [smoother.regress(Y, RIDGE) for smoother in (exact, landmarks)]
    first, second = (fit.intercept + kernel @ fit.slopes for fit in fits)
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_fewer_landmarks_are_close(kernel: np.ndarray, Y: np.ndarray) -> None:
    some = np.arange(0, 40, 2)
    smoother = RidgeSmoother.from_landmarks(kernel[:, some].copy(), kernel[np.ix_(some, some)])
    exact = RidgeSmoother.from_kernel(kernel).predict_left_out(Y, 3.0)
    assert np.corrcoef(smoother.predict_left_out(Y, 3.0).ravel(), exact.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("n_tasks", [1, 4])
def test_equal_tasks_get_finite_predictions(n_tasks: int) -> None:
    smoother = RidgeSmoother.from_kernel(np.ones((n_tasks, n_tasks)))
    assert np.isfinite(smoother.predict_left_out(np.eye(n_tasks), RIDGE)).all()
    assert np.isfinite(smoother.regress(np.eye(n_tasks), RIDGE).slopes).all()
