"""Unimodal rows: the closed form is the constrained maximum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from wisecrowd.aggregate.ordinal._unimodal_rows import (
    estimate_unimodal_probs,
    fit_unimodal_rows,
    make_pseudo_votes,
)
from wisecrowd.data.pairs import Pairs


def maximise_by_slsqp(counts: np.ndarray, mode: int) -> np.ndarray:
    """Return the most likely unimodal row by a general optimiser."""
    slopes = np.diff(np.eye(len(counts)), axis=0)
    slopes[mode:] *= -1
    found = minimize(
        lambda p: -(counts * np.log(np.maximum(p, 1e-12))).sum(),
        np.full(len(counts), 1 / len(counts)),
        jac=lambda p: -counts / np.maximum(p, 1e-12),
        bounds=[(1e-9, 1)] * len(counts),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones_like(p)},
            {"type": "ineq", "fun": lambda p: slopes @ p, "jac": lambda _: slopes},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # of older SciPy
def test_rows_are_the_constrained_maximum(seed: int) -> None:
    counts = np.random.default_rng(seed).gamma(0.7, 5, (2, 5, 5)) + 0.05
    fitted = fit_unimodal_rows(counts)
    for matrix in range(2):
        for true in range(5):
            assert np.allclose(fitted[matrix, true], maximise_by_slsqp(counts[matrix, true], true), atol=2e-4)


def test_rows_are_unimodal_distributions() -> None:
    fitted = fit_unimodal_rows(np.random.default_rng(0).poisson(2.0, (30, 6, 6)).astype(float))
    assert np.allclose(fitted.sum(axis=2), 1)
    for true in range(6):
        assert (np.diff(fitted[:, true, : true + 1], axis=1) >= -1e-12).all()
        assert (np.diff(fitted[:, true, true:], axis=1) <= 1e-12).all()


def test_unimodal_counts_stay() -> None:
    counts = np.array([[[5.0, 3, 1], [1, 4, 2], [0, 3, 7]]])
    assert np.allclose(fit_unimodal_rows(counts), counts / counts.sum(axis=2, keepdims=True))


def test_a_row_without_counts_is_uniform() -> None:
    assert np.allclose(fit_unimodal_rows(np.zeros((1, 3, 3))), 1 / 3)


def test_pairs_without_votes_are_filled() -> None:
    # The worker never gave label 1; with the two others equally frequent the row of class 1 is uniform.
    pairs = Pairs(np.array([0, 0]), np.array([0, 2]), np.empty(0, dtype=np.int32), 1)
    tally = np.array([[0.0, 3.0, 0.0], [0.0, 3.0, 0.0]])
    label_probs, _ = estimate_unimodal_probs(tally, pairs, np.zeros((3, 3)))
    assert np.allclose(label_probs[:, 1], 1 / 3)


def test_pseudo_votes_fall_with_the_distance() -> None:
    votes = make_pseudo_votes(4, smoothing=0.1, diagonal=2.0, decay=0.0)
    assert np.allclose(votes, 0.1 + 2 * np.eye(4))
    assert np.allclose(make_pseudo_votes(4, 0.0, 2.0, 0.5)[3], [0.25, 0.5, 1, 2])
