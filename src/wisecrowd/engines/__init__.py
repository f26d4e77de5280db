"""Where the sums over votes are taken. Statistics add, so an engine is a place to add them, and methods do not change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import likeness
from wisecrowd.data.alignment import encode_truth, truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines.base import Engine
from wisecrowd.engines.local import Clamp, LocalEngine, StreamEngine
from wisecrowd.errors import InputError, UsageError, some

__all__ = ["Clamp", "Engine", "LocalEngine", "StreamEngine", "engine_for", "gold_by_shard"]


def engine_for(
    choice: str, crowd: Crowd | ShardedCrowd, gold: Any = None, *, n_jobs: int = 1, compiled: bool | None = None
) -> Engine:
    """The engine that a method's ``engine`` names, over a crowd and what is known of its truth.

    >>> type(engine_for("local", Crowd.from_triples([("t1", "ann", "cat")]))).__name__
    'LocalEngine'
    """
    name, _, address = choice.partition(":")
    if name == "ray":
        from wisecrowd.engines.ray import RayEngine

        return RayEngine(crowd, gold, address=address or None, compiled=compiled)
    if choice != "local":
        raise UsageError(f"engine must be 'local', 'ray', or 'ray:' and the address of a cluster; got {choice!r}")
    if isinstance(crowd, Crowd):
        return LocalEngine(crowd, gold, n_jobs, compiled)
    return StreamEngine(crowd, gold, n_jobs, compiled)


def gold_by_shard(truth: Any, crowd: ShardedCrowd) -> Clamp:
    """The known classes of each shard's tasks (see `encode_truth`), found in one pass over the ids.

    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> gold = gold_by_shard({"t2": "dog"}, crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1))
    >>> clamp(0).tolist(), clamp(1).tolist()
    ([-1], [1])
    """
    known = truth_series(truth, crowd)
    codes: list[NDArray[np.int32] | None] = []
    for shard in crowd.shards:
        here = known.index.isin(shard.tasks)
        found = encode_truth(known[here], shard) if here.any() else None
        codes.append(found)
    if len(known) and all(found is None for found in codes):
        first = crowd.shards[0].tasks
        raise InputError(
            f"none of the {len(known):,} tasks with truth is in the crowd; the truth starts with {some(known.index)}, "
            f"the crowd with {some(first)}. Check that both use the same ids"
        )
    return _Known([_few(found) for found in codes], [part.tasks for part in crowd.parts])


class _Known:
    """Known classes by shard, kept as the few that are known."""

    def __init__(self, few: list[tuple[NDArray[Any], NDArray[Any]]], sizes: list[int]) -> None:
        self.few, self.sizes = few, sizes

    @property
    def digest(self) -> str:
        return likeness(self.sizes, self.few)

    def __call__(self, number: int) -> NDArray[np.int32]:
        gold = np.full(self.sizes[number], -1, dtype=np.int32)
        place, label = self.few[number]
        gold[place] = label
        return gold


def _few(codes: NDArray[np.int32] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    place = np.empty(0, dtype=np.intp) if codes is None else np.flatnonzero(codes >= 0)
    return place, place if codes is None else codes[place]
