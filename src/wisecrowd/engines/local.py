"""The engines of one machine: a crowd in memory, or its shards from disk one after the other."""

from __future__ import annotations

import itertools
import tempfile
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import Shard, ShardedCrowd
from wisecrowd.engines.base import Chunk, ChunkState, Engine, Work, add, summed
from wisecrowd.utils.parallel import threads

#: The known classes of a shard's tasks, by the shard's number.
Clamp = Callable[[int], NDArray[np.int32] | None]


class LocalEngine(Engine):
    """A crowd in memory: one chunk, on which the kernels work with one thread or several.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
    >>> engine = LocalEngine(crowd)
    >>> engine.total(lambda chunk: chunk.crowd.n_votes)
    3
    """

    def __init__(
        self, crowd: Crowd, gold: NDArray[np.int32] | None = None, n_jobs: int = 1, compiled: bool | None = None
    ) -> None:
        self.crowd: Crowd = crowd
        self.gold = gold
        self.chunk = Chunk(crowd, gold, n_jobs=n_jobs, compiled=compiled)

    def total(self, work: Work, *shared: Any) -> Any:
        """What the work gives of the whole crowd."""
        return work(self.chunk, *map(_own, shared))

    def each(self, work: Work, *shared: Any) -> Iterator[Any]:
        """One chunk, one result."""
        yield self.total(work, *shared)

    def keep(self, work: Work, *shared: Any) -> ChunkState:
        """The value, in memory."""
        return _InMemory(self.total(work, *shared))


class _InMemory(ChunkState):
    def __init__(self, value: Any) -> None:
        self.value = value


def _own(given: Any) -> Any:
    return given.value if isinstance(given, _InMemory) else given


class StreamEngine(Engine):
    """Shards from disk, in turn: while one is worked on, the system reads the next.

    With several threads, each takes every so manieth shard and has sums of its own, which are added up in order at the
    end: for the same number of threads, the same bits.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog")])
    >>> engine = StreamEngine(crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1))
    >>> engine.total(lambda chunk: chunk.crowd.n_votes)
    3
    """

    def __init__(
        self, crowd: ShardedCrowd, gold: Clamp | None = None, n_jobs: int = 1, compiled: bool | None = None
    ) -> None:
        self.crowd: ShardedCrowd = crowd
        self.gold, self.n_jobs, self.compiled = gold, threads(n_jobs), compiled

    def total(self, work: Work, *shared: Any) -> Any:
        """Added up shard by shard."""
        many = min(self.n_jobs, len(self.crowd.parts))

        def some(first: int) -> Any:
            chunks = self._pieces(range(first, len(self.crowd.parts), many))
            return summed(chunks, work, lambda chunk: self._given(shared, chunk))

        if many <= 1:
            return some(0)
        with ThreadPoolExecutor(many) as pool:
            total = None
            for found in pool.map(some, range(many)):
                total = add(total, found)
        return total

    def each(self, work: Work, *shared: Any) -> Iterator[Any]:
        """Shard by shard, each when it is asked for."""
        for chunk in self._pieces(range(len(self.crowd.parts))):
            yield work(chunk, *self._given(shared, chunk))

    def keep(self, work: Work, *shared: Any) -> ChunkState:
        """Arrays in files beside the shards' folder, which go when nothing needs them any more."""
        kept = _OnDisk(self.crowd.folder)
        for number, value in enumerate(self.each(work, *shared)):
            kept.put(number, value)
        return kept

    def _pieces(self, numbers: range) -> Iterator[Chunk]:
        parts = self.crowd.parts
        # Each shard is made for its turn and forgotten after it, with all that was derived from it.
        ahead = [Shard(self.crowd, parts[number]) for number in numbers[:1]]
        for number, following in itertools.zip_longest(numbers, numbers[1:]):
            shard = ahead.pop()
            if following is not None:
                ahead.append(Shard(self.crowd, parts[following]))
                ahead[0].fetch()
            gold = None if self.gold is None else self.gold(number)
            yield Chunk(shard, gold, number, len(parts), compiled=self.compiled)

    def _given(self, shared: tuple[Any, ...], chunk: Chunk) -> list[Any]:
        return [given.get(chunk.number) if isinstance(given, _OnDisk) else given for given in shared]


class _OnDisk(ChunkState):
    """An array or a tuple of arrays for each shard, in files of numpy's."""

    def __init__(self, beside: Path) -> None:
        folder = tempfile.TemporaryDirectory(prefix=".kept-", dir=beside)
        self.folder = Path(folder.name)
        weakref.finalize(self, folder.cleanup)
        self.shapes: dict[int, int] = {}

    def put(self, number: int, value: Any) -> None:
        parts = value if isinstance(value, tuple) else (value,)
        self.shapes[number] = len(parts) if isinstance(value, tuple) else 0
        for place, part in enumerate(parts):
            np.save(self.folder / f"{number}-{place}.npy", part)

    def get(self, number: int) -> Any:
        load = partial(np.load, mmap_mode="r")
        found = tuple(load(self.folder / f"{number}-{place}.npy") for place in range(max(self.shapes[number], 1)))
        return found if self.shapes[number] else found[0]
