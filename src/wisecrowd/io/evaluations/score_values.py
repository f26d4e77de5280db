"""Values of scores as numbers."""

from __future__ import annotations

import math
from typing import Any

#: Letters of Inspect: correct, incorrect, partially correct, no answer.
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0, "correct": 1.0, "incorrect": 0.0}


def to_number(value: Any) -> float:
    """Return a score as a number: numbers, truth values, yes and no, pass and fail, and the letters of Inspect.

    Parameters
    ----------
    value : object
        Score as a tool wrote it.

    Returns
    -------
    float
        nan if it is no number.

    Examples
    --------
    >>> [to_number(value) for value in ("C", "P", True, "0.5", "yes", "a text")]
    [1.0, 0.5, 1.0, 0.5, 1.0, nan]
    """
    if isinstance(value, bool | int | float):
        number = float(value)
        return number if math.isfinite(number) else math.nan
    if not isinstance(value, str):
        return math.nan
    text = value.strip()
    if text in _LETTERS:
        return _LETTERS[text]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
