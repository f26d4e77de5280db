"""Groups of workers: formulas against brute force, planted groups found, and one group where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, simulate_crowd
from wisecrowd.diagnose import groups
from wisecrowd.diagnose.groups import group_workers
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import WisecrowdError
from wisecrowd.simulate.mixtures import simulate_gaussian_groups
from wisecrowd.simulate.patterns import simulate_patterns

KINDS = ["expert(0.9)"] * 10 + ["noisy(0.7)"] * 20 + ["spammer"] * 10 + ["adversary"] * 5
MADE = simulate_crowd(1000, workers=KINDS, n_classes=4, votes_per_task=5, random_state=0)


def rand(first: Any, second: Any) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(np.asarray(first), np.asarray(second)))


def test_the_tally_is_that_of_the_diagnosis() -> None:
    people = WorkerDiagnosis(MADE.crowd)
    said = groups._WorkerVotes.from_diagnosis(people).tally().counts.toarray().reshape(-1, 4, 4)
    wanted = np.zeros_like(said)
    pairs = people.crowd.pairs
    wanted[pairs.worker, :, pairs.label] = people.tally
    assert np.allclose(said, wanted, atol=groups.MIN_COUNT)


@pytest.mark.slow
def test_a_crowd_of_kinds() -> None:
    found = group_workers(MADE.crowd)
    assert found.memberships.columns.tolist() == ["group", "probability", "n_votes"]
    assert rand(found.memberships["group"], KINDS) > 0.9
    assert len(found.size) == 4
    assert found.size.sum() == len(KINDS)
    assert found.accuracy.is_monotonic_decreasing
    # As often right as they were made to be: not by the others' votes alone, which blur it.
    assert np.allclose(found.accuracy, [0.9, 0.7, 0.25, 0.2], atol=0.05)
    assert np.allclose(found.confusion.sum(axis=2), 1)
    assert found.descriptions[2].endswith("their labels are unrelated to the true class")
    assert "in 8" in found.descriptions[3]  # malice of 0.8
    assert found.search.index[0] == 1
    assert found.search["behind"].min() == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_one_group_is_possible(seed: int) -> None:
    made = simulate_crowd(1000, workers=["noisy(0.7)"] * 40, n_classes=4, votes_per_task=5, random_state=seed)
    found = group_workers(made.crowd)
    assert found.size.tolist() == [40]
    assert (found.memberships["probability"] == 1).all()
    assert found.accuracy[0] == pytest.approx(0.7, abs=0.03)
    assert found.descriptions == (f"40 workers: right {found.accuracy[0]:.0%} of the time; no dominant error",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "index", "by_k_means"),
    [("IND-I", 0.61, 0.33), ("IND-II", 0.79, 0.41), ("IND-III", 0.86, 0.50), ("IND-IV", 0.45, 0.27)],
)
def test_planted_patterns(name: str, index: float, by_k_means: float) -> None:
    """Sixty votes of each worker: the figures that the docstring tells."""
    from sklearn.cluster import KMeans

    made = simulate_patterns(name, n_tasks=5000)
    people = WorkerDiagnosis(made.crowd)
    busy = made.crowd.votes_per_worker > 0
    found = group_workers(people, 5).memberships["group"].to_numpy()
    assert rand(made.pattern[busy], found[busy]) == pytest.approx(index, abs=0.02)
    points = people.confusion_of(np.flatnonzero(busy)).reshape(busy.sum(), -1)
    clusters = KMeans(5, n_init=10, random_state=0).fit_predict(points)
    assert rand(made.pattern[busy], clusters) == pytest.approx(by_k_means, abs=0.02)


def test_few_votes_mean_an_uncertain_place() -> None:
    made = simulate_gaussian_groups(600, n_tasks=1500, random_state=0)
    found = group_workers(made.crowd, 3)
    table = found.memberships
    few, many = table["n_votes"] <= 5, table["n_votes"] >= 15
    assert table.loc[few, "probability"].mean() < table.loc[many, "probability"].mean() - 0.1
    assert rand(made.group[many], table.loc[many, "group"]) > 0.8
    assert found.search.empty
    assert table["probability"].between(1 / 3, 1 + 1e-12).all()
    # A probability means what it says: that share of the workers are where they were put.
    place = pd.crosstab(table["group"], made.group).to_numpy().argmax(axis=1)
    right = place[table["group"]] == pd.factorize(made.group, sort=True)[0]
    assert right.mean() == pytest.approx(table["probability"].mean(), abs=0.08)


def test_everybody_is_placed_though_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_WORKERS", 30)
    found = group_workers(MADE.crowd, 4)
    assert len(found.memberships) == len(KINDS)
    assert rand(found.memberships["group"], KINDS) > 0.7


def test_same_seed_same_groups() -> None:
    people = WorkerDiagnosis(MADE.crowd)
    first, again = group_workers(people, 4), group_workers(people, 4)
    assert first.memberships.equals(again.memberships)
    assert np.array_equal(first.confusion, again.confusion)
    assert first.memberships["group"].equals(group_workers(MADE.crowd.to_frame(), 4).memberships["group"])


def test_sentences() -> None:
    prior, names = np.array([0.5, 0.3, 0.2]), ["street", "inside city", "coast"]
    seen = np.full(3, 100.0)
    mixer = np.array([[0.6, 0.35, 0.05], [0.02, 0.96, 0.02], [0.02, 0.02, 0.96]])
    told = groups._describe_group(12, mixer, seen, prior, names)
    assert told == "12 workers: right 78% of the time; say 'inside city' for 'street' in 35%"
    unseen = groups._describe_group(12, mixer, np.array([2.0, 100.0, 100.0]), prior, names)
    assert unseen == "12 workers: right 78% of the time; no dominant error"
    button = np.tile([0.02, 0.96, 0.02], (3, 1))
    told = groups._describe_group(1, button, seen, prior, names)
    assert told == "1 worker: right 30% of the time; say 'inside city' in 96%, whatever the true class"
    two = groups._describe_group(3, np.array([[0.75, 0.25], [0.1, 0.9]]), seen[:2], np.array([0.5, 0.5]), ["no", "yes"])
    assert two == "3 workers: right 82% of the time; say 'yes' for 'no' in 25%"


def test_odd_crowds_and_bad_input() -> None:
    single = Crowd.from_triples(
        [(task, "ann", task % 2) for task in range(4)] + [(0, "bob", 0)], workers=["ann", "bob", "cy"]
    )
    found = group_workers(single)
    assert found.size.sum() == 2  # who never voted is in no group's count, and still has a row
    assert len(found.memberships) == 3
    assert not found.memberships.isna().any().any()
    one_class = Crowd.from_triples([(task, worker, "x") for task in range(4) for worker in "ab"])
    assert group_workers(one_class).descriptions == ("2 workers: right 100% of the time",)
    identical = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in "abc"])
    assert group_workers(identical, 3).size.sum() == 3  # groups that nobody is in are left out
    with pytest.raises(WisecrowdError, match="must lie between 1 and"):
        group_workers(single, 3)
    with pytest.raises(WisecrowdError, match="max_groups"):
        group_workers(single, max_groups=0)
    with pytest.raises(WisecrowdError, match="worker ids"):
        group_workers(single.drop_workers())
    with pytest.raises(WisecrowdError, match="no votes"):
        group_workers(single.take(np.zeros(5, dtype=bool)))


@pytest.mark.parametrize("seed", [5, 6, 11, 19])
def test_groups_that_votes_do_not_tell_apart_are_one(seed: int) -> None:
    kinds = ["noisy(0.8)"] * 4 + ["noisy(0.7)"]
    found = group_workers(simulate_crowd(40, workers=kinds, n_classes=2, votes_per_task=5, random_state=seed).crowd)
    assert found.size.tolist() == [5]
    assert found.search["behind"].iloc[0] > found.search["standard_error"].iloc[0]  # of next to nothing


def test_members_are_named_and_counted() -> None:
    found = group_workers(MADE.crowd, 2)
    names = found.members(0, max_names=3)
    assert len(names) == 4
    assert names[-1] == f"and {found.size[0] - 3:,} more"
    assert found.memberships.loc[names[0], "group"] == 0
    assert len(found.members(1, max_names=10_000)) == found.size[1]


@pytest.mark.slow
def test_many_classes_are_one_group_of_few_fitted_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand workers and classes with a vote each took minutes."""
    rng = np.random.default_rng(0)
    task, label = np.arange(1200) // 3, rng.integers(600, size=1200)
    crowd = Crowd.from_codes(
        task, np.arange(1200) % 300, label, tasks=range(400), workers=range(300), classes=range(600)
    )
    fitted_workers = []
    select_workers = groups._WorkerVotes.select_workers

    def record(votes: Any, workers: Any) -> Any:
        fitted_workers.append(len(workers))
        return select_workers(votes, workers)

    monkeypatch.setattr(groups._WorkerVotes, "select_workers", record)
    monkeypatch.setattr(groups, "_choose_n_groups", None)
    monkeypatch.setattr(groups, "MAX_FITTED_ENTRIES", 100)
    found = group_workers(crowd)
    assert found.size.tolist() == [300]
    assert found.search.empty
    assert fitted_workers == [groups.MIN_WORKERS]
