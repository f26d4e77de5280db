"""Reliability: the bins are those of the metric, and the bars are Wilson's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot

from wisecrowd import plot
from wisecrowd.errors import UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.truth_alignment import align_prediction
from wisecrowd.plot._calibration import _bin_tasks


def answers(seed: int, n_tasks: int = 60, digits: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet([1, 1, 1], size=n_tasks).round(digits) + 1e-3
    posterior /= posterior.sum(axis=1, keepdims=True)
    return rng.integers(3, size=n_tasks), posterior


@given(st.integers(0, 200), st.integers(1, 20), st.sampled_from(["width", "mass"]))
def test_bins_are_those_of_the_expected_calibration_error(seed: int, n_bins: int, bins: Any) -> None:
    truth, posterior = answers(seed, digits=1)
    table = _bin_tasks(align_prediction(truth, posterior), n_bins, bins)
    assert table["n_tasks"].sum() == len(truth)
    error = (table["n_tasks"] * (table["right"] - table["confidence"]).abs()).sum() / len(truth)
    assert error == pytest.approx(metrics.calibration_error(truth, posterior, n_bins=n_bins, bins=bins))
    assert ((table["low"] <= table["right"] + 1e-12) & (table["right"] <= table["high"] + 1e-12)).all()
    assert table[["low", "high"]].to_numpy().min() >= -1e-12
    assert table["high"].max() <= 1 + 1e-12


def test_signs_and_bars_are_drawn_where_the_bins_are(drawn: Any) -> None:
    truth, posterior = answers(1)
    ax = plot.calibration(truth, posterior, n_bins=5)
    table = _bin_tasks(align_prediction(truth, posterior), 5, "mass")
    bars, signs = ax.collections
    assert np.allclose(signs.get_offsets(), table[["confidence", "right"]])
    assert np.allclose([segment[:, 1] for segment in bars.get_segments()], table[["low", "high"]])
    error = metrics.calibration_error(truth, posterior, n_bins=5, bins="mass")
    assert drawn.names(ax) == [f"prediction (error {error:.1%})", "perfect calibration"]


def test_wilson_as_in_a_textbook() -> None:
    """8 of 10 right: 54% to 93% at a level of 90%."""
    truth = np.array([0] * 8 + [1] * 2)
    table = _bin_tasks(align_prediction(truth, np.array([[0.7, 0.3]] * 10)), 1, "width")
    assert table[["low", "high"]].round(3).to_numpy().tolist() == [[0.541, 0.931]]


def test_what_cannot_be_drawn_is_refused() -> None:
    truth, posterior = answers(0)
    for more, message in (({"n_bins": 0}, "one or more"), ({"bins": "weight"}, "'width', 'mass'")):
        with pytest.raises(UsageError, match=message):
            plot.calibration(truth, posterior, **more)
    with pytest.raises(UsageError, match="prediction consists of labels"):
        plot.calibration(truth, truth)
    assert pyplot.get_fignums() == []
