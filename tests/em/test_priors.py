"""Estimates of confusion matrices from tallies, against tables with a cell for every worker, class and label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import beta

from wisecrowd.data.pairs import Pairs
from wisecrowd.em.priors import (
    STRENGTH_RANGE,
    CrowdPrior,
    compute_beta_log_density,
    compute_smoothing_log_prior,
    estimate_accuracy,
    estimate_crowd_confusion,
    estimate_crowd_prior,
    estimate_prior_strength,
    estimate_smoothed_probs,
    shrink_to_crowd,
    spread_errors,
)

N_WORKERS, N_CLASSES = 4, 3
#: Worker 1 never gave label 2, worker 3 gave no vote.
PAIRS = Pairs(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 0, 1, 2]), np.empty(0, dtype=np.int32), N_WORKERS)
TALLY = np.random.default_rng(0).uniform(0, 5, (len(PAIRS), N_CLASSES))


def make_dense(tally: np.ndarray) -> np.ndarray:
    """Return counts [worker, true, given] with zeros where no pair is."""
    dense = np.zeros((N_WORKERS, N_CLASSES, N_CLASSES))
    dense[PAIRS.worker, :, PAIRS.label] = tally
    return dense


@pytest.mark.parametrize(("smoothing", "diagonal"), [(0.1, 1.0), (0.0, 0.0), (2.0, 0.0), (0.0, 1.5)])
def test_smoothed_probs_equal_the_dense_formula(smoothing: float, diagonal: float) -> None:
    counts = make_dense(TALLY) + smoothing + diagonal * np.eye(N_CLASSES)
    expected = counts[:3] / counts[:3].sum(axis=2, keepdims=True)  # worker 3 has no row
    probs = estimate_smoothed_probs(TALLY, PAIRS, smoothing, diagonal)
    np.testing.assert_allclose(probs, expected[PAIRS.worker, :, PAIRS.label])


def test_a_class_without_votes_and_pseudo_votes_is_uniform() -> None:
    tally = TALLY.copy()
    tally[:, 1] = 0
    assert (estimate_smoothed_probs(tally, PAIRS, 0.0, 0.0)[:, 1] == 1 / N_CLASSES).all()


def test_single_precision_stays_single() -> None:
    probs = estimate_smoothed_probs(TALLY.astype(np.float32), PAIRS, 0.1, 1.0)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs, estimate_smoothed_probs(TALLY, PAIRS, 0.1, 1.0), rtol=1e-5)


@pytest.mark.parametrize(("smoothing", "diagonal"), [(0.1, 1.0), (2.0, 0.0), (0.0, 1.5)])
def test_log_prior_differs_from_the_dense_density_by_a_constant(smoothing: float, diagonal: float) -> None:
    pseudo_votes = smoothing + diagonal * np.eye(N_CLASSES)

    def dense_density(tally: np.ndarray) -> float:
        counts = make_dense(tally) + pseudo_votes
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = pseudo_votes * np.log(counts / counts.sum(axis=2, keepdims=True))
        return float(np.where(pseudo_votes > 0, terms, 0).sum())

    other = TALLY[::-1] ** 1.5
    expected = dense_density(TALLY) - dense_density(other)
    difference = compute_smoothing_log_prior(TALLY, PAIRS, smoothing, diagonal) - compute_smoothing_log_prior(
        other, PAIRS, smoothing, diagonal
    )
    assert difference == pytest.approx(expected)


def test_accuracy_counts_the_diagonal() -> None:
    dense = make_dense(TALLY)
    right, total = np.trace(dense, axis1=1, axis2=2), dense.sum(axis=(1, 2))
    np.testing.assert_allclose(estimate_accuracy(TALLY, PAIRS, 2.0, 3.0), (right + 2) / (total + 3))
    assert estimate_accuracy(TALLY, PAIRS, 0.0, 0.0)[3] == 1 / N_CLASSES, "nothing is known of worker 3"


def test_errors_are_spread_over_the_other_classes() -> None:
    accuracy = np.array([0.7, 0.4, 1.0, 0.1])
    probs = spread_errors(accuracy, PAIRS, N_CLASSES)
    for pair, (worker, label) in enumerate(zip(PAIRS.worker, PAIRS.label, strict=True)):
        wrong = (1 - accuracy[worker]) / 2
        np.testing.assert_allclose(probs[pair], np.where(np.arange(3) == label, accuracy[worker], wrong))
    one_class = Pairs(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32), np.empty(0, dtype=np.int32), 1)
    assert spread_errors(np.array([0.8]), one_class, 1).tolist() == [[0.8]]


def test_beta_density_is_that_of_scipy_up_to_a_constant() -> None:
    accuracy = np.array([0.2, 0.5, 0.9])
    expected = beta(1 + 3, 1 + 2).logpdf(accuracy)
    density = [compute_beta_log_density(accuracy[[n]], 3.0, 5.0) for n in range(3)]
    np.testing.assert_allclose(np.diff(density), np.diff(expected))
    assert compute_beta_log_density(np.array([0.0, 1.0]), 0.0, 0.0) == 0


def test_the_crowd_is_one_worker_with_all_votes() -> None:
    total = make_dense(TALLY).sum(axis=0) + 0.5 + 2 * np.eye(N_CLASSES)
    crowd = estimate_crowd_confusion(TALLY, PAIRS, 0.5, 2.0)
    np.testing.assert_allclose(crowd, total / total.sum(axis=1, keepdims=True))


def test_shrinkage_lies_between_the_worker_and_the_crowd() -> None:
    crowd = estimate_crowd_confusion(TALLY, PAIRS)
    dense = make_dense(TALLY)
    expected = (dense + 7 * crowd) / (dense.sum(axis=2, keepdims=True) + 7)
    np.testing.assert_allclose(shrink_to_crowd(TALLY, PAIRS, crowd, 7.0), expected[PAIRS.worker, :, PAIRS.label])
    np.testing.assert_allclose(shrink_to_crowd(TALLY, PAIRS, crowd, 1e9), crowd[:, PAIRS.label].T, atol=1e-7)


def test_strength_maximises_the_marginal_likelihood() -> None:
    rng = np.random.default_rng(1)
    confusion = np.array([[0.8, 0.2], [0.3, 0.7]])
    votes = np.array([[rng.multinomial(20, rng.dirichlet(6 * row)) for row in confusion] for _ in range(60)])
    pairs = Pairs(np.repeat(np.arange(60), 2), np.tile([0, 1], 60), np.empty(0, dtype=np.int32), 60)
    tally = (
        votes.transpose(0, 2, 1).reshape(120, 2).astype(float)
    )  # a row per worker and label, a column per true class

    def log_likelihood(c: float) -> float:
        rows = gammaln(c) - gammaln(20 + c) + (gammaln(votes + c * confusion) - gammaln(c * confusion)).sum(axis=2)
        return float(rows.sum())

    grid = np.geomspace(*STRENGTH_RANGE, 200)
    best = grid[np.argmax([log_likelihood(c) for c in grid])]
    assert estimate_prior_strength(tally, pairs, confusion) == pytest.approx(best, rel=0.05)


def test_strength_stays_within_its_range() -> None:
    alike = Pairs(np.repeat(np.arange(50), 2), np.tile([0, 1], 50), np.empty(0, dtype=np.int32), 50)
    tally = np.tile([[30.0, 10.0], [10.0, 30.0]], (50, 1))
    confusion = estimate_crowd_confusion(tally, alike)
    assert estimate_prior_strength(tally, alike, confusion) == pytest.approx(STRENGTH_RANGE[1], rel=1e-2)


def test_crowd_prior_takes_or_estimates_its_strength() -> None:
    given = estimate_crowd_prior(TALLY, PAIRS, strength=4.0)
    assert isinstance(given, CrowdPrior)
    assert given.strength == 4
    np.testing.assert_array_equal(given.confusion, estimate_crowd_confusion(TALLY, PAIRS))
    estimated = estimate_crowd_prior(TALLY, PAIRS)
    assert estimated.strength == estimate_prior_strength(TALLY, PAIRS, given.confusion)


def test_strength_of_a_large_tally_is_estimated_from_some_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    confusion = np.array([[0.8, 0.2], [0.3, 0.7]])
    n_workers = 1200
    votes = np.array([[rng.multinomial(20, rng.dirichlet(6 * row)) for row in confusion] for _ in range(n_workers)])
    tally = votes.transpose(0, 2, 1).reshape(-1, 2).astype(float)
    pairs = Pairs(
        np.repeat(np.arange(n_workers) + 5, 2), np.tile([0, 1], n_workers), np.empty(0, np.int32), n_workers + 9
    )
    exact = estimate_prior_strength(tally, pairs, confusion)
    monkeypatch.setattr("wisecrowd.em.priors.MAX_STRENGTH_CELLS", 1000)
    sampled = estimate_prior_strength(tally, pairs, confusion)
    assert sampled != exact
    assert sampled == pytest.approx(exact, rel=0.1)
    monkeypatch.setattr("wisecrowd.em.priors.MIN_STRENGTH_WORKERS", n_workers)
    assert estimate_prior_strength(tally, pairs, confusion) == exact
