"""Shared parts of the models of easiness, with given easiness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.base.fields import method_class
from wisecrowd.errors import UsageError
from wisecrowd.learn.difficulty._easiness_em import EasinessEM
from wisecrowd.learn.difficulty._responses import Array, compute_confusion

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(2, size=60)
EASINESS = RNG.uniform(0.1, 1, 60)
RIGHT = RNG.random((60, 4)) < 1 / (1 + np.exp(-2.5 * EASINESS[:, None]))
CROWD = Crowd.from_codes(
    np.repeat(np.arange(60), 4), np.tile(np.arange(4), 60), np.where(RIGHT, TRUTH[:, None], 1 - TRUTH[:, None]).ravel(),
    tasks=[f"t{task:02d}" for task in range(60)], workers=["ann", "bob", "cy", "dee"], classes=["no", "yes"],
)  # fmt: skip
X = pd.DataFrame({"x": 2.0 * TRUTH + RNG.normal(0, 1, 60)}, index=CROWD.tasks)


@method_class
class GivenEasiness(EasinessEM):
    """Easiness of the training tasks is known, and one half for others."""

    def _prior_precision(self, crowd: Crowd) -> Array:
        return np.full(crowd.n_workers, 0.5)

    def _estimate_easiness(self, class_probs: Array, posterior: Array, crowd: Crowd) -> Array:
        return EASINESS

    def _predict_easiness(self, class_probs: Array) -> Array:
        return np.full(len(class_probs), 0.5)


@pytest.fixture(scope="module")
def fitted() -> GivenEasiness:
    return GivenEasiness(l2=0.1).fit(X, CROWD)


def test_the_posterior_is_bayes_rule(fitted: GivenEasiness) -> None:
    joint = fitted.task_prior_.copy()
    for task, worker, label in zip(CROWD.task, CROWD.worker, CROWD.label, strict=True):
        joint[task] *= compute_confusion(fitted.ability_[worker], EASINESS[task])[:, label]
    np.testing.assert_allclose(fitted.posterior_, joint / joint.sum(axis=1, keepdims=True), atol=1e-9)


def test_the_objective_never_falls(fitted: GivenEasiness) -> None:
    assert fitted.converged_
    assert len(fitted.trace_) == fitted.n_iter_
    assert (np.diff(fitted.trace_) >= -1e-8 * abs(fitted.trace_[-1])).all()


def test_it_is_better_than_the_votes(fitted: GivenEasiness) -> None:
    truth = np.array(["no", "yes"])[TRUTH]
    by_votes = CROWD.vote_counts.argmax(axis=1) == TRUTH
    assert (fitted.labels_.to_numpy() == truth).mean() >= by_votes.mean()


def test_tables_of_tasks_and_workers(fitted: GivenEasiness) -> None:
    tasks = fitted.tasks_
    np.testing.assert_allclose(tasks["difficulty"], 1 - EASINESS)
    assert (tasks["n_votes"] == 4).all()
    workers = fitted.workers_
    np.testing.assert_array_equal(workers[["ability_no", "ability_yes"]], fitted.ability_)
    right = np.diagonal(compute_confusion(fitted.ability_), axis1=1, axis2=2)
    np.testing.assert_allclose(workers["sensitivity"], right[:, 1])
    np.testing.assert_allclose(workers["specificity"], right[:, 0])
    np.testing.assert_allclose(fitted.confusion_of([2]), compute_confusion(fitted.ability_[[2]]))


def test_predictions_for_workers_use_the_easiness_of_new_tasks(fitted: GivenEasiness) -> None:
    rows = X.iloc[:3]
    probs = fitted.predict_worker_proba(rows, ["cy", "nobody"])
    classes = fitted.predict_proba(rows)
    np.testing.assert_allclose(probs[:, 0], classes @ compute_confusion(fitted.ability_[2], 0.5))
    np.testing.assert_allclose(probs[:, 1], classes @ compute_confusion(fitted.ability_.mean(axis=0), 0.5))


def test_frozen_abilities_are_those_of_the_votes() -> None:
    short, long = (GivenEasiness(l2=0.1, ability_update="frozen", max_iter=n, tol=0).fit(X, CROWD) for n in (1, 5))
    np.testing.assert_array_equal(short.ability_, long.ability_)
    moved = GivenEasiness(l2=0.1, max_iter=5, tol=0).fit(X, CROWD)
    assert not np.allclose(moved.ability_, long.ability_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ability_update": "sometimes"}, "ability_update"),
        ({"max_iter": 0}, "max_iter must be 1 or more"),
        ({"l2": -1.0}, "l2 must not be negative"),
    ],
)
def test_other_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GivenEasiness(**settings).fit(X, CROWD)
