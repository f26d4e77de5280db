"""Estimated against true properties of workers and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wisecrowd.base.method import Method
from wisecrowd.diagnose import Diagnosis
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.evaluate import metrics
from wisecrowd.plot import _inputs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Largest number of points with error bars.
MAX_ERROR_BARS = 300
#: Largest number of workers whose names are drawn.
MAX_NAMES = 30


def abilities(
    estimated: Any, true: Any, *, of: str = "accuracy", same_scale: bool = True, ax: Axes | None = None
) -> Axes:
    """Draw estimated against true values of workers or tasks.

    Both sides are matched by id, and ids of one side only are ignored. Arrays are matched by position. The legend has Pearson's
    correlation r.

    Parameters
    ----------
    estimated : Diagnosis, fitted method, DataFrame, Series or mapping
        Estimates by id, or several of them by name.
    true : Series or mapping
        True values by id.
    of : str, default="accuracy"
        Column of workers ("accuracy", "ability") or tasks ("difficulty"). Error bars come from the columns low and high of an
        accuracy, and from two standard_error of other columns.
    same_scale : bool, default=True
        Whether both axes have the same scale, so that the diagonal means no error. Use False for an ability of `GLAD` against an
        accuracy.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import diagnose_crowd, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=12, votes_per_task=5)
    >>> ax = plot.abilities(diagnose_crowd(simulation.crowd), simulation.accuracy)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('true accuracy', 'estimated accuracy')
    """
    _style.check_axes(ax)
    estimates_by_name = _inputs.name_series(estimated, "estimated")
    is_bare = not isinstance(true, pd.Series | Mapping)
    truth = _truth_by_position(true, estimates_by_name) if is_bare else _inputs.as_numeric_series(true, "true").dropna()
    tables = {
        name: _match_truth(_read_estimates(value, of, is_bare), truth, of) for name, value in estimates_by_name.items()
    }
    with _style.styled_axes(ax, (5.0, 4.6)) as drawn:
        handles, names = [], []
        for number, (name, table) in enumerate(tables.items()):
            handles.append(_draw_points(drawn, table, number))
            r = metrics.worker_correlation(table["true"], table["value"])
            names.append(f"{_style.format_name(name)} (r = {r:.2f})" if len(table) > 1 else name)
        if same_scale:
            ends = pd.concat([table[["true", "value"]] for table in tables.values()]).to_numpy()
            handles.append(_style.draw_diagonal(drawn, ends.min(), ends.max()))
            names.append("no error")
        x_name = of if same_scale or truth.name is None else truth.name
        drawn.set_xlabel(f"true {_style.format_name(x_name)}", **_style.LITERAL_TEXT)
        drawn.set_ylabel(f"estimated {_style.format_name(of)}", **_style.LITERAL_TEXT)
        _style.add_legend(drawn, handles, names)
    return drawn


def expertise(estimated: Any, true: Any = None, *, positive: Any = None, ax: Axes | None = None) -> Axes:
    """Draw workers by specificity and sensitivity on two classes.

    A line connects the true and the estimated position of each worker, as in figures 3 and 5 of Xu et al. (2019). Labels of workers
    on the dashed line are unrelated to the truth.

    Parameters
    ----------
    estimated : fitted method, DataFrame or mapping
        Fitted method, or a table by worker with the accuracy on each class, or several of them by name.
    true : DataFrame, default=None
        True accuracies, such as ``accuracy`` of a simulation.
    positive : object, default=None
        Class whose accuracy is the sensitivity. Defaults to the second class.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import OneCoin, plot
    >>> from wisecrowd.simulate import simulate_gaussian_difficulty
    >>> simulation = simulate_gaussian_difficulty(300)
    >>> ax = plot.expertise(OneCoin().fit(simulation.crowd), simulation.accuracy)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ("accuracy on '0' (specificity)", "accuracy on '1' (sensitivity)")
    """
    _style.check_axes(ax)
    tables = {
        name: _read_class_accuracies(value) for name, value in _inputs.name_series(estimated, "estimated").items()
    }
    true_table = None if true is None else _read_class_accuracies(true)
    first = next(iter(tables.values()))
    negative, positive = _resolve_classes(first if true_table is None else true_table, positive)
    for table in (*tables.values(), *([] if true_table is None else [true_table])):
        if set(table.columns) != set(first.columns):
            raise InputError(
                f"all tables must have the same two classes; got {preview(first.columns)} and {preview(table.columns)}"
            )
    with _style.styled_axes(ax, (5.0, 4.8)) as drawn:
        theme, handles, names = _style.get_theme(), [], []
        if true_table is not None:
            handles.append(_draw_dots(drawn, true_table[[negative, positive]], color=theme.ink, marker="o"))
            names.append("true")
        for number, (name, table) in enumerate(tables.items()):
            style = _style.series_style(number)
            accuracies = table[[negative, positive]]
            if true_table is not None:
                matched, position = _inputs.match_ids(accuracies, true_table.index, "estimated and true workers")
                ends = np.stack([matched.to_numpy(), true_table[[negative, positive]].to_numpy()[position]])
                drawn.plot(ends[..., 0], ends[..., 1], color=style["color"], linewidth=0.9, alpha=0.7, zorder=2)
            # The first marker is used for the truth.
            handles.append(_draw_dots(drawn, accuracies, color=style["color"], marker=_style.MARKERS[1 + number % 6]))
            names.append(name)
        _name_workers(drawn, (first if true_table is None else true_table)[[negative, positive]])
        drawn.margins(0.15)
        x_limits, y_limits = drawn.get_xlim(), drawn.get_ylim()
        if x_limits[0] + y_limits[0] < 1:  # the diagonal crosses the plotted area
            handles += drawn.plot([0, 1], [1, 0], color=theme.soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            names.append("random guess")
            drawn.set(xlim=x_limits, ylim=y_limits)
        for axis, class_name, term in ((drawn.xaxis, negative, "specificity"), (drawn.yaxis, positive, "sensitivity")):
            axis.set_label_text(f"accuracy on {_style.format_name(class_name)!r} ({term})", **_style.LITERAL_TEXT)
            _style.format_percent_axis(axis)
        _style.add_legend(drawn, handles, names)
    return drawn


# ---------------------------------------------------------------------- abilities


def _truth_by_position(true: Any, estimates_by_name: Mapping[str, Any]) -> pd.Series:
    """Return true values without ids, if the estimates have none either."""
    sizes = {np.shape(value) for value in (true, *estimates_by_name.values())}
    with_ids = (pd.Series, pd.DataFrame, Mapping, Diagnosis, Method)
    if (
        len(sizes) > 1
        or any(len(size) != 1 for size in sizes)
        or any(isinstance(value, with_ids) for value in estimates_by_name.values())
    ):
        raise UsageError(
            "true must be a Series by worker or task; arrays are only possible if the estimates are arrays of equal length"
        )
    return _inputs.as_numeric_series(pd.Series(np.asarray(true)), "true")


def _read_estimates(source: Any, of: str, is_bare: bool) -> pd.DataFrame:
    """Return columns value, low and high by id; low and high are NaN if unknown."""
    source = pd.Series(np.asarray(source)) if is_bare else source
    if isinstance(source, pd.Series | Mapping):
        return pd.DataFrame({"value": _inputs.as_numeric_series(source, "estimated"), "low": np.nan, "high": np.nan})
    if isinstance(source, Diagnosis):
        tables = [source.workers, source.tasks]
    elif isinstance(source, pd.DataFrame):
        tables = [source]
    elif isinstance(source, Method):
        source.require_fitted("posterior_")
        tables = [source.workers_] if source.worker_index_ is not None else []
        tasks = getattr(source, "tasks_", None)
        tables += [tasks] if isinstance(tasks, pd.DataFrame) else []
    else:
        raise UsageError(
            f"estimated must be a Diagnosis, a fitted method, a DataFrame or a Series by id; got {type(source).__name__}"
        )
    table = next((table for table in tables if of in table), None)
    if table is None:
        has = [str(name) for table in tables for name in table.columns]
        raise UsageError(f"of must be a column of workers or tasks; got {of!r}, expected one of {preview(has, 30)}")
    value = _inputs.as_numeric_series(table[of], of)
    if {"low", "high"} <= set(table) and of == "accuracy":
        low, high = table["low"], table["high"]
    else:
        error = 2 * table["standard_error"] if "standard_error" in table and of != "accuracy" else np.nan
        low, high = value - error, value + error
    return pd.DataFrame({"value": value, "low": low, "high": high})


def _match_truth(table: pd.DataFrame, truth: pd.Series, of: str) -> pd.DataFrame:
    """Add the true values to a table of estimates."""
    matched, position = _inputs.match_ids(table.dropna(subset="value"), truth.index, "true and estimated")
    matched = matched.assign(true=truth.to_numpy()[position])
    if not np.isfinite(matched[["true", "value"]].to_numpy()).all():
        raise InputError(f"{of} must be finite; drop rows with NaN or infinity")
    return matched


def _draw_points(ax: Axes, table: pd.DataFrame, number: int) -> Any:
    """Draw one series of estimates."""
    style = _style.series_style(number) | {"linestyle": "none"}
    is_many = len(table) > _style.MAX_VECTOR_POINTS
    if len(table) <= MAX_ERROR_BARS and table["low"].notna().any():
        errors = table[["low", "high"]].sub(table["value"], axis=0).abs().to_numpy().T
        return ax.errorbar(table["true"], table["value"], errors, elinewidth=0.9, alpha=0.85, **style)
    faint = {"alpha": 0.25, "markersize": 2.5} if is_many else {"alpha": 0.85}
    return ax.plot(table["true"], table["value"], rasterized=is_many, **style | faint)[0]


# ---------------------------------------------------------------------- expertise


def _read_class_accuracies(source: Any) -> pd.DataFrame:
    """Return the accuracy of each worker on each of two classes."""
    if isinstance(source, pd.DataFrame):
        table = source
    elif isinstance(source, Method):
        source.require_fitted("posterior_")
        index, classes = source.workers_.index, source.classes_
        if len(classes) == 2:
            table = pd.DataFrame(np.diagonal(source.confusion_, axis1=1, axis2=2), index=index, columns=classes)
        else:
            table = pd.DataFrame(columns=classes)
    else:
        raise UsageError(
            f"estimated must be a fitted method or a table by worker with one column per class; got {type(source).__name__}"
        )
    if table.shape[1] != 2:
        raise UsageError(f"expertise needs exactly two classes; got {table.shape[1]}: {preview(table.columns)}")
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    if not len(table):
        raise InputError("there are no workers to draw; expected accuracies of at least one worker")
    if not (is_accuracy := (values >= 0) & (values <= 1)).all():
        raise InputError(f"accuracies must be between 0 and 1; got {preview(values[~is_accuracy].tolist())}")
    return table.astype(np.float64)


def _resolve_classes(table: pd.DataFrame, positive: Any) -> tuple[Any, Any]:
    """Return the negative and the positive class."""
    classes = table.columns.tolist()
    if positive is not None and positive not in classes:
        raise UsageError(f"positive must be one of {preview(classes)}; got {positive!r}")
    positive = classes[1] if positive is None else positive
    return classes[1 - classes.index(positive)], positive


def _draw_dots(ax: Axes, points: pd.DataFrame, **style: Any) -> Any:
    """Draw workers as points."""
    is_many = len(points) > _style.MAX_VECTOR_POINTS
    return ax.plot(points.iloc[:, 0], points.iloc[:, 1], linestyle="none", rasterized=is_many, zorder=3, **style)[0]


def _name_workers(ax: Axes, points: pd.DataFrame) -> None:
    """Write the names of workers next to their points, if there are few."""
    if len(points) > MAX_NAMES:
        return
    names_by_point: dict[tuple[float, float], list[str]] = {}  # names of coinciding points are stacked
    for name, x, y in zip(points.index, *points.to_numpy().T, strict=True):
        names_by_point.setdefault((float(x), float(y)), []).append(_style.format_name(name))
    for point, names in names_by_point.items():
        text = "\n".join(names)
        ax.annotate(text, point, (5, 4), textcoords="offset points", fontsize="x-small", **_style.LITERAL_TEXT)
