"""Votes in the form that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Layout:
    """Votes sorted by task, each a pair of worker and label.

    Parameters
    ----------
    offset : ndarray of shape (n_tasks + 1,)
        Bounds of the tasks: the votes of task ``i`` are ``offset[i]:offset[i + 1]``. The first need not be zero.
    pair : ndarray of shape (n_votes,)
        Pair of each vote; longer when the layout is a slice of another.
    weight : ndarray or None
        Weight of each vote, as long as ``pair``; None when every vote counts once.
    n_pairs : int
        Number of pairs.

    Examples
    --------
    >>> layout = Layout(offset=np.array([0, 2, 3]), pair=np.array([0, 1, 1], dtype=np.int32), weight=None, n_pairs=2)
    >>> layout.n_tasks, layout.n_votes
    (2, 3)
    >>> layout.vote_matrix.toarray()
    array([[1., 1.],
           [0., 1.]])
    """

    offset: NDArray[np.int64]
    pair: NDArray[np.int32]
    weight: NDArray[np.float64] | None
    n_pairs: int

    @property
    def n_tasks(self) -> int:
        """Number of tasks, including tasks without votes."""
        return len(self.offset) - 1

    @property
    def n_votes(self) -> int:
        """Number of votes of these tasks."""
        return int(self.offset[-1] - self.offset[0])

    @property
    def total_weight(self) -> float:
        """Total weight of the votes of these tasks."""
        return self.n_votes if self.weight is None else float(self.weight[self.offset[0] : self.offset[-1]].sum())

    @cached_property
    def has_votes(self) -> NDArray[np.bool_]:
        """Mask of the tasks that have votes."""
        return np.diff(self.offset) > 0

    @cached_property
    def vote_task(self) -> NDArray[np.int64]:
        """Task of each vote, of shape (n_votes,)."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offset))

    @cached_property
    def vote_matrix(self) -> sp.csr_array:
        """Sparse matrix (tasks × pairs) of the weights of the votes, with which the reference kernels multiply."""
        import scipy.sparse as sp  # a fifth of the time that `import pandas` takes

        votes = slice(self.offset[0], self.offset[-1])
        weight = np.ones(self.n_votes) if self.weight is None else self.weight[votes]
        shape = (self.n_tasks, self.n_pairs)
        return sp.csr_array((weight, self.pair[votes], self.offset - self.offset[0]), shape=shape)

    def slice_tasks(self, start: int, stop: int) -> Layout:
        """Return the layout of consecutive tasks over the same pairs, without copying.

        Parameters
        ----------
        start, stop : int
            Bounds of the tasks.

        Returns
        -------
        Layout
            The tasks ``start:stop``.

        Examples
        --------
        >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
        >>> layout.slice_tasks(1, 2).vote_matrix.toarray()
        array([[0., 1.]])
        """
        return Layout(self.offset[start : stop + 1], self.pair, self.weight, self.n_pairs)
