"""Chunks, blocks of chunks, and sums over chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.engines.base import Chunk, ChunkState, add_results, resolve_shared, sum_over_chunks


class Sums(NamedTuple):
    number: float
    table: Any


def test_sums_add_numbers_arrays_and_tuples() -> None:
    total = add_results(Sums(1.0, np.ones(2)), Sums(2.0, np.full(2, 3.0)))
    assert isinstance(total, Sums)
    assert total.number == 3
    assert total.table.tolist() == [4, 4]
    assert add_results((1, None), (2, None)) == (3, None)
    assert add_results(None, 5) == 5
    assert add_results(5, None) == 5


def test_arrays_are_added_in_place_where_that_is_possible() -> None:
    table = np.ones(2)
    assert add_results(table, np.ones(2)) is table
    frozen = np.ones(2)
    frozen.flags.writeable = False
    total = add_results(frozen, np.ones(2))
    assert total.tolist() == [2, 2]
    assert frozen.tolist() == [1, 1]
    counts = np.ones(2, dtype=np.int64)
    assert add_results(counts, np.full(2, 0.5)).tolist() == [1.5, 1.5], "an integer table would lose the fraction"


def test_every_chunk_gets_its_own_state() -> None:
    class Numbers(ChunkState):
        def get(self, number: int) -> int:
            return 10 * number

    assert resolve_shared(["a", Numbers()], 3) == ["a", 30]


def test_accumulating_functions_get_the_total_of_the_chunks_before() -> None:
    chunks = [Chunk(Crowd.from_triples([(task, "ann", "x")]), number=task, n_chunks=3) for task in range(3)]
    received = []

    def function(chunk: Chunk, factor: int, accumulate_into: Any = None) -> Any:
        received.append(accumulate_into)
        return (accumulate_into or 0) + factor * chunk.number

    function.accumulates = True  # type: ignore[attr-defined]
    assert sum_over_chunks(chunks, function, lambda _: [2]) == 6
    assert received == [None, 0, 2]
    assert sum_over_chunks([], function, lambda _: [2]) is None


class TestBlocks:
    def test_blocks_of_a_shard_hold_its_tasks_and_their_gold(self, tmp_path: Path) -> None:
        crowd = Crowd.from_triples([(task, worker, "x") for task in range(9) for worker in range(task % 3 + 1)])
        shard = crowd.to_shards(tmp_path / "crowd", votes_per_shard=9).shards[0]
        gold = np.arange(shard.n_tasks, dtype=np.int32)
        blocks = list(Chunk(shard, gold, n_chunks=2).blocks(votes=2))
        assert len(blocks) > 2
        assert np.concatenate([block.crowd.tasks for block in blocks]).tolist() == shard.tasks.tolist()
        assert np.concatenate([block.gold for block in blocks]).tolist() == gold.tolist()
        assert sum(block.crowd.n_votes for block in blocks) == shard.n_votes

    def test_a_single_chunk_stays_whole(self) -> None:
        chunk = Chunk(Crowd.from_triples([(task, "ann", "x") for task in range(9)]))
        assert list(chunk.blocks(votes=2)) == [chunk]


@pytest.mark.parametrize("function", ["expect_chunk", "tally_chunk"])
def test_functions_of_the_e_step_accumulate(function: str) -> None:
    """Otherwise every chunk would hold a table over all workers."""
    from wisecrowd.engines import base

    assert getattr(base, function).accumulates
