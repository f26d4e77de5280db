"""Ids that differ by case, space, Unicode form or invisible characters only."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd.io.tables.similar_ids import find_lookalike_ids, find_similar_ids


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


@pytest.mark.parametrize(
    "forms",
    [
        ["caf\u00e9", "cafe\u0301"],  # composed and decomposed
        ["\u212b", "\u00c5", "A\u030a"],  # ångström sign, letter, letter and ring
        ["\ufb01sh", "fish"],  # a ligature
        ["\uff23at", "cat"],  # full width
        ["\uc548", "\u110b\u1161\u11ab"],  # Hangul
        ["new\u00a0york", "new york"],  # a no-break space
        ["new\u202fyork", "New York"],
        ["cat\u200b", "cat"],  # a zero-width space
        ["c\u2060at", "cat", "\ufeffcat"],  # word joiner, byte-order mark
        ["co\u00adop", "coop"],  # a soft hyphen
        ["\u2764\ufe0f", "\u2764"],  # an emoji with and without its selector
        ["STRASSE\u200d", "strasse"],
    ],
)
def test_lookalikes_are_listed(forms: list[str]) -> None:
    ids = pd.Index(["other", *forms, "caf", "\u732b", "\u72ac", "e", "7"])
    assert sorted(find_lookalike_ids(ids)) == sorted(forms)
    assert find_lookalike_ids(ids[::-1]) != []


@pytest.mark.parametrize(
    "ids",
    [
        ["Cat", "cat "],  # reported as a difference by case or space
        ["\u00c9T\u00c9", "\u00e9t\u00e9"],
        ["caf\u00e9", "cafe"],
        ["\u0430", "a"],  # letters of two alphabets
        ["\u732b", "\u72ac"],
        ["", "\u200bx"],
        [],
        [1, 2],
    ],
)
def test_other_ids_are_no_lookalikes(ids: list[object]) -> None:
    assert find_lookalike_ids(pd.Index(ids)) == []


def test_lookalikes_stand_together() -> None:
    listed = find_lookalike_ids(pd.Index(["b", "a\u200b", "b\u200b", "a"]))
    assert [text.strip("\u200b") for text in listed] in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
