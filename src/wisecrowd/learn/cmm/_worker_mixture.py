"""Mixture in which every worker belongs to one group and every task has one true class.

    z_i ~ f(x_i),  g_r ~ α,  y_ir | z_i = k, g_r = m ~ β^m[k, ·]

The posterior does not factorise and is approximated by q(z) q(g). Every step maximises the bound

    Σ_i Σ_k q_ik log (f_k(x_i) / q_ik) + Σ_r Σ_m q_rm log (α_m / q_rm) + Σ_ir Σ_mk q_ik q_rm log β^m[k, y_ir]

over the parameters, q(z) and q(g) in turn, so it never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR, e_step
from wisecrowd.em.loop import Statistics, iterate_to_fixed_point
from wisecrowd.em.priors import estimate_crowd_confusion
from wisecrowd.kernels import MIN_PROB
from wisecrowd.learn.cmm._confusion_mixture import ConfusionMixture, MixtureStep, cluster_points
from wisecrowd.learn.cmm._cross_fitting import StepClassifier

#: Maximum number of iterations in which the workers of new votes find their groups.
MEMBERSHIP_ITERATIONS = 100
#: Change of a membership probability at which they have converged.
MEMBERSHIP_TOLERANCE = 1e-8


@dataclass
class WorkerMixture:
    """Variational EM over workers.

    Its statistics are q(z) (tasks, classes) and q(g) (workers, groups).

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features.
    crowd : Crowd
        Votes. Every task has votes or gold.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.
    start_posterior : ndarray of shape (n_tasks, n_classes)
        Posterior to start from.
    n_groups : int
        Number of groups.
    smoothing : float, default 1.0
        Pseudo-count of every weight and every cell of the matrices.
    random_state : int, default 0
        Seed of all starts but the first.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> mixture = WorkerMixture(np.zeros((2, 1)), crowd, None, np.array([[0.9, 0.1], [1.0, 0.0]]), n_groups=2)
    >>> mixture.start(0).tally.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    X: NDArray[np.float64]
    crowd: Crowd
    gold: NDArray[np.int32] | None
    start_posterior: NDArray[np.float64]
    n_groups: int
    smoothing: float = 1.0
    random_state: int = 0

    def start(self, attempt: int) -> Statistics:
        """Return statistics with groups of workers by k-means of their matrices.

        The first attempt starts from workers ordered by accuracy, later ones start at random.

        Parameters
        ----------
        attempt : int
            Number of the start, from 0.

        Returns
        -------
        Statistics
        """
        crowd, pairs = self.crowd, self.crowd.pairs
        tally = kernels.tally(crowd.layout, self.start_posterior)
        mass = pairs.sum_by_worker(tally)[pairs.worker]
        # Excess over the crowd of every cell of a worker's matrix; with few votes it stays near zero.
        crowd_probs = estimate_crowd_confusion(tally, pairs).T[pairs.label]
        excess = (tally - mass * crowd_probs) / (mass + crowd.n_classes)
        if attempt:
            rng = np.random.default_rng([self.random_state, attempt])
            level = rng.integers(self.n_groups, size=pairs.n_workers)
        else:
            accuracy = pairs.sum_by_worker(excess[np.arange(len(pairs)), pairs.label])
            level = np.searchsorted(np.sort(-accuracy), -accuracy) * self.n_groups // len(accuracy)
        cell = pairs.label[:, None] * crowd.n_classes + np.arange(crowd.n_classes)
        end = np.searchsorted(pairs.worker, np.arange(pairs.n_workers + 1)) * crowd.n_classes
        points = sp.csr_array((excess.ravel(), cell.ravel(), end), shape=(pairs.n_workers, crowd.n_classes**2))
        group = cluster_points(points, pairs.sum_by_worker(tally).sum(axis=1), level, self.n_groups)
        return Statistics(self.start_posterior, np.eye(self.n_groups)[group])

    def step(self, statistics: Statistics, classifier: StepClassifier) -> MixtureStep:
        """Estimate the parameters from q, then update q(z), then q(g).

        Parameters
        ----------
        statistics : Statistics
            q(z) and q(g).
        classifier : StepClassifier
            Classifier to fit.

        Returns
        -------
        MixtureStep
        """
        posterior, membership = statistics
        classifier.fit(self.X, posterior)
        floor = MIN_PROB if classifier.exact else PROBABILITY_FLOOR
        class_probs = np.clip(classifier.predict_proba(self.X), floor, None)
        class_probs /= class_probs.sum(axis=1, keepdims=True)
        mixture = self._estimate_mixture(kernels.tally(self.crowd.layout, posterior), membership)
        label_probs = compute_expected_label_probs(mixture, membership, self.crowd)
        posterior, _ = e_step(self.crowd.layout, class_probs, label_probs, self.gold)
        joint = compute_worker_log_joint(mixture, posterior, self.crowd)
        joint = joint + np.log(np.maximum(mixture.weight, MIN_PROB))
        voters = self.crowd.votes_per_worker > 0
        bound = _entropy(posterior) + float((posterior * np.log(class_probs)).sum()) + _sum_log_totals(joint[voters])
        objective = bound + classifier.log_prior() + mixture.log_prior(self.smoothing)
        return MixtureStep(objective, mixture, Statistics(posterior, softmax(joint, axis=1)), class_probs)

    def _estimate_mixture(self, tally: NDArray[np.float64], membership: NDArray[np.float64]) -> ConfusionMixture:
        """Estimate weights and matrices of the groups."""
        pairs, n_classes = self.crowd.pairs, self.crowd.n_classes
        counts = np.zeros((self.n_groups, n_classes, n_classes))
        for label in range(n_classes):
            rows = np.flatnonzero(pairs.label == label)
            counts[:, :, label] = membership[pairs.worker[rows]].T @ tally[rows]
        size = membership[self.crowd.votes_per_worker > 0].sum(axis=0)
        return ConfusionMixture.estimate(size, counts, self.smoothing)


def compute_expected_label_probs(
    mixture: ConfusionMixture, membership: NDArray[np.float64], crowd: Crowd
) -> NDArray[np.float64]:
    """Compute exp Σ_m q_rm log β^m[k, l] for every (worker, label) pair.

    The rows of this matrix do not sum to one, but the E-step uses it like label probabilities.

    Parameters
    ----------
    mixture : ConfusionMixture
        Parameters of the groups.
    membership : ndarray of shape (n_workers, n_groups)
        q(g).
    crowd : Crowd
        Votes.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> mixture = ConfusionMixture(np.ones(1), np.array([[[0.9, 0.1], [0.2, 0.8]]]))
    >>> compute_expected_label_probs(mixture, np.ones((2, 1)), crowd).round(6).tolist()
    [[0.9, 0.2], [0.1, 0.8]]
    """
    pairs = crowd.pairs
    logs = np.log(np.maximum(mixture.confusion, MIN_PROB))
    expected_log = np.empty((len(pairs), crowd.n_classes))
    for label in range(crowd.n_classes):
        rows = np.flatnonzero(pairs.label == label)
        expected_log[rows] = membership[pairs.worker[rows]] @ logs[:, :, label]
    return np.exp(expected_log)


def compute_worker_log_joint(
    mixture: ConfusionMixture, posterior: NDArray[np.float64], crowd: Crowd
) -> NDArray[np.float64]:
    """Compute Σ_i Σ_k q_ik log β^m[k, y_ir] over the votes of every worker.

    Parameters
    ----------
    mixture : ConfusionMixture
        Parameters of the groups.
    posterior : ndarray of shape (n_tasks, n_classes)
        q(z).
    crowd : Crowd
        Votes.

    Returns
    -------
    ndarray of shape (n_workers, n_groups)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> mixture = ConfusionMixture(np.ones(1), np.full((1, 2, 2), 0.5))
    >>> compute_worker_log_joint(mixture, np.array([[1.0, 0.0]]), crowd).round(3).tolist()
    [[-0.693], [-0.693]]
    """
    pairs, tally = crowd.pairs, kernels.tally(crowd.layout, posterior)
    logs = np.log(np.maximum(mixture.confusion, MIN_PROB))
    evidence = np.empty((len(pairs), len(mixture.weight)))
    for label in range(crowd.n_classes):
        rows = np.flatnonzero(pairs.label == label)
        evidence[rows] = tally[rows] @ logs[:, :, label].T
    return pairs.sum_by_worker(evidence)


def infer_memberships(
    mixture: ConfusionMixture, class_probs: NDArray[np.float64], prior: NDArray[np.float64], crowd: Crowd
) -> NDArray[np.float64]:
    """Infer q(g) of the workers of new votes with fixed parameters.

    Parameters
    ----------
    mixture : ConfusionMixture
        Parameters of the groups.
    class_probs : ndarray of shape (n_tasks, n_classes)
        Class probabilities of the tasks.
    prior : ndarray of shape (n_workers, n_groups)
        Prior membership of every worker.
    crowd : Crowd
        Votes.

    Returns
    -------
    ndarray of shape (n_workers, n_groups)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> two = ConfusionMixture(np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.1, 0.9]], np.full((2, 2), 0.5)]))
    >>> infer_memberships(two, np.array([[0.99, 0.01]]), np.full((2, 2), 0.5), crowd).argmax(axis=1).tolist()
    [0, 1]
    """
    log_prior = np.log(np.maximum(prior, MIN_PROB))

    def step(membership: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        label_probs = compute_expected_label_probs(mixture, membership, crowd)
        posterior, _ = e_step(crowd.layout, class_probs, label_probs, None)
        updated = softmax(log_prior + compute_worker_log_joint(mixture, posterior, crowd), axis=1)
        return updated, float(np.abs(updated - membership).max(initial=0))

    return iterate_to_fixed_point(step, prior, max_iter=MEMBERSHIP_ITERATIONS, tol=MEMBERSHIP_TOLERANCE).state


def _entropy(posterior: NDArray[np.float64]) -> float:
    return -float((posterior * np.log(np.maximum(posterior, MIN_PROB))).sum())


def _sum_log_totals(joint: NDArray[np.float64]) -> float:
    """Return the sum of the log-sum-exp of all rows."""
    peak = joint.max(axis=1, keepdims=True)
    return float((peak[:, 0] + np.log(np.exp(joint - peak).sum(axis=1))).sum())
