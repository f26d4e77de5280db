"""Classifier on square roots of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.classifiers.soft_classifier import Rows, SoftClassifier


@dataclass
class SquareRootFeatures(SoftClassifier):
    """Classifier on signed square roots of the features, which reduce the influence of large values [1]_.

    Parameters
    ----------
    inner : SoftClassifier
        Classifier that gets the transformed features.

    References
    ----------
    .. [1] F. Perronnin, J. Sánchez and T. Mensink. Improving the Fisher kernel for large-scale image classification.
       ECCV 2010.

    Examples
    --------
    >>> from wisecrowd.classifiers.logistic import Logistic
    >>> X, targets = np.array([[-4.0, 1], [-1, 1], [1, 0], [9, 1]]), np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    >>> SquareRootFeatures(Logistic(l2=0.1)).fit(X, targets).predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    inner: SoftClassifier

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Fit the inner classifier.

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
        SquareRootFeatures
            The classifier itself.
        """
        self.inner.fit(_signed_square_root(X), targets, weight)
        return self

    def predict_proba(self, X: Rows) -> Rows:
        """Predict class probabilities.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Probabilities; the columns are in the order of the class codes of the targets in ``fit``.
        """
        return self.inner.predict_proba(_signed_square_root(X))

    def clone_unfitted(self) -> Self:
        """Return an unfitted classifier with the same settings."""
        return type(self)(self.inner.clone_unfitted())

    def log_prior(self) -> float:
        """Return the log-prior of the inner classifier."""
        return self.inner.log_prior()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted parameters of the inner classifier."""
        return self.inner.arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Set the fitted parameters of the inner classifier.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Parameters as `arrays` returns them.

        Returns
        -------
        SquareRootFeatures
            The classifier itself.
        """
        self.inner.restore(arrays)
        return self


def _signed_square_root(X: Rows) -> Rows:
    return np.sign(X) * np.sqrt(np.abs(X))
