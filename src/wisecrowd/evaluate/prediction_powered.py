"""Prediction-powered mean: few labels, and predictions for all items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import InputError, UsageError

Array = NDArray[np.float64]

#: Level of intervals of evaluations, as in the literature on evaluation.
LEVEL = 0.95
#: Degrees of freedom beyond which a t quantile is a normal one for all purposes.
MAX_DEGREES_OF_FREEDOM = 1e6
#: Pseudo-labels for the gain by judges: with few labels of the rarer value, the gain is not known.
GAIN_PRIOR_LABELS = 1.0


@dataclass(frozen=True)
class Interval:
    """Estimate with a confidence interval.

    Attributes
    ----------
    estimate : float
        Estimate.
    low, high : float
        Bounds of the interval.
    standard_error : float
        Standard error of the estimate.
    degrees_of_freedom : float
        Degrees of freedom of the standard error.
    level : float
        Confidence level.

    Examples
    --------
    >>> str(Interval(0.5, 0.42, 0.58, 0.04, 99.0, 0.95))
    '0.500 (95 % interval: 0.420 to 0.580)'
    """

    estimate: float
    low: float
    high: float
    standard_error: float
    degrees_of_freedom: float
    level: float

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low

    def __str__(self) -> str:
        return f"{self.estimate:.3f} ({100 * self.level:g} % interval: {self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> dict[str, float]:
        """Return the figures, rounded, for JSON.

        Returns
        -------
        dict of str to float
        """
        return {
            "estimate": round(self.estimate, 6),
            "low": round(self.low, 6),
            "high": round(self.high, 6),
            "standard_error": round(self.standard_error, 6),
            "level": self.level,
        }


def prediction_powered_mean(
    labels: ArrayLike,
    predictions: ArrayLike,
    unlabelled_predictions: ArrayLike,
    *,
    weight: float | None = None,
    level: float = LEVEL,
    small_sample: bool = True,
) -> Interval:
    """Estimate a mean from few labels and many predictions (PPI++).

    The estimate is mean(labels) + weight · (mean(unlabelled_predictions) − mean(predictions)). It is consistent whatever the
    quality of the predictions, which must not be fitted to these labels; `rate` fits them without each label's fold.

    Parameters
    ----------
    labels, predictions : array-like of shape (n_labelled,)
        Labels and predictions of the labelled items, which are a random sample of all items.
    unlabelled_predictions : array-like of shape (n_unlabelled,)
        Predictions of the other items.
    weight : float, optional
        Weight of the predictions: 1 is plain prediction-powered inference, 0 ignores the predictions. By default, the weight with
        the smallest estimated variance, between 0 and 1.
    level : float, default=0.95
        Confidence level.
    small_sample : bool, default=True
        Use unbiased variances and quantiles of the t distribution. Without it, the interval equals that of ``ppi_py.ppi_mean_ci``.

    Returns
    -------
    Interval

    Raises
    ------
    InputError
        If there are fewer than two labels or no other items, or lengths differ.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), "PPI++: efficient prediction-powered inference", arXiv 2311.01453.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000) < 0.3
    >>> judge = truth + rng.normal(0, 0.3, 2000)
    >>> powered = prediction_powered_mean(truth[:100], judge[:100], judge[100:])
    >>> alone = prediction_powered_mean(truth[:100], judge[:100], judge[100:], weight=0)
    >>> powered.width < 0.7 * alone.width
    True
    """
    y, f, g = (np.asarray(values, dtype=np.float64) for values in (labels, predictions, unlabelled_predictions))
    if len(y) != len(f):
        raise InputError(
            f"labels and predictions have {len(y)} and {len(f)} values; give one prediction for each label"
        )
    if len(y) < 2 or not len(g):
        raise InputError(f"an interval needs two labels and one other item; got {len(y)} and {len(g)}")
    check_level(level)
    n, n_other = len(y), len(g)
    if weight is None:
        pooled = float(np.var(np.concatenate([f, g]), ddof=1))
        covariance = float(np.mean((y - y.mean()) * (f - f.mean())))
        weight = 0.0 if pooled == 0 else float(np.clip(covariance / ((1 + n / n_other) * pooled), 0.0, 1.0))
    estimate = float(y.mean() + weight * (g.mean() - f.mean()))
    ddof = 1 if small_sample else 0
    variance = float(np.var(y - weight * f, ddof=ddof) / n)
    if n_other > ddof:
        variance += float(weight**2 * np.var(g, ddof=ddof) / n_other)
    freedom = float(n - 1) if small_sample else MAX_DEGREES_OF_FREEDOM
    return symmetric_interval(estimate, variance, freedom, level)


def check_level(level: float) -> None:
    """Raise `UsageError` unless a confidence level lies between 0 and 1.

    Parameters
    ----------
    level : float
        Level.

    Raises
    ------
    UsageError
        If it does not.
    """
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, such as 0.95; got {level}")


def symmetric_interval(estimate: float, variance: float, freedom: float, level: float) -> Interval:
    """Return the t interval around an estimate.

    Parameters
    ----------
    estimate, variance : float
        Estimate and its variance.
    freedom : float
        Degrees of freedom of the variance.
    level : float
        Confidence level.

    Returns
    -------
    Interval

    Examples
    --------
    >>> symmetric_interval(0.0, 1.0, 1e6, 0.95).high.__round__(2)
    1.96
    """
    error = float(np.sqrt(variance))
    reach = find_quantile(freedom, level) * error
    return Interval(estimate, estimate - reach, estimate + reach, error, freedom, level)


def find_quantile(freedom: float, level: float) -> float:
    """Return the two-sided quantile of the t distribution.

    Parameters
    ----------
    freedom : float
        Degrees of freedom.
    level : float
        Confidence level.

    Returns
    -------
    float
    """
    from scipy.special import ndtri, stdtrit

    share = (1 + level) / 2
    return float(ndtri(share) if freedom >= MAX_DEGREES_OF_FREEDOM else stdtrit(freedom, share))


def share_interval(estimate: float, variance: float, freedom: float, level: float, *, most_labels: float) -> Interval:
    """Return the score interval (Wilson) of a share that was estimated with any design.

    The variance is turned into the number of independent labels with the same variance. The interval stays within 0 and 1, and
    it is not a point if all labels agree.

    Parameters
    ----------
    estimate, variance : float
        Estimate and its variance.
    freedom : float
        Degrees of freedom of the variance.
    level : float
        Confidence level.
    most_labels : float
        Upper bound of the number of independent labels.

    Returns
    -------
    Interval

    Examples
    --------
    >>> no_case_in_100 = share_interval(0.0, 0.0, 1e6, 0.95, most_labels=100)
    >>> round(no_case_in_100.low, 3), round(no_case_in_100.high, 3)
    (0.0, 0.037)
    """
    p = float(np.clip(estimate, 0.0, 1.0))
    spread = p * (1 - p)
    n = min(spread / variance, most_labels) if variance > 0 and spread > 0 else most_labels
    square = find_quantile(freedom, level) ** 2
    centre = (p + square / (2 * n)) / (1 + square / n)
    half = float(np.sqrt(square * spread / n + square**2 / (4 * n**2)) / (1 + square / n))
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return Interval(p, min(low, p), max(high, p), float(np.sqrt(variance)), freedom, level)


def limit_gain(n_labels: float, n_rarer: float, variance_ratio: float) -> float:
    """Return the largest number of labels that an estimate with judges may count as.

    With few labels of the rarer value, the gain by judges is itself uncertain; without any, there is none.

    Parameters
    ----------
    n_labels : float
        Number of labels.
    n_rarer : float
        Number of labels of the rarer value.
    variance_ratio : float
        Variance with judges, divided by the variance of people's labels alone.

    Returns
    -------
    float

    Examples
    --------
    >>> limit_gain(100, 0, 0.5), round(limit_gain(100, 50, 0.5))
    (100.0, 196)
    """
    ratio = (n_rarer * variance_ratio + GAIN_PRIOR_LABELS) / (n_rarer + GAIN_PRIOR_LABELS)
    return float(n_labels / max(min(ratio, 1.0), 1e-9))
