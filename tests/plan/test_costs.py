"""Plans for money: people and judges have prices, and a judge whose group has answered adds little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import entr

from wisecrowd import Crowd, Panel, estimate_confidence, find_finished_tasks, plan_votes, simulate_crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate import PanelSimulation, simulate_panel

PRICES = {"person": 1.0, "machine": 0.1}


@pytest.fixture(scope="module")
def made() -> PanelSimulation:
    return simulate_panel(300, 6, 4, 3, strength=0.9, people_density=0.4, random_state=21)


@pytest.fixture(scope="module")
def unfinished(made: PanelSimulation) -> Crowd:
    """Judges have not seen the second half of the tasks; judge5 has hardly seen any."""
    votes = made.crowd.to_frame()
    late = votes["task"] >= made.crowd.tasks[150]
    keep = votes["worker"].str.startswith("person") | (~late & (votes["worker"] != "judge5"))
    keep |= (votes["worker"] == "judge5") & (votes["task"] < made.crowd.tasks[40])
    return Crowd.from_frame(votes[keep], tasks=made.crowd.tasks, classes=made.crowd.classes)


@pytest.fixture(scope="module")
def panel(made: PanelSimulation, unfinished: Crowd) -> Panel:
    return Panel(groups=made.groups, kinds=made.kinds).fit(unfinished)


def test_what_a_judge_would_say_follows_from_its_group(panel: Panel, unfinished: Crowd) -> None:
    """P(y_new | z, votes) = P(y_new, votes | z) / P(votes | z), by the panel's own sums over opinions."""
    told = panel.expected_answers(unfinished)
    judge = int(unfinished.workers.get_loc("judge5"))
    task = int(np.flatnonzero(unfinished.tasks == made_task(unfinished, 60))[0])
    own = told.own
    a, sigma = panel.shared_, panel.opinion_confusion_[0]
    rows = (unfinished.task == task) & (panel.group_[unfinished.worker] >= 0)
    assert rows.sum() == 5

    def likelihood(votes: list[tuple[int, int]]) -> np.ndarray:
        said = [own[r, :, label, None] + a[r] * (np.arange(3) == label) for r, label in votes]
        return np.asarray((sigma * np.prod(said, axis=0)).sum(axis=1))

    cast = list(zip(unfinished.worker[rows], unfinished.label[rows], strict=True))
    wanted = np.stack([likelihood([*cast, (judge, label)]) / likelihood(cast) for label in range(3)], axis=1)
    assert np.allclose(told.confusion_on(task, np.array([judge]))[0], wanted, atol=1e-9)
    fresh = int(np.flatnonzero(unfinished.tasks == made_task(unfinished, 200))[0])
    alone = np.stack([likelihood([(judge, label)]) for label in range(3)], axis=1)
    assert np.allclose(told.confusion_on(fresh, np.array([judge]))[0], alone, atol=1e-9)


def made_task(crowd: Crowd, place: int) -> Any:
    return crowd.tasks[place]


def test_a_judge_of_a_group_that_answered_adds_little(panel: Panel, unfinished: Crowd) -> None:
    told = panel.expected_answers(unfinished)
    judge = np.array([unfinished.workers.get_loc("judge5")])
    even = np.full(3, 1 / 3)

    def gain(task: int) -> float:
        matrix = told.confusion_on(task, judge)[0]
        return float(entr(even @ matrix).sum() - even @ entr(matrix).sum(axis=1))

    seen = [gain(task) for task in range(50, 150)]
    unseen = gain(200)
    assert np.mean(seen) < 0.35 * unseen


def test_money_buys_judges_where_they_tell_something_and_people_elsewhere(panel: Panel, unfinished: Crowd) -> None:
    found = plan_votes(unfinished, budget=30, model=panel, costs=PRICES, per_worker=1000)
    asks = found.requests.assign(late=found.requests["task"] >= unfinished.tasks[150])
    is_judge = asks["worker"].str.startswith("judge")
    assert asks["cost"].tolist() == is_judge.map({True: 0.1, False: 1.0}).tolist()
    assert asks["cost"].sum() <= 30 + 1e-9
    assert found.curve["money"].iloc[-1] == pytest.approx(asks["cost"].sum())
    assert asks["late"][is_judge].mean() > 0.8  # where the model was not asked yet
    assert is_judge.any()
    assert (~is_judge).any()
    assert (asks[is_judge].groupby("task").size() == 1).all()
    assert "for 30.00" in found.summary or "for 29." in found.summary
    dear = plan_votes(unfinished, budget=30, model=panel, costs={"person": 1.0, "machine": 1.0}, per_worker=1000)
    assert dear.requests["worker"].str.startswith("judge").mean() < is_judge.mean()
    assert found.curve["expected_accuracy"].iloc[-1] > dear.curve["expected_accuracy"].iloc[-1]


def test_the_order_is_by_gain_for_the_price(panel: Panel, unfinished: Crowd) -> None:
    asks = plan_votes(unfinished, budget=20, model=panel, costs=PRICES, per_worker=1000, per_task=1).requests
    value = (asks["gain"] / asks["cost"]).to_numpy()
    assert (value[1:] <= value[:-1] * 1.011).all()  # within what is near enough where workers have limits


def test_among_restricts_a_panel_too(panel: Panel, unfinished: Crowd) -> None:
    offers = pd.DataFrame({"task": unfinished.tasks[200:210].repeat(2), "worker": ["judge0", "judge1"] * 10})
    asks = plan_votes(
        unfinished, budget=5, model=panel, costs={**PRICES, "judge1": 0.05, "judge4": 9.0}, among=offers
    ).requests
    assert 0 < len(asks) <= 10
    assert asks["task"].is_unique  # one judge of a group
    assert set(asks["cost"][asks["worker"] == "judge1"]) == {0.05}  # a worker's own price, and judge4 is not asked
    stranger = plan_votes(unfinished, budget=5, model=panel, cost=1.0, workers=["judge0", "somebody else"]).requests
    assert set(stranger["worker"]) <= {"judge0", "somebody else"}


def test_equal_prices_change_nothing() -> None:
    crowd = simulate_crowd(n_tasks=80, n_workers=10, n_classes=3, votes_per_task=3, random_state=2).crowd
    plain = plan_votes(crowd, budget=10, cost=0.5)
    priced = plan_votes(crowd, budget=10, cost=0.5, costs={"w0": 0.5})
    pd.testing.assert_frame_equal(plain.requests, priced.requests.drop(columns="cost"))
    assert np.allclose(plain.curve, priced.curve)


def test_who_is_dear_is_asked_less() -> None:
    crowd = simulate_crowd(n_tasks=80, workers=["noisy(0.8)"] * 6, n_classes=2, votes_per_task=2, random_state=2).crowd
    dear = plan_votes(crowd, budget=20, costs={"w0": 5.0, "w1": 5.0}, per_worker=100).requests
    assert not dear["worker"].isin(["w0", "w1"]).any()
    assert len(dear) == 20
    left = plan_votes(crowd, budget=21.5, costs=dict.fromkeys([f"w{n}" for n in range(6)], 2.0), per_worker=100)
    assert len(left.requests) == 10  # the rest buys nothing


def test_a_panel_says_what_may_stop(panel: Panel, unfinished: Crowd) -> None:
    stops = find_finished_tasks(unfinished, 0.8, model=panel)
    enough = unfinished.votes_per_task >= 2
    confidence = estimate_confidence(panel, unfinished).confidence
    assert stops.tolist() == ((confidence >= 0.8) & enough).tolist()
    assert 0 < stops.sum() < enough.sum()


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"robot": 1.0}, "unknown workers or kinds: 'robot'"),
        ({"person": -1.0}, "positive number"),
        ({"person": "much"}, "positive number"),
        ({"person": float("nan")}, "positive number"),
        (["person"], "must be a dict"),
        ({"person": 100.0, "machine": 50.0}, "at a cost of 50; got 10"),
    ],
)
def test_prices_that_do_not_fit_are_refused(panel: Panel, unfinished: Crowd, costs: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan_votes(unfinished, budget=10, model=panel, costs=costs)


def test_a_panel_plans_for_its_own_votes(panel: Panel, unfinished: Crowd) -> None:
    with pytest.raises(UsageError, match="that the model was fitted to"):
        plan_votes(unfinished[:50], budget=10, model=panel)
