"""The mixture in which groups mean something: every worker belongs to one group, and every task has one true class.

    z_i ~ f(x_i),  g_r ~ α,  y_ir | z_i = k, g_r = m ~ β^m[k, ·]

The posterior does not factorise, so it is approximated by q(z) q(g). Each pass maximises the bound

    Σ_i Σ_k q_ik log (f_k(x_i) / q_ik) + Σ_r Σ_m q_rm log (α_m / q_rm) + Σ_ir Σ_mk q_ik q_rm log β^m[k, y_ir]

over the parameters, over q(z) and over q(g) in turn, so that it never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier import CLIP, e_step
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import pooled
from wisecrowd.kernels import reference as kernels
from wisecrowd.kernels.reference import LEAST
from wisecrowd.learn.cmm._groups import Groups, Reached, clustered

#: Passes in which new votes find their groups, and the change at which they have.
PASSES, SETTLED = 100, 1e-8


@dataclass
class WorkerMixture:
    """Variational EM over workers; statistics are q(z) (tasks, classes) and q(g) (workers, groups).

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> mixture = WorkerMixture(np.zeros((2, 1)), crowd, None, np.array([[0.9, 0.1], [1.0, 0.0]]), n_groups=2)
    >>> mixture.start(0).tally.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    X: NDArray[np.float64]
    crowd: Crowd
    """Every task here has votes or a known truth."""
    known: NDArray[np.int32] | None
    first: NDArray[np.float64]
    """A posterior to start from."""
    n_groups: int
    smoothing: float = 1.0
    random_state: int = 0

    def start(self, attempt: int) -> Statistics:
        """Workers by K-means of their matrices, from an order by accuracy the first time, at random later."""
        crowd, pairs = self.crowd, self.crowd.pairs
        tally = kernels.tally(crowd.layout, self.first)
        batch = pairs.by_worker(tally)[pairs.worker]
        # How much more often than the crowd a worker says what he says, by true class; few votes leave it near zero.
        beyond = (tally - batch * pooled(tally, pairs).T[pairs.label]) / (batch + crowd.n_classes)
        if attempt:
            rng = np.random.default_rng([self.random_state, attempt])
            level = rng.integers(self.n_groups, size=pairs.n_workers)
        else:
            right = pairs.by_worker(beyond[np.arange(len(pairs)), pairs.label])
            level = np.searchsorted(np.sort(-right), -right) * self.n_groups // len(right)
        cell = pairs.label[:, None] * crowd.n_classes + np.arange(crowd.n_classes)
        end = np.searchsorted(pairs.worker, np.arange(pairs.n_workers + 1)) * crowd.n_classes
        points = sp.csr_array((beyond.ravel(), cell.ravel(), end), shape=(pairs.n_workers, crowd.n_classes**2))
        group = clustered(points, pairs.by_worker(tally).sum(axis=1), level, self.n_groups)
        return Statistics(self.first, np.eye(self.n_groups)[group])

    def step(self, statistics: Statistics, classifier: SoftClassifier) -> Reached:
        """The parameters that follow from q, then q(z), then q(g)."""
        posterior, member = statistics
        classifier.fit(self.X, posterior)
        expected = np.clip(classifier.predict_proba(self.X), LEAST if classifier.exact else CLIP, None)
        expected /= expected.sum(axis=1, keepdims=True)
        groups = self._groups(kernels.tally(self.crowd.layout, posterior), member)
        posterior, _ = e_step(self.crowd.layout, expected, said(groups, member, self.crowd), self.known)
        joint = log_joint(groups, posterior, self.crowd) + np.log(np.maximum(groups.weight, LEAST))
        voters = self.crowd.votes_per_worker > 0
        bound = _entropy(posterior) + float((posterior * np.log(expected)).sum()) + _log_total(joint[voters])
        objective = bound + classifier.log_prior() + groups.log_prior(self.smoothing)
        return Reached(objective, groups, Statistics(posterior, softmax(joint, axis=1)), expected)

    def _groups(self, tally: NDArray[np.float64], member: NDArray[np.float64]) -> Groups:
        pairs, n_classes = self.crowd.pairs, self.crowd.n_classes
        counts = np.zeros((self.n_groups, n_classes, n_classes))
        for label in range(n_classes):
            mine = np.flatnonzero(pairs.label == label)
            counts[:, :, label] = member[pairs.worker[mine]].T @ tally[mine]
        return Groups.estimated(member[self.crowd.votes_per_worker > 0].sum(axis=0), counts, self.smoothing)


def said(groups: Groups, member: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
    """exp Σ_m q_rm log β^m[k, l] for every (worker, label) pair, (pairs, classes): no distribution, but as good as one.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> said(Groups(np.ones(1), np.array([[[0.9, 0.1], [0.2, 0.8]]])), np.ones((2, 1)), crowd).round(6).tolist()
    [[0.9, 0.2], [0.1, 0.8]]
    """
    pairs = crowd.pairs
    logs = np.log(np.maximum(groups.confusion, LEAST))
    found = np.empty((len(pairs), crowd.n_classes))
    for label in range(crowd.n_classes):
        mine = np.flatnonzero(pairs.label == label)
        found[mine] = member[pairs.worker[mine]] @ logs[:, :, label]
    return np.exp(found)


def log_joint(groups: Groups, posterior: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
    """Σ_i Σ_k q_ik log β^m[k, y_ir] over the votes of every worker, (workers, groups).

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> log_joint(Groups(np.ones(1), np.full((1, 2, 2), 0.5)), np.array([[1.0, 0.0]]), crowd).round(3).tolist()
    [[-0.693], [-0.693]]
    """
    pairs, tally = crowd.pairs, kernels.tally(crowd.layout, posterior)
    logs = np.log(np.maximum(groups.confusion, LEAST))
    evidence = np.empty((len(pairs), len(groups.weight)))
    for label in range(crowd.n_classes):
        mine = np.flatnonzero(pairs.label == label)
        evidence[mine] = tally[mine] @ logs[:, :, label].T
    return pairs.by_worker(evidence)


def placed(
    groups: Groups, expected: NDArray[np.float64], prior: NDArray[np.float64], crowd: Crowd
) -> NDArray[np.float64]:
    """q(g) of the workers of new votes, whose groups have the given prior (workers, groups), by parameters as they are.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> two = Groups(np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.1, 0.9]], np.full((2, 2), 0.5)]))
    >>> placed(two, np.array([[0.99, 0.01]]), np.full((2, 2), 0.5), crowd).argmax(axis=1).tolist()
    [0, 1]
    """
    member = prior
    for _ in range(PASSES):
        posterior, _ = e_step(crowd.layout, expected, said(groups, member, crowd), None)
        found = softmax(np.log(np.maximum(prior, LEAST)) + log_joint(groups, posterior, crowd), axis=1)
        if np.abs(found - member).max(initial=0) < SETTLED:
            return found
        member = found
    return member


def _entropy(posterior: NDArray[np.float64]) -> float:
    return -float((posterior * np.log(np.maximum(posterior, LEAST))).sum())


def _log_total(joint: NDArray[np.float64]) -> float:
    peak = joint.max(axis=1, keepdims=True)
    return float((peak[:, 0] + np.log(np.exp(joint - peak).sum(axis=1))).sum())
