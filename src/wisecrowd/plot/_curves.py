"""Curves of accuracy: against labels per task, and against how much of the crowd's table was filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError, UsageError, one_of, some
from wisecrowd.plot import _given, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def redundancy(
    curve: Any,
    *,
    spread: pd.DataFrame | None = None,
    show: Literal["accuracy", "gain"] = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against labels per task.

    ``curve`` is what `redundancy_curve` gives: every aggregator before (dashed) and after filling in, or with ``show="gain"`` the
    difference, with bars of one standard deviation. Or it is a table of accuracies with labels per task as its index and a
    column for each method, with standard deviations in a like table ``spread`` (figure 2 of Han et al. 2025).

    >>> from wisecrowd import GMV, plot, redundancy_curve, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, votes_per_task=5)
    >>> ax = plot.redundancy(redundancy_curve(GMV(), made.crowd, None, made.truth, at_most=[2, 3, 5]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('labels per task', 'labels that are right')
    >>> accuracies = pd.DataFrame({"vote": [0.8, 0.9], "Dawid–Skene": [0.81, 0.94]}, index=[3, 5])
    >>> ax = plot.redundancy(accuracies, spread=0 * accuracies + 0.01)
    """
    _style.check_axes(ax)
    one_of("show", show, ("accuracy", "gain"))
    if isinstance(curve, pd.DataFrame) and not {"before", "after"} & set(curve.columns):
        return _methods(curve, spread, show, ax)
    if spread is not None:
        raise UsageError("spread goes with a table of methods; what redundancy_curve gives has its own")
    wanted = ("votes_per_task", "before", "after", "gain", "gain_sd")
    table = _given.columns_of(curve, wanted, "redundancy_curve")
    with _style.drawing(ax) as drawn:
        handles: list[Any] = []
        names: list[str] = []
        for number, (name, part) in enumerate(_by_aggregator(table, "votes_per_task", "redundancy_curve")):
            look, across = _style.look(number), part["votes_per_task"]
            if show == "gain":
                reach = part["gain_sd"].fillna(0)
                handles.append(drawn.errorbar(across, part["gain"], reach, capsize=3, **look))
                names.append(name)
                continue
            sign = {"color": look["color"], "marker": look["marker"]}
            handles += drawn.plot(across, part["before"], linestyle="--", markerfacecolor=_style.theme().paper, **sign)
            handles += drawn.plot(across, part["after"], linestyle="-", **sign)
            names += [f"{name}, before", f"{name}, filled in"]
        if show == "gain":
            drawn.axhline(0, color=_style.theme().soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        _dress(drawn, "labels per task", "more labels right after filling in" if show == "gain" else None)
        _style.legend(drawn, handles, names)
    return drawn


def density(curve: Any, *, ax: Axes | None = None) -> Axes:
    """Draw accuracy against how much of the table of tasks and workers was filled in (figure 5 of Han et al. 2025).

    ``curve`` is what `density_curve` gives; the dashed line of each aggregator is its accuracy before anything was filled in.

    >>> from wisecrowd import GMV, density_curve, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=2)
    >>> curve = density_curve(GMV(), made.crowd, None, made.truth, min_labels=[0, 38, 42], aggregators=["dawid-skene"])
    >>> ax = plot.density(curve)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['dawid-skene, filled in', 'dawid-skene, before']
    """
    _style.check_axes(ax)
    table = _given.columns_of(curve, ("density", "before", "after"), "density_curve")
    with _style.drawing(ax) as drawn:
        handles: list[Any] = []
        names: list[str] = []
        for number, (name, part) in enumerate(_by_aggregator(table, "density", "density_curve")):
            look = _style.look(number)
            handles += drawn.plot(part["density"], part["after"], color=look["color"], marker=look["marker"])
            handles.append(drawn.axhline(part["before"].iloc[0], color=look["color"], linestyle="--", linewidth=1.1))
            names += [f"{name}, filled in", f"{name}, before"]
        _dress(drawn, "pairs of task and worker that have a label, real or filled in")
        _style.as_percent(drawn.xaxis)
        _style.legend(drawn, handles, names)
    return drawn


def _methods(curve: pd.DataFrame, spread: pd.DataFrame | None, show: str, ax: Axes | None) -> Axes:
    if show == "gain":
        raise UsageError('show="gain" needs accuracies before and after, as redundancy_curve gives them')
    numbers = [
        _numbers(table, "curve" if table is curve else "spread") for table in (curve, spread) if table is not None
    ]
    if len(numbers) == 2 and not (numbers[0].index.equals(numbers[1].index) and set(curve) == set(numbers[1])):
        raise InputError("spread must have the rows and columns of the curve")
    _given.named(dict(curve.items()), "")  # not too many
    table = numbers[0].sort_index()
    with _style.drawing(ax) as drawn:
        handles = []
        for number, name in enumerate(table.columns):
            reach = None if spread is None else numbers[1].sort_index()[name]
            handles.append(drawn.errorbar(table.index, table[name], reach, capsize=3, **_style.look(number)))
        _dress(drawn, "labels per task")
        _style.legend(drawn, handles, table.columns.tolist())
    return drawn


def _numbers(table: Any, what: str) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame) or not table.size:
        raise UsageError(f"{what} must be a table, of labels per task by methods; got {type(table).__name__}")
    try:
        found = table.astype(np.float64).set_axis(pd.Index(table.index, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} must be what redundancy_curve gives, or accuracies by labels per task (rows) and methods (columns); "
            f"got columns {some(map(str, table.columns), 8)} and rows {some(table.index)}"
        ) from error
    if not (found.index.is_unique and found.columns.is_unique):
        raise InputError(f"{what} names rows or columns twice; keep one each")
    return found


def _by_aggregator(table: pd.DataFrame, across: str, maker: str) -> list[tuple[str, pd.DataFrame]]:
    if "aggregator" not in table.index.names:
        raise InputError(f"the table that {maker} gives was wanted, with aggregators in its index")
    parts = table.groupby(level="aggregator", sort=False)
    return [(_style.said(name), part.sort_values(across, kind="stable")) for name, part in parts]


def _dress(ax: Axes, across: str, up: str | None = None) -> None:
    ax.set_xlabel(across)
    ax.set_ylabel(up or "labels that are right")
    _style.as_percent(ax.yaxis)
    low, high = ax.get_xlim()
    if across == "labels per task" and high - low >= 2:
        _style.with_commas(ax.xaxis)
