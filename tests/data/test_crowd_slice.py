"""Slices of a crowd: the same votes over the pairs of the larger crowd."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.data.crowd_slice import CrowdSlice, cut_tasks
from wisecrowd.data.sharded import Shard


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def crowd(request: pytest.FixtureRequest) -> Crowd:
    rng = np.random.default_rng(0)
    task, worker = np.nonzero(rng.random((12, 5)) < 0.5)
    label = rng.integers(3, size=len(task))
    return Crowd.from_codes(
        task, worker, label, tasks=[f"t{number}" for number in range(12)], workers=list("abcde"), classes=list("xyz"),
        weight=rng.random(len(task)) + 0.5 if request.param else None,
    )  # fmt: skip


@pytest.fixture
def shard(crowd: Crowd, tmp_path: Path) -> Shard:
    return crowd.to_shards(tmp_path / "crowd").shards[0]


@pytest.mark.parametrize("n_votes", [1, 4, 1000])
def test_slices_cover_the_tasks_in_order(crowd: Crowd, shard: Shard, n_votes: int) -> None:
    stop = 0
    for tasks, part in shard.iter_slices(n_votes):
        assert tasks.start == stop
        stop = tasks.stop
        expected = crowd[tasks]
        assert part == expected
        assert part.vote_counts.tolist() == expected.vote_counts.tolist()
        assert len(part.pairs) == len(crowd.pairs)
        assert part.pairs.worker is shard.pairs.worker
    assert stop == crowd.n_tasks


def test_slices_of_slices(crowd: Crowd, shard: Shard) -> None:
    (_, part), *_ = shard.iter_slices(8)
    assert isinstance(part, CrowdSlice)
    assert [inner == crowd[tasks] for tasks, inner in part.iter_slices(1)] == [True] * part.n_tasks


def test_a_slice_is_pickled_without_its_shard(shard: Shard) -> None:
    (_, part), *_ = shard.iter_slices(5)
    copy = pickle.loads(pickle.dumps(part))
    assert type(copy) is CrowdSlice
    assert copy == part
    assert copy.tasks.tolist() == part.tasks.tolist()


def test_selections_of_a_shard_are_ordinary_crowds(crowd: Crowd, shard: Shard) -> None:
    assert type(shard[2:5]) is Crowd
    assert shard[2:5] == crowd[2:5]
    assert shard.select_workers(["b"]) == crowd.select_workers(["b"])
    assert shard.hide(0.3)[1] == crowd.hide(0.3)[1]
    assert shard.drop_workers() == crowd.drop_workers()


def test_runs_of_tasks_hold_at_most_so_many_votes_or_one_task() -> None:
    offset = np.array([0, 5, 5, 6, 7, 12])
    assert list(cut_tasks(offset, 3)) == [(0, 1), (1, 4), (4, 5)]
    assert list(cut_tasks(np.array([0]), 3)) == []
