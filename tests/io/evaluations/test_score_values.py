from __future__ import annotations

import math

import pytest

from wisecrowd.io.evaluations.score_values import to_number


@pytest.mark.parametrize(
    ("value", "number"), [("I", 0.0), ("N", 0.0), (" Yes ", 1.0), (False, 0.0), (3, 3.0), ("7.5", 7.5), ("fail", 0.0)]
)
def test_values(value: object, number: float) -> None:
    assert to_number(value) == number


@pytest.mark.parametrize("value", ["maybe", None, [1], math.inf, "nan", ""])
def test_other_values_are_no_numbers(value: object) -> None:
    assert math.isnan(to_number(value))
