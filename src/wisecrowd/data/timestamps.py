"""Times of votes in seconds since 1970."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import DataWarning, InputError, preview

#: Smallest number of each unit (nano-, micro- and milliseconds since 1970) and the number of units in a second. In
#: seconds, such numbers would be thousands of years.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
#: Spring 1973 in seconds: smaller numbers are durations or counts rather than times.
MIN_TIMESTAMP_SECONDS = 1e8


def as_times(values: ArrayLike | None) -> NDArray[np.float64] | None:
    """Validate times and round them to microseconds.

    Parameters
    ----------
    values : array-like of float or None
        Seconds since 1970 (UTC); NaN where unknown.

    Returns
    -------
    ndarray of float64 or None
        None when no vote has a time, so that equal crowds have equal contents.

    Raises
    ------
    InputError
        If a time is infinite.

    Examples
    --------
    >>> as_times([0.5, float("nan")]).tolist()
    [0.5, nan]
    """
    if values is None:
        return None
    seconds = np.round(np.array(values, dtype=np.float64) * 1e6) / 1e6
    if np.isinf(seconds).any():
        raise InputError("times must be finite; use NaN where the time is unknown")
    return None if np.isnan(seconds).all() else seconds


def parse_times(
    column: pa.ChunkedArray, locate: Callable[[Sequence[int]], str] = lambda rows: f"row {rows[0]}"
) -> NDArray[np.float64]:
    """Parse a column of dates, text or numbers as times.

    Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, depending on their size.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Times.
    locate : callable, optional
        Describes the location of rows for messages.

    Returns
    -------
    ndarray of float64
        Seconds since 1970 (UTC); NaN where the column is empty.

    Raises
    ------
    InputError
        If a value is no time.

    Examples
    --------
    >>> parse_times(pa.chunked_array([["2024-05-31 14:00", None]])).tolist()
    [1717164000.0, nan]
    >>> parse_times(pa.chunked_array([[1717164000123]])).tolist()
    [1717164000.123]
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if (
        pa.types.is_temporal(column.type)
        and not pa.types.is_time(column.type)
        and not pa.types.is_duration(column.type)
    ):
        return _to_seconds(column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False))
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return _scale_numbers(column.cast(pa.float64(), safe=False))  # nanoseconds exceed the exact range of floats
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InputError(f"expected times in the time column; got {column.type} values")
    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.equal(text, ""), None, text)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return _to_seconds(text.cast(kind))
        except pa.ArrowInvalid:
            continue
    try:
        return _scale_numbers(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return _parse_dates(text, locate)


def holds_durations(column: pa.ChunkedArray, seconds: NDArray[np.float64]) -> bool:
    """Return whether a column holds durations or counts: numbers that are too small for times.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The column.
    seconds : ndarray of float64
        The same column as `parse_times` reads it.

    Returns
    -------
    bool
        True if the values are numbers below ``MIN_TIMESTAMP_SECONDS``.

    Examples
    --------
    >>> column = pa.chunked_array([["12.5", "8"]])
    >>> holds_durations(column, parse_times(column))
    True
    """
    if np.nanmin(seconds, initial=np.inf) >= MIN_TIMESTAMP_SECONDS or pa.types.is_temporal(column.type):
        return False
    try:
        column.cast(pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False  # dates in words
    return True


def to_timestamps(seconds: NDArray[np.float64]) -> pa.Array:
    """Convert seconds since 1970 to Arrow timestamps.

    Parameters
    ----------
    seconds : ndarray of float64
        Seconds since 1970 (UTC); NaN where unknown.

    Returns
    -------
    pyarrow.Array
        Timestamps in UTC; null where unknown.

    Examples
    --------
    >>> str(to_timestamps(np.array([0.5]))[0].as_py())
    '1970-01-01 00:00:00.500000+00:00'
    """
    is_unknown = np.isnan(seconds)
    microseconds = np.round(np.where(is_unknown, 0.0, seconds) * 1e6).astype(np.int64)
    return pa.array(microseconds, mask=is_unknown).cast(pa.timestamp("us", "UTC"))


def _to_seconds(timestamps: pa.ChunkedArray) -> NDArray[np.float64]:
    microseconds = timestamps.cast(pa.int64())
    return np.where(pc.is_null(microseconds).to_numpy(), np.nan, pc.fill_null(microseconds, 0).to_numpy() / 1e6)


def _scale_numbers(numbers: pa.ChunkedArray) -> NDArray[np.float64]:
    """Convert numbers of the unit that their size suggests to seconds."""
    values = np.array(numbers.to_numpy(), dtype=np.float64)
    largest = np.nanmax(np.abs(values), initial=0.0)
    return values / next((unit for smallest, unit in _UNITS if largest >= smallest), 1.0)


def _parse_dates(text: pa.ChunkedArray, locate: Callable[[Sequence[int]], str]) -> NDArray[np.float64]:
    """Parse dates of one format: with the month first if that fits all of them, otherwise with the day first."""
    from pandas.tseries.api import guess_datetime_format

    series = text.to_pandas()
    example = series.dropna().iloc[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas warns when only the day can come first
        formats = dict.fromkeys(guess_datetime_format(example, dayfirst=dayfirst) for dayfirst in (False, True))
    parses = [pd.to_datetime(series, utc=True, errors="coerce", format=form) for form in formats if form is not None]
    parses = parses or [pd.Series(pd.NaT, index=series.index)]
    failures = [np.flatnonzero(timestamps.isna() & series.notna()) for timestamps in parses]
    complete = [timestamps for timestamps, rows in zip(parses, failures, strict=True) if not rows.size]
    if not complete:
        row = int(min(failures, key=len)[0])
        raise InputError(
            f"expected times in the time column; got {preview([series.iloc[row]])} ({locate([row])}). Write all times "
            "in one format, for example 2024-05-31 14:00:00, or as seconds since 1970"
        )
    timestamps = complete[0]
    if len(complete) > 1 and not complete[0].equals(complete[1]):
        warnings.warn(
            f"dates such as {preview([example])} are ambiguous and were read with the month first; "
            "write them as 2024-05-31 if that is wrong",
            DataWarning,
            stacklevel=2,
        )
    return np.where(timestamps.isna(), np.nan, timestamps.to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6)
