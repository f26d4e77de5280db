"""ROC curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.data.types import TruthLike
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.truth_alignment import align_prediction
from wisecrowd.plot import _inputs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def roc(truth: TruthLike, predictions: Any, *, positive: Any = None, ax: Axes | None = None) -> Axes:
    """Draw ROC curves with the area under each in the legend (figures 2 and 4 of Xu et al. 2019).

    Parameters
    ----------
    truth : Series, mapping, DataFrame or array-like
        True classes, aligned as in `wisecrowd.evaluate.metrics`.
    predictions : fitted method, DataFrame, array-like or mapping
        Posterior, or several of them by name.
    positive : object, default=None
        Positive class. Defaults to the second of two classes.
    ax : Axes, default=None
        Axes to draw on. Defaults to a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from wisecrowd import DawidSkene, MajorityVote, plot, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_classes=2)
    >>> fitted = {"vote": MajorityVote().fit(simulation.crowd), "Dawid–Skene": DawidSkene().fit(simulation.crowd)}
    >>> ax = plot.roc(simulation.truth, fitted)
    >>> ax.get_xlabel(), len(ax.get_legend().get_texts())
    ('false positive rate', 3)
    """
    from sklearn.metrics import roc_curve

    _style.check_axes(ax)
    curves = {}
    for name, prediction in _inputs.name_series(predictions, "prediction").items():
        aligned = align_prediction(truth, prediction, probabilities=True)
        code = metrics.positive_class_code(aligned.classes, positive)
        positive = aligned.classes[code]
        area = metrics.auc(truth, prediction, positive=positive)
        false_positive_rate, true_positive_rate, _ = roc_curve(aligned.truth == code, aligned.posterior[:, code])
        curves[name] = _thin_points(false_positive_rate), _thin_points(true_positive_rate), area
    with _style.styled_axes(ax, (5.0, 4.6)) as drawn:
        handles, names = [], []
        for number, (name, (false_positive_rate, true_positive_rate, area)) in enumerate(curves.items()):
            style = _style.series_style(number)
            handles += drawn.plot(
                false_positive_rate, true_positive_rate, color=style["color"], linestyle=style["linestyle"]
            )
            names.append(f"{_style.format_name(name)} (area {area:.3f})")
        handles.append(_style.draw_diagonal(drawn, 0, 1))
        names.append("random guess")
        drawn.set_xlabel("false positive rate")
        drawn.set_ylabel(f"true positive rate of {_style.format_name(positive)!r}", **_style.LITERAL_TEXT)
        for axis in (drawn.xaxis, drawn.yaxis):
            _style.format_percent_axis(axis)
        _style.add_legend(drawn, handles, names, loc="lower right")
    return drawn


def _thin_points(values: Any) -> Any:
    """Return at most `MAX_VECTOR_POINTS` values, including both ends."""
    if len(values) <= _style.MAX_VECTOR_POINTS:
        return values
    return values[np.linspace(0, len(values) - 1, _style.MAX_VECTOR_POINTS).astype(int)]
