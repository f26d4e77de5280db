"""Predictions of tasks by classifiers that have not seen their votes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CMM, Crowd
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.errors import UsageError
from wisecrowd.learn.cmm._cross_fitting import CrossFittedClassifier, assign_folds, choose_folds
from wisecrowd.learn.cmm._mixture_fit import PATIENCE


def test_every_task_is_predicted_without_its_own_target() -> None:
    rng = np.random.default_rng(0)
    X, targets = rng.normal(size=(30, 4)), rng.dirichlet(np.ones(3), size=30)
    fold = assign_folds(X, 3, random_state=0)
    model = CrossFittedClassifier(Logistic, fold).fit(X, targets, np.arange(1.0, 31.0))
    changed = targets.copy()
    changed[fold == 1] = np.eye(3)[0]
    other = CrossFittedClassifier(Logistic, fold).fit(X, changed, np.arange(1.0, 31.0))
    found, again = model.predict_proba(X), other.predict_proba(X)
    np.testing.assert_array_equal(found[fold == 1], again[fold == 1])
    assert np.abs(found[fold != 1] - again[fold != 1]).max() > 0.01
    alone = Logistic().fit(X[fold != 2], targets[fold != 2], np.arange(1.0, 31.0)[fold != 2])
    np.testing.assert_allclose(found[fold == 2], alone.predict_proba(X[fold == 2]), atol=1e-9)


def test_folds_are_of_equal_size_and_belong_to_tasks() -> None:
    X = np.random.default_rng(1).normal(size=(23, 5))
    fold = assign_folds(X, 5, random_state=3)
    assert sorted(np.bincount(fold)) == [4, 4, 5, 5, 5]
    order = np.random.default_rng(2).permutation(23)
    np.testing.assert_array_equal(assign_folds(X[order], 5, random_state=3), fold[order])
    assert not np.array_equal(assign_folds(X, 5, random_state=4), fold)


def test_folds_are_for_exact_classifiers_with_many_features() -> None:
    many, few = np.zeros((100, 50)), np.zeros((100, 2))
    assert choose_folds("auto", many, exact=True) == 5
    assert choose_folds("auto", few, exact=True) == choose_folds("auto", many, exact=False) == 1
    assert choose_folds(3, few, exact=False) == 3
    assert choose_folds(10, few[:4], exact=True) == 4


def test_memorised_votes_do_not_make_the_crowd_look_better_than_it_is() -> None:
    """With as many features as tasks, a classifier without folds explains the errors of the votes."""
    rng = np.random.default_rng(0)
    n_tasks = 200
    truth = rng.integers(2, size=n_tasks)
    X = rng.normal(size=(n_tasks, 150))
    X[:, 0] += 3 * truth
    task = np.repeat(np.arange(n_tasks), 2)
    label = np.where(rng.random(len(task)) < 0.7, truth[task], 1 - truth[task])
    crowd = Crowd.from_codes(
        task, None, label, tasks=range(n_tasks), workers=None, classes=["no", "yes"], duplicates="keep"
    )
    folds, none = CMM(n_groups=1).fit(X, crowd), CMM(n_groups=1, cross_fit=1).fit(X, crowd)
    accuracy = [np.diag(model.crowd_confusion_).mean() for model in (folds, none)]
    assert abs(accuracy[0] - 0.7) < 0.1 < abs(accuracy[1] - 0.7)
    assert folds.score(X, np.array(["no", "yes"])[truth]) > none.score(X, np.array(["no", "yes"])[truth])
    with pytest.raises(UsageError, match="cross_fit must be a number of folds"):
        CMM(cross_fit=0).fit(X, crowd)


def test_an_iteration_that_swings_ends_when_no_better_iterate_follows() -> None:
    """Predictions of folds with more features than tasks swing between two states; the first of them is the best."""
    rng = np.random.default_rng(1)
    n_tasks = 60
    task = np.repeat(np.arange(n_tasks), 3)
    crowd = Crowd.from_codes(
        task,
        None,
        rng.integers(3, size=len(task)),
        tasks=range(n_tasks),
        workers=None,
        classes=list("abc"),
        duplicates="keep",
    )
    X = rng.normal(size=(n_tasks, 80))
    model = CMM(n_groups=1, tol=1e-12).fit(X, crowd)
    assert model.trace_.argmax() + PATIENCE == len(model.trace_) - 1 < 200
    assert model.converged_
    assert np.abs(np.diff(model.trace_[-PATIENCE:])).max() > 1e-3  # it would have gone on
    shorter = CMM(n_groups=1, tol=0, max_iter=30).fit(X, crowd)
    assert len(shorter.trace_) == 30
    assert not shorter.converged_
    assert len(CMM(n_groups=1, tol=0, max_iter=len(model.trace_) + 5).fit(X, crowd).trace_) == len(model.trace_) + 5
    np.testing.assert_array_equal(shorter.trace_[:20], model.trace_[:20])
