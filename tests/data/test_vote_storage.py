"""Votes in memory."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.data.rows import VoteRows
from wisecrowd.data.vote_storage import VotesInMemory

CROWD = Crowd.from_triples(
    [("t1", "ann", "x"), ("t1", "bob", "y"), ("t3", "ann", "x")],
    tasks=["t1", "t2", "t3", "t4"],
    classes=["x", "y", "z"],
)


def make_storage() -> VotesInMemory:
    rows = VoteRows(CROWD.task.copy(), CROWD.worker.copy(), CROWD.label.copy(), weight=None, observed=None, time=None)
    return VotesInMemory(rows, CROWD.tasks, CROWD.workers, CROWD.classes, has_task_order=True)


def test_sizes_and_offsets_count_tasks_without_votes() -> None:
    storage = make_storage()
    assert (storage.n_tasks, storage.n_votes) == (4, 3)
    assert storage.offset.tolist() == [0, 2, 2, 3, 3]


def test_pairs_are_those_that_occur() -> None:
    pairs = make_storage().pairs
    assert list(zip(pairs.worker.tolist(), pairs.label.tolist(), strict=True)) == [(0, 0), (1, 1)]
    assert pairs.vote_pairs.tolist() == [0, 1, 0]


def test_arrays_cannot_be_changed() -> None:
    storage = make_storage()
    for array in (storage.task, storage.worker, storage.label, storage.offset):
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_label_codes_are_the_labels() -> None:
    storage = make_storage()
    assert storage.label_codes is storage.label
