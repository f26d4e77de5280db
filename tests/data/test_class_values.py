"""Numbers of ordered classes."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd.data.class_values import class_values


@pytest.mark.parametrize(
    ("classes", "values"),
    [([1, 2, 5], [1, 2, 5]), (["-1", "0", "2.5"], [-1, 0, 2.5]), (["low", "high"], [0, 1]), ([5, 3, 1], [0, 1, 2])],
)
def test_numbers_in_order_are_values(classes: list[object], values: list[float]) -> None:
    assert class_values(pd.Index(classes)).tolist() == values
