"""Engine for models that split classes into subtypes: the columns of the E-step are (class, subtype)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.layout import Layout
from wisecrowd.em.initialization import apply_gold
from wisecrowd.engines.local import LocalEngine
from wisecrowd.kernels import Expectation
from wisecrowd.kernels.dispatch import MAX_REGISTER_CLASSES
from wisecrowd.utils.slices import slice_rows

#: Weight, relative to the largest, below which a column is left out: only evidence of e**92 could revive it.
MIN_COLUMN_WEIGHT = 1e-40


class SubtypeEngine(LocalEngine):
    """Engine of a model in which every class has ``n_subtypes`` columns, most of which become empty.

    Empty columns are left out of a pass, which makes it several times faster. Gold enters as a vote of an infallible worker: it
    excludes the columns of all other classes and leaves the subtype open.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes, −1 where the truth is unknown.
    n_jobs : int, default 1
        Number of threads.
    compiled : bool, optional
        Whether to use the compiled kernels; None chooses by the size of the crowd.
    n_subtypes : int, default 1
        Number of subtypes of each class.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> engine = SubtypeEngine(crowd, gold=np.array([1]), n_subtypes=2)
    >>> engine.expect(np.full(4, 0.25), np.full((2, 4), 0.5)).class_counts.round(3).tolist()
    [0.0, 0.0, 0.5, 0.5]
    """

    def __init__(
        self,
        crowd: Crowd,
        gold: NDArray[np.int32] | None = None,
        n_jobs: int = 1,
        compiled: bool | None = None,
        *,
        n_subtypes: int = 1,
    ) -> None:
        super().__init__(crowd, gold, n_jobs, compiled)
        self.n_jobs, self.compiled, self.n_subtypes = n_jobs, compiled, n_subtypes

    @cached_property
    def layout(self) -> Layout:
        """Votes, with the gold of each task after its votes."""
        votes = self.crowd.layout
        if self.gold is None:
            return votes
        tasks = np.flatnonzero((self.gold >= 0) & votes.has_votes)
        offset = votes.offset.copy()
        offset[1:] += np.cumsum(np.bincount(tasks, minlength=votes.n_tasks))
        position = votes.offset[tasks + 1]
        pair = np.insert(votes.pair, position, votes.n_pairs + self.gold[tasks])
        weight = None if votes.weight is None else np.insert(votes.weight, position, 1.0)
        return Layout(offset, pair, weight, votes.n_pairs + self.crowd.n_classes)

    def expect(self, prior: NDArray[Any], label_probs: NDArray[Any]) -> Expectation:
        """Compute the statistics of the posteriors of all columns.

        Parameters
        ----------
        prior : ndarray of shape (n_columns,)
            Weights of the columns.
        label_probs : ndarray of shape (n_pairs, n_columns)
            P(label of the pair given column).

        Returns
        -------
        Expectation
            Zero for columns that are left out.
        """
        active, weights, table = self._select_columns(prior, label_probs)
        n_active = len(active)
        expectation = kernels.expect(self.layout, weights, table, n_jobs=self.n_jobs, compiled=self.compiled)
        class_counts, tally = np.zeros(len(prior)), np.zeros(label_probs.shape, dtype=label_probs.dtype)
        class_counts[active] = expectation.class_counts[:n_active]
        tally[:, active] = expectation.tally[: len(label_probs), :n_active]
        return Expectation(expectation.log_likelihood, class_counts, tally, None)

    def compute_posterior(self, prior: NDArray[Any], label_probs: NDArray[Any]) -> NDArray[Any]:
        """Compute the posterior of the class of every task.

        Parameters
        ----------
        prior : ndarray of shape (n_columns,)
            Weights of the columns.
        label_probs : ndarray of shape (n_pairs, n_columns)
            P(label of the pair given column).

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        n_tasks, n_classes = self.crowd.n_tasks, self.crowd.n_classes
        active, weights, table = self._select_columns(prior, label_probs)
        fold = np.zeros((len(weights), n_classes), dtype=label_probs.dtype)
        fold[np.arange(len(active)), active // self.n_subtypes] = 1
        posterior = np.empty((n_tasks, n_classes), dtype=label_probs.dtype)
        for tasks in slice_rows(n_tasks, len(weights)):  # subtypes are summed before the next slice
            votes = self.layout.slice_tasks(tasks.start, min(tasks.stop, n_tasks))
            columns = kernels.posterior(votes, weights, table, n_jobs=self.n_jobs, compiled=self.compiled)
            posterior[tasks] = columns @ fold
        return apply_gold(posterior, self.gold)

    def _select_columns(
        self, prior: NDArray[Any], label_probs: NDArray[Any]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[Any]]:
        """Return the active columns with their weights and label probabilities, including rows for gold."""
        active = np.flatnonzero(prior > MIN_COLUMN_WEIGHT * prior.max())
        width = self._choose_width(len(active))
        weights, table = np.zeros(width), np.zeros((self.layout.n_pairs, width), dtype=label_probs.dtype)
        weights[: len(active)] = prior[active]
        table[: len(label_probs), : len(active)] = label_probs[:, active]
        if self.gold is not None:
            classes = active // self.n_subtypes
            table[len(label_probs) + classes, np.arange(len(active))] = 1
        return active, weights, table

    def _choose_width(self, n_active: int) -> int:
        """Return the number of columns to compute; compiled kernels exist for few widths, so columns are padded."""
        if not self.compiled:
            return n_active
        return next((width for width in (4, 8) if n_active <= width), max(n_active, MAX_REGISTER_CLASSES + 1))
