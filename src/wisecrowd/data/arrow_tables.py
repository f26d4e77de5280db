"""Tables of any library as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.vocabulary import check_encodable, check_no_missing
from wisecrowd.errors import InputError


class ArrowTable(Protocol):
    """Table that exports itself as an Arrow stream: polars, pyarrow, duckdb."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream."""


#: Table of any supported library, or columns by name.
DataFrameLike: TypeAlias = pd.DataFrame | ArrowTable | Mapping[str, Sequence[Any]]


def as_table(frame: DataFrameLike, columns: Sequence[str] | None = None) -> pa.Table:
    """Convert any table to an Arrow table.

    Parameters
    ----------
    frame : DataFrame, Arrow table or dict of columns
        Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
    columns : sequence of str, default=None
        Columns of a pandas frame to convert; all of them by default. Names that the frame lacks are ignored.

    Returns
    -------
    pyarrow.Table
        The same rows.

    Raises
    ------
    InputError
        If ``frame`` is no table, or a column mixes types.

    Examples
    --------
    >>> as_table({"task": [1], "worker": ["a"]}).column_names
    ['task', 'worker']
    """
    if isinstance(frame, pa.Table):
        return frame
    try:
        if isinstance(frame, pd.DataFrame):
            selection = frame[[name for name in columns if name in frame.columns]] if columns is not None else frame
            with check_encodable():
                return pa.Table.from_pandas(selection, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, dict):
            with check_encodable():
                return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"a column mixes types: {error}. Convert it to one type, for example with df.astype(str)"
        ) from None
    raise InputError(
        f"expected a dataframe (pandas, polars, pyarrow, duckdb) or a dict of columns; got {type(frame).__name__}"
    )


def read_numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Convert a column to floating-point numbers.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Numbers, or text that spells numbers.

    Returns
    -------
    ndarray of shape (n_rows,)
        The numbers; NaN where the column has none.

    Raises
    ------
    InputError
        If a value is no number.

    Examples
    --------
    >>> read_numbers(pa.chunked_array([["1", "2.5"]])).tolist()
    [1.0, 2.5]
    """
    try:
        numbers = column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"expected numbers: {str(error)[:200]}") from None
    return np.asarray(numbers, dtype=np.float64)


def read_flags(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Convert the ``observed`` column to booleans.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Booleans, 0 and 1, or "true" and "false".

    Returns
    -------
    ndarray of shape (n_rows,)
        The booleans.

    Raises
    ------
    InputError
        If a value is missing or no boolean.

    Examples
    --------
    >>> read_flags(pa.chunked_array([["true", "false"]])).tolist()
    [True, False]
    """
    check_no_missing(column, "observed mark")
    try:
        return np.asarray(column.cast(pa.bool_()).to_numpy(), dtype=bool)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"expected true or false in the observed column: {error}") from None
