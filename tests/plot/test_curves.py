"""Curves: what `redundancy_curve` and `density_curve` give is what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from wisecrowd import GMV, density_curve, plot, redundancy_curve
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation


@pytest.fixture(scope="module")
def curve(made: Simulation) -> pd.DataFrame:
    return redundancy_curve(GMV(), made.crowd, None, made.truth, at_most=[3, 2, 5], repeats=2)


def test_before_and_after_by_labels_per_task(curve: pd.DataFrame, drawn: Any) -> None:
    ax = plot.redundancy(curve)
    for number, name in enumerate(["majority-vote", "dawid-skene"]):
        part = curve.xs(name, level="aggregator").sort_values("votes_per_task")
        for column, place in (("before", 2 * number), ("after", 2 * number + 1)):
            assert drawn.line(ax, place) == [part["votes_per_task"].tolist(), part[column].tolist()]
    dashes = [line.get_linestyle() for line in ax.lines]
    assert dashes == ["--", "-", "--", "-"]
    assert drawn.names(ax) == [
        f"{name}, {when}" for name in ("majority-vote", "dawid-skene") for when in ("before", "completed")
    ]


def test_the_gain_has_bars_of_one_deviation(curve: pd.DataFrame) -> None:
    ax = plot.redundancy(curve, show="gain")
    part = curve.xs("dawid-skene", level="aggregator").sort_values("votes_per_task")
    (line, _, (bars,)) = ax.containers[1]
    assert line.get_ydata().tolist() == part["gain"].tolist()
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert np.allclose(np.diff(ends, axis=1).ravel() / 2, part["gain_sd"])
    once = plot.redundancy(curve.assign(gain_sd=np.nan), show="gain")  # one repeat has no deviation
    assert once.containers


def test_a_table_of_methods_is_drawn_as_it_is(drawn: Any) -> None:
    table = pd.DataFrame({"vote": [0.9, 0.7], "DS": [0.95, 0.6]}, index=[5, 2])
    ax = plot.redundancy(table, spread=table / 10)
    assert drawn.names(ax) == ["vote", "DS"]
    line, _, (bars,) = ax.containers[1]
    assert [line.get_xdata().tolist(), line.get_ydata().tolist()] == [[2, 5], [0.6, 0.95]]
    assert np.allclose([segment[:, 1] for segment in bars.get_segments()], [[0.54, 0.66], [0.855, 1.045]])


def test_density_has_a_line_for_what_was_before(made: Simulation, drawn: Any) -> None:
    curve = density_curve(GMV(), made.crowd, None, made.truth, min_votes=[0, 110, 130])
    ax = plot.density(curve)
    part = curve.xs("dawid-skene", level="aggregator").sort_values("density")
    assert drawn.line(ax, 2) == [part["density"].tolist(), part["after"].tolist()]
    assert drawn.line(ax, 3)[1] == [part["before"].iloc[0]] * 2
    assert drawn.names(ax)[2:] == ["dawid-skene, completed", "dawid-skene, before"]


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ([1, 2], {}, "got list"),
        (pd.DataFrame({"before": [0.5]}), {}, "missing votes_per_task, after"),
        (pd.DataFrame({"vote": ["high"]}, index=[2]), {}, "must be the result of redundancy_curve"),
        (pd.DataFrame({"vote": [0.5]}, index=["two"]), {}, "must be the result of redundancy_curve"),
        (pd.DataFrame({"vote": [0.5, 0.6]}, index=[2, 2]), {}, "duplicate rows or columns"),
        (pd.DataFrame({"vote": [0.5]}, index=[2]), {"show": "gain"}, "needs the result of redundancy_curve"),
        (pd.DataFrame({"vote": [0.5]}, index=[2]), {"show": "loss"}, "'accuracy', 'gain'"),
        (
            pd.DataFrame({"vote": [0.5]}, index=[2]),
            {"spread": pd.DataFrame({"vote": [0.1]}, index=[3])},
            "rows and columns",
        ),
        (pd.DataFrame({"vote": []}), {}, "must be a table"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.redundancy(given, **more)
    assert pyplot.get_fignums() == []


def test_tables_of_others_are_refused(curve: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="missing density"):
        plot.density(curve)
    with pytest.raises(InputError, match="aggregators in its index"):
        plot.redundancy(curve.reset_index())
    with pytest.raises(UsageError, match="has its own"):
        plot.redundancy(curve, spread=curve)
    assert pyplot.get_fignums() == []
