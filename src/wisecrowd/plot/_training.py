"""Progress of a fit by epoch or iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError, UsageError
from wisecrowd.plot import _inputs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def training(fitted: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the progress of a fit.

    For a network it is the loss by epoch, with the accuracy on held-out votes on a second axis and the best epoch marked. For other
    iterative methods it is the objective by iteration.

    Parameters
    ----------
    fitted : fitted method, DataFrame or array-like
        Fitted method, or its ``history_`` or ``trace_``.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import DawidSkene, plot, simulate_crowd
    >>> fitted = DawidSkene().fit(simulate_crowd(n_tasks=200).crowd)
    >>> ax = plot.training(fitted)
    >>> ax.get_xlabel(), len(ax.lines[0].get_ydata()) == fitted.n_iter_
    ('iteration', True)
    """
    _style.check_axes(ax)
    history = getattr(fitted, "history_", fitted)
    if isinstance(history, pd.DataFrame):
        return _draw_epochs(_inputs.require_columns(history, ("loss",), "history_ of a network"), ax)
    trace = getattr(fitted, "trace_", fitted)
    if not isinstance(trace, np.ndarray | list | tuple):
        raise UsageError(
            f"fitted must be an iterative method with history_ or trace_, or one of these; got {type(fitted).__name__}"
        )
    objective = np.asarray(trace, dtype=np.float64)
    if objective.ndim != 1 or not len(objective):
        raise InputError(f"a trace must have one number per iteration; got shape {objective.shape}")
    with _style.styled_axes(ax) as drawn:
        style: dict[str, Any] = {"marker": "o", "markersize": 3} if len(objective) <= 50 else {}
        drawn.plot(np.arange(1, len(objective) + 1), objective, color=_style.get_theme().heat, **style)
        drawn.set_xlabel("iteration")
        drawn.set_ylabel("objective")
        _style.format_counts(drawn.xaxis)
    return drawn


def _draw_epochs(history: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw loss and held-out accuracy by epoch."""
    epoch = history.index.to_numpy()
    with _style.styled_axes(ax) as drawn:
        theme = _style.get_theme()
        handles = drawn.plot(epoch, history["loss"], color=theme.heat)
        names = ["loss (left)"]
        drawn.set_xlabel("epoch")
        drawn.set_ylabel("loss")
        _style.format_counts(drawn.xaxis)
        if "validation" in history and history["validation"].notna().any():
            right_axes = drawn.twinx()
            right_axes.grid(visible=False)
            right_axes.spines["right"].set_visible(True)
            handles += right_axes.plot(epoch, history["validation"], color=theme.warm, linestyle="--")
            right_axes.set_ylabel("accuracy on held-out votes")
            _style.format_percent_axis(right_axes.yaxis)
            best: Any = history["validation"].idxmax()
            handles.append(drawn.axvline(best, color=theme.soft, linewidth=1, linestyle=":"))
            names += ["held-out votes (right)", f"best epoch: {best}"]
            _style.add_legend(right_axes, handles, names, loc="center right")
    return drawn
