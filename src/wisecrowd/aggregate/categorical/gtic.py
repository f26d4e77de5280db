"""GTIC: tasks with similar votes are clustered, and a cluster has one class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import vote_shares
from wisecrowd.errors import UsageError

#: Distances nearer than this are equal: a task between two centres belongs to both.
TIE = 1e-9


@method_class
class GTIC(Aggregator):
    """Tasks are clustered by their shares of votes, and every cluster gets a class of its own.

    A task is described by f_ik = (c_ik + smoothing) / (n_i + K·smoothing), c_ik votes for class k out of n_i, and by
    the slope (f_iK − f_i1)/K, every column scaled to [0, 1]. K-means with K clusters starts from the surest tasks of
    each class. Clusters and classes are then paired one to one, the pair first that has the largest share of members
    whose majority vote is that class. The posterior is the softmax of minus the distances to the centres: its largest
    entry is the class of the nearest centre, but it is no calibrated probability.

    Choose it to see through a bias that all workers share, say, that they miss a class in half of the cases: the split
    between clusters moves to where the data divide, when majority vote cuts at one half. It needs no worker ids and
    many labels per task (with three there are few shares to cluster), and classes of similar size: a rare class loses
    its cluster to a large one. It knows nothing of workers; whoever can should take `DawidSkene`.

    Where the original takes the first task or class, ties here are split, so that names do not matter. The slope does
    depend on the order of classes when there are more than two; ``slope=False`` leaves it out.

    >>> from wisecrowd import GTIC
    >>> from wisecrowd.simulate import simulate_crowd
    >>> shy = [[0.95, 0.05], [0.55, 0.45]]  # everybody misses half of the second class
    >>> made = simulate_crowd(400, n_classes=2, votes_per_task=20, workers=[shy] * 20)
    >>> float((GTIC().fit(made.crowd).labels_ == made.truth).mean()) > 0.95
    True
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2016multiclass",)
    needs_workers: ClassVar[bool] = False
    breaks: ClassVar[dict[str, str]] = {
        "class_names_do_not_matter": "the slope between the first and the last class is part of the published method",
    }

    smoothing: float = parameter(default=0.0, help="pseudo-votes for every class of a task")
    slope: bool = parameter(default=True, help="describe a task by the slope of its shares, too")
    max_iter: int = parameter(default=300, help="rounds of k-means at most")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if self.max_iter < 1 or self.smoothing < 0:
            raise UsageError(f"max_iter must be 1 or more, smoothing 0 or more; got {self.max_iter}, {self.smoothing}")
        # A class that nobody chose has no surest task to start a cluster from.
        voted, chosen = crowd.votes_per_task > 0, crowd.votes.any(axis=0)
        votes = crowd.votes[np.ix_(voted, chosen)]
        points = self._describe(votes)
        surest = _highest(points[:, : votes.shape[1]].T)
        centres, self.n_iter_ = _k_means(points, surest @ points, self.max_iter)
        distance = _distances(points, centres)

        posterior = vote_shares(crowd)
        majority = _highest(posterior)
        known = np.flatnonzero(gold >= 0) if gold is not None else np.empty(0, dtype=np.intp)
        if gold is not None:
            majority[known] = np.eye(crowd.n_classes)[gold[known]]
        members = _highest(-distance)
        near = -distance[:, _match(members.T @ majority[np.ix_(voted, chosen)])]
        share = np.exp(near - near.max(axis=1, keepdims=True))
        posterior[np.ix_(voted, chosen)] = share / share.sum(axis=1, keepdims=True)
        posterior[known] = majority[known]
        self._set_fitted(crowd, posterior)

    def _describe(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        smooth = votes + self.smoothing
        columns = smooth / smooth.sum(axis=1, keepdims=True)
        if self.slope:
            columns = np.column_stack([columns, (columns[:, -1] - columns[:, 0]) / columns.shape[1]])
        low, high = columns.min(axis=0), columns.max(axis=0)
        return np.divide(columns - low, high - low, out=np.zeros_like(columns), where=high > low)


def _k_means(
    points: NDArray[np.float64], centres: NDArray[np.float64], max_iter: int
) -> tuple[NDArray[np.float64], int]:
    """Lloyd's iteration, with points between centres shared by them and a centre without points left where it is."""
    members = _highest(-_distances(points, centres))
    before, n_iter = np.empty(0), 0
    while n_iter < max_iter and not np.array_equal(before, members):
        size = members.sum(axis=0)[:, None]
        centres = np.divide(members.T @ points, size, out=centres.copy(), where=size > 0)
        before, members = members, _highest(-_distances(points, centres))
        n_iter += 1
    return centres, n_iter


def _distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([np.sqrt(((points - centre) ** 2).sum(axis=1)) for centre in centres], axis=1)


def _highest(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """One for the highest entry of each row, shared where several are highest."""
    best = table >= table.max(axis=1, keepdims=True) - TIE
    return best / best.sum(axis=1, keepdims=True)


def _match(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    """The cluster of each class, from how many members of each cluster (rows) are of each class (columns).

    The pair goes first whose class has the largest share of its cluster, then the one with more members, then the
    cluster that started from the class.
    """
    n = len(counts)
    size = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, size, out=np.zeros_like(counts), where=size > 0).round(9)
    order = np.lexsort((~np.eye(n, dtype=bool).ravel(), -counts.round(6).ravel(), -share.ravel()))
    cluster_of_class = np.full(n, -1)
    free = np.ones(n, dtype=bool)
    for cluster, target in zip(*np.unravel_index(order, counts.shape), strict=True):
        if free[cluster] and cluster_of_class[target] < 0:
            cluster_of_class[target], free[cluster] = cluster, False
    return cluster_of_class
