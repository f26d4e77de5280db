"""Data structures of a live model: the votes on some tasks, and tables that grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows of the first allocation of a growing table.
MIN_ROWS = 64


@dataclass(frozen=True)
class VoteBatch:
    """All votes on some tasks, in the order of the tasks.

    Attributes
    ----------
    count : ndarray of int of shape (n_tasks,)
        Number of votes of each task.
    position : ndarray of int of shape (n_votes,)
        Task of each vote, as a position in the batch.
    worker : ndarray of int of shape (n_votes,)
        Worker of each vote.
    label : ndarray of int of shape (n_votes,)
        Label of each vote.

    Examples
    --------
    >>> VoteBatch.from_mappings([{7: 1, 8: 0}, {7: 1}]).count.tolist()
    [2, 1]
    """

    count: NDArray[np.int64]
    position: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]

    @classmethod
    def from_mappings(cls, votes: Iterable[Mapping[int, int]]) -> VoteBatch:
        """Return the batch of some tasks.

        Parameters
        ----------
        votes : iterable of mapping
            Label by worker, of each task.

        Returns
        -------
        VoteBatch
        """
        tasks = list(votes)
        count = np.array([len(labels) for labels in tasks], dtype=np.int64)
        worker = np.array([worker for labels in tasks for worker in labels], dtype=np.int64)
        label = np.array([label for labels in tasks for label in labels.values()], dtype=np.int64)
        return cls(count, np.repeat(np.arange(len(tasks)), count), worker, label)

    def compute_posterior(self, prior: NDArray[np.float64], label_probs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the posterior of each task, ρ_k Π_r P(label given k), normalised.

        This equals `wisecrowd.kernels.posterior`, whose fixed cost is too high for a few tasks.

        Parameters
        ----------
        prior : ndarray of shape (n_classes,)
            Class prior.
        label_probs : ndarray of shape (n_votes, n_classes)
            P(label of the vote given class).

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        with np.errstate(divide="ignore"):  # the logarithm of zero is −∞
            evidence = np.repeat(np.log(prior)[None], len(self.count), axis=0)
            np.add.at(evidence, self.position, np.log(label_probs))
        evidence -= evidence.max(axis=1, keepdims=True)
        np.exp(evidence, out=evidence)
        return np.asarray(evidence / evidence.sum(axis=1, keepdims=True))


class GrowableTable:
    """Table with amortised appending of rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        First rows; copied.

    Examples
    --------
    >>> table = GrowableTable(np.zeros((1, 2)))
    >>> table.append(np.ones((2, 2)))
    >>> table.rows.shape
    (3, 2)
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self._buffer, self._n_rows = np.array(rows), len(rows)

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, as a writable view."""
        return self._buffer[: self._n_rows]

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows.

        Parameters
        ----------
        rows : ndarray of shape (n_new, n_columns)
            Rows to append.
        """
        n_rows = self._n_rows + len(rows)
        if n_rows > len(self._buffer):
            capacity = max(n_rows, 2 * len(self._buffer), MIN_ROWS)
            buffer = np.zeros((capacity, self._buffer.shape[1]), dtype=self._buffer.dtype)
            buffer[: self._n_rows] = self.rows
            self._buffer = buffer
        self._buffer[self._n_rows : n_rows] = rows
        self._n_rows = n_rows

    def add_columns(self, n_columns: int) -> GrowableTable:
        """Return the table with further columns of zeros.

        Parameters
        ----------
        n_columns : int
            Number of columns to add.

        Returns
        -------
        GrowableTable
        """
        return GrowableTable(np.pad(self.rows, ((0, 0), (0, n_columns))))
