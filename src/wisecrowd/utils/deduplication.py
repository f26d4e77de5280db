"""Merging of equal rows, so that each distinct row is processed once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Number of rows from which merging pays off: below it, sorting costs more than the repeated work.
MIN_ROWS_TO_MERGE = 500_000


def merge_equal_rows(
    *columns: NDArray[Any], weight: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Merge rows that are equal in all columns and add up their weights.

    Parameters
    ----------
    *columns : ndarray of shape (n_rows,)
        Columns to compare.
    weight : ndarray of shape (n_rows,)
        Weight of each row.

    Returns
    -------
    rows : ndarray of shape (n_distinct,)
        Position of one row of each kind.
    total : ndarray of shape (n_distinct,)
        Total weight of the rows of each kind.

    Examples
    --------
    >>> rows, total = merge_equal_rows(np.array([1, 0, 1]), np.array([0.5, 0.5, 0.5]), weight=np.ones(3))
    >>> rows.tolist(), total.tolist()
    ([1, 0], [1.0, 2.0])
    """
    order = np.lexsort(columns)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = False
    for column in columns:
        values = column[order]
        is_new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(is_new)
    return order[starts], np.add.reduceat(weight[order], starts) if len(starts) else np.empty(0)
