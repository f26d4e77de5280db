"""Intraclass correlation: the share of the variance of ratings that is due to the tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.class_values import class_values
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.levels import LEVEL

Array = NDArray[np.float64]


class _MeanSquares(NamedTuple):
    """Mean squares of an analysis of variance of ratings."""

    n_tasks: int
    ratings_per_task: float
    between: float
    within: float
    within_df: float
    raters: float
    error: float


def intraclass_correlation(crowd: CrowdLike, *, level: float = LEVEL) -> pd.DataFrame:
    """Compute intraclass correlations of ratings with confidence intervals.

    =========  ==========================================================================================
    ICC(1)     one rating; every task is rated by other raters
    ICC(2,1)   one rating; the same raters rate all tasks, and their severity counts as error (agreement)
    ICC(3,1)   one rating; the same raters rate all tasks, and their severity does not matter (consistency)
    ICC(·,k)   the mean of all ratings of a task
    =========  ==========================================================================================

    If not every rater rated every task once, only ICC(1) and ICC(1,k) are defined. Where numbers of ratings differ, k is their
    effective mean (V − Σ n_i² / V) / (n − 1), and intervals are approximate.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Numeric votes, or votes on ordered classes. Classes that are numbers have their value, others their position.
    level : float, default=0.9
        Confidence level of the intervals.

    Returns
    -------
    DataFrame
        One row per coefficient: icc, low, high, f (F statistic), df1, df2, p (of the test that the coefficient is zero), k and
        n_tasks. Coefficients may be negative.

    Raises
    ------
    InputError
        If classes have no order, or there are fewer than two tasks with two ratings.

    References
    ----------
    Shrout, P. E. and Fleiss, J. L. (1979). Intraclass correlations. Psychological Bulletin 86(2), 420–428.
    McGraw, K. O. and Wong, S. P. (1996). Forming inferences about some intraclass correlation coefficients. Psychological Methods
    1(1), 30–46.

    Examples
    --------
    >>> ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> votes = [(task, rater, value) for task, row in enumerate(ratings) for rater, value in enumerate(row)]
    >>> intraclass_correlation(Crowd.from_triples(votes, numeric=True))["icc"].round(3).tolist()
    [0.166, 0.29, 0.715, 0.443, 0.62, 0.909]
    """
    if not 0 < level < 1:
        raise UsageError(f"level must be between 0 and 1; got {level}")
    votes = as_crowd(crowd).select_observed()
    if not votes.is_numeric and not votes.is_ordered:
        raise InputError(
            "intraclass correlation needs numbers or ordered classes, and these classes have no order; read them with "
            "numeric=True (--numeric), or with ordered=True (--ordered --classes low,middle,high)"
        )
    squares = _compute_mean_squares(votes)
    rows = _one_way_rows(squares, level)
    if np.isfinite(squares.error):
        one, mean = rows.items()
        agreement, consistency = _agreement_rows(squares, level), _consistency_rows(squares, level)
        rows = dict([one, agreement[0], consistency[0], mean, agreement[1], consistency[1]])
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["icc", "low", "high", "f", "df1", "df2", "p"])
    return table.rename_axis("coefficient").assign(k=squares.ratings_per_task, n_tasks=squares.n_tasks)


def _compute_mean_squares(votes: Crowd) -> _MeanSquares:
    """Return the mean squares; those of raters and error are NaN unless every rater rated every task once."""
    value = np.asarray(
        votes.label if votes.classes is None else class_values(votes.classes)[votes.label], dtype=np.float64
    )
    counts = votes.votes_per_task.astype(np.float64)
    rated = counts > 0
    n_tasks, n_votes = int(rated.sum()), float(counts.sum())
    if n_tasks < 2 or n_votes <= n_tasks:
        raise InputError(
            f"intraclass correlation needs two or more tasks and some with several ratings; got {n_tasks:,} tasks with "
            f"{int(n_votes):,} ratings"
        )
    value = value - value.mean()
    task_mean = np.bincount(votes.task, value, votes.n_tasks) / np.maximum(counts, 1)
    between = float((counts * task_mean**2).sum())  # the mean of all ratings is zero
    within = float(((value - task_mean[votes.task]) ** 2).sum())
    k = (n_votes - float((counts**2).sum()) / n_votes) / (n_tasks - 1)
    raters = error = float("nan")
    if votes.has_workers and _is_complete(votes, n_tasks):
        n_raters = round(k)
        rater_sum = np.bincount(votes.worker_codes, value, votes.n_workers)
        rater_squares = float((rater_sum**2).sum()) / n_tasks
        raters = rater_squares / (n_raters - 1)
        error = max(within - rater_squares, 0.0) / ((n_raters - 1) * (n_tasks - 1))
    within_df = n_votes - n_tasks
    return _MeanSquares(n_tasks, k, between / (n_tasks - 1), within / within_df, within_df, raters, error)


def _is_complete(votes: Crowd, n_tasks: int) -> bool:
    """Return whether every rater with ratings rated every rated task exactly once."""
    cell = votes.task.astype(np.int64) * votes.n_workers + votes.worker_codes
    n_raters = int((votes.votes_per_worker > 0).sum())
    return votes.n_votes == n_tasks * n_raters and len(np.unique(cell)) == votes.n_votes


def _quantile(level: float, first: float, second: float) -> float:
    """Return the upper quantile of an F distribution for a two-sided interval."""
    from scipy.stats import f

    return float(f.ppf((1 + level) / 2, first, second))


def _p_value(statistic: float, first: float, second: float) -> float:
    """Return the p-value of an F statistic."""
    from scipy.stats import f

    return float(f.sf(statistic, first, second))


def _ratio(numerator: float, denominator: float) -> float:
    """Return a ratio; infinite or NaN where the denominator is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.divide(numerator, denominator))


def _one_way_rows(squares: _MeanSquares, level: float) -> dict[str, tuple[float, ...]]:
    """Return ICC(1) and ICC(1,k)."""
    k, between, within = squares.ratings_per_task, squares.between, squares.within
    test = (_ratio(between, within), squares.n_tasks - 1, squares.within_df)
    low, high = _interval(test, level)
    p = _p_value(*test)
    single = (_ratio(between - within, between + (k - 1) * within), _single(low, k), _single(high, k))
    mean = (_ratio(between - within, between), 1 - _ratio(1, low), 1 - _ratio(1, high))
    return {"ICC(1)": (*single, *test, p), "ICC(1,k)": (*mean, *test, p)}


def _consistency_rows(squares: _MeanSquares, level: float) -> list[tuple[str, tuple[float, ...]]]:
    """Return ICC(3,1) and ICC(3,k)."""
    k, between, error = squares.ratings_per_task, squares.between, squares.error
    test = (_ratio(between, error), squares.n_tasks - 1, (squares.n_tasks - 1) * (k - 1))
    low, high = _interval(test, level)
    p = _p_value(*test)
    single = (_ratio(between - error, between + (k - 1) * error), _single(low, k), _single(high, k))
    mean = (_ratio(between - error, between), 1 - _ratio(1, low), 1 - _ratio(1, high))
    return [("ICC(3,1)", (*single, *test, p)), ("ICC(3,k)", (*mean, *test, p))]


def _agreement_rows(squares: _MeanSquares, level: float) -> list[tuple[str, tuple[float, ...]]]:
    """Return ICC(2,1) and ICC(2,k), whose intervals use Satterthwaite's degrees of freedom."""
    n, k, between = squares.n_tasks, squares.ratings_per_task, squares.between
    raters, error = squares.raters, squares.error
    test = (_ratio(between, error), n - 1, (n - 1) * (k - 1))
    p = _p_value(*test)
    icc = _ratio(between - error, between + (k - 1) * error + k * (raters - error) / n)
    rater_f = _ratio(raters, error)
    weight = n * (1 + (k - 1) * icc) - k * icc
    df = _ratio((k - 1) * (n - 1) * (k * icc * rater_f + weight) ** 2, (n - 1) * k**2 * icc**2 * rater_f**2 + weight**2)
    lower_f, upper_f = _quantile(level, n - 1, df), _quantile(level, df, n - 1)
    spread = k * raters + (k * n - k - n) * error
    low = _ratio(n * (between - lower_f * error), lower_f * spread + n * between)
    high = _ratio(n * (upper_f * between - error), spread + n * upper_f * between)
    mean = _ratio(between - error, between + (raters - error) / n)
    bounds = tuple(_ratio(k * bound, 1 + (k - 1) * bound) for bound in (low, high))
    return [("ICC(2,1)", (icc, low, high, *test, p)), ("ICC(2,k)", (mean, *bounds, *test, p))]


def _interval(test: tuple[float, float, float], level: float) -> tuple[float, float]:
    """Return the bounds of the ratio of mean squares, from its F statistic and degrees of freedom."""
    statistic, first, second = test
    return statistic / _quantile(level, first, second), statistic * _quantile(level, second, first)


def _single(bound: float, k: float) -> float:
    """Return the coefficient of one rating from a bound of the ratio of mean squares; one if the bound is infinite."""
    return 1.0 if np.isinf(bound) else (bound - 1) / (bound + k - 1)
