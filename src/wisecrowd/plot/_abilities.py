"""What was found out about workers and tasks, against what is true of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wisecrowd.base.method import Method
from wisecrowd.diagnose import Diagnosis
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.evaluate import metrics
from wisecrowd.plot import _given, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points up to which error bars are drawn, and workers up to which they are named.
BARS, NAMES = 300, 30


def abilities(
    estimated: Any, true: Any, *, of: str = "accuracy", same_scale: bool = True, ax: Axes | None = None
) -> Axes:
    """Draw what was estimated of workers or tasks against what is true, with error bars where they are known.

    ``estimated`` is a `Diagnosis`, a fitted method, a table with the column ``of`` or a Series, all by id; or several of them by
    name. ``of`` is a column of workers ("accuracy", "ability") or of tasks ("difficulty"). Errors are taken from columns low
    and high beside an accuracy, and standard_error (two of them) beside anything else. ``true`` is a Series by id. Both meet by
    id, and those that only one side knows are left out; bare numbers meet bare numbers by position.

    On the same scale, estimates should lie on the dashed line; with ``same_scale=False`` they are only correlated with the
    truth (an ability of `GLAD` and an accuracy). The legend has Pearson's correlation r.

    >>> from wisecrowd import diagnosis, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=12, votes_per_task=5)
    >>> ax = plot.abilities(diagnosis(made.crowd), made.accuracy)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('true accuracy', 'estimated accuracy')
    """
    _style.check_axes(ax)
    given = _given.named(estimated, "estimated")
    is_bare = not isinstance(true, pd.Series | Mapping)
    truth = _by_position(true, given) if is_bare else _given.by_id(true, "true").dropna()
    series = {name: _met(_estimates(thing, of, is_bare), truth, of) for name, thing in given.items()}
    with _style.drawing(ax, (5.0, 4.6)) as drawn:
        handles, names = [], []
        for number, (name, table) in enumerate(series.items()):
            handles.append(_points(drawn, table, number))
            r = metrics.worker_correlation(table["true"], table["value"])
            names.append(f"{_style.said(name)} (r = {r:.2f})" if len(table) > 1 else name)
        if same_scale:
            ends = pd.concat([table[["true", "value"]] for table in series.values()]).to_numpy()
            handles.append(_style.diagonal(drawn, ends.min(), ends.max()))
            names.append("no error")
        what = of if same_scale or truth.name is None else truth.name
        drawn.set_xlabel(f"true {_style.said(what)}", **_style.LITERAL)
        drawn.set_ylabel(f"estimated {_style.said(of)}", **_style.LITERAL)
        _style.legend(drawn, handles, names)
    return drawn


def expertise(estimated: Any, true: Any = None, *, positive: Any = None, ax: Axes | None = None) -> Axes:
    """Draw workers of two classes by how often they are right about each: specificity across, sensitivity up.

    ``estimated`` is a fitted method, or a table by worker with a column for each class (how often right when it is true), or
    several of them by name. ``true`` is such a table, for example ``accuracy`` of a simulation; from each true place a line
    leads to the estimate (figures 3 and 5 of Xu et al. 2019). On the dashed line answers have nothing to do with the truth.
    ``positive`` is the class that sensitivity is about, the second unless given.

    >>> from wisecrowd import OneCoin, plot
    >>> from wisecrowd.simulate import gaussian_difficulty
    >>> made = gaussian_difficulty(300)
    >>> ax = plot.expertise(OneCoin().fit(made.crowd), made.accuracy)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ("right about '0' (specificity)", "right about '1' (sensitivity)")
    """
    _style.check_axes(ax)
    tables = {name: _rights(thing) for name, thing in _given.named(estimated, "estimated").items()}
    known = None if true is None else _rights(true)
    first = next(iter(tables.values()))
    negative, positive = _two_classes(first if known is None else known, positive)
    for table in (*tables.values(), *([] if known is None else [known])):
        if set(table.columns) != set(first.columns):
            raise InputError(
                f"tables of the same two classes were wanted; got {some(first.columns)} and {some(table.columns)}"
            )
    with _style.drawing(ax, (5.0, 4.8)) as drawn:
        now, handles, names = _style.theme(), [], []
        if known is not None:
            handles.append(_dots(drawn, known[[negative, positive]], color=now.ink, marker="o"))
            names.append("true")
        for number, (name, table) in enumerate(tables.items()):
            look = _style.look(number)
            place = table[[negative, positive]]
            if known is not None:
                met, where = _given.same_ids(place, known.index, "estimated and true workers")
                ends = np.stack([met.to_numpy(), known[[negative, positive]].to_numpy()[where]])
                drawn.plot(ends[..., 0], ends[..., 1], color=look["color"], linewidth=0.9, alpha=0.7, zorder=2)
            # The first sign is the truth's.
            handles.append(_dots(drawn, place, color=look["color"], marker=_style.MARKERS[1 + number % 6]))
            names.append(name)
        _name_workers(drawn, (first if known is None else known)[[negative, positive]])
        drawn.margins(0.15)
        across, up = drawn.get_xlim(), drawn.get_ylim()
        if across[0] + up[0] < 1:  # the line is in sight
            handles += drawn.plot([0, 1], [1, 0], color=now.soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            names.append("no better than a guess")
            drawn.set(xlim=across, ylim=up)
        for axis, kind, word in ((drawn.xaxis, negative, "specificity"), (drawn.yaxis, positive, "sensitivity")):
            axis.set_label_text(f"right about {_style.said(kind)!r} ({word})", **_style.LITERAL)
            _style.as_percent(axis)
        _style.legend(drawn, handles, names)
    return drawn


# ---------------------------------------------------------------------- of one figure


def _by_position(true: Any, given: Mapping[str, Any]) -> pd.Series:
    """Bare numbers meet bare numbers, and nothing with ids."""
    sizes = {np.shape(thing) for thing in (true, *given.values())}
    with_ids = (pd.Series, pd.DataFrame, Mapping, Diagnosis, Method)
    if (
        len(sizes) > 1
        or any(len(size) != 1 for size in sizes)
        or any(isinstance(one, with_ids) for one in given.values())
    ):
        raise UsageError(
            "true must be a Series by worker or task; bare numbers are taken by position, where the estimated ones are bare "
            "numbers too, and as many"
        )
    return _given.by_id(pd.Series(np.asarray(true)), "true")


def _estimates(given: Any, of: str, is_bare: bool) -> pd.DataFrame:
    """Columns value, low and high; the latter NaN where nothing is known of them."""
    given = pd.Series(np.asarray(given)) if is_bare else given
    if isinstance(given, pd.Series | Mapping):
        return pd.DataFrame({"value": _given.by_id(given, "estimated"), "low": np.nan, "high": np.nan})
    if isinstance(given, Diagnosis):
        tables = [given.workers, given.tasks]
    elif isinstance(given, pd.DataFrame):
        tables = [given]
    elif isinstance(given, Method):
        given._check_fitted("posterior_")
        tables = [given.workers_] if given.worker_index_ is not None else []
        tasks = getattr(given, "tasks_", None)
        tables += [tasks] if isinstance(tasks, pd.DataFrame) else []
    else:
        raise UsageError(
            f"a diagnosis, a fitted method, a table or a Series by id was wanted; got {type(given).__name__}"
        )
    table = next((table for table in tables if of in table), None)
    if table is None:
        has = [str(name) for table in tables for name in table.columns]
        raise UsageError(f"of must be a column of workers or tasks; {of!r} is none of {some(has, 30)}")
    value = _given.by_id(table[of], of)
    if {"low", "high"} <= set(table) and of == "accuracy":
        low, high = table["low"], table["high"]
    else:
        error = 2 * table["standard_error"] if "standard_error" in table and of != "accuracy" else np.nan
        low, high = value - error, value + error
    return pd.DataFrame({"value": value, "low": low, "high": high})


def _met(table: pd.DataFrame, truth: pd.Series, of: str) -> pd.DataFrame:
    found, place = _given.same_ids(table.dropna(subset="value"), truth.index, "true and estimated")
    found = found.assign(true=truth.to_numpy()[place])
    if not np.isfinite(found[["true", "value"]].to_numpy()).all():
        raise InputError(f"the {of} must be a finite number; drop those that are not")
    return found


def _points(ax: Axes, table: pd.DataFrame, number: int) -> Any:
    look = _style.look(number) | {"linestyle": "none"}
    many = len(table) > _style.MANY
    if len(table) <= BARS and table["low"].notna().any():
        reach = table[["low", "high"]].sub(table["value"], axis=0).abs().to_numpy().T
        return ax.errorbar(table["true"], table["value"], reach, elinewidth=0.9, alpha=0.85, **look)
    faint = {"alpha": 0.25, "markersize": 2.5} if many else {"alpha": 0.85}
    return ax.plot(table["true"], table["value"], rasterized=many, **look | faint)[0]


# ---------------------------------------------------------------------- of two classes


def _rights(given: Any) -> pd.DataFrame:
    """How often each worker is right when each class is true."""
    if isinstance(given, pd.DataFrame):
        table = given
    elif isinstance(given, Method):
        given._check_fitted("posterior_")
        index, classes = given.workers_.index, given.classes_
        if len(classes) == 2:
            table = pd.DataFrame(np.diagonal(given.confusion_, axis1=1, axis2=2), index=index, columns=classes)
        else:
            table = pd.DataFrame(columns=classes)
    else:
        raise UsageError(
            f"a fitted method, or a table by worker with a column for each class, was wanted; got {type(given).__name__}"
        )
    if table.shape[1] != 2:
        raise UsageError(f"this plot is of two classes; here are {table.shape[1]}: {some(table.columns)}")
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    if not len(table) or not ((values >= 0) & (values <= 1)).all():
        raise InputError("how often a worker is right must be a share from 0 to 1, for one worker at least")
    return table.astype(np.float64)


def _two_classes(table: pd.DataFrame, positive: Any) -> tuple[Any, Any]:
    classes = table.columns.tolist()
    if positive is not None and positive not in classes:
        raise UsageError(f"positive must be one of {some(classes)}; got {positive!r}")
    positive = classes[1] if positive is None else positive
    return classes[1 - classes.index(positive)], positive


def _dots(ax: Axes, place: pd.DataFrame, **look: Any) -> Any:
    many = len(place) > _style.MANY
    return ax.plot(place.iloc[:, 0], place.iloc[:, 1], linestyle="none", rasterized=many, zorder=3, **look)[0]


def _name_workers(ax: Axes, place: pd.DataFrame) -> None:
    if len(place) > NAMES:
        return
    here: dict[tuple[float, float], list[str]] = {}  # names in one place stand one below the other
    for name, x, y in zip(place.index, *place.to_numpy().T, strict=True):
        here.setdefault((float(x), float(y)), []).append(_style.said(name))
    for point, names in here.items():
        text = "\n".join(names)
        ax.annotate(text, point, (5, 4), textcoords="offset points", fontsize="x-small", **_style.LITERAL)
