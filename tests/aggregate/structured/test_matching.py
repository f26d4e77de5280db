"""Matching: parallel agglomeration equals agglomeration one by one, and workers have one mark per object."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.structured._matching import group_marks
from wisecrowd.data.overlaps import SimilarPairs, find_box_pairs


def group_one_by_one(pairs: SimilarPairs, worker: np.ndarray, min_similarity: float) -> list[list[int]]:
    """Unite the two most similar groups again and again, with dense tables."""
    n = len(worker)
    similarity = np.zeros((n, n))
    similarity[pairs.first, pairs.second] = similarity[pairs.second, pairs.first] = pairs.similarity
    groups = [[number] for number in range(n)]
    while True:
        best = None
        for a, one in enumerate(groups):
            for b in range(a + 1, len(groups)):
                other = groups[b]
                if set(worker[one]) & set(worker[other]):
                    continue
                mean = round(float(similarity[np.ix_(one, other)].mean()), 12)
                if mean >= min_similarity and (best is None or mean > best[0]):
                    best = (mean, a, b)
        if best is None:
            return groups
        _, a, b = best
        groups[a] += groups.pop(b)


@pytest.mark.parametrize("seed", range(8))
def test_groups_are_those_of_agglomeration_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    worker = rng.integers(0, 6, n).astype(np.int32)
    boxes = np.hstack([rng.uniform(0, 30, (n, 2)), rng.uniform(5, 15, (n, 2))])
    pairs = find_box_pairs(np.zeros(n, dtype=int), boxes)
    labels = group_marks(pairs, worker, np.ones(n), 0.3)
    actual = sorted(np.flatnonzero(labels == group).tolist() for group in range(labels.max() + 1))
    assert actual == sorted(map(sorted, group_one_by_one(pairs, worker, 0.3)))
    keys = labels * 6 + worker
    assert len(np.unique(keys)) == len(keys)


def test_a_long_mark_does_not_unite_two_marks_of_a_worker() -> None:
    # Marks 0 and 2 of worker 0 do not overlap, so no pair bars them; both resemble mark 1 of worker 1.
    pairs = SimilarPairs(np.array([0, 1]), np.array([1, 2]), np.array([0.7, 0.6]))
    labels = group_marks(pairs, np.array([0, 1, 0], dtype=np.int32), np.ones(3), 0.1)
    assert labels.tolist() == [0, 0, 1]


def test_identical_marks_are_one_object_and_distant_ones_are_not() -> None:
    boxes = np.array([[0.0, 0, 2, 2]] * 4 + [[10.0, 0, 2, 2]])
    pairs = find_box_pairs(np.zeros(5, dtype=int), boxes)
    assert group_marks(pairs, np.arange(5, dtype=np.int32), np.ones(5), 0.5).tolist() == [0, 0, 0, 0, 1]


def test_marks_of_heavy_workers_decide() -> None:
    pairs = SimilarPairs(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0.9, 0.6, 0.2]))
    worker = np.arange(3, dtype=np.int32)
    assert group_marks(pairs, worker, np.ones(3), 0.45).tolist() == [0, 0, 1]
    assert group_marks(pairs, worker, np.array([4.0, 1.0, 1.0]), 0.45).tolist() == [0, 0, 0]


def test_no_marks_make_no_objects() -> None:
    empty = SimilarPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    assert len(group_marks(empty, np.empty(0, np.int32), np.empty(0), 0.5)) == 0
