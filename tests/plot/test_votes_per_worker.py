"""Labels per worker: every worker is in one bar, and all bars hold as many different numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

from wisecrowd import Crowd, plot
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation


@pytest.mark.slow
@settings(max_examples=min(25, settings.default.max_examples))
@given(st.lists(st.integers(0, 500), min_size=1, max_size=40).filter(any), st.integers(1, 30))
def test_every_worker_is_in_one_bar(numbers: list[int], n_bars: int) -> None:
    ax: Any = plot.votes_per_worker(numbers, n_bars=n_bars)
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in ax.containers[0]]
    assert len(bars) <= n_bars
    assert [height for _, _, height in bars] == [sum(low < n < high for n in numbers) for low, high, _ in bars]
    assert sum(height for _, _, height in bars) == sum(n > 0 for n in numbers)
    widths = {high - low for low, high, _ in bars}
    assert len({round(width, 6) for width in widths}) == 1
    assert all(width == round(width) for width in widths)
    pyplot.close("all")


def test_who_gives_few_is_counted(drawn: Any) -> None:
    ax: Any = plot.votes_per_worker([1, 2, 10, 20, 27, 0])  # the mean of those who work is 12
    assert drawn.names(ax) == ["2 of 5 workers have few votes"]
    patch = ax.patches[0]
    assert patch.get_x() + patch.get_width() == pytest.approx(3)


def test_several_crowds_have_a_panel_each(made: Simulation) -> None:
    figure: Any = plot.votes_per_worker({"a": made.crowd, "b": made.crowd, "c": np.array([3.0, 4.0])})
    assert [panel.get_title() for panel in figure.axes] == ["a", "b", "c"]
    assert sum(bar.get_height() for bar in figure.axes[1].containers[0]) == made.crowd.n_workers


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ("crowd", {}, "got str"),
        ([0, 0], {}, "has no votes"),
        ([1.5], {}, "non-negative integer per worker"),
        ([-1], {}, "non-negative integer per worker"),
        ([[1]], {}, "non-negative integer per worker"),
        ([np.nan], {}, "non-negative integer per worker"),
        ([1], {"n_bars": 0}, "must be 1 or more"),
        ({}, {}, "dict of series is empty"),
        (Crowd.from_counts([[2, 1]]), {}, "no worker ids"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.votes_per_worker(given, **more)
    assert pyplot.get_fignums() == []


def test_several_crowds_need_a_figure() -> None:
    with pytest.raises(UsageError, match="omit it, or pass one crowd"):
        plot.votes_per_worker({"a": [1]}, ax=pyplot.subplots()[1])
