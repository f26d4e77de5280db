"""One exponent that calibrates class probabilities by votes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.base.sharpness import SHARPNESS_RANGE, estimate_sharpness, sharpen


def test_sharpening() -> None:
    share = np.array([[0.7, 0.2, 0.1]])
    assert np.allclose(sharpen(share, 2.0), share**2 / (share**2).sum())
    assert sharpen(share, 1.0) is share


def test_votes_without_information_determine_nothing() -> None:
    flat = np.full((9, 3), np.log(0.5))
    assert estimate_sharpness(np.full((9, 3), 1 / 3), flat) > 0  # any value will do
    assert estimate_sharpness(np.full((9, 3), 1 / 3), flat, scale=1.0) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 2.5])
def test_the_exponent_of_simulated_probabilities_is_recovered(sharpness: float) -> None:
    rng = np.random.default_rng(0)
    true_probs = rng.dirichlet(np.full(3, 0.7), size=6000)
    truth = (rng.random((6000, 1)) > true_probs.cumsum(axis=1)).sum(axis=1)
    confusion = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    votes = (rng.random((6000, 2, 1)) > confusion[truth].cumsum(axis=1)[:, None]).sum(axis=2)
    vote_log_probs = np.log(confusion.T[votes]).sum(axis=1)
    estimate = estimate_sharpness(sharpen(true_probs, 1 / sharpness), vote_log_probs)
    assert estimate == pytest.approx(sharpness, rel=0.12)


def test_the_prior_keeps_few_votes_from_extremes() -> None:
    class_probs, vote_log_probs = np.array([[0.6, 0.4]]), np.array([[0.0, -3.0]])
    assert estimate_sharpness(class_probs, vote_log_probs) > 0.9 * SHARPNESS_RANGE[1]
    assert estimate_sharpness(class_probs, vote_log_probs, scale=1.0) < 2
