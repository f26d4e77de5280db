"""Plan of human labels: how many more an evaluation needs, and which items to label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.errors import InputError, UsageError, check_choice
from wisecrowd.evaluate.evaluation_items import EvaluationItems, LabelsLike, ScoresLike
from wisecrowd.evaluate.judged_systems import as_items
from wisecrowd.evaluate.prediction_powered import LEVEL, check_level, find_quantile
from wisecrowd.evaluate.system_means import Population, Raters, SystemMeans, estimate_system_means

Array = NDArray[np.float64]

#: Share of the sampling rate that is equal for all items, so that no label gets a huge weight if the judges are wrong.
UNIFORM_SHARE = 0.2
#: Bins of predictions in which squared errors are averaged, for labels that are not 0 or 1.
ERROR_BINS = 5
#: Expected labels stay this far from 0 and 1 when their variance is computed.
LEAST_DOUBT = 0.02


@dataclass(frozen=True, eq=False)
class LabelPlan:
    """Items to label next.

    Attributes
    ----------
    n_more : int
        Number of further items to label.
    half_width : float
        Half width of the interval that is aimed at, or expected with the given number of items.
    expected_half_width : float
        Half width that is expected after these labels.
    reachable : bool
        Whether labels of the present items can make the interval as narrow as ``half_width``.
    items : DataFrame
        All items: system, task, inclusion (probability of being labelled by now or in this round; keep it for the next
        evaluation), labelled and chosen.
    """

    n_more: int
    half_width: float
    expected_half_width: float
    reachable: bool
    items: pd.DataFrame

    @property
    def chosen(self) -> pd.DataFrame:
        """Items to label."""
        return self.items[self.items["chosen"]].drop(columns=["chosen", "labelled"])


def plan_labels(
    scores: ScoresLike | EvaluationItems,
    labels: LabelsLike | None = None,
    *,
    half_width: float | None = None,
    size: int | None = None,
    systems: Sequence[str] | None = None,
    items: DataFrameLike | None = None,
    positive: Any = None,
    design: Literal["active", "random"] = "active",
    population: Population = "source",
    raters: Raters = "population",
    level: float = LEVEL,
    random_state: int = 0,
) -> LabelPlan:
    """Say how many more items people should label for an interval of a given width, and choose them.

    The active design labels items more often if the judges leave them more uncertain. Probabilities are known, so the next estimate
    is unbiased: pass the table ``items`` of the plan to `rate` with the new labels. Outputs for one task are chosen together.

    Parameters
    ----------
    scores : table or EvaluationItems
        Scores of judges; see `rate`.
    labels : table or Series, optional
        Labels of people so far; see `rate`.
    half_width : float, optional
        Half width of the interval that is aimed at. Either it or ``size`` is required.
    size : int, optional
        Number of further items to label.
    systems : sequence of str, optional
        One system whose rate, or two systems whose difference is wanted. By default, all systems, and the widest of the
        intervals of their rates counts.
    items : table, optional
        Design of the sample so far; see `rate`.
    positive : object, optional
        Label whose rate is estimated, if labels are words.
    design : {"active", "random"}, default="active"
        Items by the uncertainty of the judges, or a simple random sample.
    population : {"source", "items"}, default="source"
        See `rate`.
    raters : {"population", "panel"}, default="population"
        See `rate`.
    level : float, default=0.95
        Confidence level.
    random_state : int, default=0
        Seed of the choice.

    Returns
    -------
    LabelPlan

    Raises
    ------
    UsageError
        If neither or both of ``half_width`` and ``size`` are given.
    InputError
        If all items are labelled.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = pd.Series(rng.random(1000) < 0.3, index=[f"t{i}" for i in range(1000)])
    >>> scores = pd.DataFrame({"judge": truth + rng.normal(0, 0.5, 1000)})
    >>> plan = plan_labels(scores, truth[:50], half_width=0.05)
    >>> 50 < plan.n_more < 300, len(plan.chosen) == plan.n_more
    (True, True)
    """
    check_choice("design", design, ("active", "random"))
    check_level(level)
    if (half_width is None) == (size is None):
        raise UsageError("give either half_width, such as 0.05, or size, the number of items to label")
    if half_width is not None and half_width <= 0:
        raise UsageError(f"half_width must be positive, such as 0.05; got {half_width}")
    table = as_items(scores, labels, items, positive)
    if systems is not None:
        table = table.select_systems([str(name) for name in systems])
    open_items = ~table.is_labelled
    n_open = int(open_items.sum())
    if not n_open:
        raise InputError("every item is labelled; only more items would make the interval narrower")
    means = estimate_system_means(table, population=population, raters=raters, random_state=random_state)
    deviation = expected_deviation(table, means) if design == "active" else np.ones(table.n_items)
    unit_names, unit = np.unique(table.cluster, return_inverse=True)
    rates = _unit_rates(deviation, unit, len(unit_names), open_items)
    gain = _design_gain(deviation, rates[unit], open_items)
    forecast = _Forecast.from_means(table, means, systems, population, gain, level)
    reachable = True
    if half_width is not None:
        size = forecast.count_labels(half_width)
        reachable = size is not None
        size = n_open if size is None else size
    assert size is not None
    if size < 0:
        raise UsageError(f"size must be positive; got {size}")
    size = min(size, n_open)
    chosen, probability = _choose(rates, unit, open_items, size, np.random.default_rng(random_state))
    before = np.where(np.isnan(means.inclusion), table.is_labelled, means.inclusion)
    result = pd.DataFrame({
        "system": table.systems.to_numpy()[table.system], "task": np.asarray(table.task),
        "inclusion": 1 - (1 - np.clip(before, 0.0, 1.0)) * (1 - probability),
        "labelled": table.is_labelled, "chosen": chosen,
    })  # fmt: skip
    n_more = int(chosen.sum())
    expected = forecast.half_width(n_more)
    return LabelPlan(n_more, expected if half_width is None else half_width, expected, reachable, result)


def expected_deviation(items: EvaluationItems, means: SystemMeans) -> Array:
    """Return the expected size of the error of the judges' prediction of every item.

    Parameters
    ----------
    items : EvaluationItems
        Items.
    means : SystemMeans
        Estimate with predictions and their errors.

    Returns
    -------
    ndarray of shape (n_items,)
        Root of the expected squared error.
    """
    prediction = means.prediction
    if items.is_binary:
        p = np.clip(prediction, LEAST_DOUBT, 1 - LEAST_DOUBT)
        return np.sqrt(p * (1 - p))
    labelled = np.flatnonzero(items.is_labelled)
    square = means.residual[labelled] ** 2
    edges = np.unique(np.quantile(prediction[labelled], np.linspace(0, 1, ERROR_BINS + 1)[1:-1]))
    code = np.searchsorted(edges, prediction)
    n = np.bincount(code[labelled], minlength=len(edges) + 1)
    total = np.bincount(code[labelled], weights=square, minlength=len(edges) + 1)
    # A bin counts as if it had seen ten labels with the mean squared error.
    return np.sqrt((total + 10 * square.mean()) / (n + 10))[code]


def _unit_rates(deviation: Array, unit: NDArray[np.int64], n_units: int, open_items: NDArray[np.bool_]) -> Array:
    """Return how often each cluster should be drawn, relative to the others: by its error per label, with a uniform part."""
    square = np.bincount(unit, weights=deviation**2, minlength=n_units) / np.bincount(unit, minlength=n_units)
    rate = np.sqrt(square)
    is_open = np.bincount(unit[open_items], minlength=n_units) > 0
    return np.asarray(UNIFORM_SHARE + (1 - UNIFORM_SHARE) * rate / max(float(rate[is_open].mean()), 1e-300))


def _design_gain(deviation: Array, rate: Array, open_items: NDArray[np.bool_]) -> float:
    """Return the variance of the design per label, relative to a simple random sample."""
    square, of_open = deviation[open_items] ** 2, rate[open_items]
    return float((square / of_open).mean() * of_open.mean() / square.mean())


@dataclass(frozen=True)
class _Forecast:
    """Variance of an estimate as a function of the number of labels: fixed + per_label · (1/n − 1/n_items)."""

    fixed: float
    per_label: float
    gain: float
    n_labelled: int
    n_items: int
    reach: float

    @classmethod
    def from_means(
        cls,
        items: EvaluationItems,
        means: SystemMeans,
        systems: Sequence[str] | None,
        population: Population,
        gain: float,
        level: float,
    ) -> _Forecast:
        n_systems = len(items.systems)
        contrasts = [np.array([1.0, -1.0])] if systems is not None and n_systems == 2 else list(np.eye(n_systems))
        variances = [means.describe_contrast(contrast) for contrast in contrasts]
        widest = int(np.argmax([variance for variance, _ in variances]))
        contrast, (variance, freedom) = contrasts[widest], variances[widest]
        by_raters = max(float(contrast @ means.rater_covariance @ contrast), 0.0)
        used = np.isin(items.system, np.flatnonzero(contrast))
        n, total = int((items.is_labelled & used).sum()), int(used.sum())
        # All items labelled: only the sampling of items is left, and nothing if these items are the target.
        complete = 0.0
        if population == "source":
            residual = means.residual[items.is_labelled & used]
            prediction = means.prediction[used]
            complete = float((prediction.var() + np.mean(residual**2)) / total) * float(np.abs(contrast).sum() ** 2)
        complete = min(complete, 0.999 * (variance - by_raters))
        share = max(1 / n - 1 / total, 1e-12)
        per_label = max(variance - by_raters - complete, 0.0) / share
        return cls(complete + by_raters, per_label, gain, n, total, find_quantile(freedom, level))

    def half_width(self, n_more: int) -> float:
        """Return the half width after ``n_more`` further labels."""
        n = min(self.n_labelled + n_more, self.n_items)
        new_share = n_more / max(n, 1)
        gain = 1 - new_share + new_share * self.gain
        return self.reach * float(np.sqrt(self.fixed + gain * self.per_label * (1 / n - 1 / self.n_items)))

    def count_labels(self, half_width: float) -> int | None:
        """Return the number of further labels for a half width, or None if all items are too few."""
        low, high = 0, self.n_items - self.n_labelled
        if self.half_width(0) <= half_width:
            return 0
        if self.half_width(high) > half_width:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.half_width(middle) <= half_width else (middle, high)
        return high


def _choose(
    rate: Array, unit: NDArray[np.int64], open_items: NDArray[np.bool_], size: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], Array]:
    """Return which items to label, and the probability of each item of being chosen; clusters are chosen as a whole."""
    n_open = np.bincount(unit[open_items], minlength=len(rate)).astype(np.float64)
    probability = scale_probabilities(rate, n_open, size)
    candidates = np.flatnonzero(n_open > 0)
    drawn = candidates[draw_systematic(probability[candidates], rng)]
    is_drawn = np.zeros(len(rate), dtype=bool)
    is_drawn[drawn] = True
    return is_drawn[unit] & open_items, probability[unit]


def scale_probabilities(rate: Array, n_items: Array, size: float) -> Array:
    """Scale rates to probabilities of at most one with an expected number of items.

    Parameters
    ----------
    rate : ndarray of shape (n_units,)
        Relative rates.
    n_items : ndarray of shape (n_units,)
        Number of items that choosing a unit adds.
    size : float
        Expected number of items.

    Returns
    -------
    ndarray of shape (n_units,)

    Examples
    --------
    >>> scale_probabilities(np.array([10.0, 1.0, 1.0]), np.ones(3), 2.0).round(6).tolist()
    [1.0, 0.5, 0.5]
    """
    low, high = 0.0, 1.0 / max(float(rate.min()), 1e-12)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.minimum(middle * rate, 1.0) @ n_items) < size else (low, middle)
    return np.minimum(high * rate, 1.0)


def draw_systematic(probability: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a sample with given probabilities of inclusion, of a size that is fixed up to rounding.

    Parameters
    ----------
    probability : ndarray of shape (n_units,)
        Probabilities.
    rng : Generator
        Source of randomness.

    Returns
    -------
    ndarray of int
        Positions that were drawn.

    Examples
    --------
    >>> len(draw_systematic(np.full(100, 0.2), np.random.default_rng(0)))
    20
    """
    order = rng.permutation(len(probability))
    total = np.cumsum(probability[order])
    # Rounding errors of the sum must not add or lose a unit.
    total = np.round(total, 9) + rng.random()
    hits = np.floor(total) - np.floor(np.concatenate([[total[0] - probability[order][0]], total[:-1]]))
    return np.sort(order[hits > 0])
