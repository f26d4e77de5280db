"""Interface of classifiers that learn from soft targets."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


class SoftClassifier(ABC):
    """Classifier whose targets are distributions over the classes.

    Learners fit it again and again to changing targets. A second fit starts from the result of the first.
    """

    #: Whether a fit never increases the loss, so that EM with this classifier never lowers its objective.
    exact: ClassVar[bool] = False
    #: Whether features may be a sparse matrix (`scipy.sparse.csr_array`).
    accepts_sparse: ClassVar[bool] = False

    @abstractmethod
    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Fit the classifier, starting from an earlier fit if there was one.

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
        SoftClassifier
            The classifier itself.
        """

    @abstractmethod
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

    @abstractmethod
    def clone_unfitted(self) -> Self:
        """Return an unfitted classifier with the same settings."""

    def log_prior(self) -> float:
        """Return the logarithm of the prior density of the fitted parameters, up to a constant."""
        return 0.0

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted parameters as arrays."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Set the fitted parameters.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Parameters as `arrays` returns them.

        Returns
        -------
        SoftClassifier
            The classifier itself.
        """


def flatten_rows(X: Rows) -> Rows:
    """Return features as a matrix with one row per task.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features of any shape.

    Returns
    -------
    ndarray of shape (n_tasks, n_features)

    Examples
    --------
    >>> flatten_rows(np.zeros((2, 3, 4))).shape
    (2, 12)
    """
    return X if X.ndim == 2 else X.reshape(len(X), math.prod(X.shape[1:]))  # -1 would fail without rows
