"""Messages between the processes of a cluster: chunks to load, and results to send back."""

from __future__ import annotations

import itertools
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.crowd_slice import CrowdSlice, PairVotesInMemory
from wisecrowd.data.layout import Layout
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.sharded import open_shards
from wisecrowd.engines.base import Chunk, add_results
from wisecrowd.errors import InputError, UsageError, WisecrowdError

#: Positions of rows of a table.
RowIndices = NDArray[np.int32]


@dataclass(frozen=True)
class ShardSource:
    """Shards that another process loads from a folder.

    Attributes
    ----------
    folder : Path
        Folder of the crowd.
    digest : str
        Digest of the crowd, to detect another crowd in the folder.
    numbers : range
        Numbers of the shards.
    gold : list of ndarray or None
        Class codes of the gold tasks of each shard.
    compiled : bool or None
        Whether to use the compiled kernels.
    verify : bool, default True
        Whether to compare the shards with their digests.

    Examples
    --------
    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> sharded = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
    >>> source = ShardSource(sharded.folder, sharded.digest, range(1, 2), [None])
    >>> [chunk.crowd.tasks.tolist() for chunk in source.load_chunks()]
    [['t2']]
    """

    folder: Path
    digest: str
    numbers: range
    gold: list[NDArray[np.int32] | None]
    compiled: bool | None = None
    verify: bool = True

    def load_chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, in memory.

        Raises
        ------
        InputError
            If this machine does not see the folder, or sees other votes.
        """
        host = socket.gethostname()
        try:
            sharded = open_shards(self.folder, self.verify)
        except InputError as error:
            raise InputError(f"{error} (seen from {host}; every machine must see the same folder)") from None
        if sharded.digest != self.digest:
            raise InputError(
                f"{self.folder} contains other votes on {host} than on the driver; use one folder for all machines"
            )
        shards = sharded.shards
        for number, gold in zip(self.numbers, self.gold, strict=True):
            shard, load_ids = shards[number], partial(getattr, sharded.shards[number], "tasks")
            # Copied, so that neither files nor buffers of the object store stay open.
            pairs = sharded.pairs.with_votes(np.array(shard.pairs.vote_pairs))
            weight = _copy(shard.stored_weight)
            votes = PairVotesInMemory(
                sharded.workers, sharded.classes, pairs, shard.offset, weight, load_ids, has_checked_codes=True
            )
            yield Chunk(CrowdSlice(votes), _copy(gold), number, len(shards), compiled=self.compiled)


@dataclass(frozen=True)
class MemorySource:
    """Consecutive tasks of a crowd in memory, to be held by another process.

    Attributes
    ----------
    workers, classes : Index or None
        Vocabularies of the whole crowd.
    pairs : Pairs
        Pairs of the whole crowd, and the pair of each vote of these tasks.
    offset : ndarray of shape (n_tasks + 1,)
        Position of the first vote of each task.
    weight : ndarray of shape (n_votes,) or None
        Weights of the votes.
    pickled_ids : bytes
        Task ids, unpickled on demand.
    gold : ndarray of shape (n_tasks,) or None
        Class codes of gold tasks, -1 elsewhere.
    number, n_chunks : int
        Position of the chunk, and number of chunks.
    compiled : bool or None
        Whether to use the compiled kernels.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
    >>> [chunk] = MemorySource.from_crowd(crowd, None, 1, 2, number=1, n_chunks=2).load_chunks()
    >>> chunk.crowd.tasks.tolist(), chunk.crowd.pairs.vote_pairs.tolist()
    (['t2'], [1])
    """

    workers: pd.Index | None
    classes: Any
    pairs: Pairs
    offset: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    pickled_ids: bytes
    gold: NDArray[np.int32] | None
    number: int
    n_chunks: int
    compiled: bool | None

    @classmethod
    def from_crowd(
        cls,
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        begin: int,
        end: int,
        *,
        number: int,
        n_chunks: int,
        compiled: bool | None = None,
    ) -> MemorySource:
        """Return the tasks ``begin:end`` of a crowd.

        Parameters
        ----------
        crowd : Crowd
            Votes.
        gold : ndarray of shape (n_tasks,) or None
            Class codes of gold tasks, -1 elsewhere.
        begin, end : int
            Positions of the first task, and of the task after the last.
        number, n_chunks : int
            Position of the chunk, and number of chunks.
        compiled : bool, optional
            Whether to use the compiled kernels.

        Returns
        -------
        MemorySource
        """
        offset, pairs = crowd.offset[begin : end + 1], crowd.pairs
        votes = slice(offset[0], offset[-1])
        return cls(
            workers=crowd.workers,
            classes=crowd.classes,
            pairs=Pairs(pairs.worker, pairs.label, pairs.vote_pairs[votes], pairs.n_workers),
            offset=offset - offset[0],
            weight=None if crowd.stored_weight is None else crowd.stored_weight[votes],
            pickled_ids=pickle.dumps(crowd.tasks[begin:end]),
            gold=None if gold is None else gold[begin:end],
            number=number,
            n_chunks=n_chunks,
            compiled=compiled,
        )

    def load_chunks(self) -> Iterator[Chunk]:
        """Yield the only chunk, in memory.

        Raises
        ------
        InputError
            If the message holds no valid votes.
        """
        # Copied, so that no buffers of the object store stay open.
        pairs = Pairs(
            np.array(self.pairs.worker),
            np.array(self.pairs.label),
            np.array(self.pairs.vote_pairs),
            self.pairs.n_workers,
        )
        offset, weight = np.array(self.offset), _copy(self.weight)
        problem = pairs.find_problem(len(self.classes))
        if problem is not None:
            raise InputError(f"a message to this process is damaged: {problem}")
        Layout(offset, pairs.vote_pairs, weight, len(pairs)).check()
        load_ids = partial(pickle.loads, self.pickled_ids)
        crowd = CrowdSlice(
            PairVotesInMemory(self.workers, self.classes, pairs, offset, weight, load_ids, has_checked_codes=True)
        )
        yield Chunk(crowd, _copy(self.gold), self.number, self.n_chunks, compiled=self.compiled)


def split_by_votes(offset: NDArray[np.int64], n_chunks: int) -> list[tuple[int, int]]:
    """Split tasks into ranges of consecutive tasks with about the same number of votes.

    Parameters
    ----------
    offset : ndarray of shape (n_tasks + 1,)
        Position of the first vote of each task.
    n_chunks : int
        Maximum number of ranges.

    Returns
    -------
    list of (begin, end)

    Examples
    --------
    >>> split_by_votes(np.array([0, 2, 3, 6]), 2), split_by_votes(np.array([0, 9, 9]), 2)
    ([(0, 2), (2, 3)], [(0, 1), (1, 2)])
    """
    inner = np.searchsorted(offset, np.linspace(offset[0], offset[-1], n_chunks + 1)[1:-1])
    ends = np.unique(np.concatenate([[0], inner, [len(offset) - 1]])).tolist()
    return list(itertools.pairwise(ends)) or [(0, 0)]


def _copy(array: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return a copy of an array, or None."""
    return None if array is None else np.array(array)


# ---------------------------------------------------------------------- results


@dataclass(frozen=True)
class NonzeroRows:
    """Nonzero rows of a table over all pairs; the message that contains it holds their positions.

    Attributes
    ----------
    rows : ndarray
        The nonzero rows.
    n_pairs : int
        Number of rows of the whole table.

    Examples
    --------
    >>> NonzeroRows(np.ones((1, 2)), n_pairs=4).rows.shape
    (1, 2)
    """

    rows: NDArray[Any]
    n_pairs: int


@dataclass(frozen=True)
class Message:
    """Reply of an actor.

    Attributes
    ----------
    value : object
        Result of a chunk function.
    rows : ndarray of int32 or None
        Positions of the nonzero rows of tables over all pairs.
    error : bytes or None
        Pickled exception of the chunk function.
    incomplete : bool
        Whether the actor did not receive the reply of another actor.

    Examples
    --------
    >>> Message(value=(1.0, np.ones(2))).unpack()
    (1.0, array([1., 1.]))
    """

    value: Any = None
    rows: RowIndices | None = None
    error: bytes | None = None
    incomplete: bool = False

    @classmethod
    def pack(cls, value: Any, rows: RowIndices | None, n_pairs: int) -> Message:
        """Return a message that contains only some rows of tables over all pairs.

        Parameters
        ----------
        value : number, ndarray or tuple of them
            Result of a chunk function.
        rows : ndarray of int32 or None
            Positions of rows that may be nonzero; None sends tables whole.
        n_pairs : int
            Number of pairs.

        Returns
        -------
        Message

        Examples
        --------
        >>> table = np.array([[0, 0], [0, 0], [1, 2], [0, 0]])
        >>> Message.pack(table, np.array([2], dtype=np.int32), 4).value.rows.tolist()
        [[1, 2]]
        """

        def pack_array(part: Any) -> Any:
            if isinstance(part, np.ndarray) and part.ndim and len(part) == n_pairs and part.dtype.kind in "biufc":
                nonzero = part[rows]
                if np.count_nonzero(nonzero) == np.count_nonzero(part):
                    return NonzeroRows(nonzero, n_pairs)
            return part

        return cls(value if rows is None else _map_leaves(pack_array, value), rows)

    def unpack(self) -> Any:
        """Return the value in writable arrays."""

        def unpack_array(part: Any) -> Any:
            if isinstance(part, NonzeroRows):
                table = np.zeros((part.n_pairs, *part.rows.shape[1:]), part.rows.dtype)
                table[self.rows] = part.rows
                return table
            return np.array(part) if isinstance(part, np.ndarray) and not part.flags.writeable else part

        return _map_leaves(unpack_array, self.value)

    def add_to(self, total: Any) -> Any:
        """Return the sum of a total and the value, in place where that is possible.

        Parameters
        ----------
        total : number, ndarray, tuple of them, or None
            Sum of other values.

        Returns
        -------
        number, ndarray or tuple of them

        Examples
        --------
        >>> message = Message.pack(np.array([0, 0, 5, 0]), np.array([2], dtype=np.int32), 4)
        >>> message.add_to(np.ones(4, dtype=int)).tolist()
        [1, 1, 6, 1]
        """

        def add_array(part: Any, other: Any) -> Any:
            if not isinstance(other, NonzeroRows):
                return add_results(part, other)
            part = part.astype(np.result_type(part, other.rows), copy=not part.flags.writeable)
            part[self.rows] += other.rows
            return part

        return self.unpack() if total is None else _map_leaves(add_array, total, self.value)


def find_rows(mask: NDArray[np.bool_]) -> RowIndices | None:
    """Return the positions of marked rows, or None if half of the rows or more are marked.

    Parameters
    ----------
    mask : ndarray of bool
        Marked rows.

    Returns
    -------
    ndarray of int32 or None
        None where sending single rows does not pay.

    Examples
    --------
    >>> find_rows(np.array([False, True, False])), find_rows(np.array([True, True, False]))
    (array([1], dtype=int32), None)
    """
    rows = np.flatnonzero(mask).astype(np.int32)
    return rows if 2 * len(rows) < len(mask) else None


def unite_rows(rows: RowIndices | None, other_rows: RowIndices | None, n_pairs: int) -> RowIndices | None:
    """Return the union of two sets of rows, as `find_rows` returns it.

    Parameters
    ----------
    rows, other_rows : ndarray of int32 or None
        Results of `find_rows`.
    n_pairs : int
        Number of rows of the whole table.

    Returns
    -------
    ndarray of int32 or None

    Examples
    --------
    >>> unite_rows(np.array([1], dtype=np.int32), np.array([3], dtype=np.int32), 5)
    array([1, 3], dtype=int32)
    """
    if rows is None or other_rows is None:
        return None
    mask = np.zeros(n_pairs, dtype=bool)
    mask[rows] = mask[other_rows] = True
    return find_rows(mask)


def iterate_children(position: int, n_actors: int) -> Iterator[int]:
    """Yield the children of an actor in a binary tree: it adds their sums to its own, nearest first.

    Parameters
    ----------
    position : int
        Position of the actor.
    n_actors : int
        Number of actors.

    Yields
    ------
    int

    Examples
    --------
    >>> list(iterate_children(0, 6)), list(iterate_children(4, 6)), list(iterate_children(3, 6))
    ([1, 2, 4], [5], [])
    """
    step = 1
    while position % (2 * step) == 0 and position + step < n_actors:
        yield position + step
        step *= 2


def freeze_arrays(value: Any) -> Any:
    """Make the arrays of a value read-only, so that no sum is added to them in place.

    Parameters
    ----------
    value : number, ndarray or tuple of them
        Result of a chunk function.

    Returns
    -------
    number, ndarray or tuple of them

    Examples
    --------
    >>> freeze_arrays((1, np.ones(2)))[1].flags.writeable
    False
    """

    def freeze(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
        return part

    return _map_leaves(freeze, value)


def pickle_error(error: Exception) -> bytes:
    """Pickle an exception; the traceback of an unexpected one is added as a note.

    Parameters
    ----------
    error : Exception
        Exception of a chunk function.

    Returns
    -------
    bytes
        The pickled exception, or a `WisecrowdError` with its text if it cannot be pickled.

    Examples
    --------
    >>> pickle.loads(pickle_error(InputError("no votes")))
    InputError('no votes')
    """
    if not isinstance(error, WisecrowdError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:  # an exception of another library may raise anything when it is pickled
        fallback = WisecrowdError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            fallback.add_note(note)
        pickled = pickle.dumps(fallback)
    return pickled


class OmittedObject:
    """Placeholder of an object that is too large to be sent with a function in every call.

    Parameters
    ----------
    kind : str
        Name of the type of the object.

    Examples
    --------
    >>> OmittedObject("Crowd").n_tasks
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: a Crowd is not sent with a chunk function; pass it as a shared parameter
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __getattr__(self, name: str) -> Any:
        raise UsageError(f"a {self.kind} is not sent with a chunk function; pass it as a shared parameter")


def _map_leaves(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Apply a function to the numbers and arrays of equally nested tuples."""
    if not isinstance(value, tuple):
        return function(value, *others)
    parts = [_map_leaves(function, *together) for together in zip(value, *others, strict=True)]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
