"""Mixture of Mena and Ñanculef, in which every vote belongs to a group and has a true class of its own.

An EM step needs the votes only through A[k, j] = Σ_i r_ij f_k(x_i) / p_ij, a table of classes x classes: the responsibility
of group m and class k for a vote j on task i is β^m[k, j] f_k(x_i) α_m / p_ij, so every sum over votes is a multiple of A.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR
from wisecrowd.em.loop import Statistics
from wisecrowd.kernels import MIN_PROB
from wisecrowd.learn.cmm._confusion_mixture import ConfusionMixture, MixtureStep, cluster_points
from wisecrowd.learn.cmm._cross_fitting import StepClassifier

#: Number of principal components that the start of the authors clusters.
N_COMPONENTS = 3


@dataclass
class VoteMixture:
    """EM over single votes.

    Its statistics are the targets r̄ of the classifier (tasks, classes) and expected counts (groups, true, given).

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features.
    vote_counts : ndarray of shape (n_tasks, n_classes)
        Number of votes for every class. Every task has votes or gold.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.
    n_groups : int
        Number of groups.
    smoothing : float, default 1.0
        Pseudo-count of every weight and every cell of the matrices.
    random_state : int, default 0
        Seed of all starts but the first.
    kind : {"votes", "authors"}, default "votes"
        Kind of start.

    Examples
    --------
    >>> vote_counts = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> VoteMixture(np.zeros((2, 1)), vote_counts, None, n_groups=1).start(0).tally.tolist()
    [[[2.5, 0.5], [0.5, 0.5]]]
    """

    X: NDArray[np.float64]
    vote_counts: NDArray[np.float64]
    gold: NDArray[np.int32] | None
    n_groups: int
    smoothing: float = 1.0
    random_state: int = 0
    kind: Literal["votes", "authors"] = "votes"
    gold_targets: NDArray[np.float64] = field(init=False)
    """Targets of gold tasks without votes, which count as one vote each."""

    def __post_init__(self) -> None:
        self.gold_targets = np.zeros_like(self.vote_counts)
        if self.gold is not None:
            unvoted = np.flatnonzero((self.gold >= 0) & (self.vote_counts.sum(axis=1) == 0))
            self.gold_targets[unvoted, self.gold[unvoted]] = 1

    def start(self, attempt: int) -> Statistics:
        """Return statistics with groups of votes by k-means and classes by the vote shares.

        A vote j on task i is represented by the shares of the task's votes for classes other than j, so votes that agree
        with all others lie at zero. The first attempt starts from votes ordered by agreement. Later ones start at random,
        and take a share λ_m ~ U(0, 1) of the class from the vote shares and the rest from the vote itself. Starts of the
        authors are all like these, except that they cluster all pairs of tasks and labels.

        Parameters
        ----------
        attempt : int
            Number of the start, from 0.

        Returns
        -------
        Statistics
        """
        n_classes = self.vote_counts.shape[1]
        task, label = np.nonzero(self.vote_counts)
        count = self.vote_counts[task, label]
        share = self.vote_counts / np.maximum(self.vote_counts.sum(axis=1, keepdims=True), MIN_PROB)
        rng = np.random.default_rng([self.random_state, attempt])
        agreement = share[task, label]
        level = np.minimum((self.n_groups * (1 - agreement)).astype(np.intp), self.n_groups - 1)
        is_random = attempt > 0 or self.kind == "authors"
        soft_share = rng.random(self.n_groups) if is_random else np.ones(self.n_groups)
        if self.kind == "authors":
            group = _cluster_all_pairs(share, self.n_groups)[task, label]
        else:
            initial_group = rng.integers(self.n_groups, size=len(task)) if is_random else level
            group = cluster_points(_share_of_other_classes(share, task, label), count, initial_group, self.n_groups)
        vote_soft_share = soft_share[group]
        targets, counts = self.gold_targets.copy(), np.zeros((self.n_groups, n_classes, n_classes))
        for true in range(n_classes):
            class_prob = self._class_share(share, true)[task]
            mass = count * (vote_soft_share * class_prob + (1 - vote_soft_share) * (label == true))
            targets[:, true] += np.bincount(task, weights=mass, minlength=len(targets))
            cell = group * n_classes + label
            by_cell = np.bincount(cell, weights=mass, minlength=self.n_groups * n_classes)
            counts[:, true] = by_cell.reshape(-1, n_classes)
        return Statistics(targets, counts)

    def step(self, statistics: Statistics, classifier: StepClassifier) -> MixtureStep:
        """Run an M-step (eqs. 5 to 7), then an E-step (eq. 4) by way of A.

        Parameters
        ----------
        statistics : Statistics
            Targets and counts.
        classifier : StepClassifier
            Classifier to fit.

        Returns
        -------
        MixtureStep
        """
        targets, counts = statistics
        mass = targets.sum(axis=1)
        classifier.fit(self.X, targets / np.maximum(mass, MIN_PROB)[:, None], mass)
        floor = MIN_PROB if classifier.exact else PROBABILITY_FLOOR
        class_probs = np.clip(classifier.predict_proba(self.X), floor, None)
        mixture = ConfusionMixture.estimate(counts.sum(axis=(1, 2)), counts, self.smoothing)
        updated, log_likelihood = self._e_step(class_probs, mixture)
        objective = log_likelihood + classifier.log_prior() + mixture.log_prior(self.smoothing)
        return MixtureStep(objective, mixture, updated, class_probs)

    def _e_step(self, class_probs: NDArray[np.float64], mixture: ConfusionMixture) -> tuple[Statistics, float]:
        """Return the next statistics and the log-likelihood."""
        vote_class_probs, log_likelihood = class_probs, 0.0
        if self.gold is not None:  # every vote on a gold task has the true class
            gold_tasks = np.flatnonzero(self.gold >= 0)
            truth = self.gold[gold_tasks]
            vote_class_probs = class_probs.copy()
            vote_class_probs[gold_tasks] = np.eye(self.vote_counts.shape[1])[truth]
            mass = (self.vote_counts + self.gold_targets)[gold_tasks].sum(axis=1)
            log_likelihood = float(mass @ np.log(class_probs[gold_tasks, truth]))
        pooled = mixture.pooled
        vote_probs = np.maximum(vote_class_probs @ pooled, MIN_PROB)  # p_ij
        log_likelihood += float((self.vote_counts * np.log(vote_probs)).sum())
        ratio = self.vote_counts / vote_probs
        counts = mixture.weight[:, None, None] * mixture.confusion * (vote_class_probs.T @ ratio)
        targets = vote_class_probs * (ratio @ pooled.T) + self.gold_targets
        return Statistics(targets, counts), log_likelihood

    def _class_share(self, share: NDArray[np.float64], true: int) -> NDArray[np.float64]:
        """Return the share of votes for a class by task; 0 or 1 for gold tasks."""
        if self.gold is None:
            return share[:, true]
        return np.where(self.gold >= 0, self.gold == true, share[:, true])


def _cluster_all_pairs(share: NDArray[np.float64], n_groups: int) -> NDArray[np.intp]:
    """Return groups of all pairs of task and label, (tasks, labels), as in the program of the authors.

    A pair is represented by the cross-entropy of the vote shares and the label, class by class, of which three principal
    components are kept. Most pairs have no votes; the groups are mainly those of how contested the tasks are.
    """
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    n_tasks, n_classes = share.shape
    log_label = np.full((n_classes, n_classes), np.log(np.finfo(np.float32).eps))
    np.fill_diagonal(log_label, 0.0)
    points = (-share[:, None, :] * log_label).reshape(n_tasks * n_classes, n_classes)
    components = PCA(min(N_COMPONENTS, *points.shape), svd_solver="full").fit_transform(points)
    components /= np.maximum(components.std(axis=0), MIN_PROB)
    n_clusters = min(n_groups, len(np.unique(components, axis=0)))
    group = KMeans(n_clusters, n_init=1, random_state=0).fit_predict(components)
    return np.asarray(group.reshape(n_tasks, n_classes), dtype=np.intp)


def _share_of_other_classes(
    share: NDArray[np.float64], task: NDArray[np.intp], label: NDArray[np.intp]
) -> sp.csr_array:
    """Return the shares of the task's votes for other classes, with a row for every (task, label) that occurs."""
    rows = sp.csr_array(share)[task]
    own = sp.csr_array((share[task, label], (np.arange(len(task)), label)), shape=rows.shape)
    return sp.csr_array(rows - own)
