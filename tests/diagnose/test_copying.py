"""Who copies whom; the tests of flags are in test_workers.py."""

from __future__ import annotations

import numpy as np

from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.diagnose import copying


def test_suspects_are_left_out_together_only_where_that_is_little() -> None:
    crowd = simulate_crowd(n_tasks=1000, n_workers=200, labels_per_task=5).crowd
    first, second = np.arange(0, 60, 2), np.arange(1, 61, 2)
    batches = list(copying._left_out(crowd, first, second))
    assert sorted(worker for batch in batches for worker in batch) == second.tolist()
    votes = [crowd.labels_per_worker[batch].sum() for batch in batches]
    assert max(votes) <= copying.LEFT_OUT * crowd.n_labels
    assert len(batches) < len(second) / 2
    chain = list(copying._left_out(crowd, np.array([0, 1, 2]), np.array([1, 2, 3])))
    assert chain == [[1], [2], [3]]  # each is the first of the next
    few = simulate_crowd(n_tasks=100, n_workers=8).crowd
    assert list(copying._left_out(few, np.array([0, 2]), np.array([1, 3]))) == [[1], [3]]


def test_copiers_are_found_among_many_workers() -> None:
    kinds = ["noisy"] * 190 + ["copier(1)"] * 10
    made = simulate_crowd(n_tasks=2000, workers=kinds, labels_per_task=6, random_state=3)
    found = copying.copies(made.crowd, DawidSkene().fit(made.crowd)).found
    true = {frozenset(pair) for pair in made.copies.items()}
    got = {frozenset(pair) for pair in zip(found["first"], found["second"], strict=True)}
    assert len(true & got) >= 9
    assert len(got - true) <= 1


def test_two_who_press_the_same_button_do_not_copy() -> None:
    kinds = ["noisy(0.8)"] * 10 + ["one-button(1)"] * 2
    crowd = simulate_crowd(n_tasks=400, workers=kinds, labels_per_task=5).crowd
    found = copying.copies(crowd, DawidSkene().fit(crowd)).found
    assert not (set(found["first"]) | set(found["second"])) & {"w10", "w11"}
