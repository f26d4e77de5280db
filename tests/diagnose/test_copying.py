"""Pairs of workers who copy; `test_workers.py` tests the flags."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, diagnose_crowd, simulate_crowd
from wisecrowd.diagnose import copying
from wisecrowd.diagnose.worker_pairs import find_near_duplicates, find_worker_pairs
from wisecrowd.simulate.panels import simulate_panel


def test_suspects_are_left_out_together_only_where_that_is_little() -> None:
    crowd = simulate_crowd(n_tasks=1000, n_workers=200, votes_per_task=5).crowd
    first, second = np.arange(0, 60, 2), np.arange(1, 61, 2)
    batches = list(copying._iter_excluded(crowd, first, second))
    assert sorted(worker for batch in batches for worker in batch) == second.tolist()
    votes = [crowd.votes_per_worker[batch].sum() for batch in batches]
    assert max(votes) <= copying.MAX_EXCLUDED_SHARE * crowd.n_votes
    assert len(batches) < len(second) / 2
    chain = list(copying._iter_excluded(crowd, np.array([0, 1, 2]), np.array([1, 2, 3])))
    assert chain == [[1], [2], [3]]  # each is the first of the next
    few = simulate_crowd(n_tasks=100, n_workers=8).crowd
    assert list(copying._iter_excluded(few, np.array([0, 2]), np.array([1, 3]))) == [[1], [3]]


def test_copiers_are_found_among_many_workers() -> None:
    kinds = ["noisy"] * 190 + ["copier(1)"] * 10
    made = simulate_crowd(n_tasks=2000, workers=kinds, votes_per_task=6, random_state=3)
    found = copying.find_copying_pairs(made.crowd, DawidSkene().fit(made.crowd)).flagged
    true = {frozenset(pair) for pair in made.copies.items()}
    got = {frozenset(pair) for pair in zip(found["first"], found["second"], strict=True)}
    assert len(true & got) >= 9
    assert len(got - true) <= 1


def test_two_who_press_the_same_button_do_not_copy() -> None:
    kinds = ["noisy(0.8)"] * 10 + ["one-button(1)"] * 2
    crowd = simulate_crowd(n_tasks=400, workers=kinds, votes_per_task=5).crowd
    found = copying.find_copying_pairs(crowd, DawidSkene().fit(crowd)).flagged
    assert not (set(found["first"]) | set(found["second"])) & {"w10", "w11"}


@pytest.mark.parametrize("strength", [0.93, 1.0])
@pytest.mark.slow
def test_ten_who_say_the_same_are_found_and_people_are_not(strength: float) -> None:
    crowd = simulate_panel(500, 10, 3, 3, strength=strength, random_state=4).crowd
    found = copying.find_copying_pairs(crowd, DawidSkene().fit(crowd)).flagged
    names = set(found["first"]) | set(found["second"])
    assert names == {f"judge{number}" for number in range(10)}
    workers = diagnose_crowd(crowd).workers
    assert (workers["flags"] == "copies").to_dict() == {name: name.startswith("judge") for name in workers.index}
    assert "other workers)" in workers.loc["judge4", "why"]
    assert len(workers.loc["judge4", "why"]) < 200


@pytest.mark.parametrize("others", ["spammer", "noisy(0.6)", "mixer(0.6)"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_experts_answer_alike_because_they_are_right(others: str, n_classes: int) -> None:
    kinds = ["noisy(0.97)"] * 8 + [others] * 4
    crowd = simulate_crowd(400, workers=kinds, n_classes=n_classes, votes_per_task=len(kinds)).crowd
    fitted = DawidSkene().fit(crowd)
    assert len(find_near_duplicates(crowd, find_worker_pairs(crowd, fitted, 10))) == 28  # they are looked at
    assert not len(copying.find_copying_pairs(crowd, fitted).flagged)


def test_two_who_say_the_same_among_few_are_found() -> None:
    votes = simulate_panel(500, 0, 4, 3, random_state=4).crowd.to_frame()
    cheat = votes[votes["worker"] == "person2"].assign(worker="copy")
    crowd = Crowd.from_frame(pd.concat([votes, cheat]))
    found = copying.find_copying_pairs(crowd, DawidSkene().fit(crowd)).flagged
    assert found[["first", "second"]].to_numpy().tolist() == [["copy", "person2"]]


@pytest.mark.data
def test_nobody_is_a_twin_among_the_bluebirds(dataset: object) -> None:
    crowd = dataset("bluebirds").crowd  # type: ignore[operator]
    assert not len(copying.find_copying_pairs(crowd, DawidSkene().fit(crowd)).flagged)
