"""Weights of scores by evidence."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.classifiers.score_weights import fit_score_weights

N_TASKS = 300


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    return np.random.default_rng(0).integers(3, size=N_TASKS)


@pytest.fixture(scope="module")
def evidence(truth: np.ndarray) -> np.ndarray:
    votes = np.where(np.random.default_rng(1).random(N_TASKS) < 0.8, truth, (truth + 1) % 3)
    return np.log(np.where(votes[:, None] == np.arange(3), 0.8, 0.1))


def test_right_scores_get_weight_and_noise_gets_little(truth: np.ndarray, evidence: np.ndarray) -> None:
    right = np.eye(3)[truth] - 1 / 3
    noise = np.random.default_rng(2).normal(size=(N_TASKS, 3))
    result = fit_score_weights(np.array([right, noise]), np.zeros((1, 3)), [evidence])
    assert result.weights[0] > 1
    assert 0 <= result.weights[1] < result.weights[0] / 5


def test_misleading_scores_get_no_weight(truth: np.ndarray, evidence: np.ndarray) -> None:
    result = fit_score_weights(-np.eye(3)[truth][None], np.zeros((1, 3)), [evidence])
    assert result.weights[0] == 0
    no_scores = np.log(np.exp(evidence).mean(axis=1)).mean()
    assert result.log_likelihood == pytest.approx(no_scores)


def test_scores_that_are_alike_share_the_weight(truth: np.ndarray, evidence: np.ndarray) -> None:
    right = np.eye(3)[truth] - 1 / 3
    both = fit_score_weights(np.array([right, right]), np.zeros((1, 3)), [evidence], ridge=1.0).weights
    assert both[0] == pytest.approx(both[1], rel=1e-3)


def test_weak_evidence_of_many_votes_does_not_overflow(truth: np.ndarray) -> None:
    evidence = -1e5 * (np.eye(3)[truth] < 1)
    result = fit_score_weights(np.eye(3)[truth][None], np.zeros((2, 3)), [evidence, evidence])
    assert np.isfinite(result.log_likelihood)
    assert result.weights[0] > 5
