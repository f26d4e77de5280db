"""The mixture of Mena and Ñanculef: every vote by itself belongs to a group, and has a true class of its own.

One pass needs the votes only through A[k, j] = Σ_i r_ij f_k(x_i) / p_ij, which is K x K: the responsibility of group m
and class k for a vote j on task i is β^m[k, j] f_k(x_i) α_m / p_ij, so that every sum over votes is a multiple of A.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.em.classifier import CLIP
from wisecrowd.em.loop import Statistics
from wisecrowd.kernels.reference import LEAST
from wisecrowd.learn.cmm._groups import Groups, Reached, clustered


@dataclass
class VoteMixture:
    """EM over single votes; statistics are the classifier's targets r̄ (tasks, classes) and counts (groups, true, said).

    >>> votes = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> VoteMixture(np.zeros((2, 1)), votes, None, n_groups=1).start(0).tally.tolist()
    [[[2.5, 0.5], [0.5, 0.5]]]
    """

    X: NDArray[np.float64]
    votes: NDArray[np.float64]
    """r, (tasks, classes): how often each label was given; every task here has votes or a known truth."""
    known: NDArray[np.int32] | None
    """The class of a task whose truth is known, -1 elsewhere."""
    n_groups: int
    smoothing: float = 1.0
    random_state: int = 0
    given: NDArray[np.float64] = field(init=False)
    """Targets of tasks without votes whose truth is known: they count as one vote."""

    def __post_init__(self) -> None:
        self.given = np.zeros_like(self.votes)
        if self.known is not None:
            silent = np.flatnonzero((self.known >= 0) & (self.votes.sum(axis=1) == 0))
            self.given[silent, self.known[silent]] = 1

    def start(self, attempt: int) -> Statistics:
        """Groups of votes by K-means; the class of a vote by the soft vote.

        A vote j on task i is represented by the shares of the task's votes for other classes than j, so that votes
        that agree with all others lie at zero. The first start begins with votes ordered by agreement. Later ones begin
        at random, and take a share λ_m ~ U(0, 1) of the class from the soft vote, the rest from the vote itself.
        """
        n_classes = self.votes.shape[1]
        task, label = np.nonzero(self.votes)
        count = self.votes[task, label]
        share = self.votes / np.maximum(self.votes.sum(axis=1, keepdims=True), LEAST)
        rng = np.random.default_rng([self.random_state, attempt])
        agreement = share[task, label]
        level = np.minimum((self.n_groups * (1 - agreement)).astype(np.intp), self.n_groups - 1)
        first = level if attempt == 0 else rng.integers(self.n_groups, size=len(task))
        soft = np.ones(self.n_groups) if attempt == 0 else rng.random(self.n_groups)
        group = clustered(_others(share, task, label), count, first, self.n_groups)
        lean = soft[group]
        targets, counts = self.given.copy(), np.zeros((self.n_groups, n_classes, n_classes))
        for true in range(n_classes):
            believed = count * (lean * self._soft_vote(share, true)[task] + (1 - lean) * (label == true))
            targets[:, true] += np.bincount(task, weights=believed, minlength=len(targets))
            cell = group * n_classes + label
            counts[:, true] = np.bincount(cell, weights=believed, minlength=self.n_groups * n_classes).reshape(
                -1, n_classes
            )
        return Statistics(targets, counts)

    def step(self, statistics: Statistics, classifier: SoftClassifier) -> Reached:
        """M-step (eqs. 5 to 7), then E-step (eq. 4) by way of A."""
        targets, counts = statistics
        mass = targets.sum(axis=1)
        classifier.fit(self.X, targets / np.maximum(mass, LEAST)[:, None], mass)
        expected = np.clip(classifier.predict_proba(self.X), LEAST if classifier.exact else CLIP, None)
        groups = Groups.estimated(counts.sum(axis=(1, 2)), counts, self.smoothing)
        found, value = self._expect(expected, groups)
        objective = value + classifier.log_prior() + groups.log_prior(self.smoothing)
        return Reached(objective, groups, found, expected)

    def _expect(self, expected: NDArray[np.float64], groups: Groups) -> tuple[Statistics, float]:
        believed, value = expected, 0.0
        if self.known is not None:  # each vote on such a task has the known class
            gold = np.flatnonzero(self.known >= 0)
            believed = expected.copy()
            believed[gold] = np.eye(self.votes.shape[1])[self.known[gold]]
            mass = (self.votes + self.given)[gold].sum(axis=1)
            value = float(mass @ np.log(expected[gold, self.known[gold]]))
        said = groups.pooled
        probability = np.maximum(believed @ said, LEAST)  # p_ij
        value += float((self.votes * np.log(probability)).sum())
        ratio = self.votes / probability
        counts = groups.weight[:, None, None] * groups.confusion * (believed.T @ ratio)
        return Statistics(believed * (ratio @ said.T) + self.given, counts), value

    def _soft_vote(self, share: NDArray[np.float64], true: int) -> NDArray[np.float64]:
        if self.known is None:
            return share[:, true]
        return np.where(self.known >= 0, self.known == true, share[:, true])


def _others(share: NDArray[np.float64], task: NDArray[np.intp], label: NDArray[np.intp]) -> sp.csr_array:
    """Shares of the task's votes for other classes, a row for every (task, label) that occurs; sparse."""
    rows = sp.csr_array(share)[task]
    own = sp.csr_array((share[task, label], (np.arange(len(task)), label)), shape=rows.shape)
    return sp.csr_array(rows - own)
