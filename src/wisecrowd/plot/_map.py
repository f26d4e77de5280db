"""The map of the workers: who errs alike stands near each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.map import plane
from wisecrowd.em.priors import blocks
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.plot import _given, _style
from wisecrowd.report.workers import common_classes
from wisecrowd.utils.text import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Signs of flags, as in the report; a worker with several is drawn by the first.
FLAGS: dict[str, Any] = {
    "no flag": "o",
    "one-button": "s",
    "spammer": "^",
    "adversary": "v",
    "drifts": [(-1, 1.1), (1, 1.1), (-1, -1.1), (1, -1.1), (-1, 1.1)],
    "copies": "D",
}
#: Area of the smallest and of the largest point, in square points.
AREAS = (12.0, 160.0)
#: Workers up to which points are as large as that.
ROOMY = 150
#: Groups that colours and signs can tell apart.
GROUPS = 12
#: Where `MMLC.worker_map` puts the centre of its workers.
ORACLE = "(oracle)"


@dataclass(frozen=True, eq=False)
class _Points:
    """Workers in the plane (x, y, n_votes), what else is marked there, and whose table to colour them by."""

    table: pd.DataFrame
    marks: dict[str, NDArray[np.float64]]
    known: pd.DataFrame
    axes: str


def worker_map(workers: Any, *, by: Any = None, ax: Axes | None = None) -> Axes:
    """Draw workers as points in the plane, near each other if they err alike, the larger the more labels they gave.

    ``workers`` is a `Diagnosis`, whose confusion matrices are compared as in the report; a fitted `MMLC`, or the table of its
    ``worker_map()``, with the oracle as a star (figure 4 of Han et al. 2025). ``by`` colours the points: a column of the
    diagnosis ("flags" unless given), or a Series by worker. Numbers with a fraction, such as accuracies, get a scale of colours;
    anything else is taken for groups, each with a colour and a sign of its own.

    >>> from wisecrowd import diagnosis, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, workers=["expert"] * 8 + ["spammer"] * 2, votes_per_task=5)
    >>> ax = plot.worker_map(diagnosis(made.crowd))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['no flag (8)', 'spammer (2)']
    >>> ax = plot.worker_map(diagnosis(made.crowd), by=made.kind)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['expert (8)', 'spammer (2)']
    """
    _style.check_axes(ax)
    points = _read(workers)
    values = _checked(_values(points, by))
    table = points.table.assign(value=values) if values is not None else points.table
    with _style.drawing(ax, (6.5, 4.6)) as drawn:
        drawn.set_aspect("equal", adjustable="datalim")  # or distances would lie
        if values is None:
            _scatter(drawn, table, table, color=_style.theme().heat)
        elif values.dtype.kind == "f":
            _by_number(drawn, table, by if isinstance(by, str) else getattr(by, "name", None) or "value")
        else:
            _by_group(drawn, table, flags=by is None or (isinstance(by, str) and by == "flags"))
        _marks(drawn, points.marks)
        drawn.set_xlabel(points.axes)
        drawn.tick_params(labelbottom=False, labelleft=False, length=0)  # the plane has no units
        drawn.grid(visible=False)
        drawn.set_facecolor(_style.theme().sheet)
        for spine in drawn.spines.values():
            spine.set_visible(False)
    return drawn


# ---------------------------------------------------------------------- what was given


def _read(given: Any) -> _Points:
    if isinstance(given, Diagnosis):
        return _of_diagnosis(given)
    table = given.worker_map() if hasattr(given, "worker_map") else given
    if not isinstance(table, pd.DataFrame):
        raise UsageError(
            f"a diagnosis, a fitted MMLC or a table by worker with x and y was wanted; got {type(given).__name__}"
        )
    _given.columns_of(table, ("x", "y"), "MMLC.worker_map()")
    known = table.drop(index=ORACLE, errors="ignore")
    placed = known.assign(n_votes=known.get("n_votes", 1.0))[["x", "y", "n_votes"]].astype(np.float64)
    if not np.isfinite(placed.to_numpy()).all():
        raise InputError("x, y and n_votes of a map must be finite numbers; drop the workers that have none")
    marks = {"oracle": table.loc[ORACLE, ["x", "y"]].to_numpy(dtype=np.float64)} if ORACLE in table.index else {}
    return _Points(placed, marks, known, "workers who are alike stand near each other")


def _of_diagnosis(found: Diagnosis) -> _Points:
    crowd, people, classes = found.crowd, found.of_workers, common_classes(found)
    everybody = np.arange(crowd.n_workers)

    def matrices() -> Iterator[NDArray[np.float64]]:
        for part in blocks(crowd.n_workers, crowd.n_classes**2):
            yield people.confusion_of(everybody[part])[:, classes[:, None], classes]

    places = plane(matrices, found.model.posterior_.mean(axis=0)[classes])
    if places is None:
        raise InputError(
            f"a map compares three workers or more who differ, and two classes or more; here are {crowd.n_workers:,} workers and "
            f"{crowd.n_classes:,} classes, or all workers are the same"
        )
    x, y = places.workers.T
    table = pd.DataFrame({"x": x, "y": y, "n_votes": crowd.votes_per_worker.astype(np.float64)}, index=crowd.workers)
    held = f"workers who err alike stand near each other\n(the plane holds {format_percent(places.held)} of how they differ)"
    return _Points(table, {"always right": places.right, "guesses": places.guess}, found.workers, held)


def _values(points: _Points, by: Any) -> pd.Series | None:
    """What to colour workers by, in their order; None for all alike."""
    if by is None:
        if "flags" not in points.known:
            return None
        by = "flags"
    if isinstance(by, str):
        if by not in points.known:
            raise UsageError(
                f"by must be a column of the workers' table, or a Series by worker; {by!r} is none of "
                f"{some(map(str, points.known.columns), 15)}"
            )
        column = points.known[by]
        # The first flag is what the report draws, too.
        return column.str.split(", ").str[0].replace("", "no flag") if by == "flags" else column
    series = pd.Series(by) if isinstance(by, Mapping) else by
    if not isinstance(series, pd.Series) or not series.index.is_unique:
        raise UsageError(
            f"by must be a column of the workers' table, or a Series with one value by worker; got {type(by).__name__}"
        )
    found, place = _given.same_ids(series.to_frame("value"), points.table.index, "by and the workers of the map")
    values = found["value"].set_axis(points.table.index[place])
    if series.dtype.kind != "f":
        values = values.astype(object).where(values.notna(), "(none)")
    return values.reindex(points.table.index, fill_value=np.nan if series.dtype.kind == "f" else "(none)")


def _checked(values: pd.Series | None) -> pd.Series | None:
    if values is None:
        return None
    if not values.notna().any():
        raise InputError("none of the workers has a value to be coloured by")
    if values.dtype.kind != "f" and values.nunique() > GROUPS:
        raise UsageError(
            f"by has {values.nunique():,} different values, and {GROUPS} groups can be told apart; give fewer, or numbers "
            "with a fraction"
        )
    return values


# ---------------------------------------------------------------------- drawing


def _scatter(ax: Axes, table: pd.DataFrame, everybody: pd.DataFrame, **options: Any) -> Any:
    """Points, the large ones first, so that they do not hide the small ones."""
    table = table.sort_values("n_votes", ascending=False, kind="stable")
    if "c" in options:
        options["c"] = table["value"].to_numpy(dtype=np.float64)
    # Of many workers each has less room, and no edge.
    (small, large), room = AREAS, min(1.0, ROOMY / len(everybody)) ** 0.75
    area = room * (small + (large - small) * table["n_votes"] / max(everybody["n_votes"].max(), 1.0))
    edge = 0.5 if room > 0.3 else 0.0
    look: dict[str, Any] = {"alpha": 0.75, "edgecolors": _style.theme().ink, "linewidths": edge}
    many = len(everybody) > _style.MANY
    return ax.scatter(table["x"], table["y"], s=area.to_numpy(), rasterized=many, **look | options)


def _by_number(ax: Axes, table: pd.DataFrame, name: object) -> None:
    known = table["value"].notna()
    if not known.all():
        _scatter(ax, table[~known], table, color=_style.theme().sheet)
    drawn = _scatter(ax, table[known], table, c=None, cmap=_style.scale())
    bar = ax.get_figure().colorbar(drawn, ax=ax, shrink=0.75, pad=0.02)  # type: ignore[union-attr]
    bar.set_label(_style.said(name), **_style.LITERAL)
    bar.solids.set_alpha(1)  # type: ignore[union-attr]


def _by_group(ax: Axes, table: pd.DataFrame, *, flags: bool) -> None:
    from matplotlib.lines import Line2D

    counts = table["value"].value_counts()
    now = _style.theme()
    names = sorted(counts.index, key=str)
    if flags:
        names = [name for name in FLAGS if name in names] + [name for name in names if name not in FLAGS]
    handles = []
    for number, name in enumerate(names):
        look = _style.look(number)
        options = {"color": look["color"], "marker": look["marker"]}
        if flags:
            options = {"color": now.heat if name == "no flag" else now.warm, "marker": FLAGS.get(name, "D")}
        _scatter(ax, table[table["value"] == name], table, **options)
        # Of one size, whoever has most labels.
        handles.append(Line2D([], [], linestyle="none", markersize=7, markeredgecolor=now.ink, alpha=0.75, **options))
    _style.legend(ax, handles, [f"{_style.said(name)} ({counts[name]:,})" for name in names], loc="best")


def _marks(ax: Axes, marks: dict[str, NDArray[np.float64]]) -> None:
    from matplotlib.patheffects import withStroke

    now = _style.theme()
    for name, (x, y) in marks.items():
        sign: dict[str, Any] = {"marker": "+", "s": 90, "linewidths": 1.6}
        if name == "oracle":
            sign = {"marker": "*", "s": 160, "linewidths": 0.8, "edgecolors": now.paper}
        ax.scatter([x], [y], color=now.ink, zorder=4, **sign)
        text = ax.annotate(name, (x, y), (0, 9), textcoords="offset points", ha="center", fontsize="small", zorder=5)
        text.set_path_effects([withStroke(linewidth=2, foreground=now.sheet, alpha=0.7)])
