"""ROC curves: their points are counts of tasks, their areas those of the metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

from wisecrowd import DawidSkene, MajorityVote, plot, simulate_crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.simulate import Simulation


@settings(max_examples=min(25, settings.default.max_examples))
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=3, max_size=30))
def test_points_count_what_is_found_and_what_is_a_false_alarm(tasks: list[tuple[bool, int]]) -> None:
    truth, score = (np.array(part) for part in zip(*tasks, strict=True))
    if truth.all() or not truth.any():
        truth[0] = not truth[0]
    posterior = np.stack([1 - score / 4, score / 4], axis=1)
    line = plot.roc(truth.astype(int), posterior).lines[0]
    drawn = set(zip(line.get_xdata().round(9).tolist(), line.get_ydata().round(9).tolist(), strict=True))
    counted = {(0.0, 0.0)} | {
        (float((score >= least)[~truth].mean().round(9)), float((score >= least)[truth].mean().round(9)))
        for least in range(5)
    }
    assert drawn <= counted, "points on a straight line may be left out, and no others may be there"
    area = np.trapezoid(line.get_ydata(), line.get_xdata())
    assert area == pytest.approx(metrics.auc(truth.astype(int), posterior))
    pyplot.close("all")


def test_the_legend_has_the_areas_and_the_axis_the_class(drawn: Any) -> None:
    made = simulate_crowd(n_tasks=200, n_classes=2)
    fitted = {"vote": MajorityVote().fit(made.crowd), "DS": DawidSkene().fit(made.crowd)}
    ax = plot.roc(made.truth, fitted, positive="c0")
    areas = [metrics.auc(made.truth, one, positive="c0") for one in fitted.values()]
    assert drawn.names(ax) == [f"vote (area {areas[0]:.3f})", f"DS (area {areas[1]:.3f})", "random guess"]
    assert ax.get_ylabel() == "true positive rate of 'c0'"
    assert drawn.names(plot.roc(made.truth, fitted["DS"]))[0].startswith("dawid-skene")


def test_a_class_has_to_be_named_if_there_are_many(made: Simulation) -> None:
    fitted = DawidSkene().fit(made.crowd)
    with pytest.raises(UsageError, match="with 3 classes, the positive class must be named"):
        plot.roc(made.truth, fitted)
    ax = plot.roc(made.truth, fitted, positive="c2")
    assert f"{metrics.auc(made.truth, fitted, positive='c2'):.3f}" in ax.get_legend().get_texts()[0].get_text()


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=30_000)
    score = rng.random(30_000)
    line = plot.roc(truth, np.stack([1 - score, score], axis=1)).lines[0]
    across, up = line.get_xdata(), line.get_ydata()
    assert len(across) <= 2000
    assert (across[0], up[0], across[-1], up[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(up, across) == pytest.approx(metrics.auc(truth, np.stack([1 - score, score], axis=1)), abs=1e-3)


def test_what_cannot_be_drawn_is_refused() -> None:
    labels = pd.Series({"t": "a", "u": "b"})
    with pytest.raises(UsageError, match="consists of labels; pass a posterior"):
        plot.roc(labels, labels)
    with pytest.raises(InputError, match="all tasks have the same"):
        plot.roc(np.array([1, 1]), np.array([[0.5, 0.5], [0.2, 0.8]]))
    with pytest.raises(InputError, match="no task in common"):
        plot.roc({"x": "a"}, pd.DataFrame({"a": [0.5], "b": [0.5]}, index=["t"]))
    assert pyplot.get_fignums() == []
