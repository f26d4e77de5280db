"""Ids that differ by case or space only."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd.io.validation.similar_ids import find_similar_ids


@pytest.mark.parametrize(
    ("ids", "similar"),
    [
        (["Cat", "dog", "cat "], ["Cat", "cat "]),
        (["new york", "newyork", "New York", "boston"], ["new york", "newyork", "New York"]),
        (["ÉTÉ", "été", "ete"], ["ÉTÉ", "été"]),
        (["a", "b"], []),
        ([], []),
        ([1, 2], []),
    ],
)
def test_similar_ids_are_listed(ids: list[object], similar: list[str]) -> None:
    assert sorted(find_similar_ids(pd.Index(ids))) == sorted(similar)


def test_similar_ids_stand_together() -> None:
    listed = find_similar_ids(pd.Index(["b", "A", "B", "a"]))
    assert {listed[0].lower(), listed[1].lower()} in ({"a"}, {"b"})
    assert len(listed) == 4
