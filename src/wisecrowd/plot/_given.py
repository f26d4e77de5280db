"""What callers give: one thing or several by name, met by id, and refused with reasons before a figure exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.vocabulary import same_kind
from wisecrowd.errors import InputError, UsageError, some

#: More series than this cannot be told apart on a plot.
MOST_SERIES = 20


def named(given: Any, fallback: str) -> dict[str, Any]:
    """Things by name; a single one gets the name of its method, or the fallback."""
    if isinstance(given, Mapping):
        if not given:
            raise UsageError("there is nothing to draw: the dict is empty")
        if len(given) > MOST_SERIES:
            raise UsageError(
                f"{len(given):,} series cannot be told apart on a plot; choose {MOST_SERIES} of them or fewer"
            )
        return {str(name): thing for name, thing in given.items()}
    return {given.name if isinstance(given, Method) else fallback: given}


def by_id(given: Any, what: str) -> pd.Series:
    """Numbers by worker or task."""
    series = pd.Series(dict(given), dtype=np.float64) if isinstance(given, Mapping) else given
    if not isinstance(series, pd.Series):
        raise UsageError(f"{what} must be a Series (or a dict) by worker or task; got {type(given).__name__}")
    if not series.index.is_unique:
        raise InputError(
            f"{what} names some ids twice: {some(series.index[series.index.duplicated()])}; keep one row each"
        )
    try:
        return series.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers; got {some(series)}") from error


def same_ids(table: pd.DataFrame, index: pd.Index, what: str) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """The rows of a table whose ids the index knows, and their positions in it."""
    place = np.asarray(index.get_indexer(same_kind(table.index, index)))
    if not (place >= 0).any():
        raise InputError(
            f"{what} have no id in common; the one has {some(table.index) or 'none'}, the other {some(index) or 'none'}. "
            "Check that both use the same ids"
        )
    return table[place >= 0], place[place >= 0]


def columns_of(table: Any, wanted: tuple[str, ...], maker: str) -> pd.DataFrame:
    """A table with at least these columns."""
    if not isinstance(table, pd.DataFrame):
        raise UsageError(f"the table that {maker} gives was wanted; got {type(table).__name__}")
    lacking = [name for name in wanted if name not in table.columns]
    if lacking:
        raise InputError(
            f"the table that {maker} gives was wanted, with columns {', '.join(wanted)}; this one lacks {', '.join(lacking)} "
            f"and has {some(map(str, table.columns), 8) or 'none'}"
        )
    if not len(table):
        raise InputError(f"the table that {maker} gives was wanted; this one has no rows")
    return table
