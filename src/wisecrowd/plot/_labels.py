"""How many labels each worker gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.plot import _given, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panels side by side.
ACROSS = 2
#: Who gives less than this share of the mean number of labels gives few.
FEW = 0.25


def votes_per_worker(crowds: Any, *, n_bars: int = 20, ax: Axes | None = None) -> Axes | Figure:
    """Draw a histogram of how many labels workers gave; those who gave none are left out.

    ``crowds`` is a `Crowd`, or numbers of labels; several of them by title make a Figure with a panel each. The patch on the left
    is where workers give few labels, less than a quarter of the mean (figure 1 of Zhang et al. 2024).

    >>> from wisecrowd import plot, simulate_crowd
    >>> ax = plot.votes_per_worker(simulate_crowd(n_tasks=500, n_workers=60, activity="beta(1.5, 3)").crowd)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('labels of a worker', 'workers')
    >>> int(sum(bar.get_height() for bar in ax.containers[0]))
    60
    """
    _style.check_axes(ax)
    if n_bars < 1:
        raise UsageError(f"n_bars must be one or more; got {n_bars}")
    if not isinstance(crowds, Mapping):
        number = _numbers(crowds, "the crowd")
        with _style.drawing(ax) as drawn:
            _draw(drawn, number, n_bars)
        return drawn
    if ax is not None:
        raise UsageError("several crowds make a figure of their own; leave ax out, or give one crowd")
    numbers = {title: _numbers(crowd, title) for title, crowd in _given.named(crowds, "").items()}
    across = min(ACROSS, len(numbers))
    rows = -(-len(numbers) // across)
    with _style.grid(rows, across, (3.8 * across, 2.9 * rows)) as (figure, axes):
        for panel, (title, number) in zip(axes.ravel(), numbers.items(), strict=False):
            _draw(panel, number, n_bars)
            _style.title(panel, title)
        for panel in axes.ravel()[len(numbers) :]:
            panel.remove()
    return figure


def _numbers(given: Any, title: str) -> NDArray[np.int64]:
    if isinstance(given, Crowd):
        if not given.has_workers:
            raise UsageError(f"{title} has no worker ids, so that their labels cannot be counted")
        counts = np.asarray(given.votes_per_worker)
    elif isinstance(given, pd.Series | np.ndarray | list | tuple):
        counts = np.asarray(given)
        if (
            counts.ndim != 1
            or counts.dtype.kind not in "iuf"
            or not (counts == np.floor(counts)).all()
            or (counts < 0).any()
        ):
            raise InputError(f"{title} must be whole numbers of labels, one for each worker")
    else:
        raise UsageError(f"a Crowd, or numbers of labels by worker, was wanted; got {type(given).__name__}")
    if not (counts > 0).any():
        raise InputError(f"{title} has no labels by workers to count")
    return counts[counts > 0].astype(np.int64)


def _draw(ax: Axes, number: NDArray[np.int64], n_bars: int) -> None:
    now = _style.theme()
    # Whole numbers of labels to a bar, so that no bar can hold more different numbers than its neighbours.
    step = max(1, -(-int(number.max()) // n_bars))
    edges = np.arange(-(-int(number.max()) // step) + 1) * step + 0.5
    counts, _ = np.histogram(number, bins=edges)
    few = FEW * number.mean()
    patch = ax.axvspan(0.5, max(few, 0.5), color=now.good, linewidth=0, zorder=0)
    ax.bar(edges[:-1], counts, step, align="edge", color=now.heat, edgecolor=now.paper, linewidth=0.6)
    ax.set_xlim(0.5, edges[-1])
    ax.set_ylim(0, 1.2 * counts.max())  # room for the legend
    ax.set_xlabel("labels of a worker")
    ax.set_ylabel("workers")
    ax.grid(visible=False, axis="x")
    for axis in (ax.xaxis, ax.yaxis):
        _style.with_commas(axis)
    told = f"{int((number < few).sum()):,} of {len(number):,} workers give few labels"
    _style.legend(ax, [patch], [told], loc="upper right")
