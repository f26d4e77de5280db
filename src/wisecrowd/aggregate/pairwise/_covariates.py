"""Covariates of the items of comparisons, such as the length of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, preview


@dataclass(frozen=True)
class Covariates:
    """Differences of covariates between the left and the right item of every comparison.

    Parameters
    ----------
    names : list of str
        Names of the covariates.
    difference : ndarray of shape (n_votes, n_covariates)
        Covariates of the left item minus those of the right item.
    """

    names: list[str]
    difference: NDArray[np.float64]

    @classmethod
    def match(cls, table: Any, comparisons: Comparisons) -> Covariates:
        """Match a table of covariates with comparisons by id.

        Parameters
        ----------
        table : DataFrame
            Numbers, indexed by item, or by task and item.
        comparisons : Comparisons
            Comparisons.

        Returns
        -------
        Covariates

        Raises
        ------
        InputError
            If the table is not numeric, or lacks an item.
        """
        if not isinstance(table, pd.DataFrame):
            raise InputError(
                f"covariates must be a DataFrame indexed by item, or by task and item; got {type(table).__name__}"
            )
        try:
            values = table.to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("covariates must be numbers; encode or drop the other columns") from None
        if not np.isfinite(values).all():
            raise InputError("covariates must be finite numbers; fill or drop missing values")
        left, right = (cls._locate(table.index, comparisons, side) for side in (comparisons.left, comparisons.right))
        # A common scale keeps the optimiser well conditioned; an offset cancels in the difference.
        return cls([str(name) for name in table.columns], values[left] - values[right])

    @staticmethod
    def _locate(index: pd.Index, comparisons: Comparisons, side: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the row of the covariates of every comparison's item on one side."""
        if not index.is_unique:
            raise InputError(f"the covariates repeat {preview(index[index.duplicated()])}; keep one row each")
        if index.nlevels == 2:
            if comparisons.tasks is None:
                raise InputError("the covariates are by task and item, and these comparisons have no tasks")
            task = match_id_type(comparisons.tasks, index.levels[0]).take(comparisons.task)  # type: ignore[attr-defined,arg-type]  # has levels and tasks
            item = match_id_type(comparisons.items, index.levels[1]).take(side)  # type: ignore[attr-defined]  # has levels
            keys = pd.MultiIndex.from_arrays([task, item])
            position = index.get_indexer(keys)
            absent: Any = keys[position < 0]
        else:
            rows = index.get_indexer(match_id_type(comparisons.items, index))
            position, absent = rows[side], comparisons.items[rows < 0]
        if (position < 0).any():
            raise InputError(f"the covariates have no row for {preview(absent)}; add one for each item")
        return np.asarray(position, dtype=np.int64)
