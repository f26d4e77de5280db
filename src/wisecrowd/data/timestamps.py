"""When votes were cast: seconds since 1970, however a column tells it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import DataWarning, InputError, preview

#: Numbers from here on are milliseconds, microseconds and nanoseconds since 1970: in seconds they would be thousands of years.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
#: In seconds, spring 1973: smaller numbers count something, such as how long an answer took.
MIN_TIMESTAMP_SECONDS = 1e8


def as_times(values: ArrayLike | None) -> NDArray[np.float64] | None:
    """Seconds since 1970, to the microsecond; None when no vote has a time, so that equal crowds look alike."""
    if values is None:
        return None
    seconds = np.round(np.array(values, dtype=np.float64) * 1e6) / 1e6
    if np.isinf(seconds).any():
        raise InputError("times must be finite; leave out (NaN) those that are not known")
    return None if np.isnan(seconds).all() else seconds


def parse_times(
    column: pa.ChunkedArray, where: Callable[[Sequence[int]], str] = lambda rows: f"row {rows[0]}"
) -> NDArray[np.float64]:
    """Times in a column of dates, text or numbers, as seconds since 1970 in UTC; NaN where there is none.

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
        return _seconds(column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False))
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return _scaled(column.cast(pa.float64()))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InputError(f"times were wanted in the time column; got {column.type} values")
    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.equal(text, ""), None, text)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return _seconds(text.cast(kind))
        except pa.ArrowInvalid:
            continue
    try:
        return _scaled(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return _dates(text, where)


def holds_durations(column: pa.ChunkedArray, seconds: NDArray[np.float64]) -> bool:
    """Whether a column rather holds counts or durations: numbers that are too small for times.

    >>> taken = pa.chunked_array([["12.5", "8"]])
    >>> holds_durations(taken, parse_times(taken))
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
    """The other way round: an Arrow array of timestamps in UTC.

    >>> str(to_timestamps(np.array([0.5]))[0].as_py())
    '1970-01-01 00:00:00.500000+00:00'
    """
    known = ~np.isnan(seconds)
    micro = np.round(np.where(known, seconds, 0.0) * 1e6).astype(np.int64)
    return pa.array(micro, mask=~known).cast(pa.timestamp("us", "UTC"))


def _seconds(stamps: pa.ChunkedArray) -> NDArray[np.float64]:
    micro = stamps.cast(pa.int64())
    return np.where(pc.is_null(micro).to_numpy(), np.nan, pc.fill_null(micro, 0).to_numpy() / 1e6)


def _scaled(numbers: pa.ChunkedArray) -> NDArray[np.float64]:
    values = np.array(numbers.to_numpy(), dtype=np.float64)
    largest = np.nanmax(np.abs(values), initial=0.0)
    return values / next((unit for least, unit in _UNITS if largest >= least), 1.0)


def _dates(text: pa.ChunkedArray, where: Callable[[Sequence[int]], str]) -> NDArray[np.float64]:
    """Dates as people write them, all in one way: with the month first where that suits all of them, or else the day."""
    from pandas.tseries.api import guess_datetime_format

    series = text.to_pandas()
    first = series.dropna().iloc[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the day comes first
        ways = dict.fromkeys(guess_datetime_format(first, dayfirst=dayfirst) for dayfirst in (False, True))
    tried = [pd.to_datetime(series, utc=True, errors="coerce", format=way) for way in ways if way is not None]
    tried = tried or [pd.Series(pd.NaT, index=series.index)]
    bad = [np.flatnonzero(stamps.isna() & series.notna()) for stamps in tried]
    whole = [stamps for stamps, rows in zip(tried, bad, strict=True) if not rows.size]
    if not whole:
        row = int(min(bad, key=len)[0])
        raise InputError(
            f"times were wanted in the time column; got {preview([series.iloc[row]])} ({where([row])}). Write all of them "
            "in one way, for example 2024-05-31 14:00:00, or as seconds since 1970"
        )
    stamps = whole[0]
    if len(whole) > 1 and not whole[0].equals(whole[1]):
        warnings.warn(
            f"dates such as {preview([first])} may begin with the month or the day, and were read with the month first; "
            "write them as 2024-05-31 if that is wrong",
            DataWarning,
            stacklevel=2,
        )
    return np.where(stamps.isna(), np.nan, stamps.to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6)
