"""Budget curves: what further labels are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.plan.acquisition import Plan
from wisecrowd.plot import _given, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class _Curve:
    bought: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    spread: NDArray[np.float64] | None = None
    """One standard deviation over repeats."""
    unit: str = "labels"
    expected: bool = False


def budget(curves: Any, *, money: bool = False, ax: Axes | None = None) -> Axes:
    """Draw accuracy against what was spent.

    ``curves`` is a `Plan`, whose accuracy is expected; a table with the columns votes and accuracy, as the benchmark ``replay``
    measures it (``Replay(rule).curve(dataset, seed)``); or several of them by name. A list of such tables, one for each
    seed, is drawn as its mean, with one standard deviation about it. A plan is drawn by money with ``money=True``.

    >>> from wisecrowd import plan, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=2)
    >>> ax = plot.budget(plan(made.crowd, budget=100))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('labels bought', 'labels expected to be right')
    """
    _style.check_axes(ax)
    found = {name: _read(thing, money) for name, thing in _given.named(curves, "plan").items()}
    units = {curve.unit for curve in found.values()}
    if len(units) > 1:
        raise UsageError(
            f"curves over one kind of spending were wanted; got {some(sorted(units))}. A plan counts labels that come on top "
            "of those at hand, a replay all of them: draw each kind on axes of its own"
        )
    with _style.drawing(ax) as drawn:
        handles = []
        for number, curve in enumerate(found.values()):
            look = _style.look(number)
            # A sign at every label would be a smear.
            look["markevery"] = max(1, len(curve.bought) // 8)
            look["marker"] = look["marker"] if len(found) > 1 else ""
            handles += drawn.plot(curve.bought, curve.accuracy, **look)
            if curve.spread is not None:
                ends = curve.accuracy - curve.spread, curve.accuracy + curve.spread
                drawn.fill_between(curve.bought, *ends, color=look["color"], alpha=0.18, linewidth=0)
        drawn.set_xlabel("money spent" if "money" in units else next(iter(units)))
        sure = any(not curve.expected for curve in found.values())
        drawn.set_ylabel("labels that are right" if sure else "labels expected to be right")
        _style.as_percent(drawn.yaxis)
        if "money" not in units:
            _style.with_commas(drawn.xaxis)
        if len(found) > 1:
            _style.legend(drawn, handles, list(found), loc="lower right")
    return drawn


def _read(given: Any, money: bool) -> _Curve:
    if isinstance(given, Plan):
        unit = "money" if money else "labels"
        return _Curve(
            given.curve[unit].to_numpy(dtype=np.float64),
            given.curve["expected_accuracy"].to_numpy(dtype=np.float64),
            unit="money" if money else "labels bought",
            expected=True,
        )
    if money:
        raise UsageError("only plans know what labels cost; leave money out")
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given):
        return _mean([_one(table) for table in given])
    return _one(given)


def _one(table: Any) -> _Curve:
    if not isinstance(table, pd.DataFrame):
        raise UsageError(
            f"a plan, a table with votes and accuracy, or a list of such tables was wanted; got {type(table).__name__}"
        )
    _given.columns_of(table, ("votes", "accuracy"), "Replay.curve")
    points = table[["votes", "accuracy"]].astype(np.float64).sort_values("votes").to_numpy()
    if not np.isfinite(points).all():
        raise InputError("votes and accuracy must be finite numbers; drop the rows that have none")
    return _Curve(points[:, 0], points[:, 1], unit="labels in all")


def _mean(curves: list[_Curve]) -> _Curve:
    """Mean and deviation where all curves reach, linear between their points."""
    begin, end = max(curve.bought[0] for curve in curves), min(curve.bought[-1] for curve in curves)
    if begin > end:
        raise InputError("the curves of a list have no number of votes in common; draw them by name instead")
    grid = np.unique(np.concatenate([curve.bought for curve in curves]))
    grid = grid[(grid >= begin) & (grid <= end)]
    heights = np.stack([np.interp(grid, curve.bought, curve.accuracy) for curve in curves])
    spread = heights.std(axis=0, ddof=1) if len(curves) > 1 else None
    return _Curve(grid, heights.mean(axis=0), spread, unit="labels in all")
