"""Sets of options as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.io.tools.label_sets import EMPTY_SET, format_label_set, parse_label_set

#: Options full of the characters that have a meaning.
OPTIONS = st.lists(st.text(alphabet=f"a|\\{EMPTY_SET} ", min_size=1), max_size=4).map(tuple)


@given(options=OPTIONS)
def test_every_set_comes_back(options: tuple[str, ...]) -> None:
    assert parse_label_set(format_label_set(options)) == options


@given(first=OPTIONS, second=OPTIONS)
def test_different_sets_have_different_texts(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    assert (format_label_set(first) == format_label_set(second)) == (first == second)


@pytest.mark.parametrize(
    ("options", "text"),
    [((), "∅"), (("∅",), "\\∅"), (("a",), "a"), (("a", "b"), "a|b"), (("a|b",), "a\\|b"), (("∅", "a"), "∅|a")],
)
def test_texts(options: tuple[str, ...], text: str) -> None:
    assert format_label_set(options) == text
