"""Heatmap of the agreement of every two workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.agreement_matrix import WorkerAgreement, worker_agreement
from wisecrowd.errors import InputError, UsageError
from wisecrowd.plot import _style
from wisecrowd.utils.text import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Largest number of workers for which cells show percentages and numbers of common tasks.
MAX_ANNOTATED_WORKERS = 12
#: Largest number of worker names on an axis.
MAX_WORKER_NAMES = 40


def agreement(source: Any, *, workers: int = 30, min_common: int = 1, ax: Axes | None = None) -> Axes:
    """Draw how often every two workers give the same label to a common task.

    Workers are sorted from the lowest to the highest agreement with the others, so a worker who agrees with nobody is in the
    first row. The colour scale goes from the lowest to the highest agreement of the pairs. With few workers the cells show the
    agreement and the number of common tasks; pairs without common tasks are blank.

    Parameters
    ----------
    source : WorkerAgreement, Diagnosis or Crowd
        Result of `worker_agreement`, or votes.
    workers : int, default=30
        Largest number of workers, for a crowd or a diagnosis: those with most votes.
    min_common : int, default=1
        Smallest number of common tasks of a pair, for a crowd or a diagnosis.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If no two workers have a common task.

    Examples
    --------
    >>> from wisecrowd import plot, simulate_crowd
    >>> ax = plot.agreement(simulate_crowd(300, workers=["expert"] * 4 + ["spammer"], votes_per_task=4).crowd)
    >>> [tick.get_text() for tick in ax.get_yticklabels()][0]
    'w4'
    """
    _style.check_axes(ax)
    if isinstance(source, Crowd | Diagnosis):
        crowd = source.crowd if isinstance(source, Diagnosis) else source
        source = worker_agreement(crowd, workers=workers, min_common=min_common)
    if not isinstance(source, WorkerAgreement):
        raise UsageError(f"expected a WorkerAgreement, a Diagnosis or a Crowd; got {type(source).__name__}")
    if source.pairs.empty:
        raise InputError(
            "no two workers have a common task, so there is no agreement to draw; collect overlapping votes"
        )
    shares, counts = source.matrix(), source.matrix("common").to_numpy()
    side = min(1.6 + 0.45 * len(shares), 9.0)
    with _style.styled_axes(ax, (side + 1.0, side)) as drawn:
        _draw_heatmap(drawn, shares.to_numpy(), counts, [_style.format_name(name, 16) for name in shares.index])
    return drawn


def _draw_heatmap(ax: Axes, shares: Any, counts: Any, names: list[str]) -> None:
    """Draw the shares as cells, with a colour bar."""
    theme, n_workers = _style.get_theme(), len(names)
    image = ax.imshow(
        np.ma.masked_invalid(shares), cmap=_style.cell_colormap(theme.heat), interpolation="nearest",
        vmin=float(np.nanmin(shares)), vmax=float(np.nanmax(shares)),
    )  # fmt: skip
    ax.set_facecolor(theme.sheet)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    step = -(-n_workers // MAX_WORKER_NAMES)
    rotation: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    for axis, options in ((ax.xaxis, rotation), (ax.yaxis, {})):
        axis.set_ticks(
            range(0, n_workers, step), labels=names[::step], **_style.LITERAL_TEXT, **options, fontsize="small"
        )
    if n_workers <= MAX_ANNOTATED_WORKERS:
        for row, column in np.argwhere(~np.isnan(shares)):
            text = f"{format_percent(float(shares[row, column]))}\n{int(counts[row, column]):,}"
            ax.text(column, row, text, ha="center", va="center", fontsize="x-small", color=theme.ink)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, pad=0.03, aspect=20, format="{x:.0%}")
    bar.outline.set_visible(False)
    bar.set_label("share of common tasks with equal labels")
