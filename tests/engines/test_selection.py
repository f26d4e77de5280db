"""Choice of an engine, and gold tasks by shard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines.local import LocalEngine, StreamEngine
from wisecrowd.engines.selection import encode_gold_by_shard, engine_for
from wisecrowd.errors import InputError, UsageError

CROWD = Crowd.from_triples([(f"t{task}", "ann", "ab"[task % 2]) for task in range(6)])


@pytest.fixture
def sharded(tmp_path: Path) -> ShardedCrowd:
    return CROWD.to_shards(tmp_path / "crowd", votes_per_shard=2)


def test_shards_are_streamed_and_crowds_in_memory_are_not(sharded: ShardedCrowd) -> None:
    assert type(engine_for("local", CROWD)) is LocalEngine
    assert type(engine_for("local", sharded)) is StreamEngine


@pytest.mark.parametrize("choice", ["", "Local", "dask", "local:1"])
def test_other_engines_are_refused(choice: str) -> None:
    with pytest.raises(
        UsageError, match=f"engine must be 'local', 'ray', or 'ray:ADDRESS' of a cluster; got '{choice}'"
    ):
        engine_for(choice, CROWD)


def test_gold_is_placed_in_its_shard(sharded: ShardedCrowd) -> None:
    gold = encode_gold_by_shard({"t5": "a", "t2": "b"}, sharded)
    whole = np.concatenate([gold(number) for number in range(sharded.n_shards)])
    assert whole.tolist() == [-1, -1, 1, -1, -1, 0]
    assert gold(0).dtype == np.int32


def test_gold_of_other_tasks_is_refused(sharded: ShardedCrowd) -> None:
    with pytest.raises(InputError, match="none of the 1 tasks with truth is in the crowd; the truth starts with 'x'"):
        encode_gold_by_shard({"x": "a"}, sharded)


def test_the_digest_follows_the_gold(sharded: ShardedCrowd) -> None:
    """A checkpoint of a fit is continued only with the same gold."""
    digests = {encode_gold_by_shard(truth, sharded).digest for truth in ({"t1": "a"}, {"t1": "b"}, {"t2": "a"})}  # type: ignore[attr-defined]
    assert len(digests) == 3
    assert encode_gold_by_shard({"t1": "a"}, sharded).digest in digests  # type: ignore[attr-defined]
