"""Greedy selection of votes by information gain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.plan import greedy
from wisecrowd.plan.greedy import GreedySelector, OutcomeDistribution, information_gains, pair_information_gains


def entropy(posterior: np.ndarray) -> float:
    return -sum(float(p * np.log(p)) for p in posterior if p > 0)


def brute_gain(posterior: np.ndarray, matrix: np.ndarray) -> float:
    """H(q) − Σ_l P(l) H(q | l), term by term."""
    gain = entropy(posterior)
    for label in range(len(posterior)):
        joint = posterior * matrix[:, label]
        if joint.sum() > 0:
            gain -= joint.sum() * entropy(joint / joint.sum())
    return gain


def random_matrices(rng: np.random.Generator, n_workers: int, n_classes: int) -> np.ndarray:
    return rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_the_gain_is_the_expected_drop_of_entropy(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    posterior, confusion = rng.dirichlet(np.full(n_classes, 0.5), size=3), random_matrices(rng, 4, n_classes)
    wanted = [[brute_gain(q, matrix) for matrix in confusion] for q in posterior]
    assert information_gains(posterior, confusion) == pytest.approx(np.array(wanted), abs=1e-9)
    task, worker = np.divmod(np.arange(12), 4)
    assert pair_information_gains(posterior, confusion, task, worker) == pytest.approx(np.ravel(wanted), abs=1e-9)
    assert greedy.best_information_gains(posterior, confusion) == pytest.approx(np.max(wanted, axis=1), abs=1e-9)


def test_drawn_futures_are_those_that_are_followed_up() -> None:
    """Three answers of four classes leave 64 futures; a fourth must be drawn, and stays near what it stands for."""
    rng = np.random.default_rng(0)
    matrices = random_matrices(rng, 5, 4)
    exact = drawn = OutcomeDistribution(np.array([[0.4, 0.3, 0.2, 0.1]]), np.ones(1))
    for matrix in matrices[:4]:
        drawn = drawn.update(matrix, rng)
    joint = exact.posterior[0]
    for matrix in matrices[:4]:
        joint = joint[..., None, :] * matrix.T  # (said, …, true)
    joint = joint.reshape(-1, 4)
    exact = OutcomeDistribution(joint / joint.sum(axis=1, keepdims=True), joint.sum(axis=1))
    assert len(drawn.weight) == greedy.MAX_OUTCOMES < len(exact.weight) == 256
    assert drawn.weight.sum() == pytest.approx(1)
    assert drawn.weight @ drawn.posterior == pytest.approx(exact.weight @ exact.posterior, abs=0.05)
    mine, theirs = (future.weight @ information_gains(future.posterior, matrices[4:]) for future in (drawn, exact))
    assert mine == pytest.approx(theirs, abs=0.05)


def test_a_batch_does_not_pile_up_on_one_task() -> None:
    """One task is a little more open than the others; without futures, all would be asked about it."""
    posterior = np.array([[0.5, 0.5], *[[0.6, 0.4]] * 9])
    confusion = np.repeat([[[0.9, 0.1], [0.1, 0.9]]], 10, axis=0)
    asking = GreedySelector(posterior, confusion, lambda task: np.arange(10), per_task=10)
    chosen = asking.choose(np.arange(10), greedy.best_information_gains(posterior, confusion), 10)
    assert sorted(ask.task for ask in chosen) == list(range(10))
    assert len({ask.worker for ask in chosen}) == 10  # of equals, who was asked least
    more = GreedySelector(posterior, confusion, lambda task: np.arange(10), per_task=10)
    gained = [ask.gain for ask in more.choose(np.arange(10), greedy.best_information_gains(posterior, confusion), 40)]
    assert gained == sorted(gained, reverse=True)
