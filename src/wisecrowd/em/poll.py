"""Votes prepared for repeated counts with weights of the workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, compute_vote_shares

Array = NDArray[np.float64]

#: Relative difference of scores below which they are tied, so that the order of a sum cannot decide.
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Poll:
    """Votes of a crowd, prepared for repeated counts with different weights of the workers.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes, −1 where the truth is unknown.

    Examples
    --------
    >>> poll = Poll(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")]))
    >>> poll.compute_scores(np.array([2.0, 1.0])).tolist()
    [[2.0, 1.0], [2.0, 0.0]]
    >>> poll.compute_agreement(poll.find_winners(poll.compute_scores(np.ones(2)))).tolist()
    [0.75, 0.5]
    """

    crowd: Crowd
    gold: NDArray[np.int32] | None = None

    @cached_property
    def cell(self) -> NDArray[np.intp]:
        """(task, class) cell of each vote."""
        return self.crowd.task.astype(np.intp) * self.crowd.n_classes + self.crowd.label

    @cached_property
    def worker(self) -> NDArray[np.intp]:
        """Worker of each vote, in the integer type that bincount does not copy."""
        return self.crowd.worker_codes.astype(np.intp)

    @cached_property
    def cell_matrix(self) -> Any:
        """Sparse matrix of the weights of votes, (task, class) cells x workers."""
        import scipy.sparse as sp

        crowd = self.crowd
        shape = (crowd.n_tasks * crowd.n_classes, crowd.n_workers)
        return sp.csr_array(sp.coo_array((crowd.weight, (self.cell, self.worker)), shape=shape))

    @cached_property
    def worker_totals(self) -> Array:
        """Total weight of the votes of each worker."""
        return self._sum_by_worker(self.crowd.weight)

    def compute_scores(self, weight: Array) -> Array:
        """Compute the weight of the voters for each class of each task.

        Parameters
        ----------
        weight : ndarray of shape (n_workers,)
            Weights of the workers.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        crowd = self.crowd
        size = crowd.n_tasks * crowd.n_classes
        total = np.bincount(self.cell, crowd.weight * weight[self.worker], size)
        return total.astype(np.float64, copy=False).reshape(crowd.n_tasks, crowd.n_classes)

    def find_winners(self, scores: Array) -> Array:
        """Return 1 for the class with the highest score, shared by tied classes; gold wins.

        Parameters
        ----------
        scores : ndarray of shape (n_tasks, n_classes)
            Scores.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Rows sum to one.
        """
        peak = scores.max(axis=1, keepdims=True)
        best = scores >= peak - TIE_TOLERANCE * np.abs(scores).max(axis=1, keepdims=True)
        return apply_gold(best / best.sum(axis=1, keepdims=True), self.gold)

    def compute_agreement(self, winners: Array) -> Array:
        """Compute the share of each worker's votes that agree with the winners.

        Parameters
        ----------
        winners : ndarray of shape (n_tasks, n_classes)
            Result of `find_winners`.

        Returns
        -------
        ndarray of shape (n_workers,)
            NaN for workers without votes.
        """
        with np.errstate(invalid="ignore"):
            return self.sum_agreeing_votes(winners) / self.worker_totals

    def sum_agreeing_votes(self, winners: Array) -> Array:
        """Sum the weight of each worker's votes that agree with the winners.

        Parameters
        ----------
        winners : ndarray of shape (n_tasks, n_classes)
            Result of `find_winners`.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        return self._sum_by_worker(self.crowd.weight * winners.ravel()[self.cell])

    def _sum_by_worker(self, value: Array) -> Array:
        """Return the sum of values of votes by worker."""
        return np.bincount(self.worker, value, self.crowd.n_workers).astype(np.float64, copy=False)

    def normalize_scores(self, scores: Array) -> Array:
        """Return scores divided by their sum; vote shares where all voters have weight zero.

        Parameters
        ----------
        scores : ndarray of shape (n_tasks, n_classes)
            Scores.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        total = scores.sum(axis=1, keepdims=True)
        return apply_gold(np.divide(scores, total, out=compute_vote_shares(self.crowd), where=total > 0), self.gold)

    def apply_softmax(self, scores: Array) -> Array:
        """Return the posterior that belongs to scores on the log-odds scale.

        Parameters
        ----------
        scores : ndarray of shape (n_tasks, n_classes)
            Log-odds.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        return apply_gold(share / share.sum(axis=1, keepdims=True), self.gold)
