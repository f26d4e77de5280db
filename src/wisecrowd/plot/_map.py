"""Map of workers by the similarity of their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.map import map_workers
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.plot import _inputs, _style
from wisecrowd.utils.slices import slice_rows
from wisecrowd.utils.text import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Markers of flags, as in the report. A worker with several flags is drawn by the first.
FLAG_MARKERS: dict[str, Any] = {
    "no flag": "o",
    "one-button": "s",
    "spammer": "^",
    "adversary": "v",
    "drifts": [(-1, 1.1), (1, 1.1), (-1, -1.1), (1, -1.1), (-1, 1.1)],
    "copies": "D",
}
#: Areas of the smallest and the largest point, in square points.
POINT_AREAS = (12.0, 160.0)
#: Number of workers up to which points have full size.
MAX_LARGE_POINTS = 150
#: Largest number of groups that colours and markers can distinguish.
MAX_GROUPS = 12
#: Index of the oracle in the table of `MMLC.worker_map`.
ORACLE_ID = "(oracle)"


@dataclass(frozen=True, eq=False)
class _MapPoints:
    """Positions and votes of workers, landmarks, the table of workers and the label of the x axis."""

    table: pd.DataFrame
    marks: dict[str, NDArray[np.float64]]
    worker_table: pd.DataFrame
    x_label: str


def worker_map(workers: Any, *, by: Any = None, ax: Axes | None = None) -> Axes:
    """Draw workers as points in the plane; nearby workers make similar errors, and larger points have more votes.

    Parameters
    ----------
    workers : Diagnosis, MMLC or DataFrame
        A `Diagnosis`, whose confusion matrices are compared as in the report; a fitted `MMLC`, or the table of its
        ``worker_map()``, with the oracle as a star (figure 4 of Han et al. 2025).
    by : str or Series, default=None
        Column of the workers' table, or a Series by worker, that colours the points. Defaults to "flags". Floating-point numbers
        get a colour scale; other values are groups with a colour and a marker each.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import diagnose_crowd, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, workers=["expert"] * 8 + ["spammer"] * 2, votes_per_task=5)
    >>> ax = plot.worker_map(diagnose_crowd(simulation.crowd))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['no flag (8)', 'spammer (2)']
    >>> ax = plot.worker_map(diagnose_crowd(simulation.crowd), by=simulation.kind)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['expert (8)', 'spammer (2)']
    """
    _style.check_axes(ax)
    points = _read_workers(workers)
    values = _check_values(_resolve_values(points, by))
    table = points.table.assign(value=values) if values is not None else points.table
    with _style.styled_axes(ax, (6.5, 4.6)) as drawn:
        drawn.set_aspect("equal", adjustable="datalim")  # unequal scales would distort distances
        if values is None:
            _scatter(drawn, table, table, color=_style.get_theme().heat)
        elif values.dtype.kind == "f":
            _draw_values(drawn, table, by if isinstance(by, str) else getattr(by, "name", None) or "value")
        else:
            _draw_groups(drawn, table, flags=by is None or (isinstance(by, str) and by == "flags"))
        _draw_marks(drawn, points.marks)
        drawn.set_xlabel(points.x_label)
        drawn.tick_params(labelbottom=False, labelleft=False, length=0)  # the plane has no units
        drawn.grid(visible=False)
        drawn.set_facecolor(_style.get_theme().sheet)
        for spine in drawn.spines.values():
            spine.set_visible(False)
    return drawn


# ---------------------------------------------------------------------- inputs


def _read_workers(source: Any) -> _MapPoints:
    """Return the points of a diagnosis, an MMLC or a table."""
    if isinstance(source, Diagnosis):
        return _map_diagnosis(source)
    table = source.worker_map() if hasattr(source, "worker_map") else source
    if not isinstance(table, pd.DataFrame):
        raise UsageError(
            f"workers must be a Diagnosis, a fitted MMLC or a table by worker with x and y; got {type(source).__name__}"
        )
    _inputs.require_columns(table, ("x", "y"), "MMLC.worker_map()")
    workers = table.drop(index=ORACLE_ID, errors="ignore")
    points = workers.assign(n_votes=workers.get("n_votes", 1.0))[["x", "y", "n_votes"]].astype(np.float64)
    if not np.isfinite(points.to_numpy()).all():
        raise InputError("x, y and n_votes of a map must be finite numbers; drop workers with NaN")
    marks = {"oracle": table.loc[ORACLE_ID, ["x", "y"]].to_numpy(dtype=np.float64)} if ORACLE_ID in table.index else {}
    return _MapPoints(points, marks, workers, "nearby workers are similar")


def _map_diagnosis(diagnosis: Diagnosis) -> _MapPoints:
    """Return the points of a diagnosis."""
    crowd, workers, classes = diagnosis.crowd, diagnosis.worker_diagnosis, diagnosis.frequent_classes()
    all_workers = np.arange(crowd.n_workers)

    def matrices() -> Iterator[NDArray[np.float64]]:
        for part in slice_rows(crowd.n_workers, crowd.n_classes**2):
            yield workers.confusion_of(all_workers[part])[:, classes[:, None], classes]

    worker_map = map_workers(matrices, diagnosis.model.posterior_.mean(axis=0)[classes])
    if worker_map is None:
        raise InputError(
            f"a map needs at least three different workers and two classes; got {crowd.n_workers:,} workers and "
            f"{crowd.n_classes:,} classes, or all workers are equal"
        )
    x, y = worker_map.workers.T
    table = pd.DataFrame({"x": x, "y": y, "n_votes": crowd.votes_per_worker.astype(np.float64)}, index=crowd.workers)
    share = format_percent(worker_map.explained_share)
    x_label = f"nearby workers make similar errors\n({share} of the squared distances are preserved)"
    return _MapPoints(
        table,
        {"always right": worker_map.perfect_worker, "guesses": worker_map.guessing_worker},
        diagnosis.workers,
        x_label,
    )


def _resolve_values(points: _MapPoints, by: Any) -> pd.Series | None:
    """Return the values that colour the workers, in their order, or None."""
    if by is None:
        if "flags" not in points.worker_table:
            return None
        by = "flags"
    if isinstance(by, str):
        if by not in points.worker_table:
            raise UsageError(
                f"the workers' table has no column {by!r} to colour by; its columns are "
                f"{preview(map(str, points.worker_table.columns), 15)}. For other values, pass a Series indexed by worker"
            )
        column = points.worker_table[by]
        # The report draws the first flag as well.
        return column.str.split(", ").str[0].replace("", "no flag") if by == "flags" else column
    series = pd.Series(by) if isinstance(by, Mapping) else by
    if not isinstance(series, pd.Series) or not series.index.is_unique:
        raise UsageError(
            "by must be the name of a column of the workers' table, or a Series indexed by worker with one value for each; got "
            + ("a Series with repeated workers" if isinstance(series, pd.Series) else type(by).__name__)
        )
    matched, position = _inputs.match_ids(series.to_frame("value"), points.table.index, "by and the workers of the map")
    values = matched["value"].set_axis(points.table.index[position])
    if series.dtype.kind != "f":
        values = values.astype(object).where(values.notna(), "(none)")
    return values.reindex(points.table.index, fill_value=np.nan if series.dtype.kind == "f" else "(none)")


def _check_values(values: pd.Series | None) -> pd.Series | None:
    """Raise an error if no worker has a value, or there are too many groups."""
    if values is None:
        return None
    if not values.notna().any():
        raise InputError("by has no value for any worker")
    if values.dtype.kind != "f" and values.nunique() > MAX_GROUPS:
        raise UsageError(
            f"by has {values.nunique():,} different values, but at most {MAX_GROUPS} groups can be distinguished; "
            "use fewer, or floating-point numbers"
        )
    return values


# ---------------------------------------------------------------------- drawing


def _scatter(ax: Axes, table: pd.DataFrame, all_points: pd.DataFrame, **options: Any) -> Any:
    """Draw points, large ones first so that they do not hide small ones."""
    table = table.sort_values("n_votes", ascending=False, kind="stable")
    if "c" in options:
        options["c"] = table["value"].to_numpy(dtype=np.float64)
    # Points of many workers are smaller and have no edge.
    (small, large), scale = POINT_AREAS, min(1.0, MAX_LARGE_POINTS / len(all_points)) ** 0.75
    area = scale * (small + (large - small) * table["n_votes"] / max(all_points["n_votes"].max(), 1.0))
    edge_width = 0.5 if scale > 0.3 else 0.0
    style: dict[str, Any] = {"alpha": 0.75, "edgecolors": _style.get_theme().ink, "linewidths": edge_width}
    is_many = len(all_points) > _style.MAX_VECTOR_POINTS
    return ax.scatter(table["x"], table["y"], s=area.to_numpy(), rasterized=is_many, **style | options)


def _draw_values(ax: Axes, table: pd.DataFrame, name: object) -> None:
    """Draw workers with a colour scale."""
    has_value = table["value"].notna()
    if not has_value.all():
        _scatter(ax, table[~has_value], table, color=_style.get_theme().sheet)
    scatter = _scatter(ax, table[has_value], table, c=None, cmap=_style.value_colormap())
    bar = ax.get_figure().colorbar(scatter, ax=ax, shrink=0.75, pad=0.02)  # type: ignore[union-attr]
    bar.set_label(_style.format_name(name), **_style.LITERAL_TEXT)
    bar.solids.set_alpha(1)  # type: ignore[union-attr]


def _draw_groups(ax: Axes, table: pd.DataFrame, *, flags: bool) -> None:
    """Draw workers by group."""
    from matplotlib.lines import Line2D

    counts = table["value"].value_counts()
    theme = _style.get_theme()
    names = sorted(counts.index, key=str)
    if flags:
        names = [name for name in FLAG_MARKERS if name in names] + [name for name in names if name not in FLAG_MARKERS]
    handles = []
    for number, name in enumerate(names):
        style = _style.series_style(number)
        options = {"color": style["color"], "marker": style["marker"]}
        if flags:
            options = {"color": theme.heat if name == "no flag" else theme.warm, "marker": FLAG_MARKERS.get(name, "D")}
        _scatter(ax, table[table["value"] == name], table, **options)
        # Markers of the legend have one size.
        handles.append(Line2D([], [], linestyle="none", markersize=7, markeredgecolor=theme.ink, alpha=0.75, **options))
    _style.add_legend(ax, handles, [f"{_style.format_name(name)} ({counts[name]:,})" for name in names], loc="best")


def _draw_marks(ax: Axes, marks: dict[str, NDArray[np.float64]]) -> None:
    """Draw the landmarks with their names."""
    from matplotlib.patheffects import withStroke

    theme = _style.get_theme()
    for name, (x, y) in marks.items():
        marker_style: dict[str, Any] = {"marker": "+", "s": 90, "linewidths": 1.6}
        if name == "oracle":
            marker_style = {"marker": "*", "s": 160, "linewidths": 0.8, "edgecolors": theme.paper}
        ax.scatter([x], [y], color=theme.ink, zorder=4, **marker_style)
        text = ax.annotate(name, (x, y), (0, 9), textcoords="offset points", ha="center", fontsize="small", zorder=5)
        text.set_path_effects([withStroke(linewidth=2, foreground=theme.sheet, alpha=0.7)])
