"""GTIC: clusters of tasks with similar votes, one per class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError

#: Difference of distances below which they are equal: a task between two centres belongs to both.
TIE_TOLERANCE = 1e-9

Clustering = tuple[NDArray[np.float64], NDArray[np.float64]]


@method_class
class GTIC(Aggregator):
    """Clustering of tasks by their vote shares, with one cluster per class (ground truth inference using clustering).

    A task is described by f_ik = (c_ik + smoothing) / (n_i + K·smoothing), c_ik votes for class k out of n_i, and by the slope
    (f_iK − f_i1)/K, every column scaled to [0, 1]. K-means with K clusters starts from the most certain tasks of each class.
    Clusters and classes are then matched one to one, in decreasing order of the share of members whose majority vote is the
    class. The posterior is the softmax of minus the distances to the centres. Its largest entry is the class of the nearest
    centre, but it is not a calibrated probability.

    Choose it against a bias that all workers share, for example if they miss a class in half of the cases: the boundary
    between clusters moves to where the data separate, whereas majority vote cuts at one half. It needs no worker ids, many
    labels per task, and classes of similar size. Where votes have worker ids, `DawidSkene` is better.

    Where the original takes the first task or class, ties are split here, so names do not matter. With more than two
    classes, the slope depends on their order; ``slope=False`` leaves it out.

    Examples
    --------
    >>> from wisecrowd import GTIC
    >>> from wisecrowd.simulate import simulate_crowd
    >>> shy = [[0.95, 0.05], [0.55, 0.45]]  # everybody misses half of the second class
    >>> simulation = simulate_crowd(400, n_classes=2, votes_per_task=20, workers=[shy] * 20)
    >>> float((GTIC().fit(simulation.crowd).labels_ == simulation.truth).mean()) > 0.95
    True
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2016multiclass",)
    needs_workers: ClassVar[bool] = False
    breaks: ClassVar[dict[str, str]] = {
        "class_names_do_not_matter": "the slope between the first and the last class is part of the published method",
    }

    smoothing: float = parameter(default=0.0, help="Number of pseudo-votes for every class of a task.")
    slope: bool = parameter(default=True, help="Include the slope of the vote shares in the description of a task.")
    max_iter: int = parameter(default=300, help="Maximum number of rounds of k-means.")

    n_iter_: int = fitted(help="Number of rounds of k-means.")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if self.max_iter < 1 or self.smoothing < 0:
            raise UsageError(f"max_iter must be 1 or more, smoothing 0 or more; got {self.max_iter}, {self.smoothing}")
        # A class without votes has no task to start a cluster from.
        voted, chosen = crowd.votes_per_task > 0, crowd.vote_counts.any(axis=0)
        votes = crowd.vote_counts[np.ix_(voted, chosen)]
        points = self._describe_tasks(votes)
        most_certain = _mark_highest(points[:, : votes.shape[1]].T)
        centres, self.n_iter_ = _run_k_means(points, most_certain @ points, self.max_iter)
        distance = _compute_distances(points, centres)

        posterior = compute_vote_shares(crowd)
        majority = _mark_highest(posterior)
        gold_tasks = np.flatnonzero(gold >= 0) if gold is not None else np.empty(0, dtype=np.intp)
        if gold is not None:
            majority[gold_tasks] = 0
            majority[gold_tasks, gold[gold_tasks]] = 1
        members = _mark_highest(-distance)
        closeness = -distance[:, _match_clusters(members.T @ majority[np.ix_(voted, chosen)])]
        share = np.exp(closeness - closeness.max(axis=1, keepdims=True))
        posterior[np.ix_(voted, chosen)] = share / share.sum(axis=1, keepdims=True)
        posterior[gold_tasks] = majority[gold_tasks]
        self._set_fitted(crowd, posterior)

    def _describe_tasks(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features of every task, scaled to [0, 1]."""
        smooth = votes + self.smoothing
        columns = smooth / smooth.sum(axis=1, keepdims=True)
        if self.slope:
            columns = np.column_stack([columns, (columns[:, -1] - columns[:, 0]) / columns.shape[1]])
        low, high = columns.min(axis=0), columns.max(axis=0)
        return np.divide(columns - low, high - low, out=np.zeros_like(columns), where=high > low)


def _run_k_means(
    points: NDArray[np.float64], centres: NDArray[np.float64], max_iter: int
) -> tuple[NDArray[np.float64], int]:
    """Run Lloyd's algorithm; points between centres are shared, and a centre without points stays in place."""

    def step(clustering: Clustering) -> tuple[Clustering, float]:
        old_centres, members = clustering
        size = members.sum(axis=0)[:, None]
        new_centres = np.divide(members.T @ points, size, out=old_centres.copy(), where=size > 0)
        new_members = _mark_highest(-_compute_distances(points, new_centres))
        return (new_centres, new_members), float(np.count_nonzero(members != new_members))

    first = centres, _mark_highest(-_compute_distances(points, centres))
    result = iterate_to_fixed_point(step, first, max_iter=max_iter, tol=0)
    return result.state[0], result.n_iter


def _compute_distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Euclidean distances, (n_points, n_centres)."""
    return np.stack([np.sqrt(((points - centre) ** 2).sum(axis=1)) for centre in centres], axis=1)


def _mark_highest(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 for the highest entry of each row, shared by tied entries."""
    best = table >= table.max(axis=1, keepdims=True) - TIE_TOLERANCE
    return best / best.sum(axis=1, keepdims=True)


def _match_clusters(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the cluster of each class, from counts of members by cluster (rows) and class (columns).

    Pairs are matched in decreasing order of the share of the class in the cluster, then of the number of members; a cluster
    that started from the class precedes others.
    """
    n = len(counts)
    size = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, size, out=np.zeros_like(counts), where=size > 0).round(9)
    order = np.lexsort((~np.eye(n, dtype=bool).ravel(), -counts.round(6).ravel(), -share.ravel()))
    cluster_by_class = np.full(n, -1)
    is_free = np.ones(n, dtype=bool)
    for cluster, target in zip(*np.unravel_index(order, counts.shape), strict=True):
        if is_free[cluster] and cluster_by_class[target] < 0:
            cluster_by_class[target], is_free[cluster] = cluster, False
    return cluster_by_class
