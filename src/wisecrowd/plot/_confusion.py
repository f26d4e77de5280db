"""Confusion matrices: what workers say when each class is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.vocabulary import as_index
from wisecrowd.diagnose import Diagnosis
from wisecrowd.em import priors as matrices
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.plot import _style
from wisecrowd.simulate import Simulation
from wisecrowd.utils.text import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Workers that a figure has room for, and workers side by side.
WORKERS, ACROSS = 24, 4
#: Classes up to which cells have figures (alone, among others), and names that an axis has room for.
FIGURES, FEWER_FIGURES, NAMES = 10, 6, 25


@dataclass(frozen=True, eq=False)
class _Stack:
    """Matrices, whose they are, and what their classes are called."""

    names: list[object]
    cells: NDArray[np.float64]
    """(matrices, true, said)"""
    classes: pd.Index | None = None


def confusion(
    estimated: Any,
    true: Any = None,
    *,
    workers: Sequence[Any] | int | None = None,
    classes: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes | Figure:
    """Draw confusion matrices, true classes by row and labels by column; the true ones beside, if they are known.

    ``estimated`` is a `Diagnosis` or a fitted method (the crowd's matrix, or those of ``workers``: ids, or so many with most
    labels); a table or an array (true, said); several of them by name; or an array (workers, true, said). ``true`` is any of
    these, or a simulated crowd. ``classes`` names the classes of bare arrays.

    One matrix is drawn on ``ax`` and its Axes are given back; several, or true ones beside, make a Figure, with what is true
    above what is estimated as in figure 2 of Mena and Ñanculef (2019). The right answers are in one colour and errors in
    another, both the darker the more frequent.

    >>> from wisecrowd import diagnosis, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, workers=["expert"] * 4 + ["spammer"], n_classes=3, votes_per_task=4)
    >>> found = diagnosis(made.crowd)
    >>> ax = plot.confusion(found)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('label given', 'true class')
    >>> figure = plot.confusion(found, made, workers=["w0", "w4"])
    >>> [panel.get_title() for panel in figure.axes]
    ['w0: true', 'w4: true', 'w0: estimated', 'w4: estimated']
    """
    _style.check_axes(ax)
    shown = _read(estimated, workers)
    beside = None if true is None else _read(true, shown.names if workers is not None else None)
    names = _class_names(shown, beside, classes)
    if beside is None and len(shown.names) == 1:
        with _style.drawing(ax, _size(1, 1, len(names))) as single:
            _draw(single, shown.cells[0], names, FIGURES)
            if shown.names != [None]:
                _style.title(single, shown.names[0])
            if len(names) > FIGURES:
                _scale(single.figure, [single])
        return single
    if ax is not None:
        raise UsageError("several matrices make a figure of their own; leave ax out, or give one matrix")
    return _panels(shown, beside, names)


# ---------------------------------------------------------------------- what was given


def _read(given: Any, workers: Sequence[Any] | int | None) -> _Stack:
    if isinstance(workers, str):
        raise UsageError(f"a list of worker ids was wanted; got {workers!r}. For one worker: [{workers!r}]")
    if isinstance(given, Diagnosis):
        people = given.of_workers
        counts = pd.Series(given.crowd.votes_per_worker, index=given.crowd.workers)
        return _of(counts, workers, given.model.classes_, lambda: people.confusion, people.confusion_of)
    if isinstance(given, Method):
        return _of_method(given, workers)
    if isinstance(given, Simulation):
        return _of_simulation(given, workers)
    if isinstance(given, Mapping):
        return _by_name(given, workers)
    if workers is not None and np.ndim(given) != 3:
        raise UsageError(
            "workers choose among those of a diagnosis, a fitted method or an array (workers, true, said); "
            f"got {type(given).__name__}"
        )
    stack = _checked(given)
    found = given.columns if isinstance(given, pd.DataFrame) else None
    if stack.ndim == 2:
        return _Stack([None], stack[None], found)
    ids = [f"worker {number}" for number in range(len(stack))] if workers is None else workers
    if isinstance(ids, int) or len(ids) != len(stack):
        raise UsageError(f"there are {len(stack):,} matrices in the array; name as many workers, or leave workers out")
    _few_enough(len(stack))
    return _Stack(list(ids), stack)


def _of(counts: pd.Series, workers: Any, classes: pd.Index, crowd: Any, of_some: Any) -> _Stack:
    """The crowd's matrix, or those of some workers, by positions in an index with numbers of labels."""
    if workers is None:
        return _Stack(["the crowd"], np.asarray(crowd())[None], classes)
    if isinstance(workers, int):
        if workers < 1:
            raise UsageError(f"one worker or more was wanted; got workers={workers}")
        place = np.argsort(-counts.to_numpy(), kind="stable")[:workers]
    else:
        place = np.asarray(counts.index.get_indexer(pd.Index(list(workers))))
        if (place < 0).any() or not len(place):
            unknown = [name for name, where in zip(workers, place, strict=True) if where < 0]
            raise InputError(f"unknown workers: {some(unknown) or 'none were named'}; there are {some(counts.index)}")
    _few_enough(len(place))
    return _Stack(counts.index[place].tolist(), np.asarray(of_some(place)), classes)


def _of_method(fitted: Method, workers: Any) -> _Stack:
    tally = fitted._check_fitted("tally_")
    if fitted.worker_index_ is None:
        if workers is not None:
            raise UsageError("this crowd had no worker ids, so there is only the crowd's own matrix; leave workers out")
        counts = pd.Series([0])
    else:
        counts = fitted.workers_["n_votes"]

    def crowd() -> NDArray[np.float64]:
        own = getattr(fitted, "crowd_confusion_", None)
        return matrices.pooled(tally, fitted._pairs) if own is None else own

    return _of(counts, workers, fitted.classes_, crowd, fitted.confusion_of)


def _of_simulation(made: Simulation, workers: Any) -> _Stack:
    """What is true of a simulated crowd; the crowd's matrix is that of its workers by how much they labelled."""
    everybody = made.expected_confusion
    labels = made.crowd.votes_per_worker
    counts = pd.Series(labels, index=made.crowd.workers)

    def crowd() -> NDArray[np.float64]:
        return np.average(everybody, axis=0, weights=labels)

    return _of(counts, workers, as_index(made.crowd.classes), crowd, lambda place: everybody[place])


def _by_name(given: Mapping[Any, Any], workers: Any) -> _Stack:
    chosen = list(given) if workers is None or isinstance(workers, int) else list(workers)
    if not chosen or (lacking := [name for name in chosen if name not in given]):
        raise InputError(f"unknown workers: {some(lacking) if chosen else 'none'}; there are {some(given) or 'none'}")
    chosen = chosen[: workers if isinstance(workers, int) else None]
    _few_enough(len(chosen))
    found = [_checked(given[name]) for name in chosen]
    if any(one.ndim != 2 or one.shape != found[0].shape for one in found):
        raise InputError(
            f"matrices of one size were wanted, (true, said); got shapes {some(one.shape for one in found)}"
        )
    first = given[chosen[0]]
    return _Stack(chosen, np.stack(found), first.columns if isinstance(first, pd.DataFrame) else None)


def _checked(given: Any) -> NDArray[np.float64]:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "a diagnosis, a fitted method, a confusion matrix or several by name were wanted; "
            f"got {type(given).__name__}"
        ) from error
    if found.ndim not in (2, 3) or found.shape[-1] != found.shape[-2] or found.size == 0:
        raise InputError(f"a matrix (true, said) or a stack of them was wanted; got shape {found.shape}")
    unknown = np.isnan(found).all(axis=-1)  # of classes that were never true
    if not (((found >= 0).all(axis=-1) & np.isclose(found.sum(axis=-1), 1, atol=1e-3)) | unknown).all():
        raise InputError(
            "each row of a confusion matrix must hold shares that sum to one; divide counts by their row sums, or use "
            "confusion_table(truth, prediction, normalize=True)"
        )
    return found


def _few_enough(number: int) -> None:
    if number > WORKERS:
        raise UsageError(f"a figure has room for {WORKERS} workers, and {number:,} were asked for; choose some of them")


def _class_names(shown: _Stack, beside: _Stack | None, classes: Sequence[Any] | None) -> list[object]:
    n_classes = shown.cells.shape[-1]
    if beside is not None:
        if beside.cells.shape != shown.cells.shape:
            raise InputError(
                f"as many true matrices as estimated ones were wanted, of one size; got shapes {beside.cells.shape} and "
                f"{shown.cells.shape}"
            )
        both = [stack.classes for stack in (shown, beside) if stack.classes is not None]
        if len(both) == 2 and both[0].tolist() != both[1].tolist():
            raise InputError(
                f"true and estimated matrices have other classes, or another order of them: {some(both[1])} and {some(both[0])}"
            )
    found = [stack.classes for stack in (shown, beside) if stack is not None and stack.classes is not None]
    if classes is not None:
        if isinstance(classes, str) or len(classes) != n_classes:
            raise UsageError(f"a list of {n_classes} class names was wanted; got {classes!r}")
        return list(classes)
    return found[0].tolist() if found else list(range(n_classes))


# ---------------------------------------------------------------------- drawing


def _panels(shown: _Stack, beside: _Stack | None, names: list[object]) -> Figure:
    number = len(shown.names)
    kinds = [("", shown)] if beside is None else [("true", beside), ("estimated", shown)]
    # One worker's two matrices stand side by side; of several, the true ones stand above.
    across = 2 if number == 1 else min(number, ACROSS)
    bands = -(-number // across)
    n_rows = 1 if number == 1 else bands * len(kinds)
    with _style.grid(n_rows, across, _size(n_rows, across, len(names))) as (figure, axes):
        drawn = np.zeros(axes.shape, dtype=bool)
        for place in range(number):
            for row, (kind, stack) in enumerate(kinds):
                where = (0, row) if number == 1 else (place // across * len(kinds) + row, place % across)
                panel, drawn[where] = axes[where], True
                _draw(panel, stack.cells[place], names, FEWER_FIGURES)
                name = None if shown.names[place] is None else _style.said(shown.names[place])
                _style.title(panel, ": ".join(part for part in (name, kind) if part))
        _label_outer(axes, drawn)
        if len(names) > FEWER_FIGURES:
            _scale(figure, axes[drawn].tolist())
    return figure


def _label_outer(axes: NDArray[Any], drawn: NDArray[np.bool_]) -> None:
    """Names and labels at the left and below the lowest panel of each column; panels without a matrix go."""
    lowest = len(drawn) - 1 - drawn[::-1].argmax(axis=0)
    for (row, column), panel in np.ndenumerate(axes):
        if not drawn[row, column]:
            panel.remove()
            continue
        if column > 0:
            panel.tick_params(labelleft=False)
            panel.set_ylabel("")
        if row < lowest[column]:
            panel.tick_params(labelbottom=False)
            panel.set_xlabel("")


def _size(n_rows: int, n_columns: int, n_classes: int) -> tuple[float, float]:
    """Of the figure, in inches."""
    side = min(1.2 + 0.55 * n_classes, 5.0) if n_rows * n_columns == 1 else min(1.4 + 0.2 * n_classes, 2.8)
    return side * n_columns + 1.2, side * n_rows + 0.9


def _draw(ax: Axes, matrix: NDArray[np.float64], names: list[object], with_figures: int) -> None:
    now, n_classes = _style.theme(), len(names)
    right = np.eye(n_classes, dtype=bool)
    for colour, hidden in ((now.heat, ~right), (now.warm, right)):
        part = np.ma.masked_array(matrix, hidden | np.isnan(matrix))
        ax.imshow(part, cmap=_style.ramp(colour), vmin=0, vmax=1, interpolation="nearest")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    step = -(-n_classes // NAMES)
    shown = [_style.said(name, 12) for name in names[::step]]
    turned: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    for axis in (ax.xaxis, ax.yaxis):
        turn = turned if axis is ax.xaxis and max(map(len, shown)) > 2 else {}
        axis.set_ticks(range(0, n_classes, step), labels=shown, **_style.LITERAL, **turn, fontsize="small")
        if n_classes <= NAMES:
            axis.set_ticks(np.arange(n_classes - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=now.paper, linewidth=1)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel("label given")
    ax.set_ylabel("true class")
    if n_classes <= with_figures:
        for row, column in np.ndindex(matrix.shape):
            text = format_percent(float(matrix[row, column]))
            ax.text(column, row, text, ha="center", va="center", fontsize="small", color=now.ink)


def _scale(figure: Any, panels: list[Any]) -> None:
    """How dark is how often, where cells have no figures."""
    right, wrong = panels[0].images
    for image, name in ((wrong, "wrong"), (right, "right")):  # the first is the outermost
        apart = 0.05 if name == "wrong" else 0.02
        bar = figure.colorbar(image, ax=panels, shrink=0.6, pad=apart, aspect=20, format="{x:.0%}")
        bar.outline.set_visible(False)
        bar.ax.set_title(name, fontsize="small", fontweight="normal")
        if name == "right":
            bar.ax.set_yticks([])
