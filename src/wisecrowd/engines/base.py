"""The contract of engines: sums over a crowd's tasks, wherever its chunks are.

What a method wants of the votes it says as *work*: a function of a `Chunk`, some tasks with all their votes, and of
parameters that all chunks share. An engine applies it to every chunk and adds the results up (`total`), hands them
over one by one (`each`), or leaves them where the chunks are for later work (`keep`). Statistics add, so that a
method that is written as work runs on a crowd in memory, on shards from disk, and on a cluster.

    engine.total(work, prior, said)      Σ over chunks of work(chunk, prior, said)

Work is a function of a module or a method of an object, so that it can be sent to another process, and gives numbers,
arrays, or tuples of them. Work that has ``accumulates = True`` takes ``into``, what came of the chunks before it, and adds to that:
a table over all workers then exists once, and not once per chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import Shard, ShardedCrowd
from wisecrowd.kernels import reference as kernels

Work = Callable[..., Any]


class Chunk(NamedTuple):
    """Some tasks with all their votes, over the workers, classes and pairs of the whole crowd.

    >>> Chunk(Crowd.from_triples([("t1", "ann", "cat")])).crowd.n_tasks
    1
    """

    crowd: Crowd
    gold: NDArray[np.int32] | None = None
    """The class of tasks whose truth is known, −1 of others."""
    number: int = 0
    """Its place among the chunks."""
    of: int = 1
    """How many chunks there are."""
    n_jobs: int = 1
    """Threads for work on this chunk alone."""
    compiled: bool | None = None
    """Whether to use the compiled kernels; None goes by the size of the chunk."""

    def blocks(self, votes: int = 2**18) -> Iterator[Chunk]:
        """The chunk in parts small enough for temporaries to stay in the cache; whole if it is the only one.

        >>> import tempfile
        >>> crowd = Crowd.from_triples([(task, "ann", "cat") for task in range(4)])
        >>> shards = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=2).shards
        >>> [block.crowd.n_tasks for block in Chunk(shards[1], of=2).blocks(votes=1)]
        [1, 1]
        """
        if self.of == 1 or not isinstance(self.crowd, Shard):
            yield self
            return
        for tasks, crowd in self.crowd.blocks(votes):
            yield self._replace(crowd=crowd, gold=None if self.gold is None else self.gold[tasks])


class ChunkState:
    """What came of a chunk of work, one value for each chunk, held where the chunks are.

    Given to further work among what is shared, each chunk finds its own value in its place.

    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> isinstance(engine.keep(lambda chunk: chunk.crowd.votes), ChunkState)
    True
    """


class Engine(ABC):
    """Applies work to the chunks of a crowd.

    >>> sorted(Engine.__abstractmethods__)
    ['each', 'keep', 'total']
    """

    crowd: Crowd | ShardedCrowd
    """The whole: its sizes, vocabularies and pairs."""
    gold: Any
    """Known classes: of a crowd in memory an array by task, of one in shards a function of the shard's number, or None."""

    @abstractmethod
    def total(self, work: Work, *shared: Any) -> Any:
        """The sum over all chunks of ``work(chunk, *shared)``, always added up in the same order."""

    @abstractmethod
    def each(self, work: Work, *shared: Any) -> Iterator[Any]:
        """``work(chunk, *shared)`` of each chunk, in the order of tasks."""

    @abstractmethod
    def keep(self, work: Work, *shared: Any) -> ChunkState:
        """As `each`, but the values stay where the chunks are."""

    def expect(self, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> kernels.Expectation:
        """Statistics of the posteriors that follow from parameters, without keeping the posteriors."""
        return self.total(expect, prior, label_probs)

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Give back what was taken from the system."""


def expect(
    chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any], into: kernels.Expectation | None = None
) -> kernels.Expectation:
    """Work: the statistics of a chunk's posteriors.

    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> expect(chunk, np.array([0.5, 0.5]), np.eye(2)).classes.tolist()
    [1.0, 1.0]
    """
    return kernels.expect(
        chunk.crowd.layout, prior, label_probs, chunk.gold, n_jobs=chunk.n_jobs, compiled=chunk.compiled, into=into
    )


expect.accumulates = True  # type: ignore[attr-defined]  # see above


def posterior(chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> NDArray[Any]:
    """Work: the posterior of every task of a chunk.

    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> posterior(chunk, np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])).round(6).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    return kernels.posterior(
        chunk.crowd.layout, prior, label_probs, chunk.gold, n_jobs=chunk.n_jobs, compiled=chunk.compiled
    )


def tally(chunk: Chunk, shares: NDArray[Any], into: NDArray[Any] | None = None) -> NDArray[Any]:
    """Work: given posteriors of a chunk's tasks, added up by (worker, label) pair.

    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> tally(chunk, np.array([[1.0, 0.0], [0.5, 0.5]])).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    return kernels.tally(chunk.crowd.layout, shares, n_jobs=chunk.n_jobs, compiled=chunk.compiled, into=into)


tally.accumulates = True  # type: ignore[attr-defined]


def summed(chunks: Iterable[Chunk], work: Work, given: Callable[[Chunk], Iterable[Any]]) -> Any:
    """The sum over chunks, one after the other, of work on each and on what it is given; None of no chunks.

    >>> chunks = [Chunk(Crowd.from_triples([(task, "ann", "cat")])) for task in range(3)]
    >>> summed(chunks, lambda chunk, factor: factor * chunk.crowd.n_votes, lambda chunk: [2])
    6
    """
    found = None
    for chunk in chunks:
        if found is not None and getattr(work, "accumulates", False):
            found = work(chunk, *given(chunk), into=found)
        else:
            found = add(found, work(chunk, *given(chunk)))
    return found


def add(total: Any, more: Any) -> Any:
    """Two results of work, added; arrays in place of the first.

    >>> add((1.0, np.ones(2)), (2.0, np.ones(2)))
    (3.0, array([2., 2.]))
    >>> add(None, 1.0)
    1.0
    """
    if total is None or more is None:
        return more if total is None else total
    if isinstance(total, tuple):
        parts = [add(one, other) for one, other in zip(total, more, strict=True)]
        return type(total)(*parts) if hasattr(total, "_fields") else tuple(parts)
    if isinstance(total, np.ndarray) and total.flags.writeable and np.can_cast(more, total.dtype, "same_kind"):
        total += more
        return total
    return total + more
