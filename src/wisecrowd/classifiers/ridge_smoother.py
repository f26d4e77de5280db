"""Kernel ridge regression whose leave-one-out predictions cost as little as fitted values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from wisecrowd.classifiers.soft_classifier import Rows

#: Smallest 1 − h_ii, which keeps a task that the regression interpolates from a division by zero.
MIN_RESIDUAL_SHARE = 1e-3
#: Share of the largest eigenvalue below which a direction carries no information.
MIN_RELATIVE_EIGENVALUE = 1e-10
#: Added to the diagonal of the kernel between landmarks, relative to its mean.
JITTER = 1e-8


class Regression(NamedTuple):
    """Coefficients of a fitted regression: f(x) = intercept + k(x, landmarks) @ slopes.

    Attributes
    ----------
    intercept : ndarray of shape (n_targets,)
        Constant.
    slopes : ndarray of shape (n_landmarks, n_targets)
        Coefficients of the kernel values.

    Examples
    --------
    >>> Regression(np.zeros(2), np.zeros((3, 2))).slopes.shape
    (3, 2)
    """

    intercept: Rows
    slopes: Rows


@dataclass(frozen=True, eq=False)
class RidgeSmoother:
    """Ridge regression on a kernel for any targets and any penalty, after one eigendecomposition.

    The centred kernel, scaled to mean diagonal one, is U diag(d) Uᵀ. Fitted values are μ + U diag(d / (d + λ)) Uᵀ (Y − μ), and
    with h_ii on the diagonal of this map, the regression without task i predicts Y_i − (Y_i − f_i) / (1 − h_ii) for it.

    Parameters
    ----------
    vectors : ndarray of shape (n_tasks, n_directions)
        Eigenvectors U.
    values : ndarray of shape (n_directions,)
        Eigenvalues d.
    to_landmarks : ndarray of shape (n_landmarks, n_directions)
        Map from directions to coefficients of kernel values.
    kernel_mean : ndarray of shape (n_landmarks,)
        Mean kernel value of the tasks by landmark.

    Examples
    --------
    >>> kernel = np.exp(-np.subtract.outer(np.arange(4.0), np.arange(4.0)) ** 2)
    >>> smoother = RidgeSmoother.from_kernel(kernel)
    >>> Y = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> without_first = RidgeSmoother.from_kernel(kernel[1:, 1:])
    >>> smoother.predict_left_out(Y, ridge=0.5).shape, smoother.regress(Y, ridge=0.5).slopes.shape
    ((4, 1), (4, 1))
    """

    vectors: Rows
    values: Rows
    to_landmarks: Rows
    kernel_mean: Rows

    @classmethod
    def from_kernel(cls, kernel: Rows) -> Self:
        """Decompose the kernel between all tasks.

        Parameters
        ----------
        kernel : ndarray of shape (n_tasks, n_tasks)
            Kernel values.

        Returns
        -------
        RidgeSmoother
        """
        mean = kernel.mean(axis=0)
        centred = kernel - mean
        centred -= (mean - mean.mean())[:, None]
        values, vectors = np.linalg.eigh(centred)
        scale = max(float(np.trace(centred)) / len(kernel), 1e-300)
        used = values > MIN_RELATIVE_EIGENVALUE * max(values[-1], 1e-12)
        vectors = np.ascontiguousarray(vectors[:, used])
        return cls(vectors, values[used] / scale, vectors / scale, mean)

    @classmethod
    def from_landmarks(cls, kernel: Rows, between: Rows) -> Self:
        """Approximate the kernel between many tasks by their kernel values with some of them (Nyström's method).

        Parameters
        ----------
        kernel : ndarray of shape (n_tasks, n_landmarks)
            Kernel values of tasks and landmarks; overwritten.
        between : ndarray of shape (n_landmarks, n_landmarks)
            Kernel values between landmarks.

        Returns
        -------
        RidgeSmoother
        """
        mean = kernel.mean(axis=0)
        kernel -= mean
        spread, basis = np.linalg.eigh(between)
        used = spread > max(JITTER * float(spread[-1]), 1e-12)
        root = basis[:, used] / np.sqrt(spread[used])  # maps kernel values to features whose products are the kernel
        gram = root.T @ (kernel.T @ kernel) @ root
        scale = max(float(np.trace(gram)) / len(kernel), 1e-300)
        values, directions = np.linalg.eigh(gram / scale)
        used = values > MIN_RELATIVE_EIGENVALUE * max(values[-1], 1e-12)
        values = values[used]
        to_landmarks = root @ directions[:, used] / np.sqrt(scale)
        return cls(kernel @ (to_landmarks / np.sqrt(values)), values, to_landmarks * np.sqrt(values), mean)

    def predict_left_out(self, Y: Rows, ridge: float) -> Rows:
        """Predict the targets of every task by the regression on all other tasks.

        Parameters
        ----------
        Y : ndarray of shape (n_tasks, n_targets)
            Targets.
        ridge : float
            Penalty λ, relative to the mean diagonal of the centred kernel.

        Returns
        -------
        ndarray of shape (n_tasks, n_targets)
        """
        share = self.values / (self.values + ridge)
        mean = Y.mean(axis=0)
        fitted = mean + self.vectors @ (share[:, None] * (self.vectors.T @ (Y - mean)))
        leverage = 1 / len(Y) + np.einsum("nr,nr,r->n", self.vectors, self.vectors, share, optimize=False)
        return Y - (Y - fitted) / np.maximum(1 - leverage, MIN_RESIDUAL_SHARE)[:, None]

    def regress(self, Y: Rows, ridge: float) -> Regression:
        """Fit the regression to all tasks.

        Parameters
        ----------
        Y : ndarray of shape (n_tasks, n_targets)
            Targets.
        ridge : float
            Penalty λ, relative to the mean diagonal of the centred kernel.

        Returns
        -------
        Regression
        """
        mean = Y.mean(axis=0)
        slopes = self.to_landmarks @ ((self.vectors.T @ (Y - mean)) / (self.values + ridge)[:, None])
        return Regression(mean - self.kernel_mean @ slopes, slopes)
