"""What one more vote would say, given what the group of the worker who casts it has said already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._panel_opinions import Sayings, Tables, hear
from wisecrowd.data.crowd import Crowd

Numbers = NDArray[np.float64]


class Expected:
    """P(worker says l | truth k, the group's votes on the task) = a_r q_ig(o = l | k) + (1 − a_r) π_r[k, l].

    A group that has voted leaves little doubt of its opinion, whatever is true: q is then the same for all k, and
    what a further member repeats tells nothing.

    >>> crowd = Crowd.from_triples([("t1", "a", 0), ("t1", "b", 0), ("t2", "p", 1)], workers=list("abcp"))
    >>> half, a = np.full((4, 2, 2), 0.5), np.array([0.99, 0.99, 0.99, 0.0])
    >>> sigma = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> told = Expected(crowd, np.array([0, 0, 0, -1]), half * (1 - a[:, None, None]), a, sigma)
    >>> told.matrices(1, np.array([2])).round(2).tolist(), told.matrices(0, np.array([2])).round(2).tolist()
    ([[[0.9, 0.1], [0.1, 0.9]]], [[[0.99, 0.01], [0.99, 0.01]]])
    """

    def __init__(
        self, crowd: Crowd, group: NDArray[np.int32], own: Numbers, shared: Numbers, opinion_confusion: Numbers
    ) -> None:
        self.group = group
        self._own, self._shared, self._opinion = own, shared, opinion_confusion
        self._label_probs = Sayings.of(crowd, group)
        pairs = crowd.pairs
        of_pair = own[pairs.worker, :, pairs.label]
        tables = Tables(of_pair, of_pair + shared[pairs.worker, None], opinion_confusion.transpose(0, 2, 1))
        self._heard = hear(self._label_probs, tables)
        self._n_groups = len(opinion_confusion)
        self._ends = np.append(self._label_probs.begins[1:], len(self._label_probs.cell))

    def opinion(self, task: int, group: int) -> Numbers:
        """What the group thinks of a task, given its votes there, for each class that may be true: (true, opinion)."""
        cells = self._label_probs.task * self._n_groups + self._label_probs.group
        cell = int(np.searchsorted(cells, task * self._n_groups + group))
        prior = self._opinion[group]
        if cell == len(cells) or cells[cell] != task * self._n_groups + group:
            return prior
        sayings = slice(self._label_probs.begins[cell], self._ends[cell])
        found = prior * self._heard.silent[cell][:, None]
        found[:, self._label_probs.label[sayings]] = self._heard.voiced[sayings].T
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def matrices(self, task: int, workers: NDArray[np.intp]) -> Numbers:
        """Of some workers, by position, on a task: (workers, true, said)."""
        found = self._own[workers]
        theirs = self.group[workers]
        for group in np.unique(theirs[theirs >= 0]):
            members = theirs == group
            found[members] += self._shared[workers[members], None, None] * self.opinion(task, int(group))
        return found
