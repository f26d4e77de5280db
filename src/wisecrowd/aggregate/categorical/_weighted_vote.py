"""The family of weighted votes: every worker has one weight, and the class with the heaviest voters wins.

Members differ in how weights follow from the agreement of workers with the outcome. Ties are split between the tied classes
instead of given to the first one, so the names of classes do not matter. A split tie between n classes counts as 1/n agreement.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.poll import Poll
from wisecrowd.engines import LocalEngine, engine_for
from wisecrowd.engines.base import Chunk, ChunkState, Engine
from wisecrowd.engines.retained import sum_and_retain, unpack_retained

Array = NDArray[np.float64]


class PollOutcome(NamedTuple):
    """Outcome of one vote."""

    agreement: Array
    """Agreement of each worker with the winners, (n_workers,)."""
    n_changed: int
    """Number of tasks whose winner differs from the previous vote."""
    winners: ChunkState
    """Winners, retained beside the chunks of the crowd."""


@dataclass(frozen=True, eq=False)
class DistributedPoll:
    """One poll per chunk of a crowd; their results add up.

    Parameters
    ----------
    engine : Engine
        Engine that holds the chunks.

    Examples
    --------
    >>> from wisecrowd.engines import LocalEngine
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> poll = DistributedPoll(LocalEngine(crowd))
    >>> poll.compute_agreement().tolist(), poll.compute_agreement(np.array([1.0, 2.0])).tolist()
    ([0.75, 0.5], [0.5, 1.0])
    >>> first = poll.vote()
    >>> poll.vote(np.array([1.0, 2.0]), first).n_changed
    1
    """

    engine: Engine

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.engine.crowd.n_classes

    @cached_property
    def local_poll(self) -> ChunkState | None:
        """Poll of a crowd in memory; None for other crowds, whose polls are made chunk by chunk when they are used."""
        return self.engine.retain(_make_poll) if isinstance(self.engine, LocalEngine) else None

    @cached_property
    def worker_totals(self) -> Array:
        """Total weight of the votes of each worker."""
        return self.engine.sum(_sum_worker_totals, self.local_poll)

    def compute_agreement(self, weight: Array | None = None) -> Array:
        """Compute the agreement of each worker with the winners of a weighted vote.

        Parameters
        ----------
        weight : ndarray of shape (n_workers,), optional
            Weights of the workers; equal weights if not given.

        Returns
        -------
        ndarray of shape (n_workers,)
            NaN for workers without votes.
        """
        return self._divide_by_totals(self.engine.sum(_sum_agreeing_votes, self.local_poll, weight))

    def vote(self, weight: Array | None = None, previous: PollOutcome | None = None) -> PollOutcome:
        """Hold a weighted vote and compare its winners with those of a previous vote.

        Parameters
        ----------
        weight : ndarray of shape (n_workers,), optional
            Weights of the workers; equal weights if not given.
        previous : PollOutcome, optional
            Previous vote.

        Returns
        -------
        PollOutcome
        """
        previous_winners = None if previous is None else previous.winners
        sums, winners = sum_and_retain(self.engine, _vote, self.local_poll, weight, previous_winners)
        return PollOutcome(self._divide_by_totals(sums[1:]), int(sums[0]), winners)

    def _divide_by_totals(self, votes: Array) -> Array:
        """Return votes as shares of each worker's total."""
        with np.errstate(invalid="ignore"):
            return votes / self.worker_totals


def _make_poll(chunk: Chunk, poll: Poll | None = None) -> Poll:
    """Return the poll of a chunk, unless there is one already."""
    return poll or Poll(chunk.crowd, chunk.gold)


def _sum_worker_totals(chunk: Chunk, poll: Poll | None) -> Array:
    """Return the total weight of each worker's votes in a chunk."""
    return _make_poll(chunk, poll).worker_totals


def _sum_agreeing_votes(chunk: Chunk, poll: Poll | None, weight: Array | None) -> Array:
    """Return the weight of each worker's votes in a chunk that agree with the winners."""
    poll = _make_poll(chunk, poll)
    return poll.sum_agreeing_votes(_find_winners(poll, weight))


def _vote(chunk: Chunk, poll: Poll | None, weight: Array | None, previous: Array | None) -> tuple[int, Array, Array]:
    """Return the number of changed winners, the agreeing votes by worker, and the winners of a chunk."""
    poll = _make_poll(chunk, poll)
    winners = _find_winners(poll, weight)
    old_winners = winners if previous is None else unpack_retained(previous).reshape(winners.shape)
    n_changed = int(np.count_nonzero((old_winners != winners).any(axis=1)))
    return n_changed, poll.sum_agreeing_votes(winners), winners


def _find_winners(poll: Poll, weight: Array | None) -> Array:
    """Return the winners of a vote with these weights, or with equal weights."""
    return poll.find_winners(poll.crowd.vote_counts if weight is None else poll.compute_scores(weight))


@method_class
class WeightedVote(Aggregator):
    """Base class of votes in which every worker has one weight.

    A subclass defines the weights (`_estimate_weights`) and, if it is not the share of weight, the posterior that follows from
    the weighted votes (`_compute_posterior`). A subclass that works on crowds in shards sets ``streams`` and has the parameters
    ``engine`` and ``n_jobs``.
    """

    weight_: Array = fitted(help="Weight of each worker.", shape=("n_workers",))

    @abstractmethod
    def _estimate_weights(self, poll: Any) -> Array:
        """Estimate the weight of every worker, from a `DistributedPoll` if the method streams, else from a `Poll`."""

    def _compute_posterior(self, poll: Poll, scores: Array) -> Array:
        """Return the posterior that follows from the weighted votes."""
        return poll.normalize_scores(scores)

    def _fit(self, crowd: AnyCrowd, gold: Any, *, X: Any, start: Any) -> None:
        if not self.streams:
            assert isinstance(crowd, Crowd)
            poll = Poll(crowd, gold)
            self.weight_ = self._estimate_weights(poll)
            self._set_fitted(crowd, self._compute_posterior(poll, poll.compute_scores(self.weight_)))
            return
        params = self.get_params(deep=False)
        with closing(engine_for(params["engine"], crowd, gold, n_jobs=params["n_jobs"])) as engine:
            polls = DistributedPoll(engine)
            self.weight_ = self._estimate_weights(polls)
            self._set_fitted_from_engine(engine, self._compute_chunk_posterior, self.weight_, polls.local_poll)

    def _compute_chunk_posterior(self, chunk: Chunk, weight: Array, poll: Poll | None) -> Array:
        """Return the posterior of the tasks of a chunk."""
        poll = _make_poll(chunk, poll)
        return self._compute_posterior(poll, poll.compute_scores(weight))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._check_fitted("weight_")}
