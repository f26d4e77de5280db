"""Which votes to buy next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import Crowd, DawidSkene, simulate_crowd
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.plan import acquisition
from wisecrowd.plan.acquisition import plan_votes
from wisecrowd.plan.starting_point import assess_votes
from wisecrowd.plan.stopping import find_finished_tasks
from wisecrowd.simulate import Simulation

SOME = simulate_crowd(
    n_tasks=150, workers=["noisy(0.85)"] * 8 + ["spammer"] * 2, n_classes=3, votes_per_task=4, random_state=1
)
FITTED = DawidSkene().fit(SOME.crowd)


def entropy(posterior: np.ndarray) -> float:
    return -sum(float(p * np.log(p)) for p in posterior if p > 0)


def brute_gain(posterior: np.ndarray, matrix: np.ndarray) -> float:
    """H(q) − Σ_l P(l) H(q | l), term by term."""
    gain = entropy(posterior)
    for label in range(len(posterior)):
        joint = posterior * matrix[:, label]
        if joint.sum() > 0:
            gain -= joint.sum() * entropy(joint / joint.sum())
    return gain


def random_matrices(rng: np.random.Generator, n_workers: int, n_classes: int) -> np.ndarray:
    return rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))


def everything(crowd: Crowd) -> pd.DataFrame:
    """All pairs of a task and a worker."""
    assert crowd.workers is not None
    task, worker = np.divmod(np.arange(crowd.n_tasks * crowd.n_workers), crowd.n_workers)
    return pd.DataFrame({"task": crowd.tasks[task], "worker": crowd.workers[worker]})


def as_pairs(frame: pd.DataFrame) -> set[tuple[Any, Any]]:
    return set(zip(frame["task"], frame["worker"], strict=True))


def test_the_plan_of_a_small_crowd_is_the_best_of_all_pairs() -> None:
    """Every pair, by brute force; then every pair again, given the first answer in each of its ways."""
    crowd = SOME.crowd[:15]
    people = WorkerDiagnosis(crowd)
    posterior = assess_votes(crowd, people.fitted).posterior
    confusion = people.confusion_of(np.arange(crowd.n_workers))
    found = plan_votes(crowd, 40, target=1.0, model=people.fitted)
    voted = as_pairs(crowd.to_frame())
    spammers = set(found.excluded_workers)
    drops = {
        (crowd.tasks[i], crowd.workers[r]): brute_gain(posterior[i], confusion[r])  # type: ignore[index]
        for i in range(crowd.n_tasks)
        for r in range(crowd.n_workers)
    }
    free = {pair: drop for pair, drop in drops.items() if pair not in voted and pair[1] not in spammers}
    first = found.requests.iloc[0]
    assert first["gain"] == pytest.approx(max(free.values()))
    assert free[first["task"], first["worker"]] == pytest.approx(max(free.values()))
    assert first["confidence"] == pytest.approx(posterior[crowd.tasks.get_loc(first["task"])].max())
    twice = found.requests[found.requests["task"].duplicated()].iloc[0]
    before = found.requests[found.requests["task"] == twice["task"]].iloc[0]
    assert crowd.workers is not None
    q = posterior[crowd.tasks.get_loc(twice["task"])]
    one, two = (confusion[crowd.workers.get_loc(ask["worker"])] for ask in (before, twice))
    joint = q[:, None] * one
    wanted = sum(joint[:, said].sum() * brute_gain(joint[:, said] / joint[:, said].sum(), two) for said in range(3))
    assert twice["gain"] == pytest.approx(wanted)
    both = q[:, None, None] * one[:, :, None] * two[:, None, :]
    assert twice["expected_confidence"] == pytest.approx(both.max(axis=0).sum())
    assert twice["confidence"] == pytest.approx(before["expected_confidence"])


# ---------------------------------------------------------------------- what a plan keeps to


@pytest.mark.slow
@settings(max_examples=min(12, settings.default.max_examples))
@given(st.integers(1, 150), st.integers(1, 4), st.one_of(st.none(), st.integers(1, 9)), st.floats(0.5, 1.0))
def test_limits_are_kept(budget: int, per_task: int, per_worker: int | None, target: float) -> None:
    found = plan_votes(SOME.crowd, budget, model=FITTED, per_task=per_task, per_worker=per_worker, target=target)
    asks = found.requests
    assert len(asks) <= budget
    assert not as_pairs(asks) & as_pairs(SOME.crowd.to_frame())
    assert not asks.duplicated(["task", "worker"]).any()
    assert asks["task"].value_counts().max() <= per_task
    assert per_worker is None or asks["worker"].value_counts().max() <= per_worker
    assert not set(asks["task"]) & set(found.finished_tasks.index)
    assert not set(asks["worker"]) & set(found.excluded_workers)
    assert (found.finished_tasks["confidence"] >= target).all()
    assert (asks["expected_confidence"] >= asks["confidence"] - 1e-12).all()
    assert (found.curve["expected_accuracy"].diff().dropna() >= -1e-12).all()
    assert len(found.curve) == len(asks) + 1


def test_spammers_are_not_asked_and_it_is_said() -> None:
    found = plan_votes(SOME.crowd, 10)
    assert set(found.excluded_workers) == {"w8", "w9"}
    assert "Excluded as spammers: 'w8', 'w9'." in found.summary


def test_money_is_labels_times_cost() -> None:
    found = plan_votes(SOME.crowd, 3, cost=0.3)
    assert len(found.requests) == 10  # which 3 / 0.3 is, and not quite in floating point
    assert found.curve["money"].iloc[-1] == pytest.approx(3)
    assert "10 votes for 3.00" in found.summary


def test_the_same_votes_in_another_order_make_the_same_plan() -> None:
    frame = SOME.crowd.to_frame().sample(frac=1, random_state=0)
    again = Crowd.from_frame(frame, tasks=SOME.crowd.tasks, workers=SOME.crowd.workers, classes=SOME.crowd.classes)
    pd.testing.assert_frame_equal(plan_votes(SOME.crowd, 30).requests, plan_votes(again, 30).requests)


def test_only_those_who_can_be_asked_are() -> None:
    found = plan_votes(SOME.crowd, 20, workers=["w0", "w5", "newcomer"])
    assert set(found.requests["worker"]) <= {"w0", "w5", "newcomer"}
    alone = plan_votes(SOME.crowd, 5, workers=["newcomer"])
    assert set(alone.requests["worker"]) == {"newcomer"}  # by the matrix of the crowd
    assert (alone.requests["gain"] > 0).all()


@pytest.mark.slow
def test_only_pairs_on_offer_are_asked() -> None:
    offers = pd.DataFrame({"task": SOME.crowd.tasks[:30].repeat(2), "worker": ["w0", "w7"] * 30})
    found = plan_votes(SOME.crowd, 100, among=offers, per_task=5, target=1.0)
    voted = as_pairs(SOME.crowd.to_frame())
    assert as_pairs(found.requests) == as_pairs(offers) - voted
    assert plan_votes(SOME.crowd, 9, among=offers.assign(worker="w9")).requests.empty  # a spammer
    assert plan_votes(SOME.crowd, 9, among=offers.iloc[:0]).requests.empty
    both = plan_votes(SOME.crowd, 100, among=offers, workers=["w0", "elsewhere"], target=1.0)
    assert set(both.requests["worker"]) == {"w0"}
    strange = plan_votes(SOME.crowd, 9, among=[{"task": SOME.crowd.tasks[0], "worker": "newcomer"}], target=1.0)
    assert strange.requests["worker"].tolist() == ["newcomer"]


def test_no_worker_is_asked_everything_unless_it_is_said() -> None:
    limited = plan_votes(SOME.crowd, 40, model=FITTED).requests["worker"].value_counts()
    assert limited.sum() == 40
    assert limited.max() <= 10  # twice an equal share of the eight who are no spammers
    anyhow = plan_votes(SOME.crowd, 40, model=FITTED, per_worker=40).requests["worker"].value_counts()
    assert anyhow.max() > limited.max()


def test_offers_of_everything_are_no_restriction() -> None:
    some = plan_votes(SOME.crowd, 40, among=everything(SOME.crowd), per_worker=40).requests
    anything = plan_votes(SOME.crowd, 40, per_worker=40).requests
    order = ["task", "gain"]  # questions that are worth nearly the same may come in any order
    pd.testing.assert_frame_equal(
        some.sort_values(order, ignore_index=True), anything.sort_values(order, ignore_index=True)
    )


@pytest.mark.slow
def test_a_short_list_of_many_workers_holds_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    made = simulate_crowd(n_tasks=300, n_workers=150, n_classes=2, votes_per_task=4, random_state=0)
    model = DawidSkene().fit(made.crowd)
    short = plan_votes(made.crowd, 60, model=model)
    monkeypatch.setattr(acquisition, "MAX_WORKERS", 1000)
    whole = plan_votes(made.crowd, 60, model=model)
    pd.testing.assert_frame_equal(short.requests, whole.requests)
    each = plan_votes(made.crowd, 140, model=model, per_worker=1)  # a short list that must not run out
    assert len(each.requests) == 140 - max(0, len(each.excluded_workers) - 10)


def test_tasks_without_votes_are_asked_about() -> None:
    known = SOME.crowd
    crowd = Crowd.from_frame(known.to_frame(), tasks=[*known.tasks, "new", "newer"], classes=known.classes)
    found = plan_votes(crowd, 8, per_task=4)
    assert {"new", "newer"} <= set(found.requests["task"])
    posterior = assess_votes(crowd).posterior
    assert posterior[-1] == pytest.approx(posterior[-2])
    assert not find_finished_tasks(crowd, 0.3)[["new", "newer"]].any()


# ---------------------------------------------------------------------- whether it is any good


def bought(made: Simulation, crowd: Crowd, asks: Iterable[tuple[Any, Any]], seed: int) -> Crowd:
    """The crowd with the answers: each worker speaks by their true matrix."""
    rng = np.random.default_rng(seed)
    assert crowd.workers is not None
    assert crowd.classes is not None
    task, worker = (list(names) for names in zip(*asks, strict=True))
    true = crowd.classes.get_indexer(pd.Index(made.truth.loc[task]))
    chance = made.confusion[crowd.workers.get_indexer(pd.Index(worker)), true].cumsum(axis=1)
    label = (rng.random((len(task), 1)) > chance).sum(axis=1)
    answers = pd.DataFrame({"task": task, "worker": worker, "label": crowd.classes[label]})
    frame = pd.concat([crowd.to_frame(), answers])
    return Crowd.from_frame(frame, tasks=crowd.tasks, workers=crowd.workers, classes=crowd.classes)


@pytest.mark.slow
def test_votes_bought_by_plan_are_worth_more_than_votes_at_random() -> None:
    """Two rounds of 150 votes on 300 tasks, four crowds."""
    ahead = []
    for seed in range(4):
        made = simulate_crowd(
            n_tasks=300, workers=["expert"] * 5 + ["noisy"] * 10 + ["spammer"] * 5, n_classes=3, votes_per_task=3,
            random_state=seed,
        )  # fmt: skip
        planned = anyhow = made.crowd
        rng = np.random.default_rng(seed)
        for number in range(2):
            asks = plan_votes(planned, 150, per_worker=30).requests
            planned = bought(made, planned, sorted(as_pairs(asks)), 10 * seed + number)
            free = sorted(as_pairs(everything(anyhow)) - as_pairs(anyhow.to_frame()))
            some = [free[place] for place in rng.permutation(len(free))[:150]]
            anyhow = bought(made, anyhow, some, 10 * seed + number)
        right = [(DawidSkene().fit(crowd).labels_ == made.truth).mean() for crowd in (planned, anyhow)]
        ahead.append(right[0] - right[1])
    assert min(ahead) > 0.04
    assert np.mean(ahead) > 0.07


# ---------------------------------------------------------------------- odd crowds and mistakes


@pytest.mark.parametrize(
    "rows",
    [
        [("t1", "ann", "x"), ("t1", "bob", "x"), ("t2", "ann", "x"), ("t2", "bob", "x")],  # one class
        [("t1", "ann", "x"), ("t1", "bob", "y")],  # one task, by all
        [("t1", "ann", "x"), ("t1", "bob", "x"), ("t2", "bob", "y")],  # one vote on a task
        [(t, w, "x" if t else "y") for t in range(9) for w in range(9)],  # everybody on everything
    ],
)
def test_odd_crowds_get_an_answer(rows: list[tuple[object, object, str]]) -> None:
    found = plan_votes(Crowd.from_triples(rows), 5)
    assert np.isfinite(found.curve.to_numpy()).all()
    assert found.summary
    assert len(found.requests) <= 5


def test_where_nothing_is_left_to_ask_it_is_said() -> None:
    full = Crowd.from_triples([(t, w, int(t % 2)) for t in range(9) for w in range(9)])
    assert "No vote is worth requesting" in plan_votes(full, 5, target=1.0).summary
    found = plan_votes(SOME.crowd, 5000)
    assert len(found.requests) < 5000
    assert "votes are not needed" in found.summary


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 0}, "budget must cover at least one vote"),
        ({"budget": 1, "cost": 2}, "at a cost of 2; got 1"),
        ({"budget": float("nan")}, "budget must cover at least one vote"),
        ({"cost": 0}, "cost must be a positive number"),
        ({"target": 0}, "target must be a probability"),
        ({"target": 95}, "target must be a probability"),
        ({"per_task": 0}, "must be 1 or more"),
        ({"per_worker": 0}, "must be 1 or more"),
        ({"workers": "w0"}, "workers must be a list of ids"),
        ({"workers": []}, "is empty"),
        ({"among": pd.DataFrame({"task": ["t0"]})}, "columns task and worker"),
        ({"among": pd.DataFrame({"task": ["nowhere"], "worker": ["w0"]})}, "not in the crowd: 'nowhere'"),
        ({"model": "majority-vote"}, "majority-vote has no confusion matrices"),
        ({"model": 3}, "must be a fitted method with confusion matrices"),
    ],
)
def test_mistakes_get_a_message(given: dict[str, object], message: str) -> None:
    with pytest.raises(WisecrowdError, match=message):
        plan_votes(SOME.crowd, **{"budget": 10, **given})  # type: ignore[arg-type]


def test_crowds_that_cannot_be_planned_for_are_refused() -> None:
    with pytest.raises(UsageError, match="needs worker ids"):
        plan_votes(SOME.crowd.drop_workers(), 10)
    with pytest.raises(InputError, match="no votes to plan from"):
        plan_votes(SOME.crowd.take([]), 10)
    with pytest.raises(UsageError, match="target"):
        find_finished_tasks(SOME.crowd, 2)


def test_offered_ids_may_be_text_where_votes_have_numbers() -> None:
    made = simulate_crowd(60, workers=["expert(0.95)"] * 3 + ["noisy(0.6)"] * 3, n_classes=2, votes_per_task=2)
    crowd = made.crowd.replace_fields(tasks=range(60), workers=range(28, 34))
    for options in (
        {"workers": list(crowd.workers)},
        {"among": crowd.to_frame()[["task", "worker"]].assign(worker=30)},
    ):
        texts = {
            name: value.astype(str) if isinstance(value, pd.DataFrame) else [str(worker) for worker in value]
            for name, value in options.items()
        }
        expected, given = plan_votes(crowd, budget=5, **options), plan_votes(crowd, budget=5, **texts)
        assert len(expected.requests) == 5
        assert given.requests["task"].tolist() == expected.requests["task"].tolist()
        np.testing.assert_allclose(given.requests["gain"], expected.requests["gain"])
