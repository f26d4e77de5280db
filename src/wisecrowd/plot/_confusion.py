"""Confusion matrices of crowds and workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.vocabulary import as_index
from wisecrowd.diagnose import Diagnosis
from wisecrowd.em.priors import estimate_crowd_confusion
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.plot import _style
from wisecrowd.simulate import Simulation
from wisecrowd.utils.text import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Largest number of workers in a figure.
MAX_WORKERS = 24
#: Largest number of panels side by side.
MAX_COLUMNS = 4
#: Largest number of classes for which the cells of a single matrix show percentages.
MAX_ANNOTATED_CLASSES = 10
#: Largest number of classes for which the cells of a matrix in a grid show percentages.
MAX_ANNOTATED_CLASSES_IN_GRID = 6
#: Largest number of class names on an axis.
MAX_CLASS_NAMES = 25


@dataclass(frozen=True, eq=False)
class _MatrixStack:
    """Confusion matrices with the names of their workers and classes."""

    names: list[object]
    #: Of shape (n_matrices, n_classes, n_classes), by true class and label.
    matrices: NDArray[np.float64]
    classes: pd.Index | None = None


def confusion(
    estimated: Any,
    true: Any = None,
    *,
    workers: Sequence[Any] | int | None = None,
    classes: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes | Figure:
    """Draw confusion matrices, true classes by row and labels by column.

    One matrix is drawn on ``ax``. Several matrices, or true ones for comparison, make a figure with the true matrices above the
    estimated ones, as in figure 2 of Mena and Ñanculef (2019). Right labels and errors have different colours.

    Parameters
    ----------
    estimated : Diagnosis, fitted method, DataFrame, ndarray or mapping
        Diagnosis or method: the matrix of the crowd, or those of ``workers``. Table or array of shape (n_classes, n_classes),
        several of them by name, or an array of shape (n_workers, n_classes, n_classes).
    true : Simulation or as ``estimated``, default=None
        True matrices.
    workers : sequence or int, default=None
        Worker ids, or the number of workers with most votes.
    classes : sequence, default=None
        Names of the classes of arrays.
    ax : Axes, default=None
        Axes to draw a single matrix on. Defaults to a new figure.

    Returns
    -------
    Axes or Figure

    Examples
    --------
    >>> from wisecrowd import diagnose_crowd, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, workers=["expert"] * 4 + ["spammer"], n_classes=3, votes_per_task=4)
    >>> diagnosis = diagnose_crowd(simulation.crowd)
    >>> ax = plot.confusion(diagnosis)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('label given', 'true class')
    >>> figure = plot.confusion(diagnosis, simulation, workers=["w0", "w4"])
    >>> [panel.get_title() for panel in figure.axes]
    ['w0: true', 'w4: true', 'w0: estimated', 'w4: estimated']
    """
    _style.check_axes(ax)
    estimated_stack = _read_matrices(estimated, workers)
    true_stack = None if true is None else _read_matrices(true, estimated_stack.names if workers is not None else None)
    names = _resolve_class_names(estimated_stack, true_stack, classes)
    if true_stack is None and len(estimated_stack.names) == 1:
        with _style.styled_axes(ax, _figure_size(1, 1, len(names))) as single:
            _draw_matrix(single, estimated_stack.matrices[0], names, MAX_ANNOTATED_CLASSES)
            if estimated_stack.names != [None]:
                _style.set_title(single, estimated_stack.names[0])
            if len(names) > MAX_ANNOTATED_CLASSES:
                _add_colorbars(single.figure, [single])
        return single
    if ax is not None:
        raise UsageError("ax cannot hold several matrices; omit it, or pass one matrix")
    return _draw_panels(estimated_stack, true_stack, names)


# ---------------------------------------------------------------------- inputs


def _read_matrices(source: Any, workers: Sequence[Any] | int | None) -> _MatrixStack:
    """Return the matrices of any supported argument."""
    if isinstance(workers, str):
        raise UsageError(f"workers must be a list of ids; got {workers!r}. For one worker: [{workers!r}]")
    if isinstance(source, Diagnosis):
        diagnosis = source.worker_diagnosis
        counts = pd.Series(source.crowd.votes_per_worker, index=source.crowd.workers)
        return _select_workers(
            counts, workers, source.model.classes_, lambda: diagnosis.confusion, diagnosis.confusion_of
        )
    if isinstance(source, Method):
        return _read_method(source, workers)
    if isinstance(source, Simulation):
        return _read_simulation(source, workers)
    if isinstance(source, Mapping):
        return _read_mapping(source, workers)
    if workers is not None and np.ndim(source) != 3:
        raise UsageError(
            "workers can be selected from a Diagnosis, a fitted method or an array of shape (n_workers, n_classes, n_classes); "
            f"got {type(source).__name__}"
        )
    stack = _check_matrices(source)
    classes = source.columns if isinstance(source, pd.DataFrame) else None
    if stack.ndim == 2:
        return _MatrixStack([None], stack[None], classes)
    ids = [f"worker {number}" for number in range(len(stack))] if workers is None else workers
    if isinstance(ids, int) or len(ids) != len(stack):
        raise UsageError(f"workers must name all {len(stack):,} matrices of the array, or be omitted")
    _check_worker_count(len(stack))
    return _MatrixStack(list(ids), stack)


def _select_workers(
    counts: pd.Series, workers: Any, classes: pd.Index, crowd_matrix: Any, worker_matrices: Any
) -> _MatrixStack:
    """Return the matrix of the crowd, or those of workers given by id or by number of votes."""
    if workers is None:
        return _MatrixStack(["the crowd"], np.asarray(crowd_matrix())[None], classes)
    if isinstance(workers, int):
        if workers < 1:
            raise UsageError(f"workers must be 1 or more; got {workers}")
        position = np.argsort(-counts.to_numpy(), kind="stable")[:workers]
    else:
        position = np.asarray(counts.index.get_indexer(pd.Index(list(workers))))
        if (position < 0).any() or not len(position):
            unknown = [name for name, code in zip(workers, position, strict=True) if code < 0]
            raise InputError(
                f"unknown workers: {preview(unknown) or 'the list is empty'}; the workers are {preview(counts.index)}"
            )
    _check_worker_count(len(position))
    return _MatrixStack(counts.index[position].tolist(), np.asarray(worker_matrices(position)), classes)


def _read_method(fitted: Method, workers: Any) -> _MatrixStack:
    """Return the matrices of a fitted method."""
    fitted.require_fitted()
    if fitted.worker_index_ is None:
        if workers is not None:
            raise UsageError("the crowd has no worker ids, so only its own matrix can be drawn; omit workers")
        counts = pd.Series([0])
    else:
        counts = fitted.workers_["n_votes"]

    def crowd_matrix() -> NDArray[np.float64]:
        crowd_confusion = getattr(fitted, "crowd_confusion_", None)
        if crowd_confusion is not None:
            return crowd_confusion
        n_workers = 1 if fitted.worker_index_ is None else len(fitted.worker_index_)
        pairs = Pairs(fitted.pair_worker_, fitted.pair_label_, np.empty(0, dtype=np.int32), n_workers)
        return estimate_crowd_confusion(fitted.tally_, pairs)

    return _select_workers(counts, workers, fitted.classes_, crowd_matrix, fitted.confusion_of)


def _read_simulation(simulation: Simulation, workers: Any) -> _MatrixStack:
    """Return the true matrices of a simulated crowd; that of the crowd is weighted by votes."""
    worker_confusion = simulation.expected_confusion
    votes_per_worker = simulation.crowd.votes_per_worker
    counts = pd.Series(votes_per_worker, index=simulation.crowd.workers)

    def crowd_matrix() -> NDArray[np.float64]:
        return np.average(worker_confusion, axis=0, weights=votes_per_worker)

    return _select_workers(
        counts, workers, as_index(simulation.crowd.classes), crowd_matrix, lambda position: worker_confusion[position]
    )


def _read_mapping(matrices_by_name: Mapping[Any, Any], workers: Any) -> _MatrixStack:
    """Return matrices given by name."""
    chosen = list(matrices_by_name) if workers is None or isinstance(workers, int) else list(workers)
    if not chosen or (missing := [name for name in chosen if name not in matrices_by_name]):
        raise InputError(
            f"unknown workers: {preview(missing) if chosen else 'none'}; the names are {preview(matrices_by_name) or 'none'}"
        )
    chosen = chosen[: workers if isinstance(workers, int) else None]
    _check_worker_count(len(chosen))
    stack = [_check_matrices(matrices_by_name[name]) for name in chosen]
    if any(matrix.ndim != 2 or matrix.shape != stack[0].shape for matrix in stack):
        raise InputError(
            f"all matrices must have the same square shape; got {preview(matrix.shape for matrix in stack)}"
        )
    first = matrices_by_name[chosen[0]]
    return _MatrixStack(chosen, np.stack(stack), first.columns if isinstance(first, pd.DataFrame) else None)


def _check_matrices(source: Any) -> NDArray[np.float64]:
    """Return a matrix or a stack of matrices whose rows are distributions."""
    try:
        matrices = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"expected a Diagnosis, a fitted method, a confusion matrix or several by name; got {type(source).__name__}"
        ) from error
    if matrices.ndim not in (2, 3) or matrices.shape[-1] != matrices.shape[-2] or matrices.size == 0:
        raise InputError(f"confusion matrices must have shape (n_classes, n_classes); got {matrices.shape}")
    is_empty_row = np.isnan(matrices).all(axis=-1)  # classes that are never true
    if not (((matrices >= 0).all(axis=-1) & np.isclose(matrices.sum(axis=-1), 1, atol=1e-3)) | is_empty_row).all():
        raise InputError(
            "the rows of a confusion matrix must be shares that sum to 1; divide counts by their row sums, or use "
            "confusion_table(truth, prediction, normalize=True)"
        )
    return matrices


def _check_worker_count(n_workers: int) -> None:
    """Raise an error if there are too many workers for a figure."""
    if n_workers > MAX_WORKERS:
        raise UsageError(f"a figure can show at most {MAX_WORKERS} workers; got {n_workers:,}")


def _resolve_class_names(
    estimated_stack: _MatrixStack, true_stack: _MatrixStack | None, classes: Sequence[Any] | None
) -> list[object]:
    """Return the names of the classes, and check that both stacks match."""
    n_classes = estimated_stack.matrices.shape[-1]
    stacks = [estimated_stack] if true_stack is None else [estimated_stack, true_stack]
    class_indexes = [stack.classes for stack in stacks if stack.classes is not None]
    if true_stack is not None:
        if true_stack.matrices.shape != estimated_stack.matrices.shape:
            raise InputError(
                f"true and estimated matrices must have the same shape; got {true_stack.matrices.shape} and "
                f"{estimated_stack.matrices.shape}"
            )
        if len(class_indexes) == 2 and class_indexes[0].tolist() != class_indexes[1].tolist():
            raise InputError(
                "true and estimated matrices must have the same classes in the same order; "
                f"got {preview(class_indexes[1])} and {preview(class_indexes[0])}"
            )
    if classes is not None:
        if isinstance(classes, str) or len(classes) != n_classes:
            raise UsageError(f"classes must be a list of {n_classes} names; got {classes!r}")
        return list(classes)
    return class_indexes[0].tolist() if class_indexes else list(range(n_classes))


# ---------------------------------------------------------------------- drawing


def _draw_panels(estimated_stack: _MatrixStack, true_stack: _MatrixStack | None, names: list[object]) -> Figure:
    """Draw several matrices in a grid."""
    n_workers = len(estimated_stack.names)
    kinds = [("", estimated_stack)] if true_stack is None else [("true", true_stack), ("estimated", estimated_stack)]
    # The two matrices of a single worker are side by side; those of several workers are above each other.
    n_columns = 2 if n_workers == 1 else min(n_workers, MAX_COLUMNS)
    n_bands = -(-n_workers // n_columns)
    n_rows = 1 if n_workers == 1 else n_bands * len(kinds)
    with _style.styled_grid(n_rows, n_columns, _figure_size(n_rows, n_columns, len(names))) as (figure, axes):
        drawn = np.zeros(axes.shape, dtype=bool)
        for position in range(n_workers):
            for row, (kind, stack) in enumerate(kinds):
                cell = (0, row) if n_workers == 1 else (position // n_columns * len(kinds) + row, position % n_columns)
                panel, drawn[cell] = axes[cell], True
                _draw_matrix(panel, stack.matrices[position], names, MAX_ANNOTATED_CLASSES_IN_GRID)
                name = (
                    None
                    if estimated_stack.names[position] is None
                    else _style.format_name(estimated_stack.names[position])
                )
                _style.set_title(panel, ": ".join(part for part in (name, kind) if part))
        _label_outer(axes, drawn)
        if len(names) > MAX_ANNOTATED_CLASSES_IN_GRID:
            _add_colorbars(figure, axes[drawn].tolist())
    return figure


def _label_outer(axes: NDArray[Any], is_drawn: NDArray[np.bool_]) -> None:
    """Label only the left and lowest panels, and remove empty ones."""
    lowest = len(is_drawn) - 1 - is_drawn[::-1].argmax(axis=0)
    for (row, column), panel in np.ndenumerate(axes):
        if not is_drawn[row, column]:
            panel.remove()
            continue
        if column > 0:
            panel.tick_params(labelleft=False)
            panel.set_ylabel("")
        if row < lowest[column]:
            panel.tick_params(labelbottom=False)
            panel.set_xlabel("")


def _figure_size(n_rows: int, n_columns: int, n_classes: int) -> tuple[float, float]:
    """Return the size of the figure in inches."""
    side = min(1.2 + 0.55 * n_classes, 5.0) if n_rows * n_columns == 1 else min(1.4 + 0.2 * n_classes, 2.8)
    return side * n_columns + 1.2, side * n_rows + 0.9


def _draw_matrix(ax: Axes, matrix: NDArray[np.float64], names: list[object], max_annotated: int) -> None:
    """Draw one matrix."""
    theme, n_classes = _style.get_theme(), len(names)
    is_right = np.eye(n_classes, dtype=bool)
    for colour, hidden in ((theme.heat, ~is_right), (theme.warm, is_right)):
        part = np.ma.masked_array(matrix, hidden | np.isnan(matrix))
        ax.imshow(part, cmap=_style.cell_colormap(colour), vmin=0, vmax=1, interpolation="nearest")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    step = -(-n_classes // MAX_CLASS_NAMES)
    tick_names = [_style.format_name(name, 12) for name in names[::step]]
    rotation: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    for axis in (ax.xaxis, ax.yaxis):
        options = rotation if axis is ax.xaxis and max(map(len, tick_names)) > 2 else {}
        axis.set_ticks(range(0, n_classes, step), labels=tick_names, **_style.LITERAL_TEXT, **options, fontsize="small")
        if n_classes <= MAX_CLASS_NAMES:
            axis.set_ticks(np.arange(n_classes - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=theme.paper, linewidth=1)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel("label given")
    ax.set_ylabel("true class")
    if n_classes <= max_annotated:
        for row, column in np.ndindex(matrix.shape):
            text = format_percent(float(matrix[row, column]))
            ax.text(column, row, text, ha="center", va="center", fontsize="small", color=theme.ink)


def _add_colorbars(figure: Any, panels: list[Any]) -> None:
    """Add colour bars for matrices without percentages."""
    right, wrong = panels[0].images
    for image, name in ((wrong, "wrong"), (right, "right")):  # the first bar is the outermost
        padding = 0.05 if name == "wrong" else 0.02
        bar = figure.colorbar(image, ax=panels, shrink=0.6, pad=padding, aspect=20, format="{x:.0%}")
        bar.outline.set_visible(False)
        bar.ax.set_title(name, fontsize="small", fontweight="normal")
        if name == "right":
            bar.ax.set_yticks([])
