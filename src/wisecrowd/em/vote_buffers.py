"""Data structures of a live model: the votes on some tasks, and tables that grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows of the first allocation of a growing table.
MIN_ROWS = 64
#: Factors by which a growing table is enlarged. A table has few new columns, so that little room for them is kept.
ROW_GROWTH, COLUMN_GROWTH = 2.0, 1.1


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
    """Table with amortised appending of rows and columns.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        First rows; copied.

    Examples
    --------
    >>> table = GrowableTable(np.zeros((1, 2)))
    >>> table.append(np.ones((2, 2)))
    >>> table.add_columns(1)
    >>> table.rows.shape
    (3, 3)
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self._buffer = np.array(rows)
        self._n_rows, self._n_columns = self._buffer.shape

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, as a writable view."""
        return self._buffer[: self._n_rows, : self._n_columns]

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows.

        Parameters
        ----------
        rows : ndarray of shape (n_new, n_columns)
            Rows to append.
        """
        n_rows = self._n_rows + len(rows)
        if n_rows > len(self._buffer):
            self._reserve(max(n_rows, int(ROW_GROWTH * len(self._buffer)), MIN_ROWS), self._buffer.shape[1])
        self._buffer[self._n_rows : n_rows, : self._n_columns] = rows
        self._n_rows = n_rows

    def add_columns(self, n_columns: int) -> None:
        """Add columns of zeros.

        Parameters
        ----------
        n_columns : int
            Number of columns to add.
        """
        self._n_columns += n_columns
        if self._n_columns > self._buffer.shape[1]:
            self._reserve(len(self._buffer), max(self._n_columns, int(COLUMN_GROWTH * self._buffer.shape[1])))

    def _reserve(self, n_rows: int, n_columns: int) -> None:
        buffer = np.zeros((n_rows, n_columns), dtype=self._buffer.dtype)
        n_old = min(self._buffer.shape[1], n_columns)
        buffer[: self._n_rows, :n_old] = self._buffer[: self._n_rows, :n_old]
        self._buffer = buffer
