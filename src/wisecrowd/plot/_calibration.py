"""Reliability diagrams: accuracy against confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from wisecrowd.data.types import TruthLike
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.intervals import share_interval
from wisecrowd.evaluate.truth_alignment import AlignedPrediction, align_prediction
from wisecrowd.plot import _inputs, _style
from wisecrowd.utils.binning import assign_bins, check_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Areas of the smallest and the largest marker, in square points.
MARKER_AREAS = (14.0, 150.0)


def calibration(
    truth: TruthLike,
    predictions: Any,
    *,
    n_bins: int = 10,
    bins: Literal["width", "mass"] = "mass",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against confidence in bins of tasks; points below the diagonal mean overconfidence.

    Larger markers stand for more tasks, and bars are 90 % Wilson intervals. The legend has the expected calibration error over the
    same bins.

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes, aligned as in `wisecrowd.evaluate.metrics`.
    predictions : fitted method, DataFrame, array-like or mapping
        Posterior, or several of them by name.
    n_bins : int, default=10
        Number of bins.
    bins : {"width", "mass"}, default="mass"
        Bins of equal width, or bins with about equally many tasks.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import DawidSkene, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=400, n_classes=3, votes_per_task=3)
    >>> ax = plot.calibration(simulation.truth, DawidSkene().fit(simulation.crowd))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('confidence', 'accuracy')
    """
    _style.check_axes(ax)
    check_bins(n_bins, bins)
    tables = {}
    for name, prediction in _inputs.name_series(predictions, "prediction").items():
        aligned = align_prediction(truth, prediction, probabilities=True)
        error = metrics.calibration_error(truth, prediction, n_bins=n_bins, bins=bins)
        tables[f"{_style.format_name(name)} (error {error:.1%})"] = _bin_tasks(aligned, n_bins, bins)
    with _style.styled_axes(ax, (5.0, 4.6)) as drawn:
        max_tasks = max(table["n_tasks"].max() for table in tables.values())
        handles = [_draw_bins(drawn, table, number, max_tasks) for number, table in enumerate(tables.values())]
        low = min(float(table[["confidence", "low"]].min().min()) for table in tables.values())
        handles.append(_style.draw_diagonal(drawn, low, 1))
        drawn.set_xlabel("confidence")
        drawn.set_ylabel("accuracy")
        for axis in (drawn.xaxis, drawn.yaxis):
            _style.format_percent_axis(axis)
        _style.add_legend(drawn, handles, [*tables, "perfect calibration"])
    return drawn


def _bin_tasks(aligned: AlignedPrediction, n_bins: int, bins: str) -> pd.DataFrame:
    """Return number of tasks, mean confidence, accuracy and its interval for each bin with tasks."""
    confidence, credit = aligned.posterior.max(axis=1), aligned.credit
    bin_of_task = assign_bins(confidence, n_bins, bins)
    n_tasks = np.bincount(bin_of_task)
    n_tasks, occupied = n_tasks[n_tasks > 0], np.flatnonzero(n_tasks)
    mean_confidence, share_right = (
        np.bincount(bin_of_task, values)[occupied] / n_tasks for values in (confidence, credit)
    )
    # The Wilson interval stays within 0 and 1, and has a width even if all labels are right.
    low, high = share_interval(share_right * n_tasks, n_tasks)
    return pd.DataFrame(
        {
            "n_tasks": n_tasks,
            "confidence": mean_confidence,
            "right": share_right,
            "low": low,
            "high": high,
        }
    )


def _draw_bins(ax: Axes, table: pd.DataFrame, number: int, max_tasks: float) -> Any:
    """Draw the bins of one series."""
    style = _style.series_style(number)
    ax.vlines(table["confidence"], table["low"], table["high"], color=style["color"], linewidth=0.9, alpha=0.8)
    ax.plot(table["confidence"], table["right"], color=style["color"], linestyle=style["linestyle"], linewidth=1.1)
    small, large = MARKER_AREAS
    area = small + (large - small) * table["n_tasks"] / max_tasks
    return ax.scatter(
        table["confidence"], table["right"], s=area.to_numpy(), color=style["color"], marker=style["marker"], zorder=3
    )
