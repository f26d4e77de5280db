"""Labels that are numbers: read as such, or taken for names by mistake."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import InputError, some

#: More different whole numbers than this are hardly classes.
MANY_CLASSES = 30


def numbers(
    column: pa.ChunkedArray, what: str, where: Callable[[Sequence[int]], str] = lambda rows: f"row {rows[0]}"
) -> pa.ChunkedArray:
    """A column of numbers, parsed if it is text; ``where`` tells how to call the place of a row.

    >>> numbers(pa.chunked_array([["1.5", "2"]]), "label").to_pylist()
    [1.5, 2.0]
    >>> numbers(pa.chunked_array([["1.5", "much"]]), "label")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: numbers were wanted in the label column; got 'much' (row 1)
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return column.cast(pa.float64())
    except pa.ArrowNotImplementedError:
        raise InputError(f"numbers were wanted in the {what} column; got {column.type} values") from None
    except pa.ArrowInvalid as error:
        bad = next((value for value in column.unique() if value.is_valid and not _is_number(value)), None)
        if bad is None:
            raise InputError(f"numbers were wanted in the {what} column: {str(error)[:200]}") from None
        row = pc.index(column, bad).as_py()
    raise InputError(f"numbers were wanted in the {what} column; got {some([bad.as_py()])} ({where([row])})")


def suspect_numbers(classes: pd.Index) -> pd.Index:
    """Those classes that rather measure something: fractions, or whole numbers when there are many; nothing if not.

    >>> suspect_numbers(pd.Index(["1", "2", "2.5"])).tolist()
    ['2.5']
    >>> suspect_numbers(pd.Index([1, 2, 3])).tolist()
    []
    """
    values = pd.to_numeric(pd.Series(classes.astype(str)), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        return classes[:0]
    fractions = classes[values != np.round(values)]
    return classes if len(fractions) == 0 and len(classes) > MANY_CLASSES else fractions


def _is_number(value: pa.Scalar) -> bool:
    try:
        value.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
