"""The weighted vote: every worker has one weight, and the class whose voters weigh most wins.

Wawa, iterative weighted majority voting, zero-based skill and their kin differ in how weights follow from how often a
worker agrees with the outcome. Ties are split between the tied classes, never given to the first of them, so that the
names of classes cannot matter; a split tie counts as half an agreement (a third between three, and so on).
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, method_class, parameter
from wisecrowd.base.on_engine import OnEngine
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.em.initialization import apply_gold, vote_shares
from wisecrowd.engines import LocalEngine
from wisecrowd.engines.base import Chunk, ChunkState, Engine
from wisecrowd.engines.retained import keep_and_add, own_of

#: Scores nearer than this, relative to the largest, are tied: a sum in another order must not decide.
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Poll:
    """The votes of a crowd, ready to be counted again and again with other weights of the workers.

    >>> poll = Poll(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")]))
    >>> poll.scores(np.array([2.0, 1.0])).tolist()
    [[2.0, 1.0], [2.0, 0.0]]
    >>> poll.agreement(poll.winners(poll.scores(np.ones(2)))).tolist()
    [0.75, 0.5]
    """

    crowd: Crowd
    gold: NDArray[np.int32] | None = None

    @cached_property
    def cell(self) -> NDArray[np.intp]:
        """What each vote is for: a class of a task."""
        return self.crowd.task.astype(np.intp) * self.crowd.n_classes + self.crowd.label

    @cached_property
    def worker(self) -> NDArray[np.intp]:
        """Who cast each vote."""
        return self.crowd.worker_codes.astype(np.intp)  # of the type in which sums by it are taken without a copy

    @cached_property
    def ballots(self) -> Any:
        """Who chose what: (task, class) cells x workers, sparse, with the weights of the votes."""
        crowd = self.crowd
        shape = (crowd.n_tasks * crowd.n_classes, crowd.n_workers)
        return sp.csr_array(sp.coo_array((crowd.weight, (self.cell, self.worker)), shape=shape))

    @cached_property
    def cast(self) -> NDArray[np.float64]:
        """How much each worker voted."""
        return self._by_worker(self.crowd.weight)

    def scores(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of the voters for each class of each task, (tasks, classes)."""
        crowd = self.crowd
        size = crowd.n_tasks * crowd.n_classes
        total = np.bincount(self.cell, crowd.weight * weight[self.worker], size)
        return total.astype(np.float64, copy=False).reshape(crowd.n_tasks, crowd.n_classes)

    def winners(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """One for the class with the highest score, shared where several have it; gold counts as won."""
        peak = scores.max(axis=1, keepdims=True)
        best = scores >= peak - TIE * np.abs(scores).max(axis=1, keepdims=True)
        return apply_gold(best / best.sum(axis=1, keepdims=True), self.gold)

    def agreement(self, winners: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of each worker's votes that went to the winner; NaN for a worker without votes."""
        with np.errstate(invalid="ignore"):
            return self.won(winners) / self.cast

    def won(self, winners: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much of each worker's votes went to the winner."""
        return self._by_worker(self.crowd.weight * winners.ravel()[self.cell])

    def _by_worker(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.worker, value, self.crowd.n_workers).astype(np.float64, copy=False)

    def shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores as parts of one; where no voter weighs anything, every vote counts the same."""
        total = scores.sum(axis=1, keepdims=True)
        return apply_gold(np.divide(scores, total, out=vote_shares(self.crowd), where=total > 0), self.gold)

    def odds(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Posterior when the scores are logarithms of odds."""
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        return apply_gold(share / share.sum(axis=1, keepdims=True), self.gold)


@method_class
class WorkerWeights(Aggregator):
    """A method that learns one weight per worker, ``weight_``, and shows it in ``workers_``.

    >>> from wisecrowd import KOS
    >>> issubclass(KOS, WorkerWeights)
    True
    """

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._check_fitted("weight_")}


@method_class
class WeightedVote(WorkerWeights):
    """A vote in which workers weigh differently: a family member says how much, and what posterior follows from it.

    >>> from wisecrowd import Wawa
    >>> issubclass(Wawa, WeightedVote)
    True
    """

    @abstractmethod
    def _weigh(self, poll: Any) -> NDArray[np.float64]:
        """The weight of every worker, from a `Poll`."""

    def _posterior(self, poll: Poll, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the weighted votes say of each task: their shares, unless the method knows better."""
        return poll.shares(scores)

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        poll = Poll(crowd, gold)
        self.weight_ = self._weigh(poll)
        self._set_fitted(crowd, self._posterior(poll, poll.scores(self.weight_)))


class Outcome(NamedTuple):
    """How a vote went: how often workers agreed with it, how many answers are new, and the winners, beside the chunks."""

    agreement: NDArray[np.float64]
    changed: int
    winners: ChunkState


@dataclass(frozen=True, eq=False)
class Polls:
    """A poll in every chunk of a crowd; what is asked of all of them adds up.

    >>> from wisecrowd.engines import LocalEngine
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> polls = Polls(LocalEngine(crowd))
    >>> polls.agreement().tolist(), polls.agreement(np.array([1.0, 2.0])).tolist()
    ([0.75, 0.5], [0.5, 1.0])
    >>> before = polls.vote()
    >>> polls.vote(np.array([1.0, 2.0]), before).changed
    1
    """

    engine: Engine

    @cached_property
    def ready(self) -> ChunkState | None:
        """The polls, for a crowd in memory; of others they are made when it is their turn."""
        return self.engine.keep(_poll) if isinstance(self.engine, LocalEngine) else None

    @cached_property
    def cast(self) -> NDArray[np.float64]:
        """How much each worker voted."""
        return self.engine.total(_cast, self.ready)

    def agreement(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Share of each worker's votes that went to the winner of a vote with these weights, or with none."""
        return self._share(self.engine.total(_won, self.ready, weight))

    def vote(self, weight: NDArray[np.float64] | None = None, before: Outcome | None = None) -> Outcome:
        """As `agreement`, and how many answers are others than those of the vote before."""
        sums, winners = keep_and_add(self.engine, _vote, self.ready, weight, None if before is None else before.winners)
        return Outcome(self._share(sums[1:]), int(sums[0]), winners)

    def _share(self, won: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return won / self.cast


def _poll(chunk: Chunk, ready: Poll | None = None) -> Poll:
    return ready or Poll(chunk.crowd, chunk.gold)


def _cast(chunk: Chunk, ready: Poll | None) -> NDArray[np.float64]:
    return _poll(chunk, ready).cast


def _won(chunk: Chunk, ready: Poll | None, weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    poll = _poll(chunk, ready)
    return poll.won(_winners(poll, weight))


def _vote(
    chunk: Chunk, ready: Poll | None, weight: NDArray[np.float64] | None, before: NDArray[np.float64] | None
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    poll = _poll(chunk, ready)
    winners = _winners(poll, weight)
    old = winners if before is None else own_of(before).reshape(winners.shape)
    changed = int(np.count_nonzero((old != winners).any(axis=1)))
    return changed, poll.won(winners), winners


def _winners(poll: Poll, weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return poll.winners(poll.crowd.votes if weight is None else poll.scores(weight))


@method_class
class AdditiveVote(OnEngine, WeightedVote):
    """A weighted vote that asks nothing of the votes but what adds up over tasks: it takes crowds in shards.

    >>> from wisecrowd import IWMV
    >>> issubclass(IWMV, AdditiveVote)
    True
    """

    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    @abstractmethod
    def _weigh(self, poll: Polls) -> NDArray[np.float64]:
        """The weight of every worker."""

    def _fit(self, crowd: AnyCrowd, gold: Any, *, X: Any, start: Any) -> None:
        with closing(self._engine(crowd, gold)) as engine:
            polls = Polls(engine)
            self.weight_ = self._weigh(polls)
            self._conclude(engine, self._answer, self.weight_, polls.ready)

    def _answer(self, chunk: Chunk, weight: NDArray[np.float64], ready: Poll | None) -> NDArray[np.float64]:
        """Work: the posterior of a chunk's tasks."""
        poll = _poll(chunk, ready)
        return self._posterior(poll, poll.scores(weight))
