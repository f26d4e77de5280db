"""JSON text, parsed with readable errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.problems import shorten_message
from wisecrowd.io.tables.text_files import read_text


def parse_json(text: str, location: str = "it") -> Any:
    """Parse JSON.

    Parameters
    ----------
    text : str
        JSON.
    location : str, default="it"
        Subject of the error message.

    Returns
    -------
    object
        Value.

    Raises
    ------
    InputError
        If the text is not valid JSON, is nested too deeply, or holds an integer of thousands of digits.

    Examples
    --------
    >>> parse_json("[1, 2")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: it is not JSON: it ends in the middle, at byte 5; export it again
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{location} is JSON with too many nested levels") from None
    except json.JSONDecodeError as error:
        if _ends_early(text, error):
            n_bytes = len(text.encode(errors="replace"))
            raise InputError(
                f"{location} is not JSON: it ends in the middle, at byte {n_bytes:,}; export it again"
            ) from None
        raise InputError(f"{location} is not JSON: {shorten_message(error)}") from None
    except ValueError:  # of int(), whose advice is of no use here
        raise InputError(f"{location} holds an integer of thousands of digits; write it as text") from None


def _ends_early(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether the end of a text was cut off: it is JSON up to its end, where a bracket, a string or a word is open."""
    content = text.strip()
    if not content.startswith(("{", "[")):
        return False
    if error.msg.startswith("Unterminated string"):
        return not content.endswith(("]", "}"))
    rest = text[error.pos :].strip()
    return any(word.startswith(rest) for word in ("true", "false", "null", "-"))


def is_json(text: str) -> bool:
    """Return whether a text is valid JSON.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    bool
        Whether `parse_json` accepts it.

    Examples
    --------
    >>> is_json("[1, 2]"), is_json("[1, 2")
    (True, False)
    """
    try:
        parse_json(text)
    except InputError:
        return False
    return True


def read_json_file(path: Path) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : Path
        File in UTF-8, decompressed if its suffix says so.

    Returns
    -------
    object
        Value.

    Raises
    ------
    InputError
        If the file is not valid JSON. The message names the file.

    Examples
    --------
    >>> _ = Path("meta.json").write_text('{"name": "pets"}')
    >>> read_json_file(Path("meta.json"))
    {'name': 'pets'}
    """
    try:
        return parse_json(read_text(path))
    except InputError as error:
        error.args = (f"{path.name}: {error}",)
        raise
