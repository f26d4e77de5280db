"""Expected accuracy of labels with an interval, and the calibration of a crowd behind it.

The score of a label is a weighted sum of its support by the votes (`wisecrowd.em.label_support`). In a crowd, a label with
score s is right with probability σ(a s + b). The slope a and the shift b differ between crowds: workers of one crowd share more
errors than those of another, which votes alone cannot show. Their distribution over public crowds is the prior. Without gold it
is all that is known, so the interval is wide. Gold tasks update it, and the interval becomes narrow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.em.label_support import LabelSupport
from wisecrowd.errors import UsageError
from wisecrowd.utils.levels import LEVEL, format_level

Array = NDArray[np.float64]

#: Coefficients of public crowds, written by ``benchmarks/fit_confidence.py``.
PRIOR_FILE = "confidence_prior.json"
#: Grid of shifts. Crowds in which labels are right by chance only are within it.
SHIFTS = np.linspace(-5.0, 5.0, 101)
#: Grid of slopes.
SLOPES = np.exp(np.linspace(-1.2, 1.2, 13))
#: Number of scores that represent those of all tasks in sums over the grid.
MAX_SCORES = 400
#: Number of scores between which the confidence is interpolated.
MAP_POINTS = 512
#: Number of bisection steps for a quantile.
QUANTILE_STEPS = 50


@dataclass(frozen=True, kw_only=True)
class ConfidencePrior:
    """Coefficients of the score of a label, and the spread between crowds.

    Attributes
    ----------
    intercept : float
        Score of a label without support.
    evidence : float
        Coefficient of asinh(log-odds of the label).
    agreement : float
        Coefficient of the agreement.
    shift_scale : float
        Scale of the shift b, which has a Student distribution around zero.
    degrees_of_freedom : float
        Degrees of freedom of that distribution; a small number allows for unusual crowds.
    slope_scale : float
        Standard deviation of log a.
    class_scale : float
        Standard deviation of the shift between the classes of a crowd.

    Examples
    --------
    >>> ConfidencePrior.load().agreement > 0
    True
    """

    intercept: float
    evidence: float
    agreement: float
    shift_scale: float
    degrees_of_freedom: float
    slope_scale: float
    class_scale: float

    @staticmethod
    @cache
    def load() -> ConfidencePrior:
        """Return the coefficients that were fitted to public crowds.

        Returns
        -------
        ConfidencePrior
        """
        text = resources.files("wisecrowd.evaluate").joinpath(PRIOR_FILE).read_text(encoding="utf-8")
        return ConfidencePrior(**json.loads(text)["prior"])

    def to_dict(self) -> dict[str, float]:
        """Return the coefficients by name.

        Returns
        -------
        dict of str to float
        """
        return asdict(self)

    def score(self, support: LabelSupport) -> Array:
        """Compute the scores of labels.

        Parameters
        ----------
        support : LabelSupport
            Support of the labels.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        return self.intercept + self.evidence * np.arcsinh(support.log_odds) + self.agreement * support.agreement


@dataclass(frozen=True)
class AccuracyEstimate:
    """Expected share of right labels with an interval.

    Attributes
    ----------
    accuracy : float
        Expected share.
    low, high : float
        Bounds of the interval.
    level : float
        Probability of the interval.
    n_tasks : int
        Number of labels.
    n_gold : int
        Number of tasks with known truth behind the estimate.

    Examples
    --------
    >>> str(AccuracyEstimate(0.871, 0.792, 0.93, 0.9, 1000, 0))
    '87 % (90 % interval: 79 to 93 %)'
    """

    accuracy: float
    low: float
    high: float
    level: float
    n_tasks: int
    n_gold: int

    def __str__(self) -> str:
        low, accuracy, high = (100 * share for share in (self.low, self.accuracy, self.high))
        digits = 1 if self.high - self.low < 0.05 else 0  # whole points would hide a narrow interval
        return f"{accuracy:.{digits}f} % ({format_level(self.level)}: {low:.{digits}f} to {high:.{digits}f} %)"

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> AccuracyEstimate:
        """Return the estimate that `to_dict` described.

        Parameters
        ----------
        figures : mapping
            Result of `to_dict`.

        Returns
        -------
        AccuracyEstimate
        """
        names = ("accuracy", "low", "high", "level", "tasks", "gold_tasks")
        return cls(*(figures[name] for name in names))

    def to_dict(self) -> dict[str, float | int]:
        """Return the figures, rounded, for JSON.

        Returns
        -------
        dict of str to number
        """
        return {
            "accuracy": round(self.accuracy, 6),
            "low": round(self.low, 6),
            "high": round(self.high, 6),
            "level": self.level,
            "tasks": self.n_tasks,
            "gold_tasks": self.n_gold,
        }


@dataclass(frozen=True, eq=False)
class CrowdCalibration:
    """Distribution of slope and shift of a crowd on a grid.

    Attributes
    ----------
    prior : ConfidencePrior
        Distribution over crowds.
    weights : ndarray of shape (n_slopes, n_shifts)
        Probability of each point of the grid.
    n_gold : int
        Number of tasks with known truth that it accounts for.

    Examples
    --------
    >>> without = CrowdCalibration.from_outcomes(ConfidencePrior.load())
    >>> right = CrowdCalibration.from_outcomes(ConfidencePrior.load(), np.zeros(40), np.ones(40))
    >>> bool(right.confidence([0.0])[0] > without.confidence([0.0])[0])
    True
    """

    prior: ConfidencePrior
    weights: Array
    n_gold: int = 0

    @classmethod
    def from_outcomes(cls, prior: ConfidencePrior, scores: ArrayLike = (), right: ArrayLike = ()) -> CrowdCalibration:
        """Update the prior by labels that are known to be right or wrong.

        Parameters
        ----------
        prior : ConfidencePrior
            Distribution over crowds.
        scores : array-like of shape (n_gold,)
            Scores of labels that were inferred without the truth of their own tasks.
        right : array-like of shape (n_gold,)
            Whether each label is right.

        Returns
        -------
        CrowdCalibration
        """
        scores, right = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
        log_density = _log_prior(prior) + grid_log_likelihood(scores, right)
        return cls(prior, _normalize(log_density), len(scores))

    def score(self, support: LabelSupport) -> Array:
        """Compute the scores of labels.

        Parameters
        ----------
        support : LabelSupport
            Support of the labels.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        return self.prior.score(support)

    def confidence(self, scores: ArrayLike) -> Array:
        """Compute the probability that labels are right.

        Parameters
        ----------
        scores : array-like of shape (n_tasks,)
            Scores of the labels.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        scores = np.asarray(scores, dtype=np.float64)
        return np.interp(scores, *self.confidence_map) if len(scores) else np.empty(0)

    @cached_property
    def confidence_map(self) -> tuple[Array, Array]:
        """Scores from low to high, and the confidence of each, for interpolation."""
        scores = np.linspace(-20.0, 20.0, MAP_POINTS)
        return scores, np.einsum("sab,ab->s", _right_probs(scores), self.weights)

    def expect_accuracy(
        self,
        scores: ArrayLike,
        counts: ArrayLike | None = None,
        *,
        n_known: int = 0,
        n_known_right: int = 0,
        level: float = LEVEL,
    ) -> AccuracyEstimate:
        """Compute the expected share of right labels with an interval.

        Parameters
        ----------
        scores : array-like of shape (n_tasks,)
            Scores of the labels whose truth is unknown.
        counts : array-like of shape (n_tasks,), default=None
            Number of labels with each score. Defaults to one.
        n_known : int, default=0
            Number of further labels that are known to be right or wrong.
        n_known_right : int, default=0
            Number of right labels among them.
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        AccuracyEstimate

        Raises
        ------
        UsageError
            If there are no labels, or ``level`` is not between 0 and 1.
        """
        scores = np.asarray(scores, dtype=np.float64)
        counts = np.ones(len(scores)) if counts is None else np.asarray(counts, dtype=np.float64)
        n_unknown = int(counts.sum())
        n_tasks = n_unknown + n_known
        if not n_tasks:
            raise UsageError("there are no labels, so no accuracy can be expected; aggregate votes first")
        if not 0 < level < 1:
            raise UsageError(f"level must lie between 0 and 1, such as 0.9; got {level}")
        if not n_unknown:
            share = n_known_right / n_known
            return AccuracyEstimate(share, share, share, level, n_tasks, self.n_gold)
        values, weight = _summarize_scores(scores, counts)
        p = _right_probs(values)
        unknown_share = n_unknown / n_tasks
        mean = n_known_right / n_tasks + unknown_share * np.einsum("sab,s->ab", p, weight)
        # Whether a label is right is a random event, which matters if labels are few.
        variance = unknown_share / n_tasks * np.einsum("sab,s->ab", p * (1 - p), weight)
        low, high = (
            _mixture_quantile(mean.ravel(), np.sqrt(variance).ravel(), self.weights.ravel(), q)
            for q in ((1 - level) / 2, (1 + level) / 2)
        )
        accuracy = float((mean * self.weights).sum())
        return AccuracyEstimate(accuracy, min(low, accuracy), max(high, accuracy), level, n_tasks, self.n_gold)

    def accuracy_variance(self, scores: ArrayLike) -> float:
        """Compute the variance of the expected share of right labels that comes from not knowing the crowd.

        Parameters
        ----------
        scores : array-like of shape (n_tasks,)
            Scores of the labels.

        Returns
        -------
        float
        """
        scores = np.asarray(scores, dtype=np.float64)
        values, weight = _summarize_scores(scores, np.ones(len(scores)))
        mean = np.einsum("sab,s->ab", _right_probs(values), weight)
        return float((mean**2 * self.weights).sum() - (mean * self.weights).sum() ** 2)

    def for_class(self, scores: ArrayLike, right: ArrayLike) -> CrowdCalibration:
        """Return the calibration of one class, whose shift differs from that of the crowd.

        Parameters
        ----------
        scores, right : array-like of shape (n_gold,)
            Outcomes of labels of the class. This calibration must come from labels of the other classes.

        Returns
        -------
        CrowdCalibration
        """
        scores, right = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
        log_density = np.log(np.maximum(self.spread_over_classes(), 1e-300)) + grid_log_likelihood(scores, right)
        return CrowdCalibration(self.prior, _normalize(log_density), len(scores))

    def spread_over_classes(self) -> Array:
        """Return the distribution of slope and shift of a class that was not seen.

        Returns
        -------
        ndarray of shape (n_slopes, n_shifts)
        """
        step = np.exp(-0.5 * ((SHIFTS[:, None] - SHIFTS) / self.prior.class_scale) ** 2)
        return np.asarray(self.weights @ (step / step.sum(axis=1, keepdims=True)))


def _right_probs(scores: Array) -> Array:
    """Return P(right) of scores for every slope and shift, (n_scores, n_slopes, n_shifts)."""
    from scipy.special import expit

    return np.asarray(expit(scores[:, None, None] * SLOPES[:, None] + SHIFTS))


def _log_prior(prior: ConfidencePrior) -> Array:
    """Return the log density of the prior on the grid, up to a constant."""
    shift = SHIFTS / prior.shift_scale
    df = prior.degrees_of_freedom
    slope = np.log(SLOPES) / prior.slope_scale
    return np.asarray(-0.5 * slope[:, None] ** 2 - 0.5 * (df + 1) * np.log1p(shift**2 / df))


def grid_log_likelihood(scores: Array, right: Array) -> Array:
    """Compute the log-likelihood of outcomes on the grid of slopes and shifts.

    Parameters
    ----------
    scores, right : ndarray of shape (n_gold,)
        Scores of labels, and whether each is right.

    Returns
    -------
    ndarray of shape (n_slopes, n_shifts)

    Examples
    --------
    >>> bool(grid_log_likelihood(np.array([0.0]), np.array([1.0]))[0, 50].round(3) == -0.693)
    True
    """
    total = np.zeros((len(SLOPES), len(SHIFTS)))
    for rows in range(0, len(scores), MAX_SCORES):
        part = slice(rows, rows + MAX_SCORES)
        logit = scores[part, None, None] * SLOPES[:, None] + SHIFTS
        total += (right[part, None, None] * logit - np.logaddexp(0.0, logit)).sum(axis=0)
    return total


def _normalize(log_density: Array) -> Array:
    density = np.exp(log_density - log_density.max())
    return np.asarray(density / density.sum())


def _summarize_scores(scores: Array, counts: Array) -> tuple[Array, Array]:
    """Return at most `MAX_SCORES` scores with weights that represent all."""
    scores, counts = scores[counts > 0], counts[counts > 0]
    if len(scores) <= MAX_SCORES:
        return scores, counts / counts.sum()
    order = np.argsort(scores, kind="stable")
    starts = np.linspace(0, len(scores), MAX_SCORES + 1).astype(np.int64)[:-1]
    total = np.add.reduceat(counts[order], starts)
    return np.add.reduceat((scores * counts)[order], starts) / total, total / counts.sum()


def _mixture_quantile(mean: Array, deviation: Array, weight: Array, share: float) -> float:
    """Return a quantile of a mixture of normal distributions of shares, by bisection."""
    from scipy.special import ndtr

    low, high = 0.0, 1.0
    deviation = np.maximum(deviation, 1e-9)
    for _ in range(QUANTILE_STEPS):
        middle = (low + high) / 2
        if float(weight @ ndtr((middle - mean) / deviation)) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2
