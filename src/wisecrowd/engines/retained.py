"""Work that gives both what adds up over chunks and what stays beside them, in one pass.

Both are kept in one array, one file of a shard: how many numbers add up, these, and the crowd_slice that stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines.base import Chunk, ChunkState, Engine, Work
from wisecrowd.engines.local import StreamEngine

Array = NDArray[np.float64]


def keep_and_add(engine: Engine, kind: Work, *shared: Any) -> tuple[Array, ChunkState]:
    """Apply work that gives a tuple: all of it but the last part, added up over chunks, flat; and the last parts, kept.

    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> sums, kept = keep_and_add(engine, lambda chunk: (chunk.crowd.n_votes, chunk.crowd.votes))
    >>> sums.tolist(), next(engine.each(crowd_slice, kept)).tolist()
    ([2.0], [1.0, 0.0, 0.0, 1.0])
    """
    kept = engine.keep(_both, kind, *shared)
    return engine.total(_sums, kept), kept


def _both(chunk: Chunk, kind: Work, *shared: Any) -> Array:
    """Work: sums and crowd_slice."""
    *sums, own = kind(chunk, *shared)
    return packed(own, *sums)


def _sums(chunk: Chunk, value: Array) -> Array:  # noqa: ARG001  # one signature for all work
    """Work: the part that adds up, copied, so that those of other chunks can be added to it."""
    return np.array(value[1 : 1 + int(value[0])])


def packed(own: Any, *sums: Any) -> Array:
    """What is kept for a chunk.

    >>> packed(np.array([[7.0, 8.0]]), 0.5, np.ones(2)).tolist()
    [3.0, 0.5, 1.0, 1.0, 7.0, 8.0]
    """
    flat = [np.ravel(part) for part in sums]
    return np.concatenate([[sum(map(len, flat))], *flat, np.ravel(own)])


def own_of(value: Array) -> Array:
    """The crowd_slice, flat, of what was kept for a chunk.

    >>> own_of(packed(np.array([7.0, 8.0]), 0.5)).tolist()
    [7.0, 8.0]
    """
    return value[1 + int(value[0]) :]


def crowd_slice(chunk: Chunk, value: Array) -> Array:  # noqa: ARG001  # one signature for all work
    """Work: the crowd_slice, flat, of what was kept for the chunk.

    >>> from wisecrowd import Crowd
    >>> crowd_slice(Chunk(Crowd.from_triples([("t1", "ann", "cat")])), packed(np.ones(2), 0.5)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(own_of(value))


def at_home(engine: Engine, kept: ChunkState) -> ChunkState:
    """What is kept of a crowd in shards, on this machine's disk, where it outlives the engine.

    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> kept = engine.keep(lambda chunk: chunk.crowd.votes)
    >>> at_home(engine, kept) is kept  # of a crowd in memory
    True
    """
    if isinstance(engine, StreamEngine) or not isinstance(engine.crowd, ShardedCrowd):
        return kept
    return StreamEngine(engine.crowd).keep(_next, engine.each(_whole, kept))


def _next(chunk: Chunk, values: Iterator[Any]) -> Any:  # noqa: ARG001  # one signature for all work
    """Work: what comes next, of values in the order of chunks."""
    return next(values)


def _whole(chunk: Chunk, value: Any) -> Any:  # noqa: ARG001  # one signature for all work
    return value
