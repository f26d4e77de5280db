"""Budgets: a plan's promise and a replay's measurement, as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from wisecrowd import plan_votes, plot
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.papers.replay import Replay
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation


def test_a_plan_is_drawn_by_labels_or_money(made: Simulation, drawn: Any) -> None:
    bought = plan_votes(made.crowd.limit_votes_per_task(2), budget=10, cost=0.25)
    ax = plot.budget(bought)
    assert drawn.line(ax, 0) == [bought.curve["votes"].tolist(), bought.curve["expected_accuracy"].tolist()]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("votes bought", "expected accuracy")
    ax = plot.budget({"one": bought, "two": bought}, money=True)
    assert drawn.line(ax, 0)[0] == bought.curve["money"].tolist()
    assert ax.get_xlabel() == "money spent"
    assert drawn.names(ax) == ["one", "two"]


def test_a_replay_is_drawn_as_it_was_measured(drawn: Any) -> None:
    dataset = SimulatedDataset({"n_tasks": 60, "n_workers": 8, "votes_per_task": 6}).load(0)
    curve = Replay("random").curve(dataset, 0)
    ax = plot.budget({"random": curve, "again": [curve, curve]})
    for place in (0, 1):
        assert np.allclose(drawn.line(ax, place), curve[["votes", "accuracy"]].to_numpy(dtype=float).T)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("votes in total", "accuracy")


def test_repeats_have_a_mean_and_a_band(drawn: Any) -> None:
    first = pd.DataFrame({"votes": [10, 20, 30], "accuracy": [0.5, 0.6, 0.7]})
    second = pd.DataFrame({"votes": [30, 10], "accuracy": [0.9, 0.5]})
    ax = plot.budget([first, second])
    assert np.allclose(drawn.line(ax, 0), [[10, 20, 30], [0.5, 0.65, 0.8]])
    band = ax.collections[0].get_paths()[0].vertices
    at_end = band[band[:, 0] == 30, 1]
    assert np.allclose([at_end.min(), at_end.max()], 0.8 + np.array([-1, 1]) * np.std([0.7, 0.9], ddof=1))


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (3, {}, "got int"),
        (pd.DataFrame({"votes": [1]}), {}, "missing accuracy"),
        (pd.DataFrame({"votes": [1.0], "accuracy": [np.nan]}), {}, "finite"),
        (pd.DataFrame({"votes": [1], "accuracy": [1.0]}), {"money": True}, "money=True needs a Plan"),
        ([pd.DataFrame({"votes": [n], "accuracy": [1.0]}) for n in (1, 2)], {}, "no common range of votes"),
        ([], {}, "got list"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        plot.budget(given, **more)
    assert pyplot.get_fignums() == []


def test_promises_and_measurements_have_axes_of_their_own(made: Simulation) -> None:
    curve = pd.DataFrame({"votes": [1], "accuracy": [1.0]})
    with pytest.raises(UsageError, match="draw them on separate axes"):
        plot.budget({"plan": plan_votes(made.crowd, budget=3), "replay": curve})
