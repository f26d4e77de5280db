"""Accuracy against votes per task and against the density of completed crowds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.plot import _inputs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def redundancy(
    curve: Any,
    *,
    spread: pd.DataFrame | None = None,
    show: Literal["accuracy", "gain"] = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against votes per task.

    Parameters
    ----------
    curve : DataFrame
        Result of `redundancy_curve`: every aggregator before (dashed) and after completion. Or a table of accuracies with votes
        per task as index and one column per method, as in figure 2 of Han et al. (2025).
    spread : DataFrame, default=None
        Standard deviations in the shape of a table of methods.
    show : {"accuracy", "gain"}, default="accuracy"
        Accuracies, or their difference with error bars of one standard deviation.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import GMV, plot, redundancy_curve, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, votes_per_task=5)
    >>> ax = plot.redundancy(redundancy_curve(GMV(), simulation.crowd, None, simulation.truth, at_most=[2, 3, 5]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('votes per task', 'accuracy')
    >>> accuracies = pd.DataFrame({"vote": [0.8, 0.9], "Dawid–Skene": [0.81, 0.94]}, index=[3, 5])
    >>> ax = plot.redundancy(accuracies, spread=0 * accuracies + 0.01)
    """
    _style.check_axes(ax)
    check_choice("show", show, ("accuracy", "gain"))
    if isinstance(curve, pd.DataFrame) and not {"before", "after"} & set(curve.columns):
        return _draw_methods(curve, spread, show, ax)
    if spread is not None:
        raise UsageError("spread applies to a table of methods only; the result of redundancy_curve has its own")
    columns = ("votes_per_task", "before", "after", "gain", "gain_sd")
    table = _inputs.require_columns(curve, columns, "redundancy_curve")
    with _style.styled_axes(ax) as drawn:
        handles: list[Any] = []
        names: list[str] = []
        for number, (name, part) in enumerate(_split_by_aggregator(table, "votes_per_task", "redundancy_curve")):
            style, x = _style.series_style(number), part["votes_per_task"]
            if show == "gain":
                errors = part["gain_sd"].fillna(0)
                handles.append(drawn.errorbar(x, part["gain"], errors, capsize=3, **style))
                names.append(name)
                continue
            marker_style = {"color": style["color"], "marker": style["marker"]}
            handles += drawn.plot(
                x, part["before"], linestyle="--", markerfacecolor=_style.get_theme().paper, **marker_style
            )
            handles += drawn.plot(x, part["after"], linestyle="-", **marker_style)
            names += [f"{name}, before", f"{name}, completed"]
        if show == "gain":
            drawn.axhline(0, color=_style.get_theme().soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        _label_axes(drawn, "votes per task", "gain in accuracy by completion" if show == "gain" else None)
        _style.add_legend(drawn, handles, names)
    return drawn


def density(curve: Any, *, ax: Axes | None = None) -> Axes:
    """Draw accuracy against the share of task-worker pairs with a vote (figure 5 of Han et al. 2025).

    Dashed lines are the accuracies before completion.

    Parameters
    ----------
    curve : DataFrame
        Result of `density_curve`.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import GMV, density_curve, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=2)
    >>> curve = density_curve(GMV(), simulation.crowd, None, simulation.truth, min_votes=[0, 38, 42], aggregators=["dawid-skene"])
    >>> ax = plot.density(curve)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['dawid-skene, completed', 'dawid-skene, before']
    """
    _style.check_axes(ax)
    table = _inputs.require_columns(curve, ("density", "before", "after"), "density_curve")
    with _style.styled_axes(ax) as drawn:
        handles: list[Any] = []
        names: list[str] = []
        for number, (name, part) in enumerate(_split_by_aggregator(table, "density", "density_curve")):
            style = _style.series_style(number)
            handles += drawn.plot(part["density"], part["after"], color=style["color"], marker=style["marker"])
            handles.append(drawn.axhline(part["before"].iloc[0], color=style["color"], linestyle="--", linewidth=1.1))
            names += [f"{name}, completed", f"{name}, before"]
        _label_axes(drawn, "share of task-worker pairs with a vote")
        _style.format_percent_axis(drawn.xaxis)
        _style.add_legend(drawn, handles, names)
    return drawn


def _draw_methods(curve: pd.DataFrame, spread: pd.DataFrame | None, show: str, ax: Axes | None) -> Axes:
    """Draw a table of accuracies by votes per task and method."""
    if show == "gain":
        raise UsageError('show="gain" needs the result of redundancy_curve')
    tables = [
        _as_number_table(table, "curve" if table is curve else "spread")
        for table in (curve, spread)
        if table is not None
    ]
    if len(tables) == 2 and not (tables[0].index.equals(tables[1].index) and set(curve) == set(tables[1])):
        raise InputError("spread must have the same rows and columns as curve")
    _inputs.name_series(dict(curve.items()), "")  # checks the number of series
    table = tables[0].sort_index()
    with _style.styled_axes(ax) as drawn:
        handles = []
        for number, name in enumerate(table.columns):
            errors = None if spread is None else tables[1].sort_index()[name]
            handles.append(drawn.errorbar(table.index, table[name], errors, capsize=3, **_style.series_style(number)))
        _label_axes(drawn, "votes per task")
        _style.add_legend(drawn, handles, table.columns.tolist())
    return drawn


def _as_number_table(table: Any, source: str) -> pd.DataFrame:
    """Return a table of numbers with a numeric index."""
    if not isinstance(table, pd.DataFrame) or not table.size:
        raise UsageError(f"{source} must be a table of votes per task by method; got {type(table).__name__}")
    try:
        numbers = table.astype(np.float64).set_axis(pd.Index(table.index, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{source} must be the result of redundancy_curve, or accuracies by votes per task (rows) and method (columns); "
            f"got columns {preview(map(str, table.columns), 8)} and rows {preview(table.index)}"
        ) from error
    if not (numbers.index.is_unique and numbers.columns.is_unique):
        raise InputError(f"{source} has duplicate rows or columns; keep one of each")
    return numbers


def _split_by_aggregator(table: pd.DataFrame, across: str, maker: str) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each aggregator, sorted by the x axis."""
    if "aggregator" not in table.index.names:
        raise InputError(f"expected a table from {maker} with aggregators in its index")
    parts = table.groupby(level="aggregator", sort=False)
    return [(_style.format_name(name), part.sort_values(across, kind="stable")) for name, part in parts]


def _label_axes(ax: Axes, across: str, up: str | None = None) -> None:
    """Label the axes of a curve of accuracies."""
    ax.set_xlabel(across)
    ax.set_ylabel(up or "accuracy")
    _style.format_percent_axis(ax.yaxis)
    low, high = ax.get_xlim()
    if across == "votes per task" and high - low >= 2:
        _style.format_counts(ax.xaxis)
