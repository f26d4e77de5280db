"""Information matrix of a model in which only the scores connect the workers.

The information of all parameters has the form of an arrow: a block A of the scores and the common effects, a small block D_r of
every worker, and the part B_r that connects them. Eliminating the workers leaves S = A − Σ_r B_rᵀ D_r⁻¹ B_r, a matrix of the size
of A.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Share of non-zero elements above which dense products are faster than sparse ones.
DENSE_SHARE = 0.05
#: Elements of a dense block of workers (8 MB).
CHUNK_ELEMENTS = 1_000_000


@dataclass(frozen=True)
class WorkerCells:
    """Combinations of worker and item that occur in rows, and combinations of two items.

    Parameters
    ----------
    worker, item : ndarray of shape (n_cells,)
        Worker and item of each cell, sorted.
    left_cell, right_cell : ndarray of shape (n_rows,)
        Cell of the worker with the left, and with the right item of each row.
    pair : ndarray of shape (n_rows,)
        left × n_items + right of each row.
    n_items, n_workers : int
        Sizes of the vocabularies.
    """

    worker: NDArray[np.int64]
    item: NDArray[np.int64]
    left_cell: NDArray[np.int64]
    right_cell: NDArray[np.int64]
    pair: NDArray[np.int64]
    n_items: int
    n_workers: int

    @classmethod
    def from_rows(
        cls, worker: NDArray[Any], left: NDArray[Any], right: NDArray[Any], n_items: int, n_workers: int
    ) -> WorkerCells:
        """Find the combinations that occur.

        Parameters
        ----------
        worker, left, right : ndarray of shape (n_rows,)
            Codes of each row.
        n_items, n_workers : int
            Sizes of the vocabularies.

        Returns
        -------
        WorkerCells
        """
        start = worker.astype(np.int64) * n_items
        left_key, right_key = start + left, start + right
        if n_items * n_workers <= 4 * len(worker):
            # A table of all combinations is smaller than the rows, and needs no sorting.
            occurs = np.zeros(n_items * n_workers, dtype=bool)
            occurs[left_key] = occurs[right_key] = True
            cells, place = np.flatnonzero(occurs), np.cumsum(occurs) - 1
            left_cell, right_cell = place[left_key], place[right_key]
        else:
            cells, position = np.unique(np.concatenate([left_key, right_key]), return_inverse=True)
            left_cell, right_cell = position[: len(worker)], position[len(worker) :]
        pair = left.astype(np.int64) * n_items + right
        return cls(cells // n_items, cells % n_items, left_cell, right_cell, pair, n_items, n_workers)

    def sum_sides(self, value: Array) -> Array:
        """Return the sum over rows by cell, positive for the left and negative for the right item.

        Parameters
        ----------
        value : ndarray of shape (n_rows,)
            Value of each row.

        Returns
        -------
        ndarray of shape (n_cells,)
        """
        n_cells = len(self.worker)
        sums = np.bincount(self.left_cell, value, n_cells) - np.bincount(self.right_cell, value, n_cells)
        return sums.astype(np.float64, copy=False)

    def sum_products(self, value: Array) -> Array:
        """Return the sum over rows of value × (e_L − e_R)(e_L − e_R)ᵀ, with the unit vectors e of the items.

        Parameters
        ----------
        value : ndarray of shape (n_rows,)
            Value of each row.

        Returns
        -------
        ndarray of shape (n_items, n_items)
        """
        n = self.n_items
        table = np.bincount(self.pair, value, n * n).reshape(n, n)
        table = table + table.T
        return np.asarray(np.diag(table.sum(axis=1)) - table, dtype=np.float64)


@dataclass(frozen=True)
class WorkerInformation:
    """Information with the workers eliminated.

    Parameters
    ----------
    shared : ndarray of shape (n_shared, n_shared)
        Block A of the scores and the common effects.
    cross : list of scipy.sparse.csr_array of shape (n_workers, n_shared)
        Parts B, one for each kind of effect of workers.
    own : ndarray of shape (n_workers, n_kinds, n_kinds)
        Blocks D of the workers.
    """

    shared: Array
    cross: list[Any]
    own: Array

    @cached_property
    def _own_inverse(self) -> Array:
        return np.asarray(np.linalg.inv(self.own), dtype=np.float64)

    def _dense_chunks(self) -> Iterator[tuple[slice, Array]]:
        """Yield parts of the workers with their B as arrays of shape (n_kinds, n_chunk, n_shared)."""
        n_workers, n_shared = self.cross[0].shape
        size = max(1, CHUNK_ELEMENTS // (n_shared * len(self.cross)))
        for start in range(0, n_workers, size):
            part = slice(start, min(start + size, n_workers))
            yield part, np.stack([matrix[part].toarray() for matrix in self.cross])

    @cached_property
    def _factor(self) -> Any:
        """Cholesky factor of S."""
        from scipy.linalg import cho_factor
        from scipy.sparse import diags_array

        rest = self.shared.copy()
        n_workers, n_shared = self.cross[0].shape
        if self.cross[0].nnz > DENSE_SHARE * n_workers * n_shared:
            for part, dense in self._dense_chunks():
                solved = np.einsum("wkl,lwg->kwg", self._own_inverse[part], dense)
                rest -= dense.reshape(-1, n_shared).T @ solved.reshape(-1, n_shared)
        else:
            for k, left in enumerate(self.cross):
                for m, right in enumerate(self.cross):
                    rest -= (left.T @ (diags_array(self._own_inverse[:, k, m]) @ right)).toarray()
        return cho_factor(rest, lower=True)

    def is_positive_definite(self) -> bool:
        """Tell whether all eigenvalues are positive.

        Returns
        -------
        bool
        """
        try:
            np.linalg.cholesky(self.own)
            return self._factor is not None
        except np.linalg.LinAlgError:
            return False

    def solve(self, right_side: Array) -> Array:
        """Solve the linear system of the information.

        Parameters
        ----------
        right_side : ndarray of shape (n_parameters,)
            Right side, in the order of `diagonal`.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        from scipy.linalg import cho_solve

        n_shared = len(self.shared)
        own = right_side[n_shared:].reshape(len(self.cross), -1)
        first = np.einsum("wkl,lw->kw", self._own_inverse, own)
        reduced = right_side[:n_shared] - sum(matrix.T @ part for matrix, part in zip(self.cross, first, strict=True))
        shared = np.asarray(cho_solve(self._factor, reduced), dtype=np.float64)
        change = np.stack([matrix @ shared for matrix in self.cross])
        return np.concatenate([shared, (first - np.einsum("wkl,lw->kw", self._own_inverse, change)).ravel()])

    def diagonal(self) -> Array:
        """Return the diagonal, in the order of the parameters: shared ones, then workers by kind of effect.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        return np.concatenate([self.shared.diagonal(), np.einsum("wkk->kw", self.own).ravel()])

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of the inverse, in the same order.

        Returns
        -------
        ndarray of shape (n_parameters,)
        """
        from scipy.linalg import cho_solve

        inverse = np.asarray(cho_solve(self._factor, np.eye(len(self.shared))), dtype=np.float64)
        own = np.einsum("wkk->kw", self._own_inverse).copy()
        for part, dense in self._dense_chunks():
            solved = np.einsum("wkl,lwg->kwg", self._own_inverse[part], dense)
            own[:, part] += np.einsum("kwg,kwg->kw", solved @ inverse, solved)
        return np.concatenate([inverse.diagonal(), own.ravel()])
