"""The engines of one machine against each other: shards from disk give what the crowd in memory gives."""

from __future__ import annotations

import gc
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd.engines.base import Chunk, Engine, expect_chunk
from wisecrowd.engines.local import LocalEngine, StreamEngine


@pytest.mark.slow
@settings(max_examples=min(15, settings.default.max_examples))
@given(
    seed=st.integers(0, 2**32), weighted=st.booleans(), workers=st.sampled_from([0, 12]), clamped=st.booleans(),
    votes=st.sampled_from([30, 100, 1000]), n_jobs=st.sampled_from([1, 2, 3]),
)  # fmt: skip
def test_shards_give_what_the_crowd_in_memory_gives(
    case: Any, tmp_path_factory: Any, seed: int, weighted: bool, workers: int, clamped: bool, votes: int, n_jobs: int
) -> None:
    some = case(seed, weighted=weighted, workers=workers, clamped=clamped)
    some.check(StreamEngine(*some.sharded(tmp_path_factory.mktemp("crowd") / "shards", votes), n_jobs))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_same_number_of_threads_gives_the_same_bits(case: Any, tmp_path: Path, n_jobs: int) -> None:
    some = case(1, weighted=True)
    stream = StreamEngine(*some.sharded(tmp_path / "crowd"), n_jobs)
    first = stream.expect(*some.given)
    for _ in range(5):
        again = stream.expect(*some.given)
        assert again.tally.tobytes() == first.tally.tobytes()
        assert again.log_likelihood == first.log_likelihood


def test_a_shard_for_every_task_with_votes(case: Any, tmp_path: Path) -> None:
    some = case(2, n_tasks=12, votes=40)
    stream = StreamEngine(*some.sharded(tmp_path / "crowd", votes=1))
    assert stream.crowd.n_shards == np.count_nonzero(some.crowd.votes_per_task)
    some.check(stream)


def test_pieces_come_in_the_order_of_tasks_and_know_their_place(case: Any, tmp_path: Path) -> None:
    some = case(2)
    stream = StreamEngine(*some.sharded(tmp_path / "crowd"))
    numbers, of, tasks = zip(*stream.map(lambda p: (p.number, p.n_chunks, p.crowd.tasks.tolist())), strict=True)
    assert len(numbers) > 3
    assert numbers == tuple(range(len(numbers)))
    assert set(of) == {len(numbers)}
    assert list(itertools.chain(*tasks)) == some.crowd.tasks.tolist()


def test_a_piece_is_worked_on_when_it_is_asked_for(case: Any, tmp_path: Path) -> None:
    begun: list[int] = []

    def work(chunk: Chunk) -> int:
        begun.append(chunk.number)
        return chunk.number

    results = StreamEngine(*case(3).sharded(tmp_path / "crowd")).map(work)
    assert begun == []
    next(results)
    assert begun == [0]


@pytest.mark.parametrize("in_shards", [False, True])
def test_work_that_accumulates_gives_the_same_sum(case: Any, tmp_path: Path, in_shards: bool) -> None:
    some = case(4)
    engine: Engine = StreamEngine(*some.sharded(tmp_path / "crowd")) if in_shards else LocalEngine(some.crowd)
    assert getattr(expect_chunk, "accumulates", False)

    def apart(chunk: Chunk, prior: Any, label_probs: Any) -> Any:
        return expect_chunk(chunk, prior, label_probs)

    found, wanted = engine.expect(*some.given), engine.sum(apart, *some.given)
    np.testing.assert_allclose(found.tally, wanted.tally, rtol=1e-12)


def test_several_threads_give_results_in_order_and_few_ahead(case: Any, tmp_path: Path) -> None:
    sharded, gold = case(3).sharded(tmp_path / "crowd", votes=20)
    started: list[int] = []

    def note(chunk: Chunk) -> int:
        started.append(chunk.number)
        time.sleep(0.01 * (chunk.number % 2))  # the second of two would finish first
        return chunk.number

    results = StreamEngine(sharded, gold, n_jobs=2).map(note)
    first = [next(results) for _ in range(3)]
    assert first == [0, 1, 2]
    assert sharded.n_shards > 8
    assert len(started) <= 3 + 2 + 1
    results.close()  # type: ignore[attr-defined]  # a generator
    assert list(StreamEngine(sharded, gold, n_jobs=2).map(note)) == list(range(sharded.n_shards))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_the_work_is_what_the_caller_sees(case: Any, tmp_path: Path, n_jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        StreamEngine(*case(5).sharded(tmp_path / "crowd"), n_jobs).sum(lambda chunk: 1 / 0)


def test_what_is_kept_beside_the_shards_goes_with_its_handle(case: Any, tmp_path: Path) -> None:
    some = case(6)
    stream = StreamEngine(*some.sharded(tmp_path / "crowd"))
    before = sorted((tmp_path / "crowd").rglob("*"))
    kept = stream.retain(lambda chunk: (chunk.crowd.vote_counts, chunk.crowd.votes_per_task))
    assert len(list((tmp_path / "crowd").rglob("*.npy"))) == 2 * stream.crowd.n_shards
    total = stream.sum(lambda chunk, both: (both[0].sum(), both[1].sum()), kept)
    assert total == (some.crowd.n_votes, some.crowd.n_votes)
    del kept
    gc.collect()
    assert sorted((tmp_path / "crowd").rglob("*")) == before
