"""Formatting of ids, labels, counts and shares for terminals, pages and plots."""

from __future__ import annotations

import math
import unicodedata

#: Longest id or label that is shown in full, in characters.
MAX_NAME_CHARS = 80
#: Longest explanation of a flag that is shown in full, in characters.
MAX_REASON_CHARS = 600
#: Longest task text that is shown in full, in characters.
MAX_TEXT_CHARS = 1000
#: Zero-width joiners. Scripts and emoji need them, but ``str.isprintable`` rejects them.
_JOINERS = "\u200c\u200d"
_LINE_BREAKS = "\n\t"


def escape_control_characters(value: object, *, lines: bool = False) -> str:
    r"""Return a text with control characters replaced by their Python escapes.

    Parameters
    ----------
    value : object
        Value whose ``str`` is shown.
    lines : bool, default=False
        Whether line breaks and tabs are kept.

    Returns
    -------
    str

    Examples
    --------
    >>> escape_control_characters("red\x1b[0m")
    'red\\x1b[0m'
    """
    text = str(value)
    if text.isprintable():
        return text
    allowed = _JOINERS + (_LINE_BREAKS if lines else "")
    return "".join(char if char.isprintable() or char in allowed else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def escape_lookalikes(value: object) -> str:
    r"""Return a text with characters escaped that are invisible or look like others.

    Parameters
    ----------
    value : object
        Value whose ``str`` is shown.

    Returns
    -------
    str
        Text in which different values look different.

    Examples
    --------
    >>> escape_lookalikes("cafe\u0301"), escape_lookalikes("no\u00a0break"), escape_lookalikes("\uff21"), escape_lookalikes("猫")
    ('cafe\\u0301', 'no\\xa0break', '\\uff21', '猫')
    """
    return "".join(char if char.isascii() or _is_distinct(char) else _escape(char) for char in str(value))


def _is_distinct(char: str) -> bool:
    """Return whether a character is visible, stands alone, and has no other form."""
    is_mark_or_invisible = unicodedata.category(char)[0] in "MZC"
    is_part_of_hangul = "\u1100" <= char <= "\u11ff"
    return not (is_mark_or_invisible or is_part_of_hangul or unicodedata.normalize("NFKC", char) != char)


def shorten(value: object, max_chars: int = MAX_NAME_CHARS, *, lines: bool = False) -> str:
    """Return a text of about ``max_chars`` characters: the beginning, the end and the full length.

    Parameters
    ----------
    value : object
        Value whose ``str`` is shown.
    max_chars : int, default=80
        Number of characters of the text that are kept.
    lines : bool, default=False
        Whether line breaks and tabs are kept.

    Returns
    -------
    str

    Examples
    --------
    >>> shorten("a" * 200, 8)
    'aaaaaa…aa (200 characters)'
    """
    text = str(value)
    suffix = f" ({len(text):,} characters)"
    if len(text) <= max_chars + len(suffix):  # the shortened text would be no shorter
        return escape_control_characters(text, lines=lines)
    tail = max_chars // 4
    start, end = text[: max_chars - tail], text[-tail:]
    return f"{escape_control_characters(start, lines=lines)}…{escape_control_characters(end, lines=lines)}{suffix}"


def display_name(value: object, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return an id or a label, shortened, and quoted if it would be invisible.

    Parameters
    ----------
    value : object
        Id or label.
    max_chars : int, default=80
        Number of characters that are kept.

    Returns
    -------
    str

    Examples
    --------
    >>> display_name("ann"), display_name(" ")
    ('ann', '‘ ’')
    """
    text = shorten(value, max_chars)
    if text.strip(f" {_JOINERS}"):
        return text
    return f"‘{''.join(map(_escape, text))}’"


def quote_name(value: object) -> str:
    """Return an id or a label in quotes, isolated from the writing direction of the sentence around it.

    Parameters
    ----------
    value : object
        Id or label.

    Returns
    -------
    str

    Examples
    --------
    >>> quote_name("ann").replace("\u2068", "").replace("\u2069", "")
    '“ann”'
    """
    # U+2068 and U+2069 isolate: Arabic between them does not reverse the sentence.
    return f"“\u2068{display_name(value)}\u2069”"


def format_number(value: float, digits: int = 2) -> str:
    """Return a number with a fixed number of decimals, or a dash for NaN.

    Parameters
    ----------
    value : float
        Number to format.
    digits : int, default=2
        Number of decimals.

    Returns
    -------
    str

    Examples
    --------
    >>> format_number(1234.5), format_number(-0.001), format_number(float("nan"))
    ('1,234.50', '0.00', '–')
    """
    if math.isnan(value):
        return "–"
    text = f"{value:,.{digits}f}"
    return text if float(text.replace(",", "")) else text.removeprefix("-")  # avoids "-0.00"


def format_percent(value: float) -> str:
    """Return a share as a percentage, with enough digits to tell it from 0% and 100%.

    Parameters
    ----------
    value : float
        Share from 0 to 1, or NaN.

    Returns
    -------
    str

    Examples
    --------
    >>> [format_percent(share) for share in (0.5, 0.996, 0.99999, 1.0)]
    ['50%', '99.6%', '>99.9%', '100%']
    """
    if math.isnan(value):
        return "–"
    if value in (0.0, 1.0):
        return f"{value:.0%}"
    rounded, precise = f"{value:.0%}", f"{value:.1%}"
    if precise in ("0.0%", "100.0%"):
        return "<0.1%" if precise == "0.0%" else ">99.9%"
    return precise if rounded in ("0%", "100%") else rounded


def count_noun(n: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural.

    Parameters
    ----------
    n : int
        Number of things.
    noun : str
        Noun in the singular.

    Returns
    -------
    str

    Examples
    --------
    >>> count_noun(1, "vote"), count_noun(1200, "vote"), count_noun(2, "class")
    ('1 vote', '1,200 votes', '2 classes')
    """
    ending = "" if n == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{n:,} {noun}{ending}"


def describe_selection(shown: int, total: int, nouns: str, rule: str) -> str:
    """Return a sentence with the number of rows shown and the rule that selected them.

    Parameters
    ----------
    shown : int
        Number of rows in the table.
    total : int
        Number of rows before the selection.
    nouns : str
        Plural noun of the rows.
    rule : str
        Rule that selected the rows.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_selection(10, 200, "workers", "those with most votes")
    '10 of 200 workers: those with most votes.'
    """
    if shown < total:
        return f"{shown:,} of {total:,} {nouns}: {rule}."
    if total > 1:
        return f"All {total:,} {nouns}."
    return f"The only one of the {nouns}." if total else f"There are no {nouns}."


def join_words(words: list[str]) -> str:
    """Return words joined by commas and a final "and".

    Parameters
    ----------
    words : list of str
        At least one word.

    Returns
    -------
    str

    Examples
    --------
    >>> join_words(["cats", "dogs", "owls"])
    'cats, dogs and owls'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
