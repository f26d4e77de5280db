"""Worker model of label sets: how often workers mark labels that apply, and labels that do not.

A *mark* is one label in the set that a worker gave to a task. Only marks are stored.
The evidence of a worker who did not mark a label enters through sums over all assignments of a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.label_sets import LabelSetCrowd

Array = NDArray[np.float64]

#: Smallest and largest probability of a mark, so that one vote never excludes a label.
MIN_MARK_PROB = 1e-4


class MarkProbs(NamedTuple):
    """Probabilities that a worker marks a label, by worker and label.

    Parameters
    ----------
    hit : ndarray of shape (n_workers, n_labels)
        P(mark | the label applies), the sensitivity.
    false_alarm : ndarray of shape (n_workers, n_labels)
        P(mark | the label does not apply).
    """

    hit: Array
    false_alarm: Array


class MarkCounts(NamedTuple):
    """Expected counts by worker and label.

    Parameters
    ----------
    hits, false_alarms : ndarray of shape (n_workers, n_labels)
        Marks of labels that apply, and of labels that do not.
    n_true, n_false : ndarray of shape (n_workers, n_labels)
        Assignments on which the label applies, or does not.
    """

    hits: Array
    false_alarms: Array
    n_true: Array
    n_false: Array


@dataclass(frozen=True)
class MarkModel:
    """Sums over the assignments and marks of a crowd.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    """

    crowd: LabelSetCrowd

    @cached_property
    def _assignments(self) -> Any:
        """Sparse incidence of tasks and workers."""
        from scipy.sparse import coo_array

        crowd = self.crowd
        shape = (crowd.n_tasks, crowd.n_workers)
        return coo_array((np.ones(crowd.n_votes), (crowd.task, crowd.worker)), shape=shape).tocsr()

    def evidence(self, probs: MarkProbs) -> Array:
        """Return the log-odds that the votes give to every label of every task.

        Parameters
        ----------
        probs : MarkProbs
            Probabilities of marks.

        Returns
        -------
        ndarray of shape (n_tasks, n_labels)
            log P(votes | applies) − log P(votes | does not apply).
        """
        crowd = self.crowd
        absent = np.log1p(-probs.hit) - np.log1p(-probs.false_alarm)
        present = np.log(probs.hit) - np.log(probs.false_alarm)
        cell = crowd.task[crowd.mark].astype(np.int64) * crowd.n_labels + crowd.label
        worker = crowd.worker[crowd.mark]
        change = (present - absent)[worker, crowd.label]
        marks = np.bincount(cell, change, crowd.n_tasks * crowd.n_labels).reshape(crowd.n_tasks, crowd.n_labels)
        return np.asarray(self._assignments @ absent + marks, dtype=np.float64)

    def base_log_likelihood(self, probs: MarkProbs) -> float:
        """Return the log-likelihood of all votes if no label applied anywhere.

        Parameters
        ----------
        probs : MarkProbs
            Probabilities of marks.

        Returns
        -------
        float
            Sum over votes and labels.
        """
        crowd = self.crowd
        absent = np.log1p(-probs.false_alarm)
        worker = crowd.worker[crowd.mark]
        change = (np.log(probs.false_alarm) - absent)[worker, crowd.label]
        return float(crowd.votes_per_worker @ absent.sum(axis=1) + change.sum())

    def count(self, label_probs: Array) -> MarkCounts:
        """Return the expected counts given the probabilities of labels.

        Parameters
        ----------
        label_probs : ndarray of shape (n_tasks, n_labels)
            Probability that a label applies.

        Returns
        -------
        MarkCounts
        """
        crowd = self.crowd
        n_true = np.asarray(self._assignments.T @ label_probs, dtype=np.float64)
        n_false = crowd.votes_per_worker[:, None] - n_true
        cell = crowd.worker[crowd.mark].astype(np.int64) * crowd.n_labels + crowd.label
        applies = label_probs[crowd.task[crowd.mark], crowd.label]
        shape, size = (crowd.n_workers, crowd.n_labels), crowd.n_workers * crowd.n_labels
        hits, false_alarms = (
            np.asarray(np.bincount(cell, value, size), dtype=np.float64).reshape(shape)
            for value in (applies, 1 - applies)
        )
        return MarkCounts(hits, false_alarms, n_true, n_false)


@dataclass(frozen=True)
class MarkPrior:
    """Beta priors of the probabilities of marks.

    A worker's probability for a label is shrunk towards the worker's rate over all labels, and that towards the crowd's
    rate for the label.

    Parameters
    ----------
    strength : float
        Number of pseudo-votes of each prior.
    hit_mean, false_alarm_mean : ndarray of shape (n_workers, n_labels)
        Prior means of the probabilities in `MarkProbs`.
    """

    strength: float
    hit_mean: Array
    false_alarm_mean: Array

    @classmethod
    def estimate(cls, counts: MarkCounts, strength: float) -> MarkPrior:
        """Estimate the prior means from counts; they stay fixed during EM, so that its objective never falls.

        Parameters
        ----------
        counts : MarkCounts
            Expected counts at the start.
        strength : float
            Number of pseudo-votes.

        Returns
        -------
        MarkPrior
        """

        def means(marks: Array, totals: Array) -> Array:
            crowd_rate = (marks.sum(axis=0) + 0.5) / (totals.sum(axis=0) + 1)
            expected = (totals * crowd_rate).sum(axis=1)
            # Ratio of a worker's marks to those of an average worker on the same labels.
            ratio = (marks.sum(axis=1) + strength) / (expected + strength) if strength > 0 else np.ones(len(expected))
            return np.clip(crowd_rate * ratio[:, None], 0.01, 0.99)

        return cls(strength, means(counts.hits, counts.n_true), means(counts.false_alarms, counts.n_false))

    def maximize(self, counts: MarkCounts) -> MarkProbs:
        """Return the most probable probabilities of marks given expected counts: the M-step.

        Parameters
        ----------
        counts : MarkCounts
            Expected counts.

        Returns
        -------
        MarkProbs
        """
        m = self.strength

        def estimate_probs(marks: Array, totals: Array, mean: Array) -> Array:
            value = np.divide(marks + m * mean, totals + m, out=mean.copy(), where=totals + m > 0)
            return np.clip(value, MIN_MARK_PROB, 1 - MIN_MARK_PROB)

        return MarkProbs(
            estimate_probs(counts.hits, counts.n_true, self.hit_mean),
            estimate_probs(counts.false_alarms, counts.n_false, self.false_alarm_mean),
        )

    def log_density(self, probs: MarkProbs) -> float:
        """Return the log-density of probabilities of marks under their Beta priors, up to a constant.

        With strength s and mean m, the prior is Beta(1 + s m, 1 + s (1 − m)).

        Parameters
        ----------
        probs : MarkProbs
            Probabilities between 0 and 1, both excluded; `maximize` gives no others.

        Returns
        -------
        float
            Sum over workers and labels.
        """
        probs_and_means = ((probs.hit, self.hit_mean), (probs.false_alarm, self.false_alarm_mean))
        return self.strength * float(
            sum((mean * np.log(prob) + (1 - mean) * np.log1p(-prob)).sum() for prob, mean in probs_and_means)
        )
