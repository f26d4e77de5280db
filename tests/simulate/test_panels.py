"""Simulated panels: judges repeat their model, people do not, and the description fits the votes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate import PanelSimulation, simulate_panel


def votes_of(made: PanelSimulation) -> pd.DataFrame:
    return made.crowd.to_frame().pivot(index="task", columns="worker", values="label")


def test_judges_repeat_their_model_as_often_as_said() -> None:
    made = simulate_panel(4000, 4, 2, 3, n_models=2, strength=0.8, random_state=1)
    votes = votes_of(made)
    for judge, model in made.groups.items():
        own = (made.confusion[0] * np.eye(3)).sum() / 3  # about how often a judge says the same by itself
        same = (votes[judge] == made.opinions[model]).mean()
        assert 0.8 < same < 0.8 + 0.2 * own + 0.1
    other = (votes["judge0"] == made.opinions["model1"]).mean()
    assert other < 0.7


def test_models_think_as_their_matrices_say() -> None:
    made = simulate_panel(20_000, 2, 1, 3, hard=0.3, model_accuracy=0.8, random_state=2)
    found = pd.crosstab(made.truth, made.opinions["model0"], normalize="index").to_numpy()
    assert np.abs(found - made.opinion_confusion[0]).max() < 0.02
    assert abs(made.hard.mean() - 0.3) < 0.01
    misled = made.opinions["model0"][made.hard]
    following = {"c0": "c1", "c1": "c2", "c2": "c0"}
    assert (misled == made.truth[made.hard].map(following)).all()


def test_workers_vote_as_their_matrices_say() -> None:
    made = simulate_panel(20_000, 2, 2, 2, strength=0.0, random_state=3)
    votes = votes_of(made)
    for place, worker in enumerate(made.crowd.workers):
        found = pd.crosstab(made.truth, votes[worker], normalize="index").to_numpy()
        assert np.abs(found - made.confusion[place]).max() < 0.02


def test_people_err_independently_of_the_models() -> None:
    made = simulate_panel(20_000, 2, 2, 2, strength=1.0, random_state=4)
    wrong = votes_of(made).ne(made.truth, axis=0)
    together = wrong.astype(float).corr()
    assert together.loc["judge0", "judge1"] == pytest.approx(1.0)
    assert abs(together.loc["judge0", "person0"]) < 0.03
    assert abs(together.loc["person0", "person1"]) < 0.03


def test_people_may_be_few() -> None:
    made = simulate_panel(2000, 3, 2, 2, people_density=0.25)
    count = made.crowd.to_frame()["worker"].value_counts()
    assert (count[["judge0", "judge1", "judge2"]] == 2000).all()
    assert (abs(count[["person0", "person1"]] - 500) < 80).all()


def test_the_same_seed_gives_the_same_panel_and_other_judges_meet_the_same_truth() -> None:
    one, again, other = simulate_panel(50), simulate_panel(50), simulate_panel(50, strength=0.1)
    assert one.crowd == again.crowd
    assert one.truth.equals(other.truth)
    assert one.opinions.equals(other.opinions)
    assert one.crowd != other.crowd
    assert one.kinds.tolist() == ["machine"] * 10 + ["person"] * 3
    assert one.shared.tolist() == [0.9] * 10 + [0.0] * 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_classes": 1}, "n_classes must be 2"),
        ({"n_tasks": 0}, "needs tasks"),
        ({"n_judges": 0, "n_people": 0}, "needs tasks and workers"),
        ({"n_models": 11}, "n_models must lie between 1"),
        ({"n_models": 0}, "n_models must lie between 1"),
        ({"strength": 1.5}, "strength must lie between 0 and 1"),
        ({"hard": -0.1}, "hard must lie between 0 and 1"),
        ({"people_accuracy": (0.9, 0.7)}, "in this order"),
        ({"judge_accuracy": 7}, "judge_accuracy must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        simulate_panel(**options)
