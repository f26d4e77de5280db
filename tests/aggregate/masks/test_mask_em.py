"""EM with one accuracy per worker, against the algorithm of Lee et al. on dense arrays."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import MaskCrowd, MaskEM
from wisecrowd.errors import ignore_fit_warnings

RNG = np.random.default_rng(4)
TRUTH = np.add.outer((np.arange(8) - 3) ** 2, (np.arange(9) - 4) ** 2) < 9
STACK = (RNG.random((5, 8, 9)) < np.array([0.97, 0.9, 0.9, 0.8, 0.7])[:, None, None]) == TRUTH


def run_dense(n_iter: int) -> np.ndarray:
    """Run EM on the pixels that somebody marked, with the posterior of an iteration as the prior of the next."""
    votes = STACK.reshape(5, -1).astype(float)
    region = votes.any(axis=0).sum()
    prior = votes.mean(axis=0)

    def measure(posterior: np.ndarray) -> np.ndarray:
        wrong = votes.sum(axis=1) + posterior.sum() - 2 * (votes * posterior).sum(axis=1)
        return np.asarray(1 - wrong / region)

    accuracy = measure((prior > 0.5).astype(float))
    for _ in range(n_iter):
        right = np.where(votes > 0, accuracy[:, None], 1 - accuracy[:, None])
        inside, outside = prior * right.prod(axis=0), (1 - prior) * (1 - right).prod(axis=0)
        prior = np.where(votes.any(axis=0), inside / (inside + outside), 0)
        accuracy = measure(prior)
    return prior.reshape(8, 9)


def test_the_algorithm_of_the_paper_is_a_setting() -> None:
    method = MaskEM(shared=False, prior="pixel", region="union", shrinkage=0, max_iter=4, tol=0)
    with ignore_fit_warnings():
        fitted = method.fit(MaskCrowd.from_arrays(["i"] * 5, list("abcde"), list(STACK)))
    assert fitted.probability_of("i") == pytest.approx(run_dense(4), abs=1e-9)


def test_the_default_model_gives_probabilities() -> None:
    fitted = MaskEM().fit(MaskCrowd.from_arrays(["i"] * 5, list("abcde"), list(STACK)))
    probability = fitted.probability_of("i")
    assert ((probability > 0) & (probability < 1)).all()
    assert fitted.iou_[0] > fitted.iou_[4]
