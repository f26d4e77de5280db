"""Interface of engines: apply a function to the chunks of a crowd and add up the results.

A method expresses its computations on votes as *chunk functions*: functions of a `Chunk` (some tasks with all their votes)
and of parameters that all chunks share. An engine applies such a function to every chunk and adds up the results
(`Engine.sum`), returns them one by one (`Engine.map`), or keeps them next to the chunks for later calls
(`Engine.retain`). Statistics are additive, so a method written this way runs on a crowd in memory, on shards from disk,
and on a cluster::

    engine.sum(function, prior, label_probs)      # Σ over chunks of function(chunk, prior, label_probs)

A chunk function is a function of a module or a bound method, so that it can be sent to another process. It returns
numbers, arrays, or tuples of them. If it has the attribute ``accumulates = True``, it accepts the keyword
``accumulate_into``, the result of the previous chunks, and adds to it in place: a table over all workers then exists once
and not once per chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.crowd_slice import CrowdSlice
from wisecrowd.data.sharded import ShardedCrowd

#: Function of a chunk and of parameters that all chunks share.
ChunkFunction = Callable[..., Any]
#: Class codes of the gold tasks of a shard, by the number of the shard.
GoldByShard = Callable[[int], NDArray[np.int32] | None]

#: Votes of a block of a chunk: temporary arrays of this length fit in the cache of a processor.
VOTES_PER_BLOCK = 2**18


class Chunk(NamedTuple):
    """Some tasks with all their votes, over the workers, classes and pairs of the whole crowd.

    Attributes
    ----------
    crowd : Crowd
        The tasks and their votes.
    gold : ndarray of shape (n_tasks,) or None
        Class codes of gold tasks, -1 where the truth is unknown.
    number : int, default 0
        Position among the chunks.
    n_chunks : int, default 1
        Number of chunks of the whole crowd.
    n_jobs : int, default 1
        Number of threads for this chunk.
    compiled : bool or None
        Whether to use the compiled kernels; None decides by the size of the chunk.

    Examples
    --------
    >>> Chunk(Crowd.from_triples([("t1", "ann", "cat")])).crowd.n_tasks
    1
    """

    crowd: Crowd
    gold: NDArray[np.int32] | None = None
    number: int = 0
    n_chunks: int = 1
    n_jobs: int = 1
    compiled: bool | None = None

    def blocks(self, votes: int = VOTES_PER_BLOCK) -> Iterator[Chunk]:
        """Yield parts of the chunk whose temporary arrays fit in the cache; the only chunk of a crowd is yielded whole.

        Parameters
        ----------
        votes : int
            Approximate number of votes per part.

        Yields
        ------
        Chunk

        Examples
        --------
        >>> import tempfile
        >>> crowd = Crowd.from_triples([(task, "ann", "cat") for task in range(4)])
        >>> shards = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=2).shards
        >>> [block.crowd.n_tasks for block in Chunk(shards[1], n_chunks=2).blocks(votes=1)]
        [1, 1]
        """
        if self.n_chunks == 1 or not isinstance(self.crowd, CrowdSlice):
            yield self
            return
        for tasks, crowd in self.crowd.iter_slices(votes):
            yield self._replace(crowd=crowd, gold=None if self.gold is None else self.gold[tasks])


class ChunkState(ABC):
    """Handle of one value per chunk, stored where the chunks are.

    When a handle is passed to a chunk function as a shared parameter, every chunk receives its own value.

    Examples
    --------
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> state = engine.retain(lambda chunk: chunk.crowd.n_votes)
    >>> engine.sum(lambda chunk, n_votes: 10 * n_votes, state)
    10
    """

    @abstractmethod
    def get(self, number: int) -> Any:
        """Return the value of a chunk.

        Parameters
        ----------
        number : int
            Position of the chunk.

        Returns
        -------
        object
        """


class Engine(ABC):
    """Base class of engines.

    Attributes
    ----------
    crowd : Crowd or ShardedCrowd
        The whole crowd: its sizes, vocabularies and pairs.
    gold : ndarray, callable or None
        Class codes of gold tasks: an array by task for a crowd in memory, a function of the shard number for a crowd in
        shards.

    Examples
    --------
    >>> from wisecrowd.engines import LocalEngine
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> engine.expect(np.array([0.5, 0.5]), np.eye(2)).class_counts.tolist()
    [1.0, 1.0]
    """

    crowd: Crowd | ShardedCrowd
    gold: Any

    @abstractmethod
    def sum(self, function: ChunkFunction, *shared: Any) -> Any:
        """Return the sum of ``function(chunk, *shared)`` over all chunks, always added in the same order.

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

    @abstractmethod
    def map(self, function: ChunkFunction, *shared: Any) -> Iterator[Any]:
        """Yield ``function(chunk, *shared)`` of every chunk, in the order of tasks.

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

    @abstractmethod
    def retain(self, function: ChunkFunction, *shared: Any) -> ChunkState:
        """Apply a function to every chunk and keep the results where the chunks are.

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

    def expect(self, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> kernels.Expectation:
        """Compute the statistics of an E-step without storing the posterior.

        Parameters
        ----------
        prior : ndarray of shape (n_classes,)
            Class probabilities.
        label_probs : ndarray of shape (n_pairs, n_classes)
            P(label of the pair | class).

        Returns
        -------
        Expectation
        """
        return self.sum(expect_chunk, prior, label_probs)

    def close(self) -> None:  # noqa: B027  # most engines hold no resources
        """Release the resources of the engine."""


def resolve_shared(shared: Iterable[Any], number: int) -> list[Any]:
    """Replace every `ChunkState` among shared parameters by its value for one chunk.

    Parameters
    ----------
    shared : iterable
        Shared parameters.
    number : int
        Position of the chunk.

    Returns
    -------
    list

    Examples
    --------
    >>> resolve_shared([1, "a"], 0)
    [1, 'a']
    """
    return [value.get(number) if isinstance(value, ChunkState) else value for value in shared]


def expect_chunk(
    chunk: Chunk,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    accumulate_into: kernels.Expectation | None = None,
) -> kernels.Expectation:
    """Compute the statistics of an E-step on one chunk.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    prior : ndarray of shape (n_classes,)
        Class probabilities.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair | class).
    accumulate_into : Expectation, optional
        Statistics of the previous chunks, to which these are added.

    Returns
    -------
    Expectation

    Examples
    --------
    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> expect_chunk(chunk, np.array([0.5, 0.5]), np.eye(2)).class_counts.tolist()
    [1.0, 1.0]
    """
    return kernels.expect(
        chunk.crowd.layout, prior, label_probs, chunk.gold, n_jobs=chunk.n_jobs, compiled=chunk.compiled,
        accumulate_into=accumulate_into,
    )  # fmt: skip


expect_chunk.accumulates = True  # type: ignore[attr-defined]  # see the module's docstring


def compute_chunk_posterior(chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> NDArray[Any]:
    """Return the posterior of every task of a chunk.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    prior : ndarray of shape (n_classes,)
        Class probabilities.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair | class).

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> label_probs = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> compute_chunk_posterior(chunk, np.array([0.5, 0.5]), label_probs).round(6).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    return kernels.posterior(
        chunk.crowd.layout, prior, label_probs, chunk.gold, n_jobs=chunk.n_jobs, compiled=chunk.compiled
    )


def tally_chunk(
    chunk: Chunk, posterior: NDArray[Any], accumulate_into: NDArray[Any] | None = None
) -> NDArray[Any]:  # fmt: skip
    """Sum the posteriors of a chunk's tasks by (worker, label) pair.

    Parameters
    ----------
    chunk : Chunk
        Tasks with their votes.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of every task of the chunk.
    accumulate_into : ndarray of shape (n_pairs, n_classes), optional
        Tally of the previous chunks, to which this one is added.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> chunk = Chunk(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> tally_chunk(chunk, np.array([[1.0, 0.0], [0.5, 0.5]])).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    return kernels.tally(
        chunk.crowd.layout, posterior, n_jobs=chunk.n_jobs, compiled=chunk.compiled, accumulate_into=accumulate_into
    )


tally_chunk.accumulates = True  # type: ignore[attr-defined]


def sum_over_chunks(
    chunks: Iterable[Chunk], function: ChunkFunction, resolve: Callable[[Chunk], Iterable[Any]]
) -> Any:  # fmt: skip
    """Return the sum of a chunk function over chunks, one after the other.

    Parameters
    ----------
    chunks : iterable of Chunk
        Chunks of a crowd.
    function : callable
        Function of a chunk and its parameters.
    resolve : callable
        Function that returns the parameters of a chunk.

    Returns
    -------
    number, ndarray, tuple of them, or None if there are no chunks

    Examples
    --------
    >>> chunks = [Chunk(Crowd.from_triples([(task, "ann", "cat")])) for task in range(3)]
    >>> sum_over_chunks(chunks, lambda chunk, factor: factor * chunk.crowd.n_votes, lambda chunk: [2])
    6
    """
    total = None
    for chunk in chunks:
        if total is not None and getattr(function, "accumulates", False):
            total = function(chunk, *resolve(chunk), accumulate_into=total)
        else:
            total = add_results(total, function(chunk, *resolve(chunk)))
    return total


def add_results(total: Any, result: Any) -> Any:
    """Add a result of a chunk function to a total; arrays in place where that is possible.

    Parameters
    ----------
    total : number, ndarray, tuple of them, or None
        Sum of the results before.
    result : number, ndarray, tuple of them, or None
        Result to add.

    Returns
    -------
    number, ndarray, tuple of them, or None

    Examples
    --------
    >>> add_results((1.0, np.ones(2)), (2.0, np.ones(2)))
    (3.0, array([2., 2.]))
    >>> add_results(None, 1.0)
    1.0
    """
    if total is None or result is None:
        return result if total is None else total
    if isinstance(total, tuple):
        parts = [add_results(part, other) for part, other in zip(total, result, strict=True)]
        return type(total)(*parts) if hasattr(total, "_fields") else tuple(parts)
    if isinstance(total, np.ndarray) and total.flags.writeable and np.can_cast(result, total.dtype, "same_kind"):
        total += result
        return total
    return total + result
