"""Labels that are numbers: parsing, and detection of numbers that are used as classes by mistake."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import InputError, preview

#: More distinct whole numbers than this are unlikely to be classes.
MAX_INTEGER_CLASSES = 30


def parse_numbers(
    column: pa.ChunkedArray, noun: str, describe_rows: Callable[[Sequence[int]], str] = lambda rows: f"row {rows[0]}"
) -> pa.ChunkedArray:
    """Parse a column of numbers.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Numbers, or text that holds numbers.
    noun : str
        Role of the column, for messages.
    describe_rows : callable, optional
        Function that describes the position of rows in a message.

    Returns
    -------
    pyarrow.ChunkedArray
        Column of floats.

    Raises
    ------
    InputError
        If a value is not a number.

    Examples
    --------
    >>> parse_numbers(pa.chunked_array([["1.5", "2"]]), "label").to_pylist()
    [1.5, 2.0]
    >>> parse_numbers(pa.chunked_array([["1.5", "much"]]), "label")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the label column must hold numbers; got 'much' (row 1)
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return column.cast(pa.float64())
    except pa.ArrowNotImplementedError:
        raise InputError(f"the {noun} column must hold numbers; got {column.type} values") from None
    except pa.ArrowInvalid as error:
        invalid = next((value for value in column.unique() if value.is_valid and not _is_number(value)), None)
        if invalid is None:
            raise InputError(f"the {noun} column must hold numbers: {str(error)[:200]}") from None
        row = pc.index(column, invalid).as_py()
    raise InputError(f"the {noun} column must hold numbers; got {preview([invalid.as_py()])} ({describe_rows([row])})")


def find_suspect_numbers(classes: pd.Index) -> pd.Index:
    """Return the classes that look like measurements: fractions, or whole numbers if there are many.

    Parameters
    ----------
    classes : Index
        Names of classes.

    Returns
    -------
    Index
        Suspect classes, empty if some class is not a number.

    Examples
    --------
    >>> find_suspect_numbers(pd.Index(["1", "2", "2.5"])).tolist()
    ['2.5']
    >>> find_suspect_numbers(pd.Index([1, 2, 3])).tolist()
    []
    """
    values = pd.to_numeric(pd.Series(classes.astype(str)), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        return classes[:0]
    fractions = classes[values != np.round(values)]
    return classes if len(fractions) == 0 and len(classes) > MAX_INTEGER_CLASSES else fractions


def _is_number(value: pa.Scalar) -> bool:
    try:
        value.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
