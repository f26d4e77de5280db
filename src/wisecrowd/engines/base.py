"""The contract of engines: sums over a crowd's tasks, wherever its pieces are.

What a method wants of the votes it says as *work*: a function of a `Piece`, some tasks with all their votes, and of
parameters that all pieces share. An engine applies it to every piece and adds the results up (`total`), hands them
over one by one (`each`), or leaves them where the pieces are for later work (`keep`). Statistics add, so that a
method that is written as work runs on a crowd in memory, on shards from disk, and on a cluster.

    engine.total(work, prior, said)      Σ over pieces of work(piece, prior, said)

Work is a function of a module or a method of an object, so that it can be sent to another process, and gives numbers,
arrays, or tuples of them. Work that has ``accumulates = True`` takes ``into``, what came of the pieces before it, and adds to that:
a table over all workers then exists once, and not once per piece.
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


class Piece(NamedTuple):
    """Some tasks with all their votes, over the workers, classes and pairs of the whole crowd.

    >>> Piece(Crowd.from_triples([("t1", "ann", "cat")])).crowd.n_tasks
    1
    """

    crowd: Crowd
    clamp: NDArray[np.int32] | None = None
    """The class of tasks whose truth is known, −1 of others."""
    number: int = 0
    """Its place among the pieces."""
    of: int = 1
    """How many pieces there are."""
    n_jobs: int = 1
    """Threads for work on this piece alone."""
    compiled: bool | None = None
    """Whether to use the compiled kernels; None goes by the size of the piece."""

    def blocks(self, votes: int = 2**18) -> Iterator[Piece]:
        """The piece in parts small enough for temporaries to stay in the cache; whole if it is the only one.

        >>> import tempfile
        >>> crowd = Crowd.from_triples([(task, "ann", "cat") for task in range(4)])
        >>> shards = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=2).shards
        >>> [block.crowd.n_tasks for block in Piece(shards[1], of=2).blocks(votes=1)]
        [1, 1]
        """
        if self.of == 1 or not isinstance(self.crowd, Shard):
            yield self
            return
        for tasks, crowd in self.crowd.blocks(votes):
            yield self._replace(crowd=crowd, clamp=None if self.clamp is None else self.clamp[tasks])


class Kept:
    """What came of a piece of work, one value for each piece, held where the pieces are.

    Given to further work among what is shared, each piece finds its own value in its place.

    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> isinstance(engine.keep(lambda piece: piece.crowd.votes), Kept)
    True
    """


class Engine(ABC):
    """Applies work to the pieces of a crowd.

    >>> sorted(Engine.__abstractmethods__)
    ['each', 'keep', 'total']
    """

    crowd: Crowd | ShardedCrowd
    """The whole: its sizes, vocabularies and pairs."""
    clamp: Any
    """Known classes: of a crowd in memory an array by task, of one in shards a function of the shard's number, or None."""

    @abstractmethod
    def total(self, work: Work, *shared: Any) -> Any:
        """The sum over all pieces of ``work(piece, *shared)``, always added up in the same order."""

    @abstractmethod
    def each(self, work: Work, *shared: Any) -> Iterator[Any]:
        """``work(piece, *shared)`` of each piece, in the order of tasks."""

    @abstractmethod
    def keep(self, work: Work, *shared: Any) -> Kept:
        """As `each`, but the values stay where the pieces are."""

    def expect(self, prior: NDArray[np.float64], said: NDArray[Any]) -> kernels.Expectation:
        """Statistics of the posteriors that follow from parameters, without keeping the posteriors."""
        return self.total(expect, prior, said)

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Give back what was taken from the system."""


def expect(
    piece: Piece, prior: NDArray[np.float64], said: NDArray[Any], into: kernels.Expectation | None = None
) -> kernels.Expectation:
    """Work: the statistics of a piece's posteriors.

    >>> piece = Piece(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> expect(piece, np.array([0.5, 0.5]), np.eye(2)).classes.tolist()
    [1.0, 1.0]
    """
    return kernels.expect(
        piece.crowd.layout, prior, said, piece.clamp, n_jobs=piece.n_jobs, compiled=piece.compiled, into=into
    )


expect.accumulates = True  # type: ignore[attr-defined]  # see above


def posterior(piece: Piece, prior: NDArray[np.float64], said: NDArray[Any]) -> NDArray[Any]:
    """Work: the posterior of every task of a piece.

    >>> piece = Piece(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> posterior(piece, np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])).round(6).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    return kernels.posterior(piece.crowd.layout, prior, said, piece.clamp, n_jobs=piece.n_jobs, compiled=piece.compiled)


def tally(piece: Piece, shares: NDArray[Any], into: NDArray[Any] | None = None) -> NDArray[Any]:
    """Work: given posteriors of a piece's tasks, added up by (worker, label) pair.

    >>> piece = Piece(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> tally(piece, np.array([[1.0, 0.0], [0.5, 0.5]])).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    return kernels.tally(piece.crowd.layout, shares, n_jobs=piece.n_jobs, compiled=piece.compiled, into=into)


tally.accumulates = True  # type: ignore[attr-defined]


def summed(pieces: Iterable[Piece], work: Work, given: Callable[[Piece], Iterable[Any]]) -> Any:
    """The sum over pieces, one after the other, of work on each and on what it is given; None of no pieces.

    >>> pieces = [Piece(Crowd.from_triples([(task, "ann", "cat")])) for task in range(3)]
    >>> summed(pieces, lambda piece, factor: factor * piece.crowd.n_labels, lambda piece: [2])
    6
    """
    found = None
    for piece in pieces:
        if found is not None and getattr(work, "accumulates", False):
            found = work(piece, *given(piece), into=found)
        else:
            found = add(found, work(piece, *given(piece)))
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
