"""Chunk functions that return both sums over chunks and values to retain, computed in one pass.

Both are stored in one array per chunk: the number of values to sum, these values, and the values to retain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines.base import Chunk, ChunkFunction, ChunkState, Engine
from wisecrowd.engines.local import StreamEngine

Array = NDArray[np.float64]


def sum_and_retain(engine: Engine, function: ChunkFunction, *shared: Any) -> tuple[Array, ChunkState]:
    """Apply a function that returns a tuple: sum all parts but the last over chunks, and retain the last part.

    Parameters
    ----------
    engine : Engine
        Engine over a crowd.
    function : callable
        Chunk function that returns ``(*sums, retained)``.
    *shared : object
        Parameters that all chunks share.

    Returns
    -------
    sums : ndarray
        The sums over chunks, flattened and concatenated.
    state : ChunkState
        Handle of the retained parts, to be read with `read_retained` or `unpack_retained`.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> sums, state = sum_and_retain(engine, lambda chunk: (chunk.crowd.n_votes, chunk.crowd.vote_counts))
    >>> sums.tolist(), next(engine.map(read_retained, state)).tolist()
    ([2.0], [1.0, 0.0, 0.0, 1.0])
    """
    state = engine.retain(_apply_and_pack, function, *shared)
    return engine.sum(_read_sums, state), state


def _apply_and_pack(chunk: Chunk, function: ChunkFunction, *shared: Any) -> Array:
    """Chunk function: pack the sums and the retained part of another chunk function."""
    *sums, retained = function(chunk, *shared)
    return pack_retained(retained, *sums)


def _read_sums(chunk: Chunk, packed: Array) -> Array:  # noqa: ARG001  # signature of chunk functions
    """Chunk function: return a copy of the sums, so that those of other chunks can be added in place."""
    return np.array(packed[1 : 1 + int(packed[0])])


def pack_retained(retained: Any, *sums: Any) -> Array:
    """Pack values to retain, and values to sum, into one array.

    Parameters
    ----------
    retained : array-like
        Values to retain.
    *sums : array-like
        Values to sum over chunks.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> pack_retained(np.array([[7.0, 8.0]]), 0.5, np.ones(2)).tolist()
    [3.0, 0.5, 1.0, 1.0, 7.0, 8.0]
    """
    flat = [np.ravel(part) for part in sums]
    return np.concatenate([[sum(map(len, flat))], *flat, np.ravel(retained)])


def unpack_retained(packed: Array) -> Array:
    """Return the retained values of a packed array, flattened.

    Parameters
    ----------
    packed : ndarray of shape (n,)
        Result of `pack_retained`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> unpack_retained(pack_retained(np.array([7.0, 8.0]), 0.5)).tolist()
    [7.0, 8.0]
    """
    return packed[1 + int(packed[0]) :]


def read_retained(chunk: Chunk, packed: Array) -> Array:  # noqa: ARG001  # signature of chunk functions
    """Return the retained values of a chunk, flattened: `unpack_retained` as a chunk function.

    Parameters
    ----------
    chunk : Chunk
        Not used.
    packed : ndarray of shape (n,)
        Result of `pack_retained`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> read_retained(Chunk(Crowd.from_triples([("t1", "ann", "cat")])), pack_retained(np.ones(2), 0.5)).tolist()
    [1.0, 1.0]
    """
    return np.asarray(unpack_retained(packed))


def copy_to_disk(engine: Engine, state: ChunkState) -> ChunkState:
    """Copy retained values of a crowd in shards to its folder, where they outlive the engine.

    Parameters
    ----------
    engine : Engine
        Engine that holds the values.
    state : ChunkState
        Handle of the values.

    Returns
    -------
    ChunkState
        Handle of the copy; ``state`` itself for a crowd in memory, or if the values are on disk already.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> state = engine.retain(lambda chunk: chunk.crowd.vote_counts)
    >>> copy_to_disk(engine, state) is state
    True
    """
    if isinstance(engine, StreamEngine) or not isinstance(engine.crowd, ShardedCrowd):
        return state
    return StreamEngine(engine.crowd).retain(_next_value, engine.map(return_value, state))


def _next_value(chunk: Chunk, values: Iterator[Any]) -> Any:  # noqa: ARG001  # signature of chunk functions
    """Chunk function: return the next of some values, which come in the order of chunks."""
    return next(values)


def return_value(chunk: Chunk, value: Any) -> Any:  # noqa: ARG001  # signature of chunk functions
    """Return the retained value of a chunk.

    Parameters
    ----------
    chunk : Chunk
        Not used.
    value : object
        Value of a `ChunkState`.

    Returns
    -------
    object

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> state = engine.retain(lambda chunk: chunk.crowd.n_votes)
    >>> list(engine.map(return_value, state))
    [1]
    """
    return value
