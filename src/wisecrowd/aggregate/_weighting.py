"""The weighted vote: every worker has one weight, and the class whose voters weigh most wins.

Wawa, iterative weighted majority voting, zero-based skill and their kin differ in how weights follow from how often a
worker agrees with the outcome. Ties are split between the tied classes, never given to the first of them, so that the
names of classes cannot matter; a split tie counts as half an agreement (a third between three, and so on).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.base import Aggregator
from wisecrowd.crowd import Crowd
from wisecrowd.posteriors import vote_shares

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
    clamp: NDArray[np.int32] | None = None

    @cached_property
    def ballots(self) -> Any:
        """Who chose what: (task, class) cells x workers, sparse, with the weights of the votes."""
        crowd = self.crowd
        assert crowd.worker is not None
        cell = crowd.task.astype(np.int64) * crowd.n_classes + crowd.label
        shape = (crowd.n_tasks * crowd.n_classes, crowd.n_workers)
        return sp.csr_array(sp.coo_array((crowd.weight, (cell, crowd.worker)), shape=shape))

    @cached_property
    def cast(self) -> NDArray[np.float64]:
        """How much each worker voted."""
        return np.asarray(self.ballots.sum(axis=0)).ravel()

    def scores(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of the voters for each class of each task, (tasks, classes)."""
        return np.asarray(self.ballots @ weight).reshape(self.crowd.n_tasks, self.crowd.n_classes)

    def winners(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """One for the class with the highest score, shared where several have it; gold counts as won."""
        peak = scores.max(axis=1, keepdims=True)
        best = scores >= peak - TIE * np.abs(scores).max(axis=1, keepdims=True)
        return self.with_gold(best / best.sum(axis=1, keepdims=True))

    def agreement(self, winners: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of each worker's votes that went to the winner; NaN for a worker without votes."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.ballots.T @ winners.ravel()) / self.cast

    def shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores as parts of one; where no voter weighs anything, every vote counts the same."""
        total = scores.sum(axis=1, keepdims=True)
        return self.with_gold(np.divide(scores, total, out=vote_shares(self.crowd), where=total > 0))

    def odds(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Posterior when the scores are logarithms of odds."""
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        return self.with_gold(share / share.sum(axis=1, keepdims=True))

    def with_gold(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Put the known truth in its place."""
        if self.clamp is not None:
            known = np.flatnonzero(self.clamp >= 0)
            posterior[known] = 0
            posterior[known, self.clamp[known]] = 1
        return posterior


@dataclass(kw_only=True, eq=False, repr=False)
class WorkerWeights(Aggregator):
    """A method that learns one weight per worker, ``weight_``, and shows it in ``workers_``.

    >>> from wisecrowd import KOS
    >>> issubclass(KOS, WorkerWeights)
    True
    """

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._learnt("weight_")}


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedVote(WorkerWeights):
    """A vote in which workers weigh differently: a family member says how much, and what posterior follows from it.

    >>> from wisecrowd import Wawa
    >>> issubclass(Wawa, WeightedVote)
    True
    """

    @abstractmethod
    def _weigh(self, poll: Poll) -> NDArray[np.float64]:
        """The weight of every worker."""

    def _posterior(self, poll: Poll, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the weighted votes say of each task: their shares, unless the method knows better."""
        return poll.shares(scores)

    def _fit(self, crowd: Crowd, clamp: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        poll = Poll(crowd, clamp)
        self.weight_ = self._weigh(poll)
        self._learn(crowd, self._posterior(poll, poll.scores(self.weight_)))
