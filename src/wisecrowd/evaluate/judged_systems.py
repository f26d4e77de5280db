"""Rates of systems, differences and rankings, from many scores of judges and few labels of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.evaluation_items import ONLY_RATER, EvaluationItems, LabelsLike, ScoresLike
from wisecrowd.evaluate.judged_comparisons import ArenaItems, estimate_arena
from wisecrowd.evaluate.prediction_powered import (
    LEVEL,
    Interval,
    check_level,
    find_quantile,
    limit_gain,
    share_interval,
    symmetric_interval,
)
from wisecrowd.evaluate.system_means import Population, Raters, SystemMeans, estimate_system_means
from wisecrowd.utils.text import count_noun

Array = NDArray[np.float64]

#: Draws for simultaneous intervals of ranks, and products of draws and pairs that are held at once.
RANK_DRAWS, RANK_BLOCK = 10_000, 4_000_000


@dataclass(frozen=True, eq=False)
class JudgedEstimate:
    """Rate or difference by people and judges, beside the one by people alone.

    Attributes
    ----------
    systems : tuple of str
        The system, or the two systems whose difference (first minus second) is estimated.
    corrected : Interval
        Estimate from judges' scores and people's labels.
    people_only : Interval
        Estimate from people's labels alone.
    judges_only : float or None
        Mean score of the judges, without people; None if scores and labels have different scales. It may be far off.
    n_items, n_labelled, n_ratings, n_raters, n_clusters, n_judges : int
        Numbers of items, of items with labels, of labels, of raters, of clusters and of judges.
    effective_labels : float
        Number of labelled items that people alone would need for the same precision.
    rater_share : float
        Share of the variance that comes from the severity of raters; more labels by the same raters do not reduce it.
    notes : tuple of str
        Remarks on the estimate.

    Examples
    --------
    >>> scores = pd.DataFrame({"judge": np.arange(200) % 10}, index=[f"t{i}" for i in range(200)])
    >>> labels = pd.Series((np.arange(40) % 10 > 6).astype(int), index=[f"t{i}" for i in range(40)])
    >>> estimate = rate(scores, labels)
    >>> estimate.corrected.low < 0.3 < estimate.corrected.high, estimate.effective_labels > 60
    (True, True)
    """

    systems: tuple[str, ...]
    corrected: Interval
    people_only: Interval
    judges_only: float | None
    n_items: int
    n_labelled: int
    n_ratings: int
    n_raters: int
    n_clusters: int
    n_judges: int
    effective_labels: float
    rater_share: float
    notes: tuple[str, ...] = field(default=())

    @property
    def labels_saved(self) -> float:
        """Number of labelled items that the judges were worth."""
        return max(self.effective_labels - self.n_labelled, 0.0)

    def __str__(self) -> str:
        name = " − ".join(self.systems)
        return (
            f"{name}: {self.corrected}\npeople only: {self.people_only}\n{count_noun(self.n_labelled, 'labelled item')} of "
            f"{self.n_items:,}; the judges were worth {self.labels_saved:,.0f} more"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON.

        Returns
        -------
        dict
        """
        return {
            "systems": list(self.systems),
            "corrected": self.corrected.to_dict(),
            "people_only": self.people_only.to_dict(),
            "judges_only": None if self.judges_only is None else round(self.judges_only, 6),
            "items": self.n_items,
            "labelled_items": self.n_labelled,
            "labels": self.n_ratings,
            "raters": self.n_raters,
            "clusters": self.n_clusters,
            "judges": self.n_judges,
            "effective_labels": round(self.effective_labels, 1),
            "labels_saved": round(self.labels_saved, 1),
            "rater_share_of_variance": round(self.rater_share, 4),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """Ranking of systems with simultaneous intervals of ranks.

    Attributes
    ----------
    table : DataFrame
        By system, the best first: estimate, low, high, standard_error, rank, rank_low, rank_high, the same by people only (prefix
        ``people_``), n_items, n_labelled and effective_labels.
    covariance : DataFrame
        Covariance of the estimates.
    scale : {"mean", "logit"}
        Meaning of an estimate: mean label, or Bradley–Terry score (logits, mean zero).
    level : float
        Confidence level, of each interval of an estimate and of all intervals of ranks together.
    notes : tuple of str
        Remarks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = pd.DataFrame({"task": np.tile(np.arange(300), 2), "system": np.repeat(["new", "old"], 300), "judge": "j",
    ...                        "score": rng.random(600) < np.repeat([0.8, 0.4], 300)})
    >>> labels = scores[scores["task"] < 60].drop(columns="judge").rename(columns={"score": "label"})
    >>> rank(scores, labels).table["rank_high"].to_dict()
    {'new': 1, 'old': 2}
    """

    table: pd.DataFrame
    covariance: pd.DataFrame
    scale: str
    level: float
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON.

        Returns
        -------
        dict
        """
        rows = self.table.astype(object).where(self.table.notna(), None)
        figures = {
            str(name): {key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()}
            for name, row in rows.to_dict("index").items()
        }
        return {"scale": self.scale, "level": self.level, "systems": figures, "notes": list(self.notes)}


def rate(
    scores: ScoresLike | EvaluationItems,
    labels: LabelsLike | None = None,
    *,
    system: str | None = None,
    items: DataFrameLike | None = None,
    positive: Any = None,
    population: Population = "source",
    raters: Raters = "population",
    level: float = LEVEL,
    random_state: int = 0,
) -> JudgedEstimate:
    """Estimate the rate of a property, or a mean rating, from many scores of judges and few labels of people.

    The judges' scores are combined into a prediction of the label, without the label of the item and its cluster (cross-fitting).
    The mean prediction is corrected by its mean error on the labelled items, and weighted so that the variance is smallest (PPI++).
    Useless judges get weight zero; the estimate is then that of the labels.

    Parameters
    ----------
    scores : table or EvaluationItems
        Scores of judges: task, judge and score (long), or a DataFrame by task with a column for each judge (wide). A column
        ``system`` distinguishes systems, ``cluster`` items that depend on each other, such as outputs for one prompt.
    labels : table or Series
        Labels of people: task and label, optionally rater and system. Several raters may label an item; the target is then the
        mean label of people.
    system : str, optional
        System to estimate. Required if there are several.
    items : table, optional
        Design of the sample: task, and ``stratum`` or ``inclusion`` (probability of being labelled), or ``cluster``. By default,
        the labelled items are a simple random sample.
    positive : object, optional
        Label whose rate is estimated, if labels are words.
    population : {"source", "items"}, default="source"
        Whether the rate is that of the source of the items, such as a system on further prompts, or of exactly these items.
    raters : {"population", "panel"}, default="population"
        Whether the rate is by people like the raters, or by exactly these raters. The former counts the raters' different
        severity as uncertainty.
    level : float, default=0.95
        Confidence level.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    JudgedEstimate

    Raises
    ------
    InputError
        If tables lack columns, or there are too few labels.
    UsageError
        If there are several systems and none was named.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), "PPI++: efficient prediction-powered inference", arXiv 2311.01453. Zrnic and Candès
    (2024), "Cross-prediction-powered inference", PNAS 121. Zrnic and Candès (2024), "Active statistical inference", ICML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = pd.Series(rng.random(1000) < 0.3, index=[f"t{i}" for i in range(1000)])
    >>> scores = pd.DataFrame({f"judge{j}": truth + rng.normal(0, 0.6, 1000) for j in range(3)})
    >>> estimate = rate(scores, truth[:100])
    >>> estimate.corrected.width < 0.75 * estimate.people_only.width
    True
    """
    check_level(level)
    if isinstance(scores, Comparisons):
        raise UsageError(
            "comparisons have no rate of their own; use rank, or difference for the win rate between two systems"
        )
    table = as_items(scores, labels, items, positive)
    if system is not None:
        table = table.select_systems([str(system)])
    elif len(table.systems) > 1:
        raise UsageError(f"there are {len(table.systems)} systems; name one, system={table.systems[0]!r}, or use rank")
    return _estimate(table, np.ones(1), population, raters, level, random_state)


def difference(
    scores: ScoresLike | EvaluationItems | Comparisons,
    labels: LabelsLike | Comparisons | None = None,
    *,
    systems: Sequence[str] | None = None,
    items: DataFrameLike | None = None,
    positive: Any = None,
    population: Population = "source",
    raters: Raters = "population",
    level: float = LEVEL,
    random_state: int = 0,
) -> JudgedEstimate:
    """Estimate the difference between two systems from many scores of judges and few labels of people.

    Outputs for the same task are paired: what both systems find difficult, and raters who are severe with both, cancel.

    Parameters
    ----------
    scores, labels : tables or Comparisons
        As in `rate`, with the column system. For `Comparisons` of judges and of people, the difference is the share of wins of the
        first system minus that of the second.
    systems : sequence of two str, optional
        Systems; the difference is first minus second. Required unless there are exactly two.
    items : table, optional
        Design of the sample; see `rate`.
    positive : object, optional
        Label whose rate is compared, if labels are words.
    population : {"source", "items"}, default="source"
        See `rate`.
    raters : {"population", "panel"}, default="population"
        See `rate`.
    level : float, default=0.95
        Confidence level.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    JudgedEstimate

    Raises
    ------
    UsageError
        If there are not two systems.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = pd.DataFrame({"new": rng.random(400) < 0.7, "old": rng.random(400) < 0.5}).rename_axis("task")
    >>> long = truth.melt(ignore_index=False, var_name="system", value_name="label").reset_index()
    >>> scores = long.assign(judge="j", score=long["label"] + rng.normal(0, 0.5, 800)).drop(columns="label")
    >>> result = difference(scores, long[long["task"] < 80], systems=("new", "old"))
    >>> result.corrected.low < 0.2 < result.corrected.high
    True
    """
    check_level(level)
    if isinstance(scores, Comparisons):
        table = _win_items(scores, labels, systems)
        return _estimate(table, np.array([1.0]), population, raters, level, random_state)
    table = as_items(scores, labels, items, positive)
    if systems is None and len(table.systems) == 2:
        systems = [str(name) for name in table.systems]
    if systems is None or len(systems) != 2:
        raise UsageError(f"a difference needs two systems; name them: systems=({table.systems[0]!r}, ...)")
    table = table.select_systems([str(name) for name in systems])
    return _estimate(table, np.array([1.0, -1.0]), population, raters, level, random_state)


def rank(
    scores: ScoresLike | EvaluationItems | Comparisons,
    labels: LabelsLike | Comparisons | None = None,
    *,
    items: DataFrameLike | None = None,
    positive: Any = None,
    population: Population = "source",
    raters: Raters = "population",
    level: float = LEVEL,
    random_state: int = 0,
) -> SystemRanking:
    """Rank systems from many scores of judges and few labels of people.

    Parameters
    ----------
    scores, labels : tables or Comparisons
        As in `rate`, with the column system. Or `Comparisons` of judges and of people, which are ranked by Bradley–Terry scores.
    items : table, optional
        Design of the sample; see `rate`.
    positive : object, optional
        Label whose rate ranks the systems, if labels are words.
    population : {"source", "items"}, default="source"
        See `rate`.
    raters : {"population", "panel"}, default="population"
        See `rate`.
    level : float, default=0.95
        Confidence level.
    random_state : int, default=0
        Seed of the folds and of the simulation behind the intervals of ranks.

    Returns
    -------
    SystemRanking

    Raises
    ------
    UsageError
        If there is only one system.

    Examples
    --------
    >>> from wisecrowd import simulate_comparisons
    >>> people = simulate_comparisons(n_items=4, n_workers=20, votes_per_worker=10, n_tasks=100, random_state=1)
    >>> judges = simulate_comparisons(n_items=4, n_workers=3, votes_per_worker=400, n_tasks=100, random_state=1)
    >>> ranking = rank(judges.comparisons, people.comparisons)
    >>> ranking.scale, len(ranking.table)
    ('logit', 4)
    """
    check_level(level)
    if isinstance(scores, Comparisons):
        return _rank_arena(scores, labels, population, level, random_state)
    table = as_items(scores, labels, items, positive)
    if len(table.systems) < 2:
        raise UsageError("a ranking needs two systems or more; add the column system, or use rate")
    options: dict[str, Any] = {"population": population, "raters": raters, "random_state": random_state}
    by_all, by_people = (estimate_system_means(table, use_judges=use, **options) for use in (True, False))
    columns: dict[str, Any] = {}
    n_systems = len(table.systems)
    for prefix, means in (("", by_all), ("people_", by_people)):
        intervals = [
            _make_interval(table, means, by_people, np.eye(n_systems)[code], level) for code in range(n_systems)
        ]
        columns |= _describe(prefix, intervals)
    variance, people_variance = np.diagonal(by_all.covariance), np.diagonal(by_people.covariance)
    n_labelled = np.bincount(table.system[table.is_labelled], minlength=n_systems)
    columns["n_items"] = np.bincount(table.system, minlength=n_systems)
    columns["n_labelled"] = n_labelled
    columns["effective_labels"] = n_labelled * people_variance / np.maximum(variance, 1e-300)
    freedom = float(np.median([by_all.describe_contrast(row)[1] for row in np.eye(n_systems)]))
    ranked = _add_ranks(columns, by_all.estimate, by_all.covariance, freedom, level, random_state, table.systems)
    covariance = pd.DataFrame(by_all.covariance, index=table.systems, columns=table.systems)
    return SystemRanking(ranked, covariance, "mean", level, describe_raters(table))


def as_items(
    scores: ScoresLike | EvaluationItems, labels: Any, items: DataFrameLike | None, positive: Any
) -> EvaluationItems:
    """Return items from tables, or as they are.

    Parameters
    ----------
    scores : table or EvaluationItems
        Scores of judges, or complete items.
    labels : table or Series or None
        Labels of people.
    items : table or None
        Design of the sample.
    positive : object
        Label whose rate is estimated, or None.

    Returns
    -------
    EvaluationItems

    Raises
    ------
    UsageError
        If labels are missing, or both tables and items are given.
    """
    if isinstance(scores, EvaluationItems):
        if labels is not None or items is not None:
            raise UsageError("EvaluationItems contain labels and the design; leave labels and items out")
        return scores
    if labels is None:
        raise UsageError("labels of people are missing; judges alone cannot say how far they are off")
    return EvaluationItems.from_tables(scores, labels, items=items, positive=positive)


def _estimate(
    items: EvaluationItems, contrast: Array, population: Population, raters: Raters, level: float, random_state: int
) -> JudgedEstimate:
    """Return the estimate of a linear combination of the means of the systems."""
    options: dict[str, Any] = {"population": population, "raters": raters, "random_state": random_state}
    by_all, by_people = (estimate_system_means(items, use_judges=use, **options) for use in (True, False))
    variance, _ = by_all.describe_contrast(contrast)
    people_variance, _ = by_people.describe_contrast(contrast)
    if variance > people_variance:  # by chance, judges seem to add noise; their weight is then too uncertain to use
        by_all, variance = by_people, people_variance
    n_labelled = items.n_labelled
    by_raters = max(float(contrast @ by_all.rater_covariance @ contrast), 0.0)
    return JudgedEstimate(
        systems=tuple(str(name) for name in items.systems),
        corrected=_make_interval(items, by_all, by_people, contrast, level),
        people_only=_make_interval(items, by_people, by_people, contrast, level),
        judges_only=_average_judges(items, contrast),
        n_items=items.n_items,
        n_labelled=n_labelled,
        n_ratings=len(items.rating),
        n_raters=len(np.unique(items.rating_rater)),
        n_clusters=len(np.unique(items.cluster)),
        n_judges=len(items.judges),
        effective_labels=n_labelled * (people_variance / variance if variance > 0 else 1.0),
        rater_share=by_raters / variance if variance > 0 else 0.0,
        notes=describe_raters(items),
    )


def _make_interval(
    items: EvaluationItems, means: SystemMeans, by_people: SystemMeans, contrast: Array, level: float
) -> Interval:
    """Return the interval of a combination of means; that of a single rate stays within 0 and 1."""
    estimate = float(contrast @ means.estimate)
    code = np.flatnonzero(contrast)
    if items.is_share and len(code) == 1 and contrast[code[0]] == 1:
        rows = (items.system == code[0]) & items.is_labelled
        n = float(len(np.unique(items.cluster[rows])))
        # The score interval accounts for rare values itself.
        variance, freedom = means.describe_contrast(contrast, least_freedom=max(n - 1, 1.0))
        people_variance, _ = by_people.describe_contrast(contrast)
        total = float(items.label[rows].sum())
        ratio = variance / people_variance if people_variance > 0 else 1.0
        most = limit_gain(n, min(total, rows.sum() - total) * n / rows.sum(), ratio)
        return share_interval(estimate, variance, freedom, level, most_labels=most)
    variance, freedom = means.describe_contrast(contrast)
    interval = symmetric_interval(estimate, variance, freedom, level)
    if items.is_share and np.abs(contrast).sum() == 2:
        low, high = max(interval.low, -1.0), min(interval.high, 1.0)
        return Interval(estimate, low, high, interval.standard_error, freedom, level)
    return interval


def _average_judges(items: EvaluationItems, contrast: Array) -> float | None:
    """Return the estimate of the judges alone, if their scores lie in the range of the labels."""
    if np.isnan(items.scores).all():
        return None
    low, high = (0.0, 1.0) if items.is_share else (items.rating.min(), items.rating.max())
    if np.nanmin(items.scores) < low or np.nanmax(items.scores) > high:
        return None
    is_given = ~np.isnan(items.scores)
    count = is_given.sum(axis=1)
    mean = np.where(is_given, items.scores, 0.0).sum(axis=1) / np.maximum(count, 1)
    rows = count > 0
    by_system = np.bincount(items.system[rows], weights=mean[rows], minlength=len(items.systems)) / np.maximum(
        np.bincount(items.system[rows], minlength=len(items.systems)), 1
    )
    return float(contrast @ by_system)


def describe_raters(items: EvaluationItems) -> tuple[str, ...]:
    """Return remarks on what the labels cannot tell.

    Parameters
    ----------
    items : EvaluationItems
        Items.

    Returns
    -------
    tuple of str
    """
    names = items.raters[np.unique(items.rating_rater)]
    if len(names) == 1 and names[0] == ONLY_RATER:
        return ("The labels do not name their raters: differences between people are not part of the interval.",)
    if len(names) == 1:
        return (f"All labels are by {names[0]}: the interval says nothing about other people.",)
    return ()


def _describe(prefix: str, intervals: Sequence[Interval]) -> dict[str, list[float]]:
    """Return columns of a table of intervals."""
    return {
        f"{prefix}estimate": [interval.estimate for interval in intervals],
        f"{prefix}low": [interval.low for interval in intervals],
        f"{prefix}high": [interval.high for interval in intervals],
        f"{prefix}standard_error": [interval.standard_error for interval in intervals],
    }


def _add_ranks(
    columns: dict[str, Any],
    estimate: Array,
    covariance: Array,
    freedom: float,
    level: float,
    random_state: int,
    systems: pd.Index,
) -> pd.DataFrame:
    """Return the table of systems, the best first, with ranks and their intervals."""
    order = np.lexsort((np.arange(len(estimate)), -estimate))
    table = pd.DataFrame(columns, index=pd.Index(systems, name="system"))
    position = np.empty(len(estimate), dtype=np.int64)
    position[order] = np.arange(1, len(estimate) + 1)
    table.insert(4, "rank", position)
    low, high = rank_intervals(estimate, covariance, freedom=freedom, level=level, random_state=random_state)
    table.insert(5, "rank_low", low)
    table.insert(6, "rank_high", high)
    return table.iloc[order]


def rank_intervals(
    estimate: Array, covariance: Array, *, freedom: float, level: float = LEVEL, random_state: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the best and the worst rank of every system; all intervals hold together with the given probability.

    Differences of all pairs are tested with one critical value, the quantile of their largest standardised error, by simulation.

    Parameters
    ----------
    estimate : ndarray of shape (n_systems,)
        Estimates.
    covariance : ndarray of shape (n_systems, n_systems)
        Covariance of the estimates.
    freedom : float
        Degrees of freedom of the covariance.
    level : float, default=0.95
        Probability that all true ranks lie in their intervals.
    random_state : int, default=0
        Seed of the simulation.

    Returns
    -------
    tuple of two ndarrays of int of shape (n_systems,)

    Examples
    --------
    >>> low, high = rank_intervals(np.array([3.0, 1.0, 0.9]), np.eye(3) * 0.1, freedom=100)
    >>> low.tolist(), high.tolist()
    ([1, 2, 2], [1, 3, 3])
    """
    n = len(estimate)
    first, second = np.triu_indices(n, 1)
    variance = np.diagonal(covariance)
    spread = np.sqrt(np.maximum(variance[first] + variance[second] - 2 * covariance[first, second], 1e-300))
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(random_state)
    largest = []
    block = max(RANK_BLOCK // max(len(first), 1), 100)
    for begin in range(0, RANK_DRAWS, block):
        size = min(block, RANK_DRAWS - begin)
        error = rng.standard_normal((size, n)) @ root.T
        scale = np.sqrt(rng.chisquare(freedom, size) / freedom) if freedom < 1e5 else np.ones(size)
        largest.append(np.abs((error[:, first] - error[:, second]) / spread).max(axis=1) / scale)
    critical = float(np.quantile(np.concatenate(largest), level)) if n > 1 else find_quantile(freedom, level)
    is_apart = np.abs(estimate[first] - estimate[second]) > critical * spread
    first_better = is_apart & (estimate[first] > estimate[second])
    second_better = is_apart & ~first_better
    low, high = np.ones(n, dtype=np.int64), np.full(n, n, dtype=np.int64)
    low += np.bincount(second[first_better], minlength=n) + np.bincount(first[second_better], minlength=n)
    high -= np.bincount(first[first_better], minlength=n) + np.bincount(second[second_better], minlength=n)
    return low, high


def _rank_arena(
    judges: Comparisons, people: Any, population: Population, level: float, random_state: int
) -> SystemRanking:
    """Return the ranking of systems by comparisons."""
    arena = ArenaItems.from_comparisons(judges, _require_comparisons(people))
    options: dict[str, Any] = {"population": population, "random_state": random_state}
    by_all, by_people = (estimate_arena(arena, use_judges=use, **options) for use in (True, False))
    notes: tuple[str, ...] = ()
    if np.trace(by_all.covariance) > np.trace(by_people.covariance):
        by_all = by_people
        notes = ("The judges do not make these scores more precise, and are left out.",)
    columns: dict[str, Any] = {}
    for prefix, scores in (("", by_all), ("people_", by_people)):
        variance = np.diagonal(scores.covariance)
        intervals = [
            symmetric_interval(float(score), float(square), float(freedom), level)
            for score, square, freedom in zip(scores.score, variance, scores.degrees_of_freedom, strict=True)
        ]
        columns |= _describe(prefix, intervals)
    columns["n_items"] = arena.count_comparisons(labelled=False)
    columns["n_labelled"] = arena.count_comparisons(labelled=True)
    ratio = np.diagonal(by_people.covariance) / np.maximum(np.diagonal(by_all.covariance), 1e-300)
    columns["effective_labels"] = columns["n_labelled"] * ratio
    median = float(np.median(by_all.degrees_of_freedom))
    table = _add_ranks(columns, by_all.score, by_all.covariance, median, level, random_state, arena.systems)
    covariance = pd.DataFrame(by_all.covariance, index=arena.systems, columns=arena.systems)
    return SystemRanking(table, covariance, "logit", level, notes)


def _require_comparisons(people: Any) -> Comparisons:
    if not isinstance(people, Comparisons):
        raise UsageError("comparisons of judges go with comparisons of people: labels=wisecrowd.read_comparisons(path)")
    return people


def _win_items(judges: Comparisons, people: Any, systems: Sequence[str] | None) -> EvaluationItems:
    """Return comparisons of two systems as items, with +1 for a win of the first and −1 for a win of the second."""
    arena = ArenaItems.from_comparisons(judges, _require_comparisons(people))
    if systems is None and len(arena.systems) == 2:
        systems = [str(name) for name in arena.systems]
    if systems is None or len(systems) != 2:
        raise UsageError("a difference needs two systems; name them: systems=(first, second)")
    return arena.to_items(str(systems[0]), str(systems[1]))
