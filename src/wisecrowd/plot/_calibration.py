"""Reliability diagrams: whether a confidence of 90% is right nine times out of ten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.aligned import Aligned, align
from wisecrowd.plot import _given, _style
from wisecrowd.utils.binning import check_bins, of_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Area of the points with fewest and with most tasks, in square points.
AREAS = (14.0, 150.0)
#: Half the width of a 95% interval, in standard errors.
Z = 1.96


def calibration(
    truth: Any,
    predictions: Any,
    *,
    n_bins: int = 10,
    bins: Literal["width", "mass"] = "mass",
    ax: Axes | None = None,
) -> Axes:
    """Draw how often answers are right against how sure the method is of them: below the line it is too sure of itself.

    ``predictions`` is a fitted method or a posterior, or several of them by name; truth meets it as in `wisecrowd.evaluate.metrics`. Tasks
    are put together by confidence, in bins with as many tasks ("mass") or of one width ("width"); a larger sign stands for more
    tasks, and bars are Wilson's 95% intervals. The legend has the expected calibration error over the same bins.

    >>> from wisecrowd import DawidSkene, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=400, n_classes=3, votes_per_task=3)
    >>> ax = plot.calibration(made.truth, DawidSkene().fit(made.crowd))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('confidence in the answer', 'answers that are right')
    """
    _style.check_axes(ax)
    check_bins(n_bins, bins)
    tables = {}
    for name, prediction in _given.named(predictions, "prediction").items():
        both = align(truth, prediction, probabilities=True)
        error = metrics.calibration_error(truth, prediction, n_bins=n_bins, bins=bins)
        tables[f"{_style.said(name)} (error {error:.1%})"] = _binned(both, n_bins, bins)
    with _style.drawing(ax, (5.0, 4.6)) as drawn:
        most = max(table["n_tasks"].max() for table in tables.values())
        handles = [_points(drawn, table, number, most) for number, table in enumerate(tables.values())]
        low = min(float(table[["confidence", "low"]].min().min()) for table in tables.values())
        handles.append(_style.diagonal(drawn, low, 1))
        drawn.set_xlabel("confidence in the answer")
        drawn.set_ylabel("answers that are right")
        for axis in (drawn.xaxis, drawn.yaxis):
            _style.as_percent(axis)
        _style.legend(drawn, handles, [*tables, "as sure as it may be"])
    return drawn


def _binned(both: Aligned, n_bins: int, bins: str) -> pd.DataFrame:
    """Number of tasks, mean confidence, share that is right and its interval, for each bin that has tasks."""
    confidence, credit = both.posterior.max(axis=1), both.credit
    of_bin = of_bins(confidence, n_bins, bins)
    n = np.bincount(of_bin)
    n, here = n[n > 0], np.flatnonzero(n)
    sure, right = (np.bincount(of_bin, values)[here] / n for values in (confidence, credit))
    # Wilson (1927): an interval that stays within 0 and 1, and has a width where all answers are right.
    middle = (right + Z**2 / (2 * n)) / (1 + Z**2 / n)
    reach = Z * np.sqrt(right * (1 - right) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return pd.DataFrame(
        {"n_tasks": n, "confidence": sure, "right": right, "low": middle - reach, "high": middle + reach}
    )


def _points(ax: Axes, table: pd.DataFrame, number: int, most: float) -> Any:
    look = _style.look(number)
    ax.vlines(table["confidence"], table["low"], table["high"], color=look["color"], linewidth=0.9, alpha=0.8)
    ax.plot(table["confidence"], table["right"], color=look["color"], linestyle=look["linestyle"], linewidth=1.1)
    small, large = AREAS
    area = small + (large - small) * table["n_tasks"] / most
    return ax.scatter(
        table["confidence"], table["right"], s=area.to_numpy(), color=look["color"], marker=look["marker"], zorder=3
    )
