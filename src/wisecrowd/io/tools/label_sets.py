"""Sets of options as text, for multiple-choice questions: ``a|b``."""

from __future__ import annotations

import re

#: Text of the empty set.
EMPTY_SET = "∅"
#: Text without special characters, an escaped character, or the separator.
_PIECE = re.compile(r"[^\\|]+|\\.?|\|", re.DOTALL)


def format_label_set(options: tuple[str, ...]) -> str:
    r"""Format a set of options as one text. Vertical bars and backslashes in options are escaped.

    Parameters
    ----------
    options : tuple of str
        Options in their order.

    Returns
    -------
    str
        Options separated by ``|``, or ``∅`` if there are none.

    Examples
    --------
    >>> format_label_set(("a", "b")), format_label_set(()), format_label_set(("a|b",))
    ('a|b', '∅', 'a\\|b')
    """
    if not options:
        return EMPTY_SET
    escaped = [option.replace("\\", "\\\\").replace("|", "\\|") for option in options]
    return "\\" + EMPTY_SET if escaped == [EMPTY_SET] else "|".join(escaped)


def parse_label_set(text: str) -> tuple[str, ...]:
    r"""Parse a text that `format_label_set` returned.

    Parameters
    ----------
    text : str
        Options separated by ``|``.

    Returns
    -------
    tuple of str
        Options.

    Examples
    --------
    >>> parse_label_set("a|b"), parse_label_set("∅"), parse_label_set("a\\|b")
    (('a', 'b'), (), ('a|b',))
    """
    if text == EMPTY_SET:
        return ()
    options: list[str] = []
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        if piece == "|":
            options.append("".join(pieces))
            pieces = []
        else:
            pieces.append(piece.removeprefix("\\") if piece.startswith("\\") else piece)
    return (*options, "".join(pieces))
