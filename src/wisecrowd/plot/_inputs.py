"""Validation of the arguments of plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import Method
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, UsageError, preview

#: Largest number of series that can be distinguished on a plot.
MAX_SERIES = 20


def name_series(value: Any, fallback: str) -> dict[str, Any]:
    """Return the values of a plot by name.

    Parameters
    ----------
    value : object or mapping
        One value, or several by name.
    fallback : str
        Name of a single value that is not a method.

    Returns
    -------
    dict of str to object
    """
    if isinstance(value, Mapping):
        if not value:
            raise UsageError("the dict of series is empty; pass at least one")
        if len(value) > MAX_SERIES:
            raise UsageError(f"a plot can show at most {MAX_SERIES} series; got {len(value):,}")
        return {str(name): thing for name, thing in value.items()}
    return {value.name if isinstance(value, Method) else fallback: value}


def as_numeric_series(values: Any, source: str) -> pd.Series:
    """Return numbers by worker or task as a Series.

    Parameters
    ----------
    values : Series or mapping
        Numbers by id.
    source : str
        Name of the argument, for error messages.

    Returns
    -------
    Series
    """
    series = pd.Series(dict(values), dtype=np.float64) if isinstance(values, Mapping) else values
    if not isinstance(series, pd.Series):
        raise UsageError(f"{source} must be a Series or a dict by worker or task; got {type(values).__name__}")
    if not series.index.is_unique:
        raise InputError(
            f"{source} has duplicate ids: {preview(series.index[series.index.duplicated()])}; keep one row per id"
        )
    try:
        return series.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source} must be numbers; got {preview(series)}") from error


def match_ids(table: pd.DataFrame, index: pd.Index, sources: str) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Return the rows of a table whose ids are in an index, and their positions in it.

    Parameters
    ----------
    table : DataFrame
        Table by id.
    index : Index
        Ids to match.
    sources : str
        Names of both sides, for error messages.

    Returns
    -------
    table : DataFrame
        Matching rows.
    position : ndarray of shape (n_matched,)
        Position of each row in ``index``.
    """
    position = np.asarray(index.get_indexer(match_id_type(table.index, index)))
    if not (position >= 0).any():
        raise InputError(
            f"{sources} have no id in common: {preview(table.index) or 'none'} and {preview(index) or 'none'}; "
            "use the same ids in both"
        )
    return table[position >= 0], position[position >= 0]


def require_columns(table: Any, columns: tuple[str, ...], producer: str) -> pd.DataFrame:
    """Return a table, or raise an error if columns are missing.

    Parameters
    ----------
    table : DataFrame
        Table to check.
    columns : tuple of str
        Columns that must exist.
    producer : str
        Source of such a table, for error messages.

    Returns
    -------
    DataFrame
    """
    if not isinstance(table, pd.DataFrame):
        raise UsageError(f"expected a table from {producer}; got {type(table).__name__}")
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InputError(
            f"expected a table from {producer} with columns {', '.join(columns)}; missing {', '.join(missing)}, "
            f"got {preview(map(str, table.columns), 8) or 'none'}"
        )
    if not len(table):
        raise InputError(f"expected a table from {producer}; got one without rows")
    return table
