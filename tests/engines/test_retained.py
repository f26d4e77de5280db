"""Sums and values that stay beside the chunks, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.engines.base import Chunk, ChunkState, Engine
from wisecrowd.engines.local import LocalEngine, StreamEngine
from wisecrowd.engines.retained import (
    copy_to_disk,
    pack_retained,
    read_retained,
    return_value,
    sum_and_retain,
    unpack_retained,
)

CROWD = Crowd.from_triples([(task, worker, (task + worker) % 2) for task in range(7) for worker in range(task % 3 + 1)])


def count_votes(chunk: Chunk, factor: float) -> tuple[float, Any, Any]:
    return factor * chunk.crowd.n_votes, chunk.crowd.vote_counts.sum(axis=0), chunk.crowd.votes_per_task


@pytest.fixture(params=["memory", "shards"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "memory":
        return LocalEngine(CROWD)
    return StreamEngine(CROWD.to_shards(tmp_path / "crowd", votes_per_shard=3))


@pytest.mark.parametrize(
    ("retained", "sums"),
    [(np.arange(4.0).reshape(2, 2), (0.5, np.ones(3))), (np.empty(0), ()), ([7.0], (np.empty(0),))],
)
def test_packing_keeps_both_parts(retained: Any, sums: tuple[Any, ...]) -> None:
    packed = pack_retained(retained, *sums)
    assert unpack_retained(packed).tolist() == np.ravel(retained).tolist()
    assert packed[1 : 1 + int(packed[0])].tolist() == [x for part in sums for x in np.ravel(part)]


def test_all_parts_but_the_last_are_summed(engine: Engine) -> None:
    sums, state = sum_and_retain(engine, count_votes, 10.0)
    assert sums.tolist() == [10 * CROWD.n_votes, *CROWD.vote_counts.sum(axis=0)]
    by_task = np.concatenate(list(engine.map(read_retained, state)))
    assert by_task.tolist() == CROWD.votes_per_task.tolist()


def test_reading_sums_does_not_change_what_is_retained(engine: Engine) -> None:
    """Sums of chunks are added in place, so each must be a copy."""
    first, state = sum_and_retain(engine, count_votes, 1.0)
    before = [np.array(value) for value in engine.map(return_value, state)]
    engine.sum(lambda _, packed: np.array(packed[1 : 1 + int(packed[0])]), state)
    for value, copy in zip(engine.map(return_value, state), before, strict=True):
        np.testing.assert_array_equal(value, copy)
    assert first[0] == CROWD.n_votes


def test_values_on_disk_and_of_crowds_in_memory_stay_where_they_are(engine: Engine) -> None:
    state = engine.retain(lambda chunk: chunk.crowd.votes_per_task)
    assert copy_to_disk(engine, state) is state


def test_values_of_other_engines_are_copied_to_the_shards(tmp_path: Path) -> None:
    class Elsewhere(Engine):
        """Stand-in for a cluster: its values are gone when it closes."""

        def __init__(self, crowd: Any) -> None:
            self.crowd = crowd

        def sum(self, function: Any, *shared: Any) -> Any: ...

        def retain(self, function: Any, *shared: Any) -> ChunkState: ...  # type: ignore[empty-body]

        def map(self, function: Any, *shared: Any) -> Iterator[Any]:
            yield from (np.full(2, number) for number in range(self.crowd.n_shards))

    sharded = CROWD.to_shards(tmp_path / "crowd", votes_per_shard=4)
    copy = copy_to_disk(Elsewhere(sharded), LocalEngine(CROWD).retain(return_value, 1))
    assert sharded.n_shards > 2
    values = list(StreamEngine(sharded).map(return_value, copy))
    assert [value.tolist() for value in values] == [[n, n] for n in range(sharded.n_shards)]
