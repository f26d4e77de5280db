"""Files that labelling tools export: JSON lists, JSON lines and delimited text, with readable errors."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, preview
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.json_text import is_json, parse_json
from wisecrowd.io.tables.text_files import HEAD_BYTES, peek_lines, read_text

#: Characters that one cell of a table may have. Cells may hold whole web pages.
_MAX_CELL_CHARS = 1 << 26
#: Characters of a text file that `peek_text` returns.
_PEEK_CHARS = 1000


def read_objects(path: Path, noun: str) -> list[dict[str, Any]]:
    """Read the objects of a JSON file: a list, a single object, or one object per line.

    Parameters
    ----------
    path : Path
        File.
    noun : str
        Kind of objects, for messages.

    Returns
    -------
    list of dict
        Objects.
    """
    return parse_objects(read_text(path), noun)


def parse_objects(text: str, noun: str) -> list[dict[str, Any]]:
    """Parse the objects of a JSON text: a list, a single object, or one object per line.

    Parameters
    ----------
    text : str
        JSON.
    noun : str
        Kind of objects, for messages.

    Returns
    -------
    list of dict
        Objects.

    Raises
    ------
    InputError
        If an entry is not an object. The message names its position.
    """
    first_char = text.lstrip()[:1]
    unit = "line"
    if first_char == "[":
        records, unit = parse_json(text), "entry"
    else:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if first_char == "{" and len(lines) > 1 and not is_json(lines[0][1]):
            records = [parse_json(text)]  # one object over several lines
        else:
            records = [parse_json(line, f"line {number}") for number, line in lines]
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise InputError(f"{unit} {number:,} is not a JSON object: {preview([record])}; expected {noun}")
    if not records:
        raise EmptyInput(f"it is empty; expected {noun}")
    return list(records)


def get_part(record: dict[str, Any], key: str, kind: type[dict[Any, Any]] | type[list[Any]], location: str) -> Any:
    """Return the object or list under a key. A missing key or null gives an empty one.

    Parameters
    ----------
    record : dict
        JSON object.
    key : str
        Key.
    kind : {dict, list}
        Expected type.
    location : str
        Position in the file, for messages.

    Returns
    -------
    dict or list
        Value.

    Raises
    ------
    InputError
        If the value is of another type.

    Examples
    --------
    >>> get_part({"data": [1]}, "data", dict, "task 7")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 'data' of task 7 should be an object; got [1]
    """
    value = record.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        expected = "an object" if kind is dict else "a list"
        raise InputError(f"{key!r} of {location} should be {expected}; got {preview([value])}")
    return value


def get_objects(record: dict[str, Any], key: str, location: str) -> list[dict[str, Any]]:
    """Return the list of objects under a key.

    Parameters
    ----------
    record : dict
        JSON object.
    key : str
        Key.
    location : str
        Position in the file, for messages.

    Returns
    -------
    list of dict
        Objects.

    Raises
    ------
    InputError
        If an entry is not an object.
    """
    entries = get_part(record, key, list, location)
    for entry in entries:
        if not isinstance(entry, dict):
            raise InputError(f"{key!r} of {location} should hold objects; got {preview([entry])}")
    return list(entries)


def iter_rows(
    path: Path, separator: str, *, optional_columns: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a delimited text file. Blank rows are skipped.

    Parameters
    ----------
    path : Path
        File with a header line.
    separator : str
        Separator of the columns.
    optional_columns : tuple of str, default=()
        Columns at the end of the header that a row may lack.

    Yields
    ------
    line : int
        Line on which the row begins.
    row : dict of str to str
        Cells by column.
    """
    return parse_rows(read_text(path), separator, optional_columns=optional_columns)


def parse_rows(
    text: str, separator: str, *, optional_columns: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a delimited text, as `iter_rows` does for a file.

    Parameters
    ----------
    text : str
        Text with a header line.
    separator : str
        Separator of the columns.
    optional_columns : tuple of str, default=()
        Columns at the end of the header that a row may lack.

    Yields
    ------
    line : int
        Line on which the row begins.
    row : dict of str to str
        Cells by column.

    Examples
    --------
    >>> list(parse_rows("id,label\\n7,cat\\n", ","))
    [(2, {'id': '7', 'label': 'cat'})]
    """
    previous_limit = csv.field_size_limit(_MAX_CELL_CHARS)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        names, line = next(reader, []), 2
        repeated = [name for name, n in Counter(names).items() if n > 1]
        if repeated:
            raise InputError(f"there are several columns called {preview(repeated)}; give each a name of its own")
        for row in reader:
            if any(row):
                if len(row) < len(names) and set(names[len(row) :]) <= set(optional_columns):
                    row += [""] * (len(names) - len(row))
                if len(row) != len(names):
                    raise InputError(f"line {line:,} has {len(row)} columns, not {len(names)}: {preview(row)}")
                yield line, dict(zip(names, row, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"it is not a table separated by {separator!r}: {error}") from None
    finally:
        csv.field_size_limit(previous_limit)


# ---------------------------------------------------------------------- detection


def peek_header(path: Path, separator: str) -> set[str]:
    """Return the column names on the first line of a text file, or an empty set.

    Parameters
    ----------
    path : Path
        File or folder.
    separator : str
        Separator of the columns.

    Returns
    -------
    set of str
        Column names.
    """
    return parse_header("".join(peek_lines(path)), separator)


def parse_header(text: str, separator: str) -> set[str]:
    """Return the column names on the first line of a text, or an empty set if it is no header.

    Parameters
    ----------
    text : str
        Beginning of a text.
    separator : str
        Separator of the columns.

    Returns
    -------
    set of str
        Column names.

    Examples
    --------
    >>> sorted(parse_header("id,label\\n7,cat\\n", ","))
    ['id', 'label']
    """
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    if len(first_line) > HEAD_BYTES:
        return set()
    try:
        return set(next(csv.reader([first_line], delimiter=separator), ()))
    except csv.Error:
        return set()


def peek_object(path: Path) -> dict[str, Any]:
    """Return the first object of a JSON file.

    Only the beginning of the file is read. If the object does not end there, the keys that were found are returned, and every
    value is None.

    Parameters
    ----------
    path : Path
        File, or a folder, which has no object.

    Returns
    -------
    dict
        First object; empty if the path is a folder or the file is not JSON.
    """
    if not path.is_file():
        return {}
    status = path.stat()
    return _peek_object(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1)  # every tool looks at the same object
def _peek_object(path: Path, modified: int, size: int) -> dict[str, Any]:  # noqa: ARG001  # a modified file is read again
    return parse_first_object("".join(peek_lines(path)).lstrip())


def peek_text(path: Path) -> str:
    """Return the first characters of a text file, or an empty text.

    Parameters
    ----------
    path : Path
        File or folder.

    Returns
    -------
    str
        Text.
    """
    return "".join(peek_lines(path)).lstrip()[:_PEEK_CHARS]


def parse_first_object(text: str) -> dict[str, Any]:
    """Return the first object in a JSON text, as `peek_object` does for a file.

    Parameters
    ----------
    text : str
        Beginning of a JSON text.

    Returns
    -------
    dict
        Object, empty if the text is not JSON.

    Examples
    --------
    >>> parse_first_object('[{"id": 1}, {"id": 2}]')
    {'id': 1}
    """
    start = re.match(r"\[?\s*(?=\{)", text)
    if start is None:
        return {}
    try:
        record, _ = json.JSONDecoder().raw_decode(text, start.end())
    except (ValueError, RecursionError):
        return dict.fromkeys(re.findall(r'"([A-Za-z_][\w.-]{0,60})"\s*:', text[:HEAD_BYTES]))
    return record if isinstance(record, dict) else {}
