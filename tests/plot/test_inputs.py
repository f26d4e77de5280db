"""Arguments of plots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import DawidSkene
from wisecrowd.errors import InputError, UsageError
from wisecrowd.plot._inputs import MAX_SERIES, as_numeric_series, match_ids, name_series, require_columns


class TestNames:
    def test_one_value_or_several_by_name(self) -> None:
        assert name_series([1, 2], "votes") == {"votes": [1, 2]}
        method = DawidSkene()
        assert name_series(method, "votes") == {"dawid-skene": method}
        assert name_series({1: "a", "b": "c"}, "votes") == {"1": "a", "b": "c"}

    def test_too_few_and_too_many(self) -> None:
        with pytest.raises(UsageError, match="the dict of series is empty"):
            name_series({}, "votes")
        with pytest.raises(UsageError, match=f"at most {MAX_SERIES} series; got {MAX_SERIES + 1}"):
            name_series(dict.fromkeys(range(MAX_SERIES + 1)), "votes")


class TestNumbers:
    def test_by_id(self) -> None:
        assert as_numeric_series({"ann": 1, "bob": "2.5"}, "accuracy").to_dict() == {"ann": 1.0, "bob": 2.5}
        assert as_numeric_series(pd.Series({"ann": 1}), "accuracy").dtype == np.float64

    @pytest.mark.parametrize(
        ("values", "error", "message"),
        [
            ([1, 2], UsageError, "accuracy must be a Series or a dict by worker or task; got list"),
            (pd.Series([1, 2], index=["ann", "ann"]), InputError, "accuracy has duplicate ids: 'ann'"),
            (pd.Series({"ann": "good"}), InputError, "accuracy must be numbers; got 'good'"),
        ],
    )
    def test_other_values_are_refused(self, values: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            as_numeric_series(values, "accuracy")


class TestIds:
    def test_rows_and_their_places(self) -> None:
        table = pd.DataFrame({"x": [1, 2, 3]}, index=["3", "9", "1"])
        rows, position = match_ids(table, pd.Index([1, 2, 3]), "table and crowd")
        assert rows["x"].tolist() == [1, 3]
        assert position.tolist() == [2, 0]

    def test_nothing_in_common(self) -> None:
        with pytest.raises(InputError, match="table and crowd have no id in common: 'a' and none"):
            match_ids(pd.DataFrame({"x": [1]}, index=["a"]), pd.Index([], dtype=object), "table and crowd")


class TestColumns:
    def test_a_whole_table(self) -> None:
        table = pd.DataFrame({"x": [1], "y": [2]})
        assert require_columns(table, ("x",), "f()") is table

    @pytest.mark.parametrize(
        ("table", "error", "message"),
        [
            ([1], UsageError, r"expected a table from f\(\); got list"),
            (pd.DataFrame({"z": [1]}), InputError, "missing x, y, got 'z'"),
            (pd.DataFrame({"x": [], "y": []}), InputError, "got one without rows"),
        ],
    )
    def test_other_tables_are_refused(self, table: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            require_columns(table, ("x", "y"), "f()")
