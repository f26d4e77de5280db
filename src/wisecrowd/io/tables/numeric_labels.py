"""Labels that are numbers: parsing, and detection of numbers that are used as classes by mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import InputError, preview

#: More distinct whole numbers than this are unlikely to be classes.
MAX_INTEGER_CLASSES = 30
#: Numbers with thousands separators, as in English, in German, and with spaces or apostrophes.
_GROUPED = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+(?:\.\d*)?|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,}|(?:[ '\u2019\u00a0\u202f]\d{3})+(?:[.,]\d*)?)"
)
#: Numbers with a decimal comma.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


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
    value = invalid.as_py()
    raise InputError(
        f"the {noun} column must hold numbers; got {preview([value])} ({describe_rows([row])}){_advise_separators(str(value))}"
    )


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


def find_grouped_numbers(classes: pd.Index) -> pd.Index:
    """Return the classes that are numbers with thousands separators, such as ``1,000.00``.

    Parameters
    ----------
    classes : Index
        Names of classes.

    Returns
    -------
    Index
        Such classes, empty if some class is not a number.

    Examples
    --------
    >>> find_grouped_numbers(pd.Index(["1,000.00", "20.50"])).tolist()
    ['1,000.00']
    >>> find_grouped_numbers(pd.Index(["1,000", "many"])).tolist()
    []
    """
    if classes.inferred_type != "string":
        return classes[:0]
    is_grouped = np.fromiter(
        (bool(_GROUPED.fullmatch(text.strip())) for text in classes), dtype=bool, count=len(classes)
    )
    rest = pd.to_numeric(pd.Series(classes[~is_grouped]), errors="coerce").to_numpy(dtype=np.float64)
    return classes[is_grouped] if np.isfinite(rest).all() else classes[:0]


def remove_separators(text: str) -> str:
    """Return a number without thousands separators, with a decimal point. Other texts are returned unchanged.

    Parameters
    ----------
    text : str
        Text.

    Returns
    -------
    str

    Examples
    --------
    >>> [remove_separators(text) for text in ("1,000.00", "1.000,50", "1 000", "7")]
    ['1000.00', '1000.50', '1000', '7']
    """
    stripped = text.strip()
    if not _GROUPED.fullmatch(stripped):
        return text
    decimal = re.search(r"[.,](\d*)$", stripped) if len(re.findall(r"[^\d+-]", stripped)) > 1 else None
    marks = set(re.findall(r"[^\d+-]", stripped))
    if decimal is None or len(marks) == 1:
        return re.sub(r"[^\d+-]", "", stripped)
    return re.sub(r"[^\d+-]", "", stripped[: decimal.start()]) + "." + decimal.group(1)


def _advise_separators(text: str) -> str:
    """Return the end of an error about a number in another notation; empty for anything else."""
    stripped = text.strip()
    if _DECIMAL_COMMA.fullmatch(stripped):
        decimal = stripped.replace(",", ".")
        if not _GROUPED.fullmatch(stripped):
            return f"; its comma is a decimal comma: write {decimal}"
        return (
            f"; its comma may be a thousands separator or a decimal comma: write {remove_separators(stripped)} or {decimal}, "
            "in all rows"
        )
    if _GROUPED.fullmatch(stripped):
        return (
            f"; it has thousands separators: write {remove_separators(stripped)}. In a spreadsheet, choose a number format without "
            "separators and save the file again"
        )
    return ""


def _is_number(value: pa.Scalar) -> bool:
    try:
        value.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
