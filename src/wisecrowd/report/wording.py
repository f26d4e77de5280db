"""Text of the data as a page may show it: nothing is obeyed, nothing is endless, and no direction leaks out."""

from __future__ import annotations

import math

#: Characters of an id or a label, of a reason, and of the text of a task.
NAME, REASON, TEXT = 80, 600, 1000
#: What joins letters in scripts and emoji: no control character, though Python counts it as one.
_JOINERS = "\u200c\u200d"
_LINES = "\n\t"


def spelled(value: object, *, lines: bool = False) -> str:
    """A text in which what a terminal or browser would obey is spelled out; line ends may stay."""
    text = str(value)
    if text.isprintable():
        return text
    kept = _JOINERS + (_LINES if lines else "")
    return "".join(char if char.isprintable() or char in kept else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def shortened(value: object, room: int = NAME, *, lines: bool = False) -> str:
    """A text of ``room`` characters or so; of a longer one both ends stay, and its length is told."""
    text = str(value)
    cut = f" ({len(text):,} characters)"
    if len(text) <= room + len(cut):  # a cut would save nothing
        return spelled(text, lines=lines)
    tail = room // 4
    return f"{spelled(text[: room - tail], lines=lines)}…{spelled(text[-tail:], lines=lines)}{cut}"


def called(value: object, room: int = NAME) -> str:
    """An id or a label, shortened; one that nobody could see, or click on, is in quotes."""
    text = shortened(value, room)
    return text if text.strip(f" {_JOINERS}") else f"‘{''.join(map(_escaped, text))}’"


def name(value: object) -> str:
    """An id or a label within a sentence, in quotes, and of whatever direction it is."""
    # U+2068 and U+2069 isolate: Arabic between them does not turn the sentence around.
    return f"“\u2068{called(value)}\u2069”"


def number(value: float, digits: int = 2) -> str:
    """A figure, or a dash where there is none."""
    if math.isnan(value):
        return "–"
    text = f"{value:,.{digits}f}"
    return text if float(text.replace(",", "")) else text.removeprefix("-")  # nothing has no sign


def percent(value: float) -> str:
    """A share, with as many digits as tell it from all and nothing."""
    if math.isnan(value):
        return "–"
    if value in (0.0, 1.0):
        return f"{value:.0%}"
    whole, finer = f"{value:.0%}", f"{value:.1%}"
    if finer in ("0.0%", "100.0%"):
        return "<0.1%" if finer == "0.0%" else ">99.9%"
    return finer if whole in ("0%", "100%") else whole


def some_of(shown: int, total: int, nouns: str, rule: str) -> str:
    """How many of how many are shown, and by what rule they were chosen."""
    if shown == total:
        return (
            f"All {total:,} {nouns}."
            if total > 1
            else f"The only one of the {nouns}."
            if total
            else f"There are no {nouns}."
        )
    return f"{shown:,} of {total:,} {nouns}: {rule}."


def joined(words: list[str]) -> str:
    """Words with commas and an *and*."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
