"""How workers agree with each other: the one thing about skill that can be seen without any truth.

If a worker is right with probability a_r and errs evenly, two of them agree on a task with probability
1/K + (1 − 1/K) s_a s_b, where s_r = (K a_r − 1)/(K − 1) is skill: 1 for always right, 0 for guessing. So agreement,
corrected for chance, is a matrix of rank one off its diagonal; only the pairs of workers who share tasks are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighting import Poll
from wisecrowd.data.crowd import Crowd


@dataclass(frozen=True, eq=False)
class Agreement:
    """Pairs of workers who share tasks, each pair both ways round, sorted by the first worker then the second.

    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1), ("t2", "bob", 0)])
    >>> pairs = Agreement.of(crowd)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.common.tolist(), pairs.skew.tolist()
    ([0, 1], [1, 0], [2.0, 2.0], [0.0, 0.0])
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    #: How many tasks the two share, by weight of their votes.
    common: NDArray[np.float64]
    #: s_a s_b as observed: agreement corrected for chance, from −1/(K − 1) to 1.
    skew: NDArray[np.float64]
    n_workers: int

    @classmethod
    def of(cls, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> Agreement:
        """Count the agreements of a crowd. Known truth enters as one more worker, the last, who is always right."""
        ballots, n_classes = Poll(crowd).ballots, crowd.n_classes
        if gold is not None:
            known = np.flatnonzero(gold >= 0)
            cell = known * n_classes + gold[known]
            oracle = sp.coo_array((np.ones(len(known)), (cell, np.zeros_like(cell))), shape=(ballots.shape[0], 1))
            ballots = sp.csr_array(sp.hstack([ballots, oracle]))
        by_task = np.arange(0, ballots.shape[0] + 1, n_classes)
        cells = sp.csr_array((np.ones(ballots.shape[0]), np.arange(ballots.shape[0]), by_task))  # tasks x cells
        pair, common = _meetings(cells @ ballots)
        where, together = _meetings(ballots)  # they chose the same cell, so `where` is part of `pair`
        agreed = np.zeros(len(pair))
        agreed[np.searchsorted(pair, where)] = together
        agreed /= common
        skew = (n_classes * agreed - 1) / (n_classes - 1) if n_classes > 1 else agreed
        first, second = np.divmod(pair, ballots.shape[1])
        return cls(first.astype(np.int32), second.astype(np.int32), common, skew, ballots.shape[1])

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """With how many others each worker shares tasks."""
        return np.bincount(self.first, minlength=self.n_workers)

    def matrix(self, value: NDArray[np.float64]) -> Any:
        """A number for each pair as a sparse matrix of workers x workers."""
        offset = np.concatenate([[0], np.cumsum(self.degree)])
        return sp.csr_array((value, self.second, offset), shape=(self.n_workers, self.n_workers))

    def signs(self, anchor: int | None = None, sweeps: int = 1000) -> NDArray[np.float64]:
        """+1 for workers on the side of the truth, −1 for those on the other.

        Agreement fixes skills only up to a common sign among workers who are linked by shared tasks. The truth is on
        the side of ``anchor``, a worker known to be right, and elsewhere on the side of the majority. Sides are read
        off the leading eigenvector of the evidence (skew times tasks in common), scaled by how much there is of each
        worker, found by power iteration in all linked groups at once.

        >>> votes = [(task, worker, (task + (worker == "bad")) % 2) for task in range(4) for worker in ("a", "b", "bad")]
        >>> Agreement.of(Crowd.from_triples(votes)).signs().tolist()
        [1.0, 1.0, -1.0]
        """
        from scipy.sparse.csgraph import connected_components

        evidence = self.matrix(self.skew * self.common)
        size = np.sqrt(np.abs(evidence).sum(axis=1))
        scale = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
        n_groups, group = connected_components(evidence, directed=False)
        side = size.copy()
        for _ in range(sweeps):
            moved = side + scale * (evidence @ (scale * side))
            length = np.sqrt(np.bincount(group, moved**2, n_groups))[group]
            before, side = side, np.divide(moved, length, out=np.zeros_like(moved), where=length > 0)
            if np.abs(side - before).max(initial=0) < 1e-9:
                break
        # A side that rounding alone could turn is no side.
        sign = np.where(np.abs(side) > 1e-6, np.sign(side), 0)
        lead = np.sign(np.bincount(group, sign, n_groups))
        if anchor is not None:
            lead[group[anchor]] = sign[anchor]
        lead[lead == 0] = 1
        sign *= lead[group]
        sign[sign == 0] = 1
        return sign


def within_reach(skill: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
    """Skills moved off the ends: none is known more precisely than 1/√(tasks), and a perfect one would overrule all.

    >>> within_reach(np.array([-1.0, 0.2, 1.0]), Crowd.from_triples([(task, "ann", task % 2) for task in range(16)])).tolist()
    [-0.75, 0.2, 0.75]
    """
    margin = min(1 / np.sqrt(np.count_nonzero(crowd.votes_per_task)), 0.5)
    return np.clip(skill, margin - 1 / max(crowd.n_classes - 1, 1), 1 - margin)


def log_odds(skill: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Weight of a vote by skill, log((K − 1) a / (1 − a)) with accuracy a = (1 + (K − 1) s) / K.

    >>> log_odds(np.array([0.0, 0.6]), 2).round(3).tolist()  # accuracy 0.5 and 0.8
    [0.0, 1.386]
    """
    return np.log1p((n_classes - 1) * skill) - np.log1p(-skill)


def _meetings(votes: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which two different columns have rows in common, as first x columns + second, sorted; and by how much."""
    table = (votes.T @ votes).tocoo()
    first, second = table.coords
    apart = first != second
    pair = first[apart].astype(np.int64) * votes.shape[1] + second[apart]
    order = np.argsort(pair, kind="stable")
    return pair[order], table.data[apart][order].astype(np.float64)
