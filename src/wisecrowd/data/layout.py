"""Votes in the order in which kernels read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Layout:
    """Votes sorted by task; vote ``n`` says ``pair[n]``, a (worker, label) pair that occurs in the data.

    >>> layout = Layout(offset=np.array([0, 2, 3]), pair=np.array([0, 1, 1], dtype=np.int32), weight=None, n_pairs=2)
    >>> layout.n_tasks, layout.n_votes
    (2, 3)
    >>> layout.vote_matrix.toarray()
    array([[1., 1.],
           [0., 1.]])
    """

    offset: NDArray[np.int64]
    """(n_tasks + 1,): the votes of task ``i`` are ``offset[i]:offset[i + 1]``. It need not begin at 0."""
    pair: NDArray[np.int32]
    """(n_votes,), longer when the layout is a block of another."""
    weight: NDArray[np.float64] | None
    """(n_votes,) like ``pair``; None when every vote counts once."""
    n_pairs: int

    @property
    def n_tasks(self) -> int:
        """How many tasks there are, with votes or without."""
        return len(self.offset) - 1

    @property
    def n_votes(self) -> int:
        """How many votes these tasks have."""
        return int(self.offset[-1] - self.offset[0])

    @property
    def total_weight(self) -> float:
        """How much all votes weigh together."""
        return self.n_votes if self.weight is None else float(self.weight[self.offset[0] : self.offset[-1]].sum())

    @cached_property
    def has_votes(self) -> NDArray[np.bool_]:
        """Which tasks have votes."""
        return np.diff(self.offset) > 0

    @cached_property
    def vote_matrix(self) -> Any:
        """Tasks x pairs, sparse, with the weights of the votes: what the reference form multiplies with."""
        votes = slice(self.offset[0], self.offset[-1])
        weight = np.ones(self.n_votes) if self.weight is None else self.weight[votes]
        shape = (self.n_tasks, self.n_pairs)
        return sp.csr_array((weight, self.pair[votes], self.offset - self.offset[0]), shape=shape)

    def slice_tasks(self, start: int, stop: int) -> Layout:
        """The tasks ``start:stop`` over the same pairs, without copying.

        >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
        >>> layout.slice_tasks(1, 2).vote_matrix.toarray()
        array([[0., 1.]])
        """
        return Layout(self.offset[start : stop + 1], self.pair, self.weight, self.n_pairs)
