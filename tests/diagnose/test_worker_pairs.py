"""Pairs of workers against a double loop."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, Panel, simulate_crowd
from wisecrowd.diagnose import worker_pairs
from wisecrowd.diagnose.worker_pairs import (
    WorkerPairs,
    find_near_duplicates,
    find_redundant_copiers,
    find_worker_pairs,
    independent_units,
    is_contradicted,
    share_single_label,
)

CROWD = simulate_crowd(60, 8, 3, votes_per_task=4, random_state=0).crowd


@pytest.mark.parametrize("min_common", [1, 13])
def test_pairs_equal_a_double_loop(min_common: int) -> None:
    labels = CROWD.to_frame().pivot(index="worker", columns="task", values="label")
    expected = {}
    for first, second in itertools.combinations(range(8), 2):
        both = labels.iloc[[first, second]].dropna(axis=1)
        if both.shape[1] >= min_common:
            expected[first, second] = (both.shape[1], (both.iloc[0] == both.iloc[1]).sum())
    pairs = find_worker_pairs(CROWD, DawidSkene().fit(CROWD), min_common)
    found = {(int(a), int(b)): (n, same) for a, b, n, same in zip(*pairs, strict=True)}
    assert found == expected
    assert len(pairs) == len(expected) > 0


def test_members_of_a_group_are_no_pair() -> None:
    groups = dict.fromkeys(CROWD.workers[:3], "model")
    fitted = Panel(groups=groups, kinds=dict.fromkeys(CROWD.workers[:3], "machine")).fit(CROWD)
    unit = independent_units(fitted, CROWD)
    assert unit[0] == unit[1] == unit[2]
    assert len(set(unit)) == 6
    pairs = find_worker_pairs(CROWD, fitted, 1)
    assert not {(0, 1), (0, 2), (1, 2)} & set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))


def make_pairs(n_common: list[float], n_same: list[float]) -> WorkerPairs:
    size = len(n_common)
    return WorkerPairs(np.zeros(size, dtype=int), np.arange(1, size + 1), np.array(n_common), np.array(n_same))


class TestNearDuplicates:
    CROWD = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in range(6)])

    def test_many_common_tasks_and_nearly_all_labels_equal(self) -> None:
        pairs = make_pairs([49, 50, 50, 100, 200], [49, 44, 45, 100, 190])
        duplicates = find_near_duplicates(self.CROWD, pairs)
        assert duplicates.second.tolist() == [4, 5, 3], "the most equal come first"

    def test_their_number_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(worker_pairs, "MAX_DUPLICATE_PAIRS", 1)
        assert find_near_duplicates(self.CROWD, make_pairs([60, 70], [60, 70])).second.tolist() == [2]

    def test_two_who_always_give_the_same_label_are_no_duplicates(self) -> None:
        crowd = Crowd.from_triples(
            [(task, worker, 0 if worker < 2 else task % 2) for task in range(60) for worker in range(4)]
        )
        pairs = find_worker_pairs(crowd, DawidSkene().fit(crowd), 1)
        single = share_single_label(crowd, pairs)
        assert [(int(a), int(b)) for a, b in zip(pairs.first[single], pairs.second[single], strict=True)] == [(0, 1)]
        remaining = find_near_duplicates(crowd, pairs)
        assert list(zip(remaining.first.tolist(), remaining.second.tolist(), strict=True)) == [(2, 3)]


class TestContradiction:
    def make(self, wrong: int, accuracy: float) -> tuple[Crowd, Crowd]:
        """Two duplicates are wrong on the first tasks; three others are right with the same probability."""
        rng = np.random.default_rng(0)
        right = rng.random((200, 3)) < accuracy
        votes = [(task, f"o{n}", task % 2 if right[task, n] else 1 - task % 2) for task in range(200) for n in range(3)]
        equal = [(task, who, (task + (task < wrong)) % 2) for task in range(200) for who in ("d0", "d1")]
        crowd = Crowd.from_triples(votes + equal)
        is_duplicate = crowd.worker_codes < 2
        return crowd.take(is_duplicate), crowd.take(~is_duplicate)

    def test_independent_workers_who_agree_against_them(self) -> None:
        assert is_contradicted(*self.make(wrong=80, accuracy=0.9))

    def test_duplicates_who_are_right(self) -> None:
        assert not is_contradicted(*self.make(wrong=0, accuracy=0.9))

    def test_others_who_guess_contradict_nobody(self) -> None:
        assert not is_contradicted(*self.make(wrong=80, accuracy=0.5))

    def test_nobody_else_voted(self) -> None:
        duplicates, others = self.make(wrong=80, accuracy=0.9)
        assert not is_contradicted(duplicates, others.take([]))


def test_all_but_the_first_of_several_equal_workers_are_redundant() -> None:
    table = pd.DataFrame({"first": ["a", "a", "b", "x"], "second": ["b", "c", "c", "y"]})
    assert find_redundant_copiers(table).tolist() == ["b", "c"]
    assert find_redundant_copiers(table.iloc[:0]).tolist() == []
