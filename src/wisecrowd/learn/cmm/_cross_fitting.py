"""Classifiers that predict every training task without having seen its votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.classifiers.soft_classifier import SoftClassifier

#: Number of folds with ``cross_fit="auto"``.
DEFAULT_FOLDS = 5
#: Training tasks for each feature from which "auto" does without folds: so many tasks leave a classifier little to memorise.
TASKS_PER_FEATURE = 50


class StepClassifier(Protocol):
    """Part of a classifier that an EM step needs."""

    @property
    def exact(self) -> bool:
        """True if a fit never increases the loss."""

    def fit(
        self, X: NDArray[np.float64], targets: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> Self:
        """Fit the classifier to soft targets.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        targets : ndarray of shape (n_tasks, n_classes)
            Distribution over the classes for every task.
        weight : ndarray of shape (n_tasks,), optional
            Weight of every task; 1 by default.

        Returns
        -------
        StepClassifier
        """

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """

    def log_prior(self) -> float:
        """Return the logarithm of the prior density of the fitted parameters, up to a constant."""


class CrossFittedClassifier:
    """One classifier for each fold of the training tasks, fitted to all other folds.

    A classifier with many features memorises votes. Its predictions of the same tasks then explain the errors of workers,
    and the confusion matrices become too good.

    Parameters
    ----------
    make_classifier : callable
        Function that returns an unfitted classifier.
    fold : ndarray of shape (n_tasks,)
        Fold of every training task.

    Examples
    --------
    >>> from wisecrowd.classifiers.logistic import Logistic
    >>> X, targets = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> model = CrossFittedClassifier(Logistic, np.array([0, 1, 0, 1])).fit(X, targets)
    >>> model.predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    exact = False

    def __init__(self, make_classifier: Callable[[], SoftClassifier], fold: NDArray[np.intp]) -> None:
        self.fold = fold
        self.classifiers = [make_classifier() for _ in range(int(fold.max()) + 1)]

    def fit(
        self, X: NDArray[np.float64], targets: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> Self:
        """Fit the classifier of every fold to the tasks of the other folds.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        targets : ndarray of shape (n_tasks, n_classes)
            Distribution over the classes for every task.
        weight : ndarray of shape (n_tasks,), optional
            Weight of every task; 1 by default.

        Returns
        -------
        CrossFittedClassifier
        """
        for number, classifier in enumerate(self.classifiers):
            others = self.fold != number
            classifier.fit(X[others], targets[others], None if weight is None else weight[others])
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predict every training task by the classifier that has not seen it.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features of the training tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        parts = [classifier.predict_proba(X[self.fold == number]) for number, classifier in enumerate(self.classifiers)]
        probs = np.empty((len(X), parts[0].shape[1]))
        for number, part in enumerate(parts):
            probs[self.fold == number] = part
        return probs

    def log_prior(self) -> float:
        """Return the mean logarithm of the prior density over the classifiers."""
        return float(np.mean([classifier.log_prior() for classifier in self.classifiers]))


def assign_folds(X: NDArray[np.float64], n_folds: int, random_state: int) -> NDArray[np.intp]:
    """Divide tasks into folds of equal size, at random, but in the same way for any order of the tasks.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features, which determine the order of tasks that is divided.
    n_folds : int
        Number of folds.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n_tasks,)

    Examples
    --------
    >>> X = np.array([[3.0], [1.0], [2.0], [4.0]])
    >>> fold = assign_folds(X, 2, random_state=0)
    >>> np.bincount(fold).tolist(), bool((assign_folds(X[::-1], 2, random_state=0) == fold[::-1]).all())
    ([2, 2], True)
    """
    rng = np.random.default_rng(random_state)
    rows = X.reshape(len(X), -1)
    rank = np.empty(len(X), dtype=np.intp)
    rank[np.argsort((rows * rng.normal(size=rows.shape[1])).sum(axis=1), kind="stable")] = np.arange(len(X))
    return np.asarray((rng.permutation(len(X)) % n_folds)[rank], dtype=np.intp)


def choose_folds(cross_fit: int | str, X: NDArray[np.float64], *, exact: bool) -> int:
    """Return the number of folds, 1 for none.

    Parameters
    ----------
    cross_fit : int or "auto"
        Number of folds. "auto" uses folds for exact classifiers with fewer than `TASKS_PER_FEATURE` tasks per feature; for
        networks the iteration itself is short.
    X : ndarray of shape (n_tasks, ...)
        Features of the training tasks.
    exact : bool
        Whether the classifier is exact.

    Returns
    -------
    int

    Examples
    --------
    >>> choose_folds("auto", np.zeros((100, 30)), exact=True), choose_folds("auto", np.zeros((100, 2)), exact=True)
    (5, 1)
    """
    if cross_fit != "auto":
        return min(int(cross_fit), len(X))
    n_features = int(np.prod(X.shape[1:]))
    return min(DEFAULT_FOLDS, len(X)) if exact and len(X) < TASKS_PER_FEATURE * n_features else 1
