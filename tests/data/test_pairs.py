"""Pairs of worker and label."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.data import pairs as pairs_module
from wisecrowd.data.pairs import Pairs, find_pairs


def test_pairs_of_a_huge_vocabulary_are_as_many_as_votes() -> None:
    crowd = Crowd.from_codes([0, 1], [5, 99_999], [7, 99], tasks=range(2), workers=range(100_000), classes=range(100))
    assert len(crowd.pairs) == 2


@pytest.mark.parametrize("n_workers", [0, 1, 7])
def test_both_algorithms_find_the_same_pairs(n_workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n_workers)
    worker = None if n_workers == 0 else rng.integers(n_workers, size=50)
    label = rng.integers(3, size=50)
    dense = find_pairs(worker, label, n_workers, 3)
    monkeypatch.setattr(pairs_module, "DENSE_TABLE_CELLS", -1_000)
    sorted_pairs = find_pairs(worker, label, n_workers, 3)
    for name in ("worker", "label", "vote_pairs", "n_workers"):
        assert np.array_equal(getattr(dense, name), getattr(sorted_pairs, name))
    assert np.array_equal(dense.label[dense.vote_pairs], label)


def test_sums_by_worker_are_those_of_bincount() -> None:
    rng = np.random.default_rng(0)
    worker, label = rng.integers(6, size=40), rng.integers(4, size=40)
    worker[worker == 2] = 3  # worker 2 has no votes
    pairs = find_pairs(worker, label, 8, 4)
    table = rng.random((len(pairs), 2))
    total = pairs.sum_by_worker(table)
    assert total.shape == (8, 2)
    for column in range(2):
        np.testing.assert_allclose(total[:, column], np.bincount(pairs.worker, table[:, column], minlength=8))


def test_pairs_for_other_votes_share_what_is_cached() -> None:
    pairs = find_pairs(np.array([0, 1]), np.array([1, 0]), 2, 2)
    compact = pairs.compact_label
    other = pairs.with_votes(np.array([1, 1, 0], dtype=np.int32))
    assert other.compact_label is compact
    assert other.vote_pairs.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("worker", "label", "problem"),
    [
        ([0, 0, 1], [0, 1, 1], None),
        ([], [], None),
        ([0, 0, 2], [0, 1, 1], "worker codes"),
        ([-1, 0, 1], [0, 1, 1], "worker codes"),
        ([0, 0, 1], [0, 2, 1], "label codes"),
        ([0, 0, 1], [0, 0, 1], "repeated"),
        ([1, 0, 0], [0, 0, 1], "ascending"),
        ([0, 0], [0], "different numbers"),
    ],
)
def test_problems_of_pairs_are_found(worker: list[int], label: list[int], problem: str | None) -> None:
    pairs = Pairs(np.array(worker, dtype=np.int32), np.array(label, dtype=np.int32), np.empty(0, dtype=np.int32), 2)
    found = pairs.find_problem(2)
    assert found is None if problem is None else problem in str(found)
