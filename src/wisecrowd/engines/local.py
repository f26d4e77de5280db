"""Engines of one machine: a crowd in memory, or shards from disk one after the other."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import Shard, ShardedCrowd
from wisecrowd.engines.base import (
    Chunk,
    ChunkFunction,
    ChunkState,
    Engine,
    GoldByShard,
    add_results,
    resolve_shared,
    sum_over_chunks,
)
from wisecrowd.utils.files import TemporaryFolder
from wisecrowd.utils.parallel import thread_count


class LocalEngine(Engine):
    """Engine for a crowd in memory: a single chunk.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, -1 where the truth is unknown.
    n_jobs : int, default 1
        Number of threads of the kernels; -1 uses all cores.
    compiled : bool, optional
        Whether to use the compiled kernels. By default the size of the crowd decides.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
    >>> engine = LocalEngine(crowd)
    >>> engine.sum(lambda chunk: chunk.crowd.n_votes)
    3
    """

    def __init__(
        self, crowd: Crowd, gold: NDArray[np.int32] | None = None, n_jobs: int = 1, compiled: bool | None = None
    ) -> None:
        self.crowd: Crowd = crowd
        self.gold = gold
        self.chunk = Chunk(crowd, gold, n_jobs=n_jobs, compiled=compiled)

    def sum(self, function: ChunkFunction, *shared: Any) -> Any:
        """Return the result of the only chunk.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Returns
        -------
        number, ndarray or tuple of them
        """
        return function(self.chunk, *resolve_shared(shared, 0))

    def map(self, function: ChunkFunction, *shared: Any) -> Iterator[Any]:
        """Yield the result of the only chunk.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Yields
        ------
        object
        """
        yield self.sum(function, *shared)

    def retain(self, function: ChunkFunction, *shared: Any) -> ChunkState:
        """Keep the result in memory.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Returns
        -------
        ChunkState
            Handle of the results, for later calls.
        """
        return _MemoryState(self.sum(function, *shared))


class _MemoryState(ChunkState):
    """Value of the only chunk, in memory."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self, number: int) -> Any:
        return self.value


class StreamEngine(Engine):
    """Engine for a crowd in shards: reads one shard after the other, and prefetches the next.

    Thread i of n processes the shards i, i + n, …; its sums are added in the order of threads. The same number of threads
    therefore gives the same bits.

    Parameters
    ----------
    crowd : ShardedCrowd
        Votes in shards.
    gold : callable, optional
        Class codes of gold tasks by shard number.
    n_jobs : int, default 1
        Number of threads; -1 uses all cores.
    compiled : bool, optional
        Whether to use the compiled kernels. By default the size of a shard decides.

    Examples
    --------
    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
    >>> engine = StreamEngine(crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1))
    >>> engine.sum(lambda chunk: chunk.crowd.n_votes)
    3
    """

    def __init__(
        self, crowd: ShardedCrowd, gold: GoldByShard | None = None, n_jobs: int = 1, compiled: bool | None = None
    ) -> None:
        self.crowd: ShardedCrowd = crowd
        self.gold, self.n_jobs, self.compiled = gold, thread_count(n_jobs), compiled

    def sum(self, function: ChunkFunction, *shared: Any) -> Any:
        """Return the sum over shards.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Returns
        -------
        number, ndarray or tuple of them
        """
        n_shards = self.crowd.n_shards
        n_threads = min(self.n_jobs, n_shards)

        def sum_thread(first: int) -> Any:
            chunks = self._read_chunks(range(first, n_shards, n_threads))
            return sum_over_chunks(chunks, function, lambda chunk: resolve_shared(shared, chunk.number))

        if n_threads <= 1:
            return sum_thread(0)
        with ThreadPoolExecutor(n_threads) as pool:
            total = None
            for result in pool.map(sum_thread, range(n_threads)):
                total = add_results(total, result)
        return total

    def map(self, function: ChunkFunction, *shared: Any) -> Iterator[Any]:
        """Yield the result of every shard; at most ``n_jobs`` results are computed ahead.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Yields
        ------
        object
        """
        n_shards = self.crowd.n_shards
        if min(self.n_jobs, n_shards) <= 1:
            for chunk in self._read_chunks(range(n_shards)):
                yield function(chunk, *resolve_shared(shared, chunk.number))
            return

        def apply(number: int) -> Any:
            (chunk,) = self._read_chunks(range(number, number + 1))
            return function(chunk, *resolve_shared(shared, number))

        pending: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(self.n_jobs)
        try:
            for number in range(n_shards):
                pending.append(pool.submit(apply, number))
                if len(pending) > self.n_jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def retain(self, function: ChunkFunction, *shared: Any) -> ChunkState:
        """Keep arrays in files in the folder of the crowd, deleted with the handle.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Returns
        -------
        ChunkState
            Handle of the results, for later calls.
        """
        state = _DiskState(self.crowd.folder)
        for number, value in enumerate(self.map(function, *shared)):
            state.put(number, value)
        return state

    def _read_chunks(self, numbers: range) -> Iterator[Chunk]:
        """Yield some shards as chunks."""
        infos = self.crowd.shard_infos
        # A shard object lives for its turn only, so that nothing derived from it stays in memory.
        prefetched = [Shard(self.crowd, infos[number]) for number in numbers[:1]]
        for number, following in itertools.zip_longest(numbers, numbers[1:]):
            shard = prefetched.pop()
            if following is not None:
                prefetched.append(Shard(self.crowd, infos[following]))
                prefetched[0].prefetch()
            gold = None if self.gold is None else self.gold(number)
            yield Chunk(shard, gold, number, len(infos), compiled=self.compiled)


class _DiskState(ChunkState):
    """An array or a tuple of arrays per shard, in ``.npy`` files."""

    def __init__(self, parent: Path) -> None:
        self._temporary_folder = TemporaryFolder(parent, "state")  # removed with this object
        self.folder = self._temporary_folder.path
        #: Length of the tuple of each shard; 0 for an array.
        self.tuple_lengths: dict[int, int] = {}

    def put(self, number: int, value: Any) -> None:
        """Write the value of a shard.

        Parameters
        ----------
        number : int
            Number of the shard.
        value : ndarray or tuple of ndarray
            Value to store.
        """
        parts = value if isinstance(value, tuple) else (value,)
        self.tuple_lengths[number] = len(parts) if isinstance(value, tuple) else 0
        for position, part in enumerate(parts):
            np.save(self._path(number, position), part)

    def get(self, number: int) -> Any:
        """Read the value of a shard.

        Parameters
        ----------
        number : int
            Number of the shard.

        Returns
        -------
        ndarray or tuple of ndarray
            Memory-mapped arrays.
        """
        length = self.tuple_lengths[number]
        parts = tuple(np.load(self._path(number, position), mmap_mode="r") for position in range(max(length, 1)))
        return parts if length else parts[0]

    def _path(self, number: int, position: int) -> Path:
        """Return the file of one array."""
        return self.folder / f"{number}-{position}.npy"
