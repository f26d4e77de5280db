"""ROC curves: how many of a class are found, at the price of how many false alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.aligned import align
from wisecrowd.plot import _given, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def roc(truth: Any, predictions: Any, *, positive: Any = None, ax: Axes | None = None) -> Axes:
    """Draw ROC curves, with the area under each in the legend (figures 2 and 4 of Xu et al. 2019).

    ``predictions`` is a fitted method or a posterior (a table of tasks x classes, or a bare array), or several of them by name;
    truth meets it as in `wisecrowd.evaluate.metrics`. ``positive`` is the class that is to be found; of two classes the second, unless
    given.

    >>> from wisecrowd import DawidSkene, MajorityVote, plot, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_classes=2)
    >>> fitted = {"vote": MajorityVote().fit(made.crowd), "Dawid–Skene": DawidSkene().fit(made.crowd)}
    >>> ax = plot.roc(made.truth, fitted)
    >>> ax.get_xlabel(), len(ax.get_legend().get_texts())
    ('false alarms, of the other tasks', 3)
    """
    from sklearn.metrics import roc_curve

    _style.check_axes(ax)
    curves = {}
    for name, prediction in _given.named(predictions, "prediction").items():
        both = align(truth, prediction, probabilities=True)
        which = metrics._positive(both.classes, positive)
        positive = both.classes[which]
        area = metrics.auc(truth, prediction, positive=positive)
        false, found, _ = roc_curve(both.truth == which, both.posterior[:, which])
        curves[name] = _thinned(false), _thinned(found), area
    with _style.drawing(ax, (5.0, 4.6)) as drawn:
        handles, names = [], []
        for number, (name, (false, found, area)) in enumerate(curves.items()):
            look = _style.look(number)
            handles += drawn.plot(false, found, color=look["color"], linestyle=look["linestyle"])
            names.append(f"{_style.said(name)} (area {area:.3f})")
        handles.append(_style.diagonal(drawn, 0, 1))
        names.append("guesses")
        drawn.set_xlabel("false alarms, of the other tasks")
        drawn.set_ylabel(f"found, of the tasks that are {_style.said(positive)!r}", **_style.LITERAL)
        for axis in (drawn.xaxis, drawn.yaxis):
            _style.as_percent(axis)
        _style.legend(drawn, handles, names, loc="lower right")
    return drawn


def _thinned(values: Any) -> Any:
    """No more points than can be seen; both ends stay."""
    if len(values) <= _style.MANY:
        return values
    return values[np.linspace(0, len(values) - 1, _style.MANY).astype(int)]
