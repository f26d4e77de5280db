"""Tables as users have them become numbers, or the error says what to do."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from wisecrowd.encoders.stored_encoder import restore_encoder
from wisecrowd.encoders.table_encoder import MAX_CATEGORIES, TableEncoder
from wisecrowd.errors import InputError

TABLE = pd.DataFrame(
    {
        "size": [1.0, np.nan, 4.0],
        "number": ["1", "2.5", None],
        "colour": ["red", None, "blue"],
        "day": ["2026-11-18", "1970-01-02T06:00", "2026-01-01"],
        "is_new": [True, False, True],
    }
)


def test_every_kind_of_column() -> None:
    encoder = TableEncoder().fit(TABLE)
    rows = pd.DataFrame(encoder.transform(TABLE), columns=encoder.feature_names)
    assert rows["size"].tolist() == [1, 2.5, 4]
    assert rows["size is missing"].tolist() == [0, 1, 0]
    assert rows["number"].tolist() == [1, 2.5, 1.75]
    assert rows[["colour=blue", "colour=red", "colour is missing"]].to_numpy().tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [1, 0, 0],
    ]
    assert rows.filter(like="day, ").iloc[1].tolist() == [1.25, 1, 4, 6]  # 2 January 1970 was a Friday
    assert rows["is_new"].tolist() == [1, 0, 1]
    assert "day is missing" not in rows


def test_new_rows_are_encoded_as_training_rows() -> None:
    encoder = TableEncoder().fit(TABLE)
    new = TABLE.iloc[[0]].assign(colour="green", size=None, day=None)
    rows = dict(zip(encoder.feature_names, encoder.transform(new)[0], strict=True))
    assert rows["colour=blue"] == rows["colour=red"] == rows["colour is missing"] == 0
    assert (rows["size"], rows["size is missing"]) == (2.5, 1)
    assert rows["day, days"] == pytest.approx(20454)  # the median of the training rows


@pytest.mark.parametrize(
    "dates",
    [
        pd.to_datetime(pd.Series(["2026-11-18 12:00", "2026-11-19"]), format="ISO8601"),
        pd.to_datetime(pd.Series(["2026-11-18 12:00", "2026-11-19"]), format="ISO8601", utc=True),
        pd.Series([datetime.datetime(2026, 11, 18, 12), datetime.datetime(2026, 11, 19)], dtype=object),
    ],
    ids=["dates", "time zone", "objects"],
)
def test_dates_of_any_type(dates: pd.Series) -> None:
    rows = TableEncoder().fit(dates.to_frame("day")).transform(dates.to_frame("day"))
    assert rows[:, 1:].tolist() == [[11, 2, 12], [11, 3, 0]]


def test_rare_categories_share_a_feature() -> None:
    names = [f"c{number:02}" for number in range(MAX_CATEGORIES + 10)]
    column = pd.DataFrame({"code": [*names, *names[:MAX_CATEGORIES], *names[:MAX_CATEGORIES]]})
    encoder = TableEncoder().fit(column)
    assert len(encoder.feature_names) == MAX_CATEGORIES + 1
    assert encoder.transform(column.iloc[[MAX_CATEGORIES + 3]])[0].tolist() == [0] * MAX_CATEGORIES + [1]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([f"text {number}" for number in range(80)], "'column' has 80 different strings in 80 rows.*a text or an id"),
        (["1", "2", "2", "big"], "'column' has numbers, and 'big'; correct these values"),
        ([[1, 2]] * 3, "'column' has values of the type list"),
        (pd.to_timedelta([1, 2], unit="D"), "values of the type Timedelta"),
    ],
    ids=["texts", "misspelt number", "lists", "durations"],
)
def test_what_is_no_feature_is_refused(column: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableEncoder().fit(pd.DataFrame({"column": column}))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"size": "big"}, "'size' holds numbers in training"), ({"day": "soon"}, "'day' holds dates in training")],
)
def test_values_of_another_kind_are_refused_in_prediction(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableEncoder().fit(TABLE).transform(TABLE.assign(**change))


def test_arrays_are_refused_in_prediction() -> None:
    with pytest.raises(InputError, match="must be a table with the columns of training, 'size', 'number'"):
        TableEncoder().fit(TABLE).transform(np.zeros((2, 5)))


def test_it_is_restored() -> None:
    encoder = TableEncoder().fit(TABLE)
    assert restore_encoder(encoder.arrays()) == encoder


@pytest.mark.parametrize(
    "change",
    [
        {"kinds": np.array(["number"])},
        {"kinds": np.full(5, "code")},
        {"n_categories": np.full(5, 1)},
        {"fills": np.full(5, np.nan)},
    ],
)
def test_contradictory_arrays_are_refused(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="column"):
        TableEncoder.restore(TableEncoder().fit(TABLE).arrays() | change)


def test_only_tables_with_other_things_than_numbers_need_it() -> None:
    assert not TableEncoder.is_needed(pd.DataFrame({"a": [1.0, np.inf], "b": [1, 2], "c": [True, False]}))
    assert TableEncoder.is_needed(pd.DataFrame({"a": [1.0, np.nan]}))
    assert TableEncoder.is_needed(pd.DataFrame({"a": ["1"]}))
