"""scikit-learn classifiers on soft targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.classifiers.soft_classifier import Rows, SoftClassifier, flatten_rows
from wisecrowd.errors import UsageError


@dataclass
class SklearnClassifier(SoftClassifier):
    """Adapter for scikit-learn classifiers and pipelines with ``predict_proba``.

    Every task enters the fit once for each class, weighted by the target; a pipeline passes the weights to its last step. A
    classifier without ``sample_weight`` gets every task once, with a label that is drawn from the target: the same random
    numbers in every fit, so that a label changes only if its target does. An earlier fit has no influence on a later one.

    Parameters
    ----------
    estimator : object
        Unfitted scikit-learn classifier or pipeline.
    min_weight : float, default 1e-6
        Smallest weight of a row; smaller targets are left out.
    random_state : int, default 0
        Seed of the labels that are drawn for a classifier without ``sample_weight``.
    fitted_estimator : object, optional
        Result of the latest fit; None if all targets were of one class.
    classes : ndarray, optional
        Codes of the classes in the fit.
    n_classes : int
        Number of classes, set by ``fit``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    >>> SklearnClassifier(pipeline).fit(X, targets).predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    accepts_sparse: ClassVar[bool] = True

    estimator: Any
    min_weight: float = 1e-6
    random_state: int = 0
    fitted_estimator: Any = None
    classes: NDArray[np.intp] | None = None
    n_classes: int = 0

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Fit a clone of the estimator.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_tasks, ...)
            Features.
        targets : ndarray of shape (n_tasks, n_classes)
            Distribution over the classes for every task.
        weight : ndarray of shape (n_tasks,), optional
            Weight of every task; 1 by default.

        Returns
        -------
        SklearnClassifier
            The classifier itself.

        Raises
        ------
        UsageError
            If the classifier refuses the features.
        """
        from sklearn.base import clone

        weighted = targets if weight is None else targets * weight[:, None]
        self.n_classes = targets.shape[1]
        name = find_weight_parameter(self.estimator)
        if name is None:
            task, label = self._draw_labels(weighted)
            parameters = {}
        else:
            task, label = np.nonzero(weighted > self.min_weight)
            parameters = {name: weighted[task, label]}
        self.classes, self.fitted_estimator = np.unique(label), None
        if len(self.classes) < 2:  # most classifiers need two
            return self
        try:
            fitted_estimator = clone(self.estimator).fit(flatten_rows(X)[task], label, **parameters)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"the classifier {type(self.estimator).__name__} refused the features: {error}. A learner passes numbers "
                "without column names; to select columns by name, put the pipeline around the learner: "
                "make_pipeline(ColumnTransformer(...), Raykar())"
            ) from error
        check_probabilities(fitted_estimator)
        self.fitted_estimator = fitted_estimator
        return self

    def _draw_labels(self, weighted: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw tasks in proportion to their weight, each once if all weights are equal, and a label for each."""
        rng = np.random.default_rng(self.random_state)
        mass = weighted.sum(axis=1)
        bounds = np.cumsum(mass) / max(float(mass.sum()), np.finfo(float).tiny) * len(mass)
        task = np.minimum(np.searchsorted(bounds, np.arange(len(mass)) + 0.5), len(mass) - 1)
        cumulative = np.cumsum(weighted[task], axis=1)
        draws = rng.random(len(task))[:, None] * cumulative[:, -1:]
        return task, np.minimum((draws >= cumulative).sum(axis=1), weighted.shape[1] - 1)

    def predict_proba(self, X: Rows) -> Rows:
        """Predict class probabilities; a class without any target has probability zero.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Probabilities; the columns are in the order of the class codes of the targets in ``fit``.
        """
        proba = np.zeros((X.shape[0], self.n_classes))
        proba[:, self.classes] = (
            1.0 if self.fitted_estimator is None else self.fitted_estimator.predict_proba(flatten_rows(X))
        )
        return proba

    def clone_unfitted(self) -> Self:
        """Return an unfitted classifier with the same settings."""
        return type(self)(self.estimator, self.min_weight, self.random_state)

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


def check_probabilities(estimator: Any) -> None:
    """Raise an error if a classifier has no class probabilities.

    Parameters
    ----------
    estimator : object
        scikit-learn classifier. A fitted one knows whether its parts have probabilities.

    Raises
    ------
    UsageError
        If it has no ``predict_proba``.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> check_probabilities(LinearSVC())
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the classifier LinearSVC has no predict_proba, which soft targets need; ...
    """
    if not hasattr(estimator, "predict_proba"):
        name = type(estimator).__name__
        raise UsageError(
            f"the classifier {name} has no predict_proba, which soft targets need; use one that has, or estimate "
            f"probabilities: CalibratedClassifierCV({name}())"
        )


def find_weight_parameter(estimator: Any) -> str | None:
    """Return the argument of ``fit`` that takes the weights of rows.

    Parameters
    ----------
    estimator : object
        scikit-learn classifier, pipeline, or search over one of them.

    Returns
    -------
    str or None
        "sample_weight", for a pipeline prefixed by the name of its last step; None if there is no such argument.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> find_weight_parameter(make_pipeline(LogisticRegression())), find_weight_parameter(KNeighborsClassifier())
    ('logisticregression__sample_weight', None)
    """
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    if isinstance(estimator, Pipeline):
        title, last = estimator.steps[-1]
        inner = find_weight_parameter(last)
        return None if inner is None else f"{title}__{inner}"
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return find_weight_parameter(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
