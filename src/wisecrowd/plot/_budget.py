"""Accuracy against the number or cost of votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.plan.acquisition import Plan
from wisecrowd.plot import _inputs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class _BudgetCurve:
    """Accuracy after increasing spending."""

    spent: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    #: Standard deviation over repeats.
    spread: NDArray[np.float64] | None = None
    unit: str = "votes"
    expected: bool = False


def budget(curves: Any, *, money: bool = False, ax: Axes | None = None) -> Axes:
    """Draw accuracy against the number or cost of votes.

    Parameters
    ----------
    curves : Plan, DataFrame, list of DataFrame or mapping
        One of the following, or a mapping from the name of each line to one of the following:

        - a `Plan`: its expected accuracy is drawn
        - a table with the columns votes and accuracy, such as ``Replay(rule).curve(dataset, seed)`` of the benchmark ``replay``
        - a list of such tables, such as one per seed: their mean and standard deviation are drawn
    money : bool, default=False
        Draw plans against the cost of votes instead of their number.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import plan_votes, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=2)
    >>> ax = plot.budget(plan_votes(simulation.crowd, budget=100))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('votes bought', 'expected accuracy')
    """
    _style.check_axes(ax)
    curves_by_name = {name: _read_curve(value, money) for name, value in _inputs.name_series(curves, "plan").items()}
    units = {curve.unit for curve in curves_by_name.values()}
    if len(units) > 1:
        raise UsageError(
            f"all curves must have the same unit; got {preview(sorted(units))}. A plan counts additional votes, a replay all "
            "votes; draw them on separate axes"
        )
    with _style.styled_axes(ax) as drawn:
        handles = []
        for number, curve in enumerate(curves_by_name.values()):
            style = _style.series_style(number)
            # Markers at every vote would overlap.
            style["markevery"] = max(1, len(curve.spent) // 8)
            style["marker"] = style["marker"] if len(curves_by_name) > 1 else ""
            handles += drawn.plot(curve.spent, curve.accuracy, **style)
            if curve.spread is not None:
                ends = curve.accuracy - curve.spread, curve.accuracy + curve.spread
                drawn.fill_between(curve.spent, *ends, color=style["color"], alpha=0.18, linewidth=0)
        drawn.set_xlabel("money spent" if "money" in units else next(iter(units)))
        is_measured = any(not curve.expected for curve in curves_by_name.values())
        drawn.set_ylabel("accuracy" if is_measured else "expected accuracy")
        _style.format_percent_axis(drawn.yaxis)
        if "money" not in units:
            _style.format_counts(drawn.xaxis)
        if len(curves_by_name) > 1:
            _style.add_legend(drawn, handles, list(curves_by_name), loc="lower right")
    return drawn


def _read_curve(source: Any, money: bool) -> _BudgetCurve:
    """Return the curve of a plan, a table or a list of tables."""
    if isinstance(source, Plan):
        unit = "money" if money else "votes"
        return _BudgetCurve(
            source.curve[unit].to_numpy(dtype=np.float64),
            source.curve["expected_accuracy"].to_numpy(dtype=np.float64),
            unit="money" if money else "votes bought",
            expected=True,
        )
    if money:
        raise UsageError("money=True needs a Plan; tables of votes and accuracy have no costs")
    if isinstance(source, Sequence) and not isinstance(source, str) and len(source):
        return _average_curves([_read_table(table) for table in source])
    return _read_table(source)


def _read_table(table: Any) -> _BudgetCurve:
    """Return the curve of a table with columns votes and accuracy."""
    if not isinstance(table, pd.DataFrame):
        raise UsageError(
            f"curves must be a Plan, a table with votes and accuracy, or a list of such tables; got {type(table).__name__}"
        )
    _inputs.require_columns(table, ("votes", "accuracy"), "Replay.curve")
    points = table[["votes", "accuracy"]].astype(np.float64).sort_values("votes").to_numpy()
    if not np.isfinite(points).all():
        raise InputError("votes and accuracy must be finite numbers; drop rows with NaN")
    return _BudgetCurve(points[:, 0], points[:, 1], unit="votes in total")


def _average_curves(curves: list[_BudgetCurve]) -> _BudgetCurve:
    """Return mean and standard deviation of curves over their common range, with linear interpolation."""
    begin, end = max(curve.spent[0] for curve in curves), min(curve.spent[-1] for curve in curves)
    if begin > end:
        raise InputError(
            "the curves of a list have no common range of votes; pass them as a dict to draw them separately"
        )
    grid = np.unique(np.concatenate([curve.spent for curve in curves]))
    grid = grid[(grid >= begin) & (grid <= end)]
    heights = np.stack([np.interp(grid, curve.spent, curve.accuracy) for curve in curves])
    spread = heights.std(axis=0, ddof=1) if len(curves) > 1 else None
    return _BudgetCurve(grid, heights.mean(axis=0), spread, unit="votes in total")
