"""Tables of other libraries as Arrow tables."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd.data.arrow_tables import as_table, read_flags, read_numbers
from wisecrowd.errors import InputError


def test_only_the_named_columns_of_a_frame_are_converted() -> None:
    frame = pd.DataFrame({"task": [1], "note": [object()]})
    assert as_table(frame, ["task", "absent"]).column_names == ["task"]
    with pytest.raises(InputError, match="a column mixes types"):
        as_table(frame)


def test_what_is_no_table() -> None:
    with pytest.raises(InputError, match=r"expected a dataframe .*; got list"):
        as_table([1, 2])


def test_invalid_numbers_and_flags() -> None:
    with pytest.raises(InputError, match=r"expected numbers: .*much"):
        read_numbers(pa.chunked_array([["1", "much"]]))
    with pytest.raises(InputError, match="expected true or false in the observed column"):
        read_flags(pa.chunked_array([["perhaps"]]))
    with pytest.raises(InputError, match="1 of 2 rows has no observed mark"):
        read_flags(pa.chunked_array([[True, None]]))
