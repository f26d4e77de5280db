"""Audit of labels: which tasks to check by hand so that the accuracy is known best, and what the checks say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.types import CrowdLike, TruthLike
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.accuracy import AccuracyEstimate, CrowdCalibration
from wisecrowd.evaluate.confidence import LabelConfidence, estimate_confidence
from wisecrowd.utils.levels import LEVEL

Array = NDArray[np.float64]

#: Share of the sampling rate that follows the standard deviation of an outcome (Neyman allocation); the rest is equal for all
#: tasks. Confidence may be wrong, and tasks that are hardly ever drawn would then have large weights. On public crowds, a
#: larger share gives a smaller variance, whichever crowd is left out.
NEYMAN_SHARE = 0.9
#: Largest number of strata, and smallest number of checks in a stratum.
MAX_STRATA, MIN_CHECKS_PER_STRATUM = 10, 4
#: Half width of the interval that an audit aims at.
TARGET_HALF_WIDTH = 0.02


def draw_audit_sample(estimate: LabelConfidence, size: int, *, random_state: int = 0) -> pd.DataFrame:
    """Draw tasks to check by hand so that the accuracy of all labels becomes known best.

    Tasks are stratified by confidence, and drawn at random within a stratum. Strata of uncertain tasks have fewer tasks and the
    same number of checks, so that uncertain tasks are drawn more often (Neyman allocation).

    Parameters
    ----------
    estimate : LabelConfidence
        Labels with confidence. Gold tasks, checked tasks and tasks without votes are not drawn.
    size : int
        Number of tasks to draw.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    DataFrame
        Columns ``stratum`` and ``weight``, the number of tasks that a check stands for, by task in random order.

    Raises
    ------
    UsageError
        If ``size`` is not positive.
    InputError
        If there are no tasks to draw.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> from wisecrowd.evaluate.confidence import estimate_confidence
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=5, random_state=0)
    >>> sample = draw_audit_sample(estimate_confidence(DawidSkene().fit(simulation.crowd), simulation.crowd), 20)
    >>> len(sample), round(float(sample["weight"].sum()))
    (20, 200)
    """
    if size < 1:
        raise UsageError(f"size must be at least 1; got {size}")
    tasks = np.flatnonzero((estimate.n_votes > 0) & (estimate.truth < 0) & (estimate.checked == -1))
    if not len(tasks):
        raise InputError("there are no tasks to check: every task with votes has known truth")
    size = min(size, len(tasks))
    rng = np.random.default_rng(random_state)
    stratum = assign_strata(estimate.confidence[tasks], size, rng)
    n_tasks = np.bincount(stratum)
    n_checks = allocate_checks(n_tasks, size)
    rows = []
    for number in np.flatnonzero(n_checks):
        drawn = rng.choice(np.flatnonzero(stratum == number), n_checks[number], replace=False)
        rows.append(pd.DataFrame({
            "task": tasks[drawn], "stratum": number, "weight": n_tasks[number] / n_checks[number],
        }))  # fmt: skip
    sample = pd.concat(rows, ignore_index=True).iloc[rng.permutation(size)]
    sample.index = estimate.tasks[sample.pop("task")].rename("task")
    return sample


def assign_strata(confidence: Array, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Divide tasks by confidence into strata that have about the same number of checks each.

    Parameters
    ----------
    confidence : ndarray of shape (n_tasks,)
        Confidence of the labels.
    size : int
        Number of checks.
    rng : Generator
        Source of the order of tasks with the same confidence.

    Returns
    -------
    ndarray of int of shape (n_tasks,)
        Stratum of each task, from low to high confidence.

    Examples
    --------
    >>> assign_strata(np.array([0.5, 0.6, 0.9, 0.9, 0.9, 0.9]), 8, np.random.default_rng(0)).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    rate = sampling_rates(confidence)
    order = np.lexsort((rng.random(len(confidence)), confidence))
    n_strata = min(max(size // MIN_CHECKS_PER_STRATUM, 1), MAX_STRATA)
    total = np.cumsum(rate[order])
    stratum = np.empty(len(confidence), dtype=np.int64)
    stratum[order] = np.minimum((total - rate[order] / 2) / total[-1] * n_strata, n_strata - 1).astype(np.int64)
    return stratum


def allocate_checks(n_tasks: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Divide checks equally among strata, but give none more checks than it has tasks.

    Parameters
    ----------
    n_tasks : ndarray of int of shape (n_strata,)
        Number of tasks of each stratum.
    size : int
        Number of checks, at most that of all tasks.

    Returns
    -------
    ndarray of int of shape (n_strata,)

    Examples
    --------
    >>> allocate_checks(np.array([2, 10, 10]), 12).tolist()
    [2, 5, 5]
    """
    n_checks = np.zeros(len(n_tasks), dtype=np.int64)
    while (n_open := size - int(n_checks.sum())) > 0:
        is_open = np.flatnonzero(n_checks < n_tasks)
        each, rest = divmod(n_open, len(is_open))
        more = np.full(len(is_open), each)
        more[:rest] += 1
        n_checks[is_open] = np.minimum(n_checks[is_open] + more, n_tasks[is_open])
    return n_checks


def sampling_rates(confidence: Array) -> Array:
    """Compute how often tasks should be drawn, relative to each other.

    Parameters
    ----------
    confidence : ndarray of shape (n_tasks,)
        Confidence of the labels.

    Returns
    -------
    ndarray of shape (n_tasks,)
        Rates with mean one.

    Examples
    --------
    >>> sampling_rates(np.array([0.5, 0.99])).round(2).tolist()
    [1.6, 0.4]
    """
    deviation = np.sqrt(np.maximum(confidence * (1 - confidence), 1e-12))
    return np.asarray(NEYMAN_SHARE * deviation / deviation.mean() + 1 - NEYMAN_SHARE)


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Accuracy of labels by checks.

    Attributes
    ----------
    estimate : LabelConfidence
        Recalibrated confidence, and the expected accuracy overall and by class.
    checks_alone : AccuracyEstimate
        Prediction-powered estimate from the checks, without knowledge of other crowds.
    n_checked : int
        Number of checked labels.
    n_right : int
        Number of right labels among them.
    n_more : int
        Number of further checks after which the interval is about as narrow as ``half_width`` on either side.
    half_width : float
        Half width of the interval that is aimed at.
    """

    estimate: LabelConfidence
    checks_alone: AccuracyEstimate
    n_checked: int
    n_right: int
    n_more: int
    half_width: float

    @property
    def accuracy(self) -> AccuracyEstimate:
        """Accuracy of the labels, from votes, checks and knowledge of other crowds."""
        return self.estimate.accuracy

    @property
    def accuracy_by_class(self) -> pd.DataFrame:
        """Accuracy of the labels of each class."""
        return self.estimate.accuracy_by_class


def evaluate_audit(
    fitted: Method,
    crowd: CrowdLike,
    checked: TruthLike,
    *,
    truth: TruthLike | None = None,
    weight: pd.Series | None = None,
    level: float = LEVEL,
    half_width: float = TARGET_HALF_WIDTH,
) -> AuditResult:
    """Estimate the accuracy of labels from tasks that were checked by hand.

    Parameters
    ----------
    fitted : Method
        Aggregator or learner fitted to ``crowd`` without the checks.
    crowd : Crowd or table
        Votes.
    checked : Series, mapping or table
        True class of the checked tasks. A class that no vote names is allowed: the label is wrong then.
    truth : Series, mapping or table, default=None
        Truth of gold tasks that ``fitted`` was fitted with.
    weight : Series, default=None
        Weight of each check from `draw_audit_sample`, by task. Defaults to equal weights.
    level : float, default=0.9
        Probability of intervals.
    half_width : float, default=0.02
        Half width of the interval that is aimed at.

    Returns
    -------
    AuditResult

    Raises
    ------
    InputError
        If no checked task has votes.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=10, votes_per_task=5, random_state=0)
    >>> result = evaluate_audit(DawidSkene().fit(simulation.crowd), simulation.crowd, simulation.truth[:60])
    >>> result.n_checked, result.accuracy.low < result.n_right / 60 < result.accuracy.high
    (60, True)
    """
    if not 0 < half_width < 0.5:
        raise UsageError(f"half_width must lie between 0 and 0.5, such as 0.02; got {half_width}")
    estimate = estimate_confidence(fitted, crowd, truth=truth, checked=checked, level=level)
    is_checked = (estimate.checked != -1) & (estimate.n_votes > 0) & (estimate.truth < 0)
    if not is_checked.any():
        raise InputError("none of the checked tasks has votes; check tasks that wisecrowd audit --size names")
    right = (estimate.checked == estimate.label)[is_checked]
    by_task = np.ones(len(right))
    if weight is not None:
        aligned = weight.reindex(estimate.tasks[is_checked]).to_numpy(dtype=np.float64)
        if not (np.isfinite(aligned) & (aligned > 0)).all():
            raise InputError("some checks have no positive weight; keep the column weight of the file that audit wrote")
        by_task = aligned
    is_population = (estimate.n_votes > 0) & (estimate.truth < 0)
    # Predictions must not know the checks.
    prediction = CrowdCalibration.from_outcomes(estimate.calibration.prior).confidence(estimate.score)
    alone = estimate_prediction_powered(prediction[is_population], prediction[is_checked], right, by_task, level=level)
    return AuditResult(
        estimate, alone, len(right), int(right.sum()), count_further_checks(estimate, half_width), half_width
    )


def estimate_prediction_powered(
    prediction: Array,
    checked_prediction: Array,
    right: NDArray[Any],
    weight: Array | None = None,
    *,
    level: float = LEVEL,
) -> AccuracyEstimate:
    """Estimate the accuracy of labels as the mean prediction plus the mean error of the prediction on checked tasks.

    The estimate is unbiased whatever the quality of the predictions; good predictions make it more precise.

    Parameters
    ----------
    prediction : ndarray of shape (n_tasks,)
        Predicted probability that each label is right.
    checked_prediction : ndarray of shape (n_checked,)
        That of the checked tasks.
    right : ndarray of shape (n_checked,)
        Whether the label of each checked task is right.
    weight : ndarray of shape (n_checked,), default=None
        Number of tasks that each check stands for. Defaults to equal weights.
    level : float, default=0.9
        Confidence level of the normal interval.

    Returns
    -------
    AccuracyEstimate

    References
    ----------
    Angelopoulos et al. (2023), "Prediction-powered inference", Science 382.

    Examples
    --------
    >>> str(estimate_prediction_powered(np.full(1000, 0.9), np.full(100, 0.9), np.arange(100) < 80))
    '80 % (90 % interval: 74 to 86 %)'
    """
    from scipy.special import ndtri

    weight = np.ones(len(right)) if weight is None else weight
    share = weight / weight.sum()
    error = np.asarray(right, dtype=np.float64) - checked_prediction
    mean_error = float(share @ error)
    # The variance of a weighted mean; one degree of freedom is lost to the mean.
    n = len(right)
    variance = float((share**2) @ (error - mean_error) ** 2) * n / max(n - 1, 1) * (1 - n / max(len(prediction), n))
    # Equal errors have no variance; a normal interval would then be a point, so half an error is added.
    variance = max(variance, float(share @ share) * 0.25 / (n + 1))
    accuracy = float(np.clip(prediction.mean() + mean_error, 0.0, 1.0))
    half = float(ndtri((1 + level) / 2)) * np.sqrt(variance)
    return AccuracyEstimate(accuracy, max(accuracy - half, 0.0), min(accuracy + half, 1.0), level, len(prediction), n)


def count_further_checks(estimate: LabelConfidence, half_width: float) -> int:
    """Estimate how many more tasks to check until the interval of the accuracy is narrow.

    Parameters
    ----------
    estimate : LabelConfidence
        Confidence, recalibrated by the checks so far.
    half_width : float
        Half width of the interval that is aimed at.

    Returns
    -------
    int
        Zero if the interval is narrow enough, at most the number of tasks that can be checked.
    """
    from scipy.special import ndtri

    unknown = (estimate.n_votes > 0) & (estimate.truth < 0) & (estimate.checked == -1)
    n_unknown = int(unknown.sum())
    accuracy = estimate.accuracy
    if n_unknown == 0 or (accuracy.high - accuracy.low) / 2 <= half_width:
        return 0
    confidence = estimate.confidence[unknown]
    variance_per_check = float((confidence * (1 - confidence) / sampling_rates(confidence)).mean())
    share = n_unknown / accuracy.n_tasks
    target = (half_width / float(ndtri((1 + estimate.level) / 2)) / share) ** 2
    prior = estimate.calibration.accuracy_variance(estimate.score[unknown])
    n = np.arange(1, n_unknown + 1)
    by_checks = variance_per_check / n * (1 - n / n_unknown)
    luck = variance_per_check / n_unknown * (1 - n / n_unknown)
    reached = 1 / (1 / max(prior, 1e-12) + 1 / np.maximum(by_checks, 1e-12)) + luck <= target
    return int(n[np.argmax(reached)]) if reached.any() else n_unknown
