"""Classifiers that learn from soft targets: logistic regression of our own, and whatever scikit-learn or torch offers.

A learner hands its classifier a distribution over the classes for every task, as often as it likes; a classifier that
was fitted before goes on from where it is.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.errors import UsageError

Rows = NDArray[np.float64]

#: p(1 − p) of a class, somewhere between certainty and doubt.
CURVATURE = 0.1
#: Features up to which the axes of the loss are looked for.
MOST_AXES = 1500
#: Rows x features x classes below which one thread is fastest.
SMALL = 2**26


class SoftClassifier(ABC):
    """What a learner asks of a classifier.

    >>> SoftClassifier.exact
    False
    """

    #: Whether fitting never worsens the fit to its targets, so that EM with it never lowers its objective.
    exact: ClassVar[bool] = False

    @abstractmethod
    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Learn from (tasks, classes) targets, each row weighing what ``weight`` says; go on from an earlier fit."""

    @abstractmethod
    def predict_proba(self, X: Rows) -> Rows:
        """(tasks, classes)."""

    @abstractmethod
    def fresh(self) -> Self:
        """An unfitted one with the same settings."""

    def log_prior(self) -> float:
        """Logarithm of the prior density of what was learnt, up to a constant."""
        return 0.0

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learnt, as arrays."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Take back what `arrays` gave."""


@dataclass
class Standardiser:
    """Features with mean zero and variance one, by what was seen first; constant ones become zero.

    >>> Standardiser().fit(np.array([[1.0, 5.0], [3.0, 5.0]])).apply(np.array([[3.0, 5.0]])).tolist()
    [[1.0, 0.0]]
    """

    mean: Rows | None = None
    scale: Rows | None = None

    def fit(self, X: Rows) -> Self:
        """Note mean and spread, the first time."""
        if self.mean is None:
            self.mean, spread = X.mean(axis=0), X.std(axis=0)
            self.scale = np.where(spread > 1e-12 * np.maximum(1, np.abs(self.mean)), spread, 1.0)
        return self

    def apply(self, X: Rows) -> Rows:
        """The rows, standardised."""
        assert self.mean is not None
        assert self.scale is not None
        return (X - self.mean) / self.scale


@dataclass(frozen=True)
class Axes:
    """Coordinates in which the curvature of logistic regression is about the same in all directions.

    The Hessian of the loss is near c XᵀX + λI with some c below ¼. In coordinates scaled by its square root, L-BFGS needs
    a fraction of its steps; they change the path and not the summit, so that those of the first fit serve the later ones.

    >>> axes = Axes.of(np.array([[1.0, 2.0], [-1.0, 1.0], [0.0, -3.0]]), l2=1.0)
    >>> coefficients = np.arange(6.0).reshape(3, 2)
    >>> np.allclose(axes.back(axes.into(coefficients)), coefficients)
    True
    """

    vectors: Rows | None
    scale: Rows
    intercept: float

    @classmethod
    def of(cls, rows: Rows, l2: float) -> Self:
        """The axes of some standardised rows."""
        n_rows, n_features = rows.shape
        intercept = 1 / np.sqrt(CURVATURE * max(n_rows, 1))
        if n_features > MOST_AXES:  # to find the axes would take longer than to do without them
            return cls(None, np.full(n_features, 1 / np.sqrt(CURVATURE * max(n_rows, 1) + l2)), intercept)
        spread, vectors = np.linalg.eigh(rows.T @ rows)
        return cls(vectors, 1 / np.sqrt(CURVATURE * np.maximum(spread, 0) + l2 + 1e-9 * max(n_rows, 1)), intercept)

    def back(self, scaled: Rows) -> Rows:
        """From these coordinates to coefficients."""
        slopes = self.scale[:, None] * scaled[:-1]
        slopes = slopes if self.vectors is None else self.vectors @ slopes
        return np.vstack([slopes, self.intercept * scaled[-1]])

    def into(self, coefficients: Rows) -> Rows:
        """From coefficients to these coordinates."""
        slopes = coefficients[:-1] if self.vectors is None else self.vectors.T @ coefficients[:-1]
        return np.vstack([slopes / self.scale[:, None], coefficients[-1] / self.intercept])

    def slope(self, gradient: Rows) -> Rows:
        """From a gradient by coefficients to one by these coordinates."""
        slopes = gradient[:-1] if self.vectors is None else self.vectors.T @ gradient[:-1]
        return np.vstack([self.scale[:, None] * slopes, self.intercept * gradient[-1]])


@dataclass
class Logistic(SoftClassifier):
    """Multinomial logistic regression with a Gaussian prior, by L-BFGS: exact, deterministic, without torch.

    maximises Σ_i w_i Σ_k q_ik log f_k(x_i) − λ/2 ‖W‖², f = softmax(Wx + b), x standardised.

    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> model = Logistic(l2=0.1).fit(X, targets)
    >>> model.predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    exact: ClassVar[bool] = True

    l2: float | None = None
    """λ; unless given, a tenth of the number of features, and at least one. Whatever their number, that expects
    logits of a standard deviation near three; with a fixed ridge, hundreds of features learn every vote by heart."""
    max_iter: int = 200
    tol: float = 1e-7
    standardiser: Standardiser = field(default_factory=Standardiser)
    coefficients: Rows | None = None
    """(features + 1, classes), the intercept in the last row."""
    axes: Axes | None = None

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """As `SoftClassifier.fit`."""
        from scipy.optimize import minimize

        wanted = targets if weight is None else targets * weight[:, None]
        mass = wanted.sum(axis=1, keepdims=True)
        size = max(float(mass.sum()), 1.0)  # the objective per task, so that the tolerance means the same everywhere
        shape = (_flat(X).shape[1] + 1, targets.shape[1])

        # Products of small matrices: more threads than one cost several times what they save.
        with _one_thread() if shape[0] * targets.size < SMALL else contextlib.nullcontext():
            rows = self.standardiser.fit(_flat(X)).apply(_flat(X))
            ridge = self.ridge
            axes = self.axes = self.axes or Axes.of(rows, ridge)

            def against(flat: Rows) -> tuple[float, Rows]:
                coefficients = axes.back(flat.reshape(shape))
                logits = rows @ coefficients[:-1] + coefficients[-1]
                logits -= logits.max(axis=1, keepdims=True)
                share = np.exp(logits)
                total = share.sum(axis=1, keepdims=True)
                value = (mass * np.log(total)).sum() - np.einsum("nk,nk->", wanted, logits)
                value += 0.5 * ridge * np.einsum("dk,dk->", coefficients[:-1], coefficients[:-1])
                share *= mass / total
                share -= wanted
                slope = np.vstack([rows.T @ share + ridge * coefficients[:-1], share.sum(axis=0)])
                return float(value) / size, axes.slope(slope).ravel() / size

            begin = axes.into(np.zeros(shape) if self.coefficients is None else self.coefficients)
            options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-10}
            found = minimize(against, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
            self.coefficients = axes.back(found.x.reshape(shape))
        return self

    @property
    def ridge(self) -> float:
        """λ as given, or by the features that were seen."""
        if self.l2 is not None:
            return self.l2
        assert self.standardiser.mean is not None
        return max(1.0, self.standardiser.mean.size / 10)

    def predict_proba(self, X: Rows) -> Rows:
        """As `SoftClassifier.predict_proba`."""
        return softmax(self.logits(X), axis=1)

    def logits(self, X: Rows) -> Rows:
        """Wx + b."""
        assert self.coefficients is not None
        return self.standardiser.apply(_flat(X)) @ self.coefficients[:-1] + self.coefficients[-1]

    def fresh(self) -> Self:
        """As `SoftClassifier.fresh`."""
        return type(self)(l2=self.l2, max_iter=self.max_iter, tol=self.tol)

    def log_prior(self) -> float:
        """−λ/2 ‖W‖²."""
        return 0.0 if self.coefficients is None else -0.5 * self.ridge * float((self.coefficients[:-1] ** 2).sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As `SoftClassifier.arrays`."""
        found = {"mean": self.standardiser.mean, "scale": self.standardiser.scale, "coefficients": self.coefficients}
        return {name: array for name, array in found.items() if array is not None}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """As `SoftClassifier.restore`."""
        self.standardiser = Standardiser(arrays["mean"], arrays["scale"])
        self.coefficients = arrays["coefficients"]
        return self


@dataclass
class Expanded(SoftClassifier):
    """Any scikit-learn classifier with ``predict_proba`` and ``sample_weight``: each task enters once for every class,
    weighing what its target says.

    >>> from sklearn.linear_model import LogisticRegression
    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> Expanded(LogisticRegression()).fit(X, targets).predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    estimator: Any
    least: float = 1e-6
    """Shares below this are left out."""
    fitted: Any = None
    n_classes: int = 0

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """As `SoftClassifier.fit`, but always anew."""
        from sklearn.base import clone

        wanted = targets if weight is None else targets * weight[:, None]
        task, label = np.nonzero(wanted > self.least)
        self.n_classes = targets.shape[1]
        try:
            self.fitted = clone(self.estimator).fit(_flat(X)[task], label, sample_weight=wanted[task, label])
        except TypeError as error:
            raise UsageError(
                f"the classifier must take sample_weight, since targets are soft, and {type(self.estimator).__name__} "
                f"does not ({error}); use another, for example sklearn's LogisticRegression or HistGradientBoostingClassifier"
            ) from None
        return self

    def predict_proba(self, X: Rows) -> Rows:
        """As `SoftClassifier.predict_proba`; a class that no target named has probability zero."""
        found = np.zeros((len(X), self.n_classes))
        found[:, self.fitted.classes_] = self.fitted.predict_proba(_flat(X))
        return found

    def fresh(self) -> Self:
        """As `SoftClassifier.fresh`."""
        return type(self)(self.estimator, self.least)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Refuses: only pickle could hold any classifier whatever, and a pickle from a stranger can do anything."""
        raise UsageError(
            f"a fitted {type(self.estimator).__name__} cannot be saved as arrays; use the classifiers 'logistic', "
            "'linear', 'mlp' or 'cnn', or keep the parameters and fit again"
        )

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Refuses, as `arrays` does."""
        raise UsageError("classifiers of scikit-learn are not saved, so they cannot be restored")


def soft_classifier(choice: Any, **settings: Any) -> SoftClassifier:
    """The classifier that a parameter names: "logistic", a network, or a scikit-learn classifier.

    Settings that the classifier does not have (``l2`` of a scikit-learn classifier) are left out.

    >>> soft_classifier("logistic", l2=3.0).l2
    3.0
    >>> soft_classifier("perceptron")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: a classifier is "logistic", "linear", "mlp", "cnn", ... got 'perceptron'
    """
    if isinstance(choice, SoftClassifier):
        return choice.fresh()
    if choice == "logistic":
        return Logistic(l2=settings.get("l2"), max_iter=settings.get("max_iter", 200))
    if isinstance(choice, str) and choice not in ("linear", "mlp", "cnn"):
        raise UsageError(
            'a classifier is "logistic", "linear", "mlp", "cnn", a torch module, a function that makes one, or a '
            f"scikit-learn classifier with predict_proba and sample_weight; got {choice!r}"
        )
    if hasattr(choice, "fit") and not isinstance(choice, type):
        if not hasattr(choice, "predict_proba"):
            raise UsageError(f"the classifier must have predict_proba, and {type(choice).__name__} has none")
        return Expanded(choice)
    from wisecrowd.nn.network_classifier import Network

    ridge = 1.0 if settings.get("l2") is None else settings["l2"]
    return Network(choice, **settings | {"l2": ridge})


def _one_thread() -> contextlib.AbstractContextManager[Any]:
    """BLAS with a single thread."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """What knows the libraries that were loaded; to look for them takes longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _flat(X: Rows) -> Rows:
    return X.reshape(len(X), math.prod(X.shape[1:]))  # -1 would fail for no rows
