"""scikit-learn classifiers on soft targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.classifiers.soft_classifier import Rows, SoftClassifier, flatten_rows
from wisecrowd.errors import UsageError


@dataclass
class SklearnClassifier(SoftClassifier):
    """Adapter for scikit-learn classifiers with ``predict_proba`` and ``sample_weight``.

    Every task enters the fit once for each class, weighted by the target. An earlier fit has no influence on a later one.

    Parameters
    ----------
    estimator : object
        Unfitted scikit-learn classifier.
    min_weight : float, default 1e-6
        Smallest weight of a row; smaller targets are left out.
    fitted_estimator : object, optional
        Result of the latest fit.
    n_classes : int
        Number of classes, set by ``fit``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> SklearnClassifier(LogisticRegression()).fit(X, targets).predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    estimator: Any
    min_weight: float = 1e-6
    fitted_estimator: Any = None
    n_classes: int = 0

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Fit a clone of the estimator.

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
        SklearnClassifier
            The classifier itself.
        """
        from sklearn.base import clone

        weighted = targets if weight is None else targets * weight[:, None]
        task, label = np.nonzero(weighted > self.min_weight)
        self.n_classes = targets.shape[1]
        rows = flatten_rows(X)[task]
        try:
            self.fitted_estimator = clone(self.estimator).fit(rows, label, sample_weight=weighted[task, label])
        except TypeError as error:
            raise UsageError(
                f"{type(self.estimator).__name__} does not accept sample_weight ({error}), which soft targets need; "
                "use another classifier, for example LogisticRegression or HistGradientBoostingClassifier"
            ) from None
        return self

    def predict_proba(self, X: Rows) -> Rows:
        """Predict class probabilities; a class without any target has probability zero.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        proba = np.zeros((len(X), self.n_classes))
        proba[:, self.fitted_estimator.classes_] = self.fitted_estimator.predict_proba(flatten_rows(X))
        return proba

    def clone_unfitted(self) -> Self:
        """Return an unfitted classifier with the same settings."""
        return type(self)(self.estimator, self.min_weight)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Raise an error: only pickle could hold any estimator, and loading a pickle can run any code."""
        raise UsageError(
            f"a fitted {type(self.estimator).__name__} cannot be saved as arrays; use the classifiers 'logistic', "
            "'linear', 'mlp' or 'cnn', or keep the parameters and fit again"
        )

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Raise an error, as `arrays` does.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Parameters as `arrays` returns them.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError("a scikit-learn classifier cannot be restored from arrays; fit the method again")
