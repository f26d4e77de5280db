"""Average of kernel ridge regressions on several views of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.base.sharpness import safe_log
from wisecrowd.classifiers.kernel_view import (
    FeatureTransform,
    KernelView,
    compute_median_distance,
    compute_squared_distances,
)
from wisecrowd.classifiers.ridge_smoother import RidgeSmoother
from wisecrowd.classifiers.score_weights import fit_score_weights
from wisecrowd.classifiers.soft_classifier import Rows, SoftClassifier, flatten_rows
from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.utils.slices import slice_rows

#: Views that compete.
VIEWS: tuple[KernelView, ...] = tuple(
    KernelView(transform, width) for transform in ("clipped", "roots") for width in (0.1, 0.3, 1.0, 3.0)
)
#: Candidates for the ridge penalty, relative to the mean diagonal of the centred kernel.
RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03)
#: Largest number of landmarks: up to this number of tasks the kernel is exact.
MAX_LANDMARKS = 1000
#: Number of kernel values of one view that are held in memory; beyond, there are fewer landmarks.
MAX_VIEW_CELLS = 2**25
#: Smallest number of landmarks, however many tasks there are.
MIN_LANDMARKS = 100
#: Number of kernel values that all views together may hold; beyond, the views with the largest weights are used.
MAX_CELLS = 2**26
#: Penalty on the weights of views, which divides the weight among views that are alike.
WEIGHT_RIDGE = 0.3
#: Share of the total weight below which a view is left out.
MIN_WEIGHT_SHARE = 0.02
#: Gain of log-likelihood, over all tasks, below which no view is used. The best of some forty candidates gains a little by
#: chance: less than this in most samples of noise.
MIN_GAIN = 3.0
#: Smallest frequency of a class, relative to equal classes, by which its scores are divided.
MIN_RELATIVE_FREQUENCY = 0.05


class Component(NamedTuple):
    """View with its ridge penalty and weight.

    Attributes
    ----------
    view : KernelView
        View of the features.
    ridge : float
        Ridge penalty.
    weight : float
        Weight of its scores; zero if the view is not used.
    log_likelihood : float
        Mean log-likelihood of the evidence on a task with this view alone.

    Examples
    --------
    >>> Component(VIEWS[0], 0.3, 1.0, -1.5).ridge
    0.3
    """

    view: KernelView
    ridge: float
    weight: float
    log_likelihood: float


class KernelMachine:
    """Kernel ridge regressions of class indicators on several views of the same tasks.

    The score of class k is relative: with m_k the mean prediction of the indicator of k, it is (f_k(x) − m_k) / m_k, up to a
    factor common to all classes. So a rare class is not ignored because its indicator is mostly zero; how frequent
    classes are is left to the prior. Scores of the training tasks are leave-one-out predictions.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, n_features)
        Features of the training tasks.
    random_state : int
        Seed of the landmarks, which represent more than a thousand tasks.

    Examples
    --------
    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> KernelMachine(X, 0).score(targets, VIEWS[0], 0.3).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, X: Rows, random_state: int) -> None:
        n_landmarks = min(len(X), MAX_LANDMARKS, max(MIN_LANDMARKS, MAX_VIEW_CELLS // max(len(X), 1)))
        chosen = np.arange(len(X))
        if n_landmarks < len(X):
            chosen = np.sort(np.random.default_rng(random_state).choice(len(X), n_landmarks, replace=False))
        self.landmarks = X[chosen]
        self._X, self._chosen = X, chosen
        self._rows: dict[str, tuple[FeatureTransform, Rows, float]] = {}
        self._smoothers: dict[KernelView, RidgeSmoother] = {}

    @property
    def max_views(self) -> int:
        """Number of views that fit into memory."""
        return max(1, MAX_CELLS // max(len(self._X) * len(self.landmarks), 1))

    def choose(
        self,
        targets: Rows,
        log_priors: Rows,
        evidence: Sequence[Rows],
        ridges: Sequence[float] = RIDGES,
        max_views: int | None = None,
    ) -> list[Component]:
        """Choose ridge penalties and weights under which the evidence is most probable.

        For every view, penalties are tried from the largest on until the likelihood falls.

        Parameters
        ----------
        targets : ndarray of shape (n_tasks, n_classes)
            Class probabilities to regress on.
        log_priors : ndarray of shape (n_priors, n_classes)
            Logarithms of class priors.
        evidence : sequence of ndarray of shape (n_tasks, n_classes)
            Log-likelihoods of the classes, one array per prior.
        ridges : sequence of float
            Candidates for the penalty, descending.
        max_views : int, optional
            Number of views in use; by default as many as fit into memory.

        Returns
        -------
        list of Component
            Candidates that were tried, with a weight where they are used.
        """
        tried: list[Component] = []
        best, scores = [], []
        for view in VIEWS:
            path: list[tuple[Component, Rows]] = []
            weight = np.array([5.0])
            for ridge in ridges:
                score = self.score(targets, view, ridge)
                weight, log_likelihood = fit_score_weights(score[None], log_priors, evidence, start=weight)
                path.append((Component(view, ridge, 0.0, log_likelihood), score))
                if len(path) > 1 and log_likelihood < path[-2][0].log_likelihood:
                    break
                weight = np.maximum(
                    weight, 0.1
                )  # a start at the limit of zero would have no slope along other directions
            component, score = max(path, key=lambda item: item[0].log_likelihood)
            tried += [item for item, _ in path]
            best.append(component)
            scores.append(score)
        weights, log_likelihood = fit_score_weights(np.array(scores), log_priors, evidence, ridge=WEIGHT_RIDGE)
        without = fit_score_weights(np.zeros_like(scores[:1]), log_priors, evidence).log_likelihood
        if len(targets) * (log_likelihood - without) < MIN_GAIN:
            weights = np.zeros_like(weights)
        order = np.argsort(-weights, kind="stable")
        for rank, position in enumerate(order):
            if rank >= (max_views or self.max_views) or weights[position] <= MIN_WEIGHT_SHARE * weights.sum():
                weights[position] = 0.0
        used = dict(zip(best, weights.tolist(), strict=True))
        return [item._replace(weight=used.get(item, 0.0)) for item in tried]

    def score(self, targets: Rows, view: KernelView, ridge: float) -> Rows:
        """Return leave-one-out scores of one view.

        Parameters
        ----------
        targets : ndarray of shape (n_tasks, n_classes)
            Class probabilities to regress on.
        view : KernelView
            View.
        ridge : float
            Ridge penalty.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        predicted = self._smoother(view).predict_left_out(targets, ridge)
        mean = predicted.mean(axis=0)
        return (predicted - mean) * _relative_scale(mean)

    def combine(self, targets: Rows, components: Sequence[Component]) -> Rows:
        """Return the weighted sum of the leave-one-out scores of views.

        Parameters
        ----------
        targets : ndarray of shape (n_tasks, n_classes)
            Class probabilities to regress on.
        components : sequence of Component
            Views with penalties and weights.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        total = np.zeros_like(targets)
        for view, ridge, weight, _ in components:
            if weight:
                total += weight * self.score(targets, view, ridge)
        return total

    def make_classifier(self, targets: Rows, components: Sequence[Component], log_priors: Rows) -> KernelRidge:
        """Return the classifier of new tasks, fitted to all tasks.

        Parameters
        ----------
        targets : ndarray of shape (n_tasks, n_classes)
            Class probabilities to regress on.
        components : sequence of Component
            Views with penalties and weights.
        log_priors : ndarray of shape (n_priors, n_classes)
            Logarithms of class priors, over whose predictions the classifier averages.

        Returns
        -------
        KernelRidge
        """
        intercept = np.zeros(targets.shape[1])
        parts: list[FittedView] = []
        for view, ridge, weight, _ in components:
            if not weight:
                continue
            smoother = self._smoother(view)
            mean = smoother.predict_left_out(targets, ridge).mean(axis=0)
            factor = weight * _relative_scale(mean)
            regression = smoother.regress(targets, ridge)
            transform, _, distance = self._transform(view)
            intercept += (regression.intercept - mean) * factor
            parts.append(FittedView(transform, view.width / distance, regression.slopes * factor))
        return KernelRidge(landmarks=self.landmarks, log_priors=log_priors, intercept=intercept, parts=parts)

    def _transform(self, view: KernelView) -> tuple[FeatureTransform, Rows, float]:
        """Return the transform of a view, the transformed features and their median distance."""
        if view.transform not in self._rows:
            transform = FeatureTransform(view.transform).fit(self._X)
            rows = transform.apply(self._X)
            self._rows[view.transform] = transform, rows, compute_median_distance(rows)
        return self._rows[view.transform]

    def _smoother(self, view: KernelView) -> RidgeSmoother:
        """Return the decomposed kernel of a view."""
        if view not in self._smoothers:
            _, rows, distance = self._transform(view)
            kernel = compute_squared_distances(rows, rows[self._chosen])
            kernel *= -view.width / distance
            np.exp(kernel, out=kernel)
            if len(self._chosen) == len(rows):
                self._smoothers[view] = RidgeSmoother.from_kernel(kernel)
            else:
                self._smoothers[view] = RidgeSmoother.from_landmarks(kernel, kernel[self._chosen])
        return self._smoothers[view]


class FittedView(NamedTuple):
    """Part of a fitted classifier that belongs to one view.

    Attributes
    ----------
    transform : FeatureTransform
        Transform of the features.
    precision : float
        Factor of the squared distance in the kernel.
    slopes : ndarray of shape (n_landmarks, n_classes)
        Coefficients of the kernel values.

    Examples
    --------
    >>> FittedView(FeatureTransform("roots"), 0.5, np.zeros((3, 2))).precision
    0.5
    """

    transform: FeatureTransform
    precision: float
    slopes: Rows


@dataclass
class KernelRidge(SoftClassifier):
    """Classifier by kernel ridge regressions on several views of the features, weighted by the likelihood of the targets.

    P(k | x) is the softmax of the log-prior and the weighted scores of `KernelMachine`. Up to a thousand tasks the fit is
    exact and deterministic; a thousand random landmarks represent more.

    Parameters
    ----------
    ridges : tuple of float
        Candidates for the ridge penalty, descending.
    random_state : int, default 0
        Seed of the landmarks.
    landmarks : ndarray of shape (n_landmarks, n_features), optional
        Features of the landmarks, set by the fit.
    log_priors : ndarray of shape (n_priors, n_classes), optional
        Logarithms of class priors, over whose predictions the classifier averages.
    intercept : ndarray of shape (n_classes,), optional
        Constant of the scores.
    parts : list of FittedView
        Views in use.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 12)[:, None]
    >>> targets = np.hstack([X < 0, X > 0]).astype(float)
    >>> KernelRidge().fit(X, targets).predict_proba(np.array([[-1.0], [1.0]])).argmax(axis=1).tolist()
    [0, 1]
    """

    ridges: tuple[float, ...] = RIDGES
    random_state: int = 0
    landmarks: Rows | None = None
    log_priors: Rows | None = None
    intercept: Rows | None = None
    parts: list[FittedView] = field(default_factory=list)

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Choose views and penalties, and fit the regressions. An earlier fit has no influence.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.
        targets : ndarray of shape (n_tasks, n_classes)
            Distribution over the classes for every task.
        weight : ndarray of shape (n_tasks,), optional
            Weight of every task; tasks of weight zero are left out, and other weights count as one.

        Returns
        -------
        KernelRidge
            The classifier itself.
        """
        used = np.ones(len(X), dtype=bool) if weight is None else weight > 0
        targets, machine = targets[used], KernelMachine(flatten_rows(X)[used], self.random_state)
        log_priors = safe_log(targets.mean(axis=0))[None]
        components = machine.choose(targets, log_priors, [safe_log(targets)], self.ridges)
        fitted = machine.make_classifier(targets, components, log_priors)
        self.landmarks, self.log_priors = fitted.landmarks, fitted.log_priors
        self.intercept, self.parts = fitted.intercept, fitted.parts
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
        assert self.log_priors is not None
        scores = self.score(X)
        return np.asarray(np.mean([softmax(scores + prior, axis=1) for prior in self.log_priors], axis=0))

    def score(self, X: Rows) -> Rows:
        """Return the weighted scores of tasks, without the class prior.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        assert self.landmarks is not None
        assert self.intercept is not None
        rows = flatten_rows(X)
        scores = np.tile(self.intercept, (len(rows), 1))
        places = {part.transform.name: part.transform.apply(self.landmarks) for part in self.parts}
        for chunk in slice_rows(len(rows), len(self.landmarks)):
            distances = {}
            for part in self.parts:
                name = part.transform.name
                if name not in distances:
                    distances[name] = compute_squared_distances(part.transform.apply(rows[chunk]), places[name])
                scores[chunk] += np.exp(-part.precision * distances[name]) @ part.slopes
        return scores

    def clone_unfitted(self) -> Self:
        """Return an unfitted classifier with the same settings."""
        return type(self)(self.ridges, self.random_state)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return landmarks, priors, and the coefficients of every view."""
        assert self.landmarks is not None
        assert self.log_priors is not None
        assert self.intercept is not None
        arrays: dict[str, NDArray[Any]] = {
            "landmarks": self.landmarks, "log_priors": self.log_priors, "intercept": self.intercept,
        }  # fmt: skip
        for number, (transform, precision, slopes) in enumerate(self.parts):
            mean, scale = transform.standardiser.mean, transform.standardiser.scale
            assert mean is not None
            assert scale is not None
            arrays |= {
                f"{transform.name}_{number}_slopes": slopes,
                f"{transform.name}_{number}_precision": np.array(precision),
                f"{transform.name}_{number}_mean": mean,
                f"{transform.name}_{number}_scale": scale,
            }
        return arrays

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Set landmarks, priors and coefficients.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Parameters as `arrays` returns them.

        Returns
        -------
        KernelRidge
            The classifier itself.

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        landmarks, log_priors, intercept = (arrays[name] for name in ("landmarks", "log_priors", "intercept"))
        if landmarks.ndim != 2 or intercept.ndim != 1 or log_priors.shape[1:] != intercept.shape:
            raise ValueError("landmarks, log_priors and intercept are of different shapes")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("the coefficients are not finite")
        names = sorted(
            (name.removesuffix("_slopes") for name in arrays if name.endswith("_slopes")),
            key=lambda name: int(name.rsplit("_", 1)[1]),
        )
        parts = []
        for name in names:
            transform = name.rsplit("_", 1)[0]
            slopes, precision, mean, scale = (
                arrays[f"{name}_{part}"] for part in ("slopes", "precision", "mean", "scale")
            )
            if transform not in ("clipped", "roots") or slopes.shape != (len(landmarks), len(intercept)):
                raise ValueError(f"the view {name} does not fit to the landmarks and classes")
            if mean.shape != landmarks.shape[1:] or scale.shape != mean.shape or precision.shape != ():
                raise ValueError(f"the view {name} does not fit to the features")
            standardised = FeatureTransform(transform, Standardiser(mean, scale))  # type: ignore[arg-type]
            parts.append(FittedView(standardised, float(precision), slopes))
        self.landmarks, self.log_priors, self.intercept, self.parts = landmarks, log_priors, intercept, parts
        return self


def _relative_scale(mean: Rows) -> Rows:
    """Return the factors that make deviations from mean indicators relative to them."""
    return 1 / np.maximum(len(mean) * mean, MIN_RELATIVE_FREQUENCY)
