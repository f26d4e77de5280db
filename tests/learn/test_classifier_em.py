"""EM with a classifier as prior, against the plain iteration on dense tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wisecrowd import Crowd
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.em.priors import estimate_crowd_prior, estimate_smoothed_probs, shrink_to_crowd
from wisecrowd.learn._classifier_em import EMRunner, WorkerModel

RNG = np.random.default_rng(0)
TASK, WORKER = np.nonzero(RNG.random((30, 5)) < 0.5)
TRUTH = RNG.integers(2, size=30)
LABEL = np.where(RNG.random(len(TASK)) < 0.8, TRUTH[TASK], 1 - TRUTH[TASK])
CROWD = Crowd.from_codes(TASK, WORKER, LABEL, tasks=range(31), workers=range(5), classes=range(2))
X = np.append(TRUTH + RNG.normal(0, 0.8, 30), 0.0)[:, None]


class Fixed(SoftClassifier):
    """Predicts given probabilities, and records what it was fitted to."""

    exact = True

    def __init__(self, probs: NDArray[np.float64]) -> None:
        self.probs, self.fits = probs, []  # type: ignore[var-annotated]

    def fit(self, X: Any, targets: Any, weight: Any = None) -> Fixed:
        self.fits.append((X, targets))
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.probs[: len(X)] if len(X) == len(self.probs) else np.full((len(X), 2), 0.5)

    def clone_unfitted(self) -> Fixed:
        return Fixed(self.probs)

    def arrays(self) -> dict[str, Any]:
        return {}

    def restore(self, arrays: dict[str, Any]) -> Fixed:
        return self


def run(make: Any, gold: Any = None, **more: Any) -> Any:
    settings = {"workers": WorkerModel(0.1, 1.0, False), "cv": 0, "calibrate": False, "max_iter": 4, "tol": 0.0}
    return EMRunner(**{**settings, "random_state": 0, "title": "test"} | more).run(X, CROWD, gold, make)


def test_it_is_the_plain_iteration_on_dense_tables() -> None:
    probs = np.random.default_rng(1).dirichlet([2, 2], 31)
    votes = np.zeros((31, 5, 2))
    votes[CROWD.task, CROWD.worker, CROWD.label] = 1
    counts = votes.sum(axis=1)
    total = counts.sum(axis=1, keepdims=True)
    posterior = np.divide(counts, total, out=np.full_like(counts, 0.5), where=total > 0)
    for _ in range(4):
        confusion = np.einsum("ik,irl->rkl", posterior, votes) + 0.1 + np.eye(2)
        confusion /= confusion.sum(axis=2, keepdims=True)
        joint = np.exp(np.einsum("irl,rkl->ik", votes, np.log(confusion))) * probs
        posterior = joint / joint.sum(axis=1, keepdims=True)
    result = run(lambda: Fixed(probs))
    np.testing.assert_allclose(result.posterior, posterior, atol=1e-10)
    np.testing.assert_allclose(result.task_prior, probs)
    np.testing.assert_allclose(result.tally, CROWD.layout.vote_matrix.T @ posterior, atol=1e-10)


def test_the_classifier_learns_from_tasks_with_votes_or_gold() -> None:
    classifier = Fixed(np.full((31, 2), 0.5))
    run(lambda: classifier, max_iter=1)
    rows, targets = classifier.fits[0]
    has_votes = CROWD.votes_per_task > 0
    assert rows.tolist() == X[has_votes].tolist()
    np.testing.assert_allclose(targets.sum(axis=1), 1)
    gold = np.full(31, -1, dtype=np.int32)
    gold[30] = 1
    result = run(lambda: classifier, gold)
    assert len(classifier.fits[-1][0]) == has_votes.sum() + 1
    assert result.posterior[30].tolist() == [0, 1]


def test_the_objective_rises_with_an_exact_classifier() -> None:
    result = run(lambda: Logistic(l2=0.5), max_iter=30, tol=1e-9)
    assert (np.diff(result.trace) >= -1e-8).all()
    assert len(result.classifiers) == 1


def test_cross_fitting_predicts_every_task_by_a_classifier_that_did_not_see_it() -> None:
    result = run(lambda: Logistic(l2=0.5), cv=3, max_iter=2)
    assert len(result.classifiers) == 3
    assert result.task_prior.shape == (31, 2)
    np.testing.assert_allclose(result.task_prior.sum(axis=1), 1)


def test_calibration_flattens_a_classifier_that_is_too_sure() -> None:
    sure = np.where(RNG.random((31, 1)) < 0.5, [0.999, 0.001], [0.001, 0.999])  # and knows nothing
    result = run(lambda: Fixed(sure), cv=0, calibrate=True)
    assert result.sharpness < 0.3
    assert run(lambda: Fixed(sure)).sharpness == 1


class TestWorkers:
    TALLY = np.random.default_rng(2).uniform(0, 5, (len(CROWD.pairs), 2))

    def test_pseudo_votes(self) -> None:
        estimate = WorkerModel(0.3, 2.0, False).estimate(self.TALLY, CROWD.pairs)
        np.testing.assert_array_equal(estimate.label_probs, estimate_smoothed_probs(self.TALLY, CROWD.pairs, 0.3, 2.0))
        assert estimate.strength == 0

    @pytest.mark.parametrize("shrinkage", [True, 4.0])
    def test_shrinkage_is_estimated_or_given(self, shrinkage: bool | float) -> None:
        estimate = WorkerModel(0.3, 2.0, shrinkage).estimate(self.TALLY, CROWD.pairs)
        given = None if shrinkage is True else 4.0
        prior = estimate_crowd_prior(self.TALLY, CROWD.pairs, 0.3, 2.0, given)
        np.testing.assert_array_equal(estimate.label_probs, shrink_to_crowd(self.TALLY, CROWD.pairs, *prior))
        assert estimate.strength == prior.strength

    def test_reported_probabilities_are_those_of_the_fit(self) -> None:
        for shrinkage in (False, 4.0):
            model = WorkerModel(0.3, 2.0, shrinkage)
            estimate = model.estimate(self.TALLY, CROWD.pairs)
            reported = model.label_probs(self.TALLY, CROWD.pairs, self.TALLY, CROWD.pairs, estimate.strength)
            np.testing.assert_allclose(reported, estimate.label_probs)
