"""Probabilities of the next vote of a worker, given the votes of the worker's group on the task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical.panel._opinions import GroupVotes, OpinionTables, infer_opinions
from wisecrowd.data.crowd import Crowd

Array = NDArray[np.float64]


class ExpectedAnswers:
    """P(worker gives l | truth k, votes of the group on the task) = a_r q_ig(o = l | k) + (1 − a_r) π_r[k, l].

    A group that has voted leaves little uncertainty about its opinion, whatever is true. q is then the same for all k, and
    a further member who repeats the opinion is not informative.

    Parameters
    ----------
    crowd : Crowd
        Votes so far.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.
    own : ndarray of shape (n_workers, n_classes, n_classes)
        Probabilities (1 − a_r) π_r of independent votes, [worker, true, given].
    shared : ndarray of shape (n_workers,)
        Probability a_r that a worker repeats the opinion of the group.
    opinion_confusion : ndarray of shape (n_groups, n_classes, n_classes)
        Probabilities σ of the opinions, [group, true, opinion].

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "a", 0), ("t1", "b", 0), ("t2", "p", 1)], workers=list("abcp"))
    >>> half, a = np.full((4, 2, 2), 0.5), np.array([0.99, 0.99, 0.99, 0.0])
    >>> sigma = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> answers = ExpectedAnswers(crowd, np.array([0, 0, 0, -1]), half * (1 - a[:, None, None]), a, sigma)
    >>> answers.confusion_on(1, np.array([2])).round(2).tolist(), answers.confusion_on(0, np.array([2])).round(2).tolist()
    ([[[0.9, 0.1], [0.1, 0.9]]], [[[0.99, 0.01], [0.99, 0.01]]])
    """

    def __init__(
        self, crowd: Crowd, group: NDArray[np.int32], own: Array, shared: Array, opinion_confusion: Array
    ) -> None:
        self.group, self.own, self.shared, self.opinion_confusion = group, own, shared, opinion_confusion
        self._votes = GroupVotes.from_crowd(crowd, group)
        pairs = crowd.pairs
        pair_own = own[pairs.worker, :, pairs.label]
        tables = OpinionTables(pair_own, pair_own + shared[pairs.worker, None], opinion_confusion.transpose(0, 2, 1))
        self._opinions = infer_opinions(self._votes, tables)
        self._n_groups = len(opinion_confusion)
        self._end_ballot = np.append(self._votes.first_ballot[1:], len(self._votes.cell))

    def opinion_probs(self, task: int, group: int) -> Array:
        """Return the probabilities of the opinion of a group on a task, given its votes and each class.

        Parameters
        ----------
        task : int
            Task code.
        group : int
            Group code.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Probabilities [true, opinion].
        """
        cells = self._votes.task * self._n_groups + self._votes.group
        cell = int(np.searchsorted(cells, task * self._n_groups + group))
        prior = self.opinion_confusion[group]
        if cell == len(cells) or cells[cell] != task * self._n_groups + group:
            return prior
        ballots = slice(self._votes.first_ballot[cell], self._end_ballot[cell])
        probs = prior * self._opinions.unvoted[cell][:, None]
        probs[:, self._votes.label[ballots]] = self._opinions.voted[ballots].T
        return np.asarray(probs / probs.sum(axis=1, keepdims=True))

    def confusion_on(self, task: int, workers: NDArray[np.intp]) -> Array:
        """Return the confusion matrices of some workers on a task.

        Parameters
        ----------
        task : int
            Task code.
        workers : ndarray of int
            Worker codes.

        Returns
        -------
        ndarray of shape (n_selected, n_classes, n_classes)
            Confusion matrices [worker, true, given].
        """
        confusion = self.own[workers]
        worker_group = self.group[workers]
        for group in np.unique(worker_group[worker_group >= 0]):
            members = worker_group == group
            shared = self.shared[workers[members], None, None]
            confusion[members] += shared * self.opinion_probs(task, int(group))
        return confusion
