"""Multinomial logistic regression on soft targets."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import softmax

from wisecrowd.classifiers.soft_classifier import Rows, SoftClassifier, flatten_rows
from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.utils.parallel import use_one_blas_thread

#: Typical value of p(1 − p), the curvature of the log-loss in a logit.
CURVATURE = 0.1
#: Number of features above which the eigenvectors of the Hessian cost more time than they save.
MAX_EIGEN_FEATURES = 1500
#: Number of rows x features x classes below which BLAS is fastest with one thread.
SINGLE_THREAD_CELLS = 2**26


@dataclass(frozen=True)
class Preconditioner:
    """Coordinates in which the curvature of logistic regression is about the same in all directions.

    The Hessian of the loss is close to c XᵀX + λI with a constant c below ¼. In coordinates that are scaled by its square
    root, L-BFGS needs a fraction of its steps. Any coordinates lead to the same optimum, so later fits reuse the first ones.

    Parameters
    ----------
    vectors : ndarray of shape (n_features, n_features), optional
        Eigenvectors of XᵀX; None leaves the features as they are.
    scale : ndarray of shape (n_features,)
        Scale of every coordinate.
    intercept : float
        Scale of the intercept.

    Examples
    --------
    >>> preconditioner = Preconditioner.from_rows(np.array([[1.0, 2.0], [-1.0, 1.0], [0.0, -3.0]]), l2=1.0)
    >>> coefficients = np.arange(6.0).reshape(3, 2)
    >>> np.allclose(preconditioner.to_coefficients(preconditioner.from_coefficients(coefficients)), coefficients)
    True
    """

    vectors: Rows | None
    scale: Rows
    intercept: float

    @classmethod
    def from_rows(cls, rows: Rows, l2: float) -> Self:
        """Compute the preconditioner of standardised features.

        Parameters
        ----------
        rows : ndarray of shape (n_tasks, n_features)
            Standardised features.
        l2 : float
            Ridge penalty λ.

        Returns
        -------
        Preconditioner
        """
        n_rows, n_features = rows.shape
        intercept = 1 / np.sqrt(CURVATURE * max(n_rows, 1))
        if n_features > MAX_EIGEN_FEATURES:
            return cls(None, np.full(n_features, 1 / np.sqrt(CURVATURE * max(n_rows, 1) + l2)), intercept)
        products: Any = rows.T @ rows
        spread, vectors = np.linalg.eigh(products.toarray() if issparse(products) else products)
        return cls(vectors, 1 / np.sqrt(CURVATURE * np.maximum(spread, 0) + l2 + 1e-9 * max(n_rows, 1)), intercept)

    def to_coefficients(self, scaled: Rows) -> Rows:
        """Convert from these coordinates to coefficients.

        Parameters
        ----------
        scaled : ndarray of shape (n_features + 1, n_classes)
            Point in these coordinates; the intercept is in the last row.

        Returns
        -------
        ndarray of shape (n_features + 1, n_classes)
        """
        slopes = self.scale[:, None] * scaled[:-1]
        slopes = slopes if self.vectors is None else self.vectors @ slopes
        return np.vstack([slopes, self.intercept * scaled[-1]])

    def from_coefficients(self, coefficients: Rows) -> Rows:
        """Convert from coefficients to these coordinates.

        Parameters
        ----------
        coefficients : ndarray of shape (n_features + 1, n_classes)
            Coefficients; the intercept is in the last row.

        Returns
        -------
        ndarray of shape (n_features + 1, n_classes)
        """
        slopes = coefficients[:-1] if self.vectors is None else self.vectors.T @ coefficients[:-1]
        return np.vstack([slopes / self.scale[:, None], coefficients[-1] / self.intercept])

    def scale_gradient(self, gradient: Rows) -> Rows:
        """Convert a gradient with respect to coefficients to one with respect to these coordinates.

        Parameters
        ----------
        gradient : ndarray of shape (n_features + 1, n_classes)
            Gradient with respect to the coefficients.

        Returns
        -------
        ndarray of shape (n_features + 1, n_classes)
        """
        slopes = gradient[:-1] if self.vectors is None else self.vectors.T @ gradient[:-1]
        return np.vstack([self.scale[:, None] * slopes, self.intercept * gradient[-1]])


@dataclass
class Logistic(SoftClassifier):
    """Multinomial logistic regression with a ridge penalty, fitted by L-BFGS.

    Maximises Σ_i w_i Σ_k q_ik log f_k(x_i) − λ/2 ‖W‖² with f = softmax(Wx + b) and standardised features x. The fit is
    exact and deterministic, and needs no torch.

    Parameters
    ----------
    l2 : float, optional
        Ridge penalty λ. By default a tenth of the number of features, and at least one: whatever the number of
        features, logits then have a standard deviation near three a priori. With a fixed penalty, hundreds of features
        would memorise every vote.
    max_iter : int, default 200
        Maximum number of L-BFGS steps.
    tol : float, default 1e-7
        Gradient per task at which the fit stops.
    standardiser : Standardiser
        Standardisation of the features, set by the first fit.
    coefficients : ndarray of shape (n_features + 1, n_classes), optional
        Fitted coefficients, with the intercept in the last row.
    preconditioner : Preconditioner, optional
        Coordinates of L-BFGS, set by the first fit.

    Examples
    --------
    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> model = Logistic(l2=0.1).fit(X, targets)
    >>> model.predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    exact: ClassVar[bool] = True
    accepts_sparse: ClassVar[bool] = True

    l2: float | None = None
    max_iter: int = 200
    tol: float = 1e-7
    standardiser: Standardiser = field(default_factory=Standardiser)
    coefficients: Rows | None = None
    preconditioner: Preconditioner | None = None

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Fit the coefficients, starting from those of an earlier fit.

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
        Logistic
            The classifier itself.
        """
        from scipy.optimize import minimize

        weighted = targets if weight is None else targets * weight[:, None]
        mass = weighted.sum(axis=1, keepdims=True)
        size = max(float(mass.sum()), 1.0)  # the objective is per task, so that the tolerance means the same everywhere
        features = flatten_rows(X)
        shape = (features.shape[1] + 1, targets.shape[1])

        # For products of small matrices, several threads cost more time than they save.
        with use_one_blas_thread() if shape[0] * targets.size < SINGLE_THREAD_CELLS else contextlib.nullcontext():
            rows = self.standardiser.fit(features).apply(features)
            ridge = self.ridge
            preconditioner = self.preconditioner or Preconditioner.from_rows(rows, ridge)

            def loss_and_gradient(flat: Rows) -> tuple[float, Rows]:
                coefficients = preconditioner.to_coefficients(flat.reshape(shape))
                logits = rows @ coefficients[:-1] + coefficients[-1]
                logits -= logits.max(axis=1, keepdims=True)
                share = np.exp(logits)
                total = share.sum(axis=1, keepdims=True)
                value = (mass * np.log(total)).sum() - np.einsum("nk,nk->", weighted, logits)
                value += 0.5 * ridge * np.einsum("dk,dk->", coefficients[:-1], coefficients[:-1])
                share *= mass / total
                share -= weighted
                gradient = np.vstack([rows.T @ share + ridge * coefficients[:-1], share.sum(axis=0)])
                return float(value) / size, preconditioner.scale_gradient(gradient).ravel() / size

            start = np.zeros(shape) if self.coefficients is None else self.coefficients
            options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-10}
            result = minimize(
                loss_and_gradient,
                preconditioner.from_coefficients(start).ravel(),
                jac=True,
                method="L-BFGS-B",
                options=options,
            )
            self.preconditioner = preconditioner
            self.coefficients = preconditioner.to_coefficients(result.x.reshape(shape))
        return self

    @property
    def ridge(self) -> float:
        """Ridge penalty in use: ``l2``, or a value that follows from the number of features."""
        if self.l2 is not None:
            return self.l2
        assert self.standardiser.mean is not None
        return max(1.0, self.standardiser.mean.size / 10)

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
        return softmax(self.logits(X), axis=1)

    def logits(self, X: Rows) -> Rows:
        """Return Wx + b.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        assert self.coefficients is not None
        return self.standardiser.apply(flatten_rows(X)) @ self.coefficients[:-1] + self.coefficients[-1]

    def clone_unfitted(self) -> Self:
        """Return an unfitted classifier with the same settings."""
        return type(self)(l2=self.l2, max_iter=self.max_iter, tol=self.tol)

    def log_prior(self) -> float:
        """Return −λ/2 ‖W‖²."""
        return 0.0 if self.coefficients is None else -0.5 * self.ridge * float((self.coefficients[:-1] ** 2).sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return standardisation and coefficients."""
        arrays = {"mean": self.standardiser.mean, "scale": self.standardiser.scale, "coefficients": self.coefficients}
        return {name: array for name, array in arrays.items() if array is not None}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Set standardisation and coefficients.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Parameters as `arrays` returns them.

        Returns
        -------
        Logistic
            The classifier itself.

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        mean, scale, coefficients = (arrays[name] for name in ("mean", "scale", "coefficients"))
        n_features = mean.size
        if mean.shape != (n_features,) or scale.shape != mean.shape or len(coefficients) != n_features + 1:
            raise ValueError("mean, scale and coefficients are of different numbers of features")
        if coefficients.ndim != 2 or not all(np.isfinite(array).all() for array in (mean, scale, coefficients)):
            raise ValueError("mean, scale or coefficients are not finite, or coefficients are no matrix")
        self.standardiser, self.coefficients = Standardiser(mean, scale), coefficients
        return self
