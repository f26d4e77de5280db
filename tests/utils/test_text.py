"""Formatting of numbers and texts."""

from __future__ import annotations

import pytest

from wisecrowd.utils.text import (
    count_noun,
    describe_selection,
    escape_control_characters,
    escape_lookalikes,
    format_number,
    format_percent,
    shorten,
)


def test_text_formatting() -> None:
    assert format_percent(0.999) == "99.9%"
    assert format_percent(0.004) == "0.4%"
    assert (format_percent(0.99997), format_percent(3e-5), format_percent(0.25)) == (">99.9%", "<0.1%", "25%")
    assert (format_percent(1.0), format_percent(0.0), format_percent(float("nan"))) == ("100%", "0%", "–")
    assert (format_number(-0.001), format_number(-0.01), format_number(-1234.5, 1)) == ("0.00", "-0.01", "-1,234.5")
    assert shorten("a" * 100, 20) == f"{'a' * 15}…aaaaa (100 characters)"
    assert shorten("a" * 30, 20) == "a" * 30, "a cut would save nothing"
    assert escape_control_characters("a\u200db\x00") == "a\u200db\\x00"
    assert escape_control_characters("a\nb", lines=True) == "a\nb"
    assert (
        describe_selection(5, 12_345, "workers", "those with most votes")
        == "5 of 12,345 workers: those with most votes."
    )


@pytest.mark.parametrize(
    ("n", "noun", "text"),
    [
        (0, "vote", "0 votes"),
        (1, "vote", "1 vote"),
        (2, "class", "2 classes"),
        (1, "class", "1 class"),
        (1000, "box", "1,000 boxes"),
    ],
)
def test_nouns_have_a_singular_and_a_plural(n: int, noun: str, text: str) -> None:
    assert count_noun(n, noun) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain", "plain"),
        ("caf\u00e9", "caf\u00e9"),
        ("cafe\u0301", "cafe\\u0301"),
        ("a\u00a0b\u200bc", "a\\xa0b\\u200bc"),
        ("\u212b", "\\u212b"),
        ("\U0001f600", "\U0001f600"),
        ("\u110b\u1161", "\\u110b\\u1161"),
        ("\ud800", "\\ud800"),
        (7, "7"),
    ],
)
def test_lookalikes_are_escaped(text: object, escaped: str) -> None:
    assert escape_lookalikes(text) == escaped
