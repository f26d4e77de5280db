"""Times of votes."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from wisecrowd.data.timestamps import as_times, holds_durations, parse_times, to_timestamps
from wisecrowd.errors import DataWarning, InputError

SECONDS = 1_717_164_000.0  # 2024-05-31 14:00 UTC


@pytest.mark.parametrize(
    "values",
    [
        [SECONDS],
        [int(SECONDS) * 1_000],
        [int(SECONDS) * 1_000_000],
        [int(SECONDS) * 1_000_000_000],
        ["2024-05-31 14:00"],
        ["2024-05-31T14:00:00Z"],
        ["2024-05-31T16:00:00+02:00"],
        [" 1717164000 "],
        ["05/31/2024 14:00"],
        ["31/05/2024 14:00"],
        [datetime.datetime(2024, 5, 31, 14)],
    ],
)
def test_the_same_time_in_many_forms(values: list[object]) -> None:
    assert parse_times(pa.chunked_array([[*values, None]])).tolist() == pytest.approx([SECONDS, np.nan], nan_ok=True)


def test_ambiguous_dates_are_read_with_the_month_first() -> None:
    with pytest.warns(DataWarning, match="'03/04/2024' are ambiguous and were read with the month first"):
        seconds = parse_times(pa.chunked_array([["03/04/2024"]]))
    assert str(to_timestamps(seconds)[0].as_py().date()) == "2024-03-04"


def test_invalid_times_are_located() -> None:
    column = pa.chunked_array([["2024-05-31", "soon"]])
    with pytest.raises(InputError, match=r"expected times in the time column; got 'soon' \(row 1\)"):
        parse_times(column)
    with pytest.raises(InputError, match=r"got 'soon' \(line 3\)"):
        parse_times(column, lambda rows: f"line {rows[0] + 2}")
    with pytest.raises(InputError, match=r"got list<.*> values"):
        parse_times(pa.chunked_array([[[1]]]))


def test_times_are_rounded_and_finite() -> None:
    assert as_times([0.123_456_7, np.nan]).tolist() == pytest.approx([0.123457, np.nan], nan_ok=True)  # type: ignore[union-attr]
    assert as_times([np.nan]) is None
    assert as_times(None) is None
    with pytest.raises(InputError, match="times must be finite"):
        as_times([np.inf])


def test_times_are_no_durations() -> None:
    for values in ([SECONDS], ["2024-05-31"], ["1950-01-01"]):
        column = pa.chunked_array([values])
        assert not holds_durations(column, parse_times(column))
