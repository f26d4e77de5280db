"""Histogram of votes per worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.plot import _inputs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Largest number of panels side by side.
MAX_COLUMNS = 2
#: Workers with less than this share of the mean number of votes have few votes.
FEW_VOTES_SHARE = 0.25


def votes_per_worker(crowds: Any, *, n_bars: int = 20, ax: Axes | None = None) -> Axes | Figure:
    """Draw a histogram of the number of votes per worker, without workers who have none.

    The shaded area marks workers with less than a quarter of the mean number of votes, as in figure 1 of Zhang et al. (2024).

    Parameters
    ----------
    crowds : Crowd, array-like or mapping
        Crowd, or numbers of votes by worker. Several by title make a figure with one panel each.
    n_bars : int, default=20
        Largest number of bars.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes or Figure

    Examples
    --------
    >>> from wisecrowd import plot, simulate_crowd
    >>> ax = plot.votes_per_worker(simulate_crowd(n_tasks=500, n_workers=60, activity="beta(1.5, 3)").crowd)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('votes per worker', 'workers')
    >>> int(sum(bar.get_height() for bar in ax.containers[0]))
    60
    """
    _style.check_axes(ax)
    if n_bars < 1:
        raise UsageError(f"n_bars must be 1 or more; got {n_bars}")
    if not isinstance(crowds, Mapping):
        counts = _read_vote_counts(crowds, "the crowd")
        with _style.styled_axes(ax) as drawn:
            _draw_histogram(drawn, counts, n_bars)
        return drawn
    if ax is not None:
        raise UsageError("ax cannot hold several crowds; omit it, or pass one crowd")
    counts_by_title = {
        title: _read_vote_counts(crowd, title) for title, crowd in _inputs.name_series(crowds, "").items()
    }
    n_columns = min(MAX_COLUMNS, len(counts_by_title))
    n_rows = -(-len(counts_by_title) // n_columns)
    with _style.styled_grid(n_rows, n_columns, (3.8 * n_columns, 2.9 * n_rows)) as (figure, axes):
        for panel, (title, counts) in zip(axes.ravel(), counts_by_title.items(), strict=False):
            _draw_histogram(panel, counts, n_bars)
            _style.set_title(panel, title)
        for panel in axes.ravel()[len(counts_by_title) :]:
            panel.remove()
    return figure


def _read_vote_counts(source: Any, title: str) -> NDArray[np.int64]:
    """Return the numbers of votes of workers with votes."""
    if isinstance(source, Crowd):
        if not source.has_workers:
            raise UsageError(f"{title} has no worker ids, so votes per worker cannot be counted")
        counts = np.asarray(source.votes_per_worker)
    elif isinstance(source, pd.Series | np.ndarray | list | tuple):
        counts = np.asarray(source)
        if (
            counts.ndim != 1
            or counts.dtype.kind not in "iuf"
            or not (counts == np.floor(counts)).all()
            or (counts < 0).any()
        ):
            raise InputError(f"{title} must hold one non-negative integer per worker")
    else:
        raise UsageError(f"crowds must be a Crowd or numbers of votes by worker; got {type(source).__name__}")
    if not (counts > 0).any():
        raise InputError(f"{title} has no votes")
    return counts[counts > 0].astype(np.int64)


def _draw_histogram(ax: Axes, votes: NDArray[np.int64], n_bars: int) -> None:
    """Draw one histogram."""
    theme = _style.get_theme()
    # Each bar covers equally many integers.
    step = max(1, -(-int(votes.max()) // n_bars))
    edges = np.arange(-(-int(votes.max()) // step) + 1) * step + 0.5
    counts, _ = np.histogram(votes, bins=edges)
    threshold = FEW_VOTES_SHARE * votes.mean()
    patch = ax.axvspan(0.5, max(threshold, 0.5), color=theme.good, linewidth=0, zorder=0)
    ax.bar(edges[:-1], counts, step, align="edge", color=theme.heat, edgecolor=theme.paper, linewidth=0.6)
    ax.set_xlim(0.5, edges[-1])
    ax.set_ylim(0, 1.2 * counts.max())  # room for the legend
    ax.set_xlabel("votes per worker")
    ax.set_ylabel("workers")
    ax.grid(visible=False, axis="x")
    for axis in (ax.xaxis, ax.yaxis):
        _style.format_counts(axis)
    text = f"{int((votes < threshold).sum()):,} of {len(votes):,} workers have few votes"
    _style.add_legend(ax, [patch], [text], loc="upper right")
