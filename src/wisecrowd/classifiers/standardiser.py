"""Standardisation of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from wisecrowd.classifiers.soft_classifier import Rows

#: Standard deviation, relative to the mean, below which a feature counts as constant.
MIN_RELATIVE_SPREAD = 1e-12


@dataclass
class Standardiser:
    """Shift and scale that give every feature mean zero and variance one.

    Mean and scale are those of the first data that `fit` gets, so that an iterative fit always sees the same features.
    Constant features become zero.

    A sparse matrix is not shifted, which would fill it, and all its features have one scale, the root of their mean
    variance: a scale of their own would give rare words the weight of frequent ones.

    Parameters
    ----------
    mean : ndarray of shape (n_features,), optional
        Mean of every feature.
    scale : ndarray of shape (n_features,), optional
        Standard deviation of every feature; 1 for constant features.

    Examples
    --------
    >>> Standardiser().fit(np.array([[1.0, 5.0], [3.0, 5.0]])).apply(np.array([[3.0, 5.0]])).tolist()
    [[1.0, 0.0]]
    """

    mean: Rows | None = None
    scale: Rows | None = None

    def fit(self, X: Rows) -> Self:
        """Compute mean and scale, unless an earlier call did.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_tasks, n_features)
            Features.

        Returns
        -------
        Standardiser
            The standardiser itself.
        """
        if self.mean is None and issparse(X):
            matrix: Any = X
            n_rows, n_features = matrix.shape
            means = np.asarray(matrix.sum(axis=0)).ravel() / max(n_rows, 1)
            variance = float((matrix.data**2).sum() / max(n_rows, 1) - (means**2).sum()) / n_features
            self.mean = np.zeros(n_features)
            self.scale = np.full(n_features, np.sqrt(variance) if variance > 0 else 1.0)
        if self.mean is None:
            self.mean, spread = X.mean(axis=0), X.std(axis=0)
            varies = spread > MIN_RELATIVE_SPREAD * np.maximum(1, np.abs(self.mean))
            self.scale = np.where(varies, spread, 1.0)
        return self

    def apply(self, X: Rows) -> Rows:
        """Return standardised features.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_tasks, n_features)
            Features.

        Returns
        -------
        ndarray or csr_array of shape (n_tasks, n_features)
        """
        assert self.mean is not None
        assert self.scale is not None
        if issparse(X):
            assert not self.mean.any()  # learners refuse sparse features after a fit to dense ones
            matrix: Any = X
            scaled: Rows = matrix.multiply(1 / self.scale[None, :]).tocsr()
            return scaled
        return (X - self.mean) / self.scale
