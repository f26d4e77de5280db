"""Mixture of confusion matrices: the parameters that both forms of the model share."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.loop import Statistics, iterate_to_fixed_point
from wisecrowd.kernels import MIN_PROB
from wisecrowd.learn.cmm._cross_fitting import StepClassifier

#: Maximum number of k-means iterations for a start, which need not converge.
KMEANS_ITERATIONS = 50


class ConfusionMixture(NamedTuple):
    """Groups with a weight and a confusion matrix each.

    Examples
    --------
    >>> ConfusionMixture(np.array([0.5, 0.5]), np.array([np.eye(2), np.full((2, 2), 0.5)])).pooled.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    weight: NDArray[np.float64]
    """α, (groups,)."""
    confusion: NDArray[np.float64]
    """β, (groups, true, given)."""

    @classmethod
    def estimate(cls, size: NDArray[np.float64], counts: NDArray[np.float64], smoothing: float) -> ConfusionMixture:
        """Estimate weights and matrices: the M-step.

        Parameters
        ----------
        size : ndarray of shape (n_groups,)
            Expected size of every group.
        counts : ndarray of shape (n_groups, n_classes, n_classes)
            Expected counts by group, true class and label.
        smoothing : float
            Pseudo-count of every weight and every cell.

        Returns
        -------
        ConfusionMixture

        Examples
        --------
        >>> ConfusionMixture.estimate(np.array([4.0]), np.array([[[3.0, 1.0], [0.0, 0.0]]]), 0.0).confusion.tolist()
        [[[0.75, 0.25], [0.5, 0.5]]]
        """
        weight, confusion = size + smoothing, counts + smoothing
        total = confusion.sum(axis=-1, keepdims=True)
        # Without pseudo-counts, a row without votes is undefined; it becomes uniform.
        uniform = np.full_like(confusion, 1 / confusion.shape[-1])
        return cls(weight / weight.sum(), np.divide(confusion, total, out=uniform, where=total > 0))

    @property
    def pooled(self) -> NDArray[np.float64]:
        """B = Σ_m α_m β^m, (true, given): all that single votes reveal about the groups."""
        return np.einsum("m,mkj->kj", self.weight, self.confusion)

    def log_prior(self, smoothing: float) -> float:
        """Return the log-density of the prior that belongs to the pseudo-counts, up to a constant.

        Parameters
        ----------
        smoothing : float
            Pseudo-count of every weight and every cell.

        Returns
        -------
        float

        Examples
        --------
        >>> ConfusionMixture(np.array([1.0]), np.full((1, 2, 2), 0.5)).log_prior(0.0)
        0.0
        """
        return smoothing * float(np.log(self.weight).sum() + np.log(self.confusion).sum()) if smoothing > 0 else 0.0

    def sort_by_weight(self) -> tuple[ConfusionMixture, NDArray[np.intp]]:
        """Return the mixture with the heaviest group first, and the former positions of the groups.

        Examples
        --------
        >>> ConfusionMixture(np.array([0.2, 0.8]), np.zeros((2, 2, 2))).sort_by_weight()[1].tolist()
        [1, 0]
        """
        order = np.argsort(-self.weight, kind="stable")
        return ConfusionMixture(self.weight[order], self.confusion[order]), order

    def vote_probs(self, class_probs: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
        """Compute p_m(y | x) = Σ_k f_k(x) β^m[k, y] of every vote.

        Parameters
        ----------
        class_probs : ndarray of shape (n_tasks, n_classes)
            Class probabilities f(x).
        crowd : Crowd
            Votes y.

        Returns
        -------
        ndarray of shape (n_votes, n_groups)

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> ConfusionMixture(np.array([1.0]), np.eye(2)[None]).vote_probs(np.array([[0.9, 0.1]]), crowd).tolist()
        [[0.9], [0.1]]
        """
        probs = np.empty((crowd.n_votes, len(self.weight)))
        for column, matrix in enumerate(self.confusion):
            probs[:, column] = (class_probs @ matrix)[crowd.task, crowd.label]
        return probs

    def worker_memberships(self, class_probs: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
        """Compute p(group m | worker) ∝ α_m Π p_m(y | x) over the votes of every worker; α without votes (eq. 8).

        Parameters
        ----------
        class_probs : ndarray of shape (n_tasks, n_classes)
            Class probabilities f(x).
        crowd : Crowd
            Votes y.

        Returns
        -------
        ndarray of shape (n_workers, n_groups)

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat")], workers=["ann", "bob"], classes=["cat", "dog"])
        >>> two = ConfusionMixture(np.array([0.5, 0.5]), np.array([np.eye(2), np.eye(2)[::-1]]))
        >>> two.worker_memberships(np.array([[0.9, 0.1]]), crowd).round(6).tolist()
        [[0.9, 0.1], [0.5, 0.5]]
        """
        joint = np.tile(np.log(np.maximum(self.weight, MIN_PROB)), (crowd.n_workers, 1))
        for column, matrix in enumerate(self.confusion):  # one group at a time, to hold one column of votes only
            vote_log_probs = np.log(np.maximum(class_probs @ matrix, MIN_PROB))[crowd.task, crowd.label]
            joint[:, column] += sum_votes_by_worker(vote_log_probs, crowd)
        return softmax(joint, axis=1)


class MixtureStep(NamedTuple):
    """Result of one EM step."""

    objective: float
    """Objective of the parameters."""
    mixture: ConfusionMixture
    statistics: Statistics
    """Statistics of the E-step that follows from the parameters."""
    class_probs: NDArray[np.float64]
    """f(x) of the training tasks."""


class MixtureModel(Protocol):
    """EM of a mixture over single votes or over workers."""

    def start(self, attempt: int) -> Statistics:
        """Return the statistics to start from.

        Parameters
        ----------
        attempt : int
            Number of the start. The start of attempt 0 does not depend on the seed.

        Returns
        -------
        Statistics
        """

    def step(self, statistics: Statistics, classifier: StepClassifier) -> MixtureStep:
        """Run an M-step, then an E-step.

        Parameters
        ----------
        statistics : Statistics
            Statistics of the E-step before.
        classifier : StepClassifier
            Classifier to fit.

        Returns
        -------
        MixtureStep
        """


def sum_votes_by_worker(values: NDArray[np.float64] | float, crowd: Crowd) -> NDArray[np.float64]:
    """Return the weighted sum of a value of every vote by worker.

    Parameters
    ----------
    values : ndarray of shape (n_votes,) or float
        Value of every vote.
    crowd : Crowd
        Votes with their weights.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> sum_votes_by_worker(1.0, Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat")])).tolist()
    [2.0]
    """
    assert crowd.worker is not None
    total = np.bincount(crowd.worker, weights=values * crowd.weight, minlength=crowd.n_workers)
    return np.asarray(total, dtype=np.float64)


def cluster_points(
    points: Any, weight: NDArray[np.float64], start: NDArray[np.intp], n_groups: int
) -> NDArray[np.intp]:
    """Cluster points by k-means from a given assignment.

    The result depends on the assignment alone, so that renaming tasks or classes changes nothing. scikit-learn's `KMeans`
    starts from centres instead, and moves empty clusters.

    Parameters
    ----------
    points : ndarray or sparse matrix of shape (n_points, n_features)
        Points.
    weight : ndarray of shape (n_points,)
        Weight of every point.
    start : ndarray of shape (n_points,)
        Cluster of every point at the start.
    n_groups : int
        Number of clusters. A cluster that loses all points stays empty.

    Returns
    -------
    ndarray of shape (n_points,)

    Examples
    --------
    >>> cluster_points(np.array([[0.0], [0.1], [5.0]]), np.ones(3), np.array([0, 1, 1]), 2).tolist()
    [0, 0, 1]
    """

    def step(group: NDArray[np.intp]) -> tuple[NDArray[np.intp], float]:
        members = sp.csr_array((weight, (group, np.arange(len(group)))), shape=(n_groups, len(group)))
        mass = np.asarray(members.sum(axis=1)).reshape(-1, 1)
        total = members @ points
        centre = np.asarray(total.toarray() if sp.issparse(total) else total) / np.maximum(mass, MIN_PROB)
        distance = (centre**2).sum(axis=1) - 2 * np.asarray(points @ centre.T)
        distance[:, mass[:, 0] == 0] = np.inf
        nearest = distance.argmin(axis=1)
        return nearest, float((nearest != group).sum())

    return iterate_to_fixed_point(step, start, max_iter=KMEANS_ITERATIONS, tol=0).state
