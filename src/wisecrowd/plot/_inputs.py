"""What callers give: one thing or several by name, met by id, and refused with reasons before a figure exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, UsageError, preview

#: More series than this cannot be told apart on a plot.
MAX_SERIES = 20


def name_series(value: Any, fallback: str) -> dict[str, Any]:
    """Things by name; a single one gets the name of its method, or the fallback."""
    if isinstance(value, Mapping):
        if not value:
            raise UsageError("there is nothing to draw: the dict is empty")
        if len(value) > MAX_SERIES:
            raise UsageError(
                f"{len(value):,} series cannot be told apart on a plot; choose {MAX_SERIES} of them or fewer"
            )
        return {str(name): thing for name, thing in value.items()}
    return {value.name if isinstance(value, Method) else fallback: value}


def as_numeric_series(values: Any, source: str) -> pd.Series:
    """Numbers by worker or task."""
    series = pd.Series(dict(values), dtype=np.float64) if isinstance(values, Mapping) else values
    if not isinstance(series, pd.Series):
        raise UsageError(f"{source} must be a Series (or a dict) by worker or task; got {type(values).__name__}")
    if not series.index.is_unique:
        raise InputError(
            f"{source} names some ids twice: {preview(series.index[series.index.duplicated()])}; keep one row each"
        )
    try:
        return series.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source} must be numbers; got {preview(series)}") from error


def match_ids(table: pd.DataFrame, index: pd.Index, sources: str) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """The rows of a table whose ids the index knows, and their positions in it."""
    position = np.asarray(index.get_indexer(match_id_type(table.index, index)))
    if not (position >= 0).any():
        raise InputError(
            f"{sources} have no id in common; the one has {preview(table.index) or 'none'}, the other {preview(index) or 'none'}. "
            "Check that both use the same ids"
        )
    return table[position >= 0], position[position >= 0]


def require_columns(table: Any, columns: tuple[str, ...], producer: str) -> pd.DataFrame:
    """A table with at least these columns."""
    if not isinstance(table, pd.DataFrame):
        raise UsageError(f"the table that {producer} gives was wanted; got {type(table).__name__}")
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InputError(
            f"the table that {producer} gives was wanted, with columns {', '.join(columns)}; this one lacks {', '.join(missing)} "
            f"and has {preview(map(str, table.columns), 8) or 'none'}"
        )
    if not len(table):
        raise InputError(f"the table that {producer} gives was wanted; this one has no rows")
    return table
