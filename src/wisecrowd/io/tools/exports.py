"""Files as labelling tools export them: JSON lists, JSON lines and tables, read whole and refused in words."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from wisecrowd.errors import InputError, some
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables import text as _text

#: Characters that one cell of a table may have: people paste whole pages.
_LONGEST_CELL = 1 << 26


def parsed(text: str, where: str = "it") -> Any:
    """What JSON says; whatever is wrong with it is told in words.

    >>> parsed("[1, 2")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: it is not JSON: Expecting ',' delimiter: line 1 column 6 (char 5)
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{where} is JSON that nests too deeply to be anybody's answers") from None
    except ValueError as error:  # also a number of thousands of digits
        raise InputError(f"{where} is not JSON: {str(error)[:200]}") from None


def whole_text(path: Path) -> str:
    """The text in a file, decompressed if its name says so."""
    _text.head_lines(path)
    try:
        with pa.input_stream(str(path)) as stream:
            return bytes(stream.read()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _text.not_utf8(error) from None
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None


def objects(path: Path, what: str) -> list[dict[str, Any]]:
    """The objects in a JSON list (or a single object), or one on each line."""
    return objects_in(whole_text(path), what)


def objects_in(text: str, what: str) -> list[dict[str, Any]]:
    """The objects in a text; those that are none are refused by their place."""
    first = text.lstrip()[:1]
    if first == "[":
        found, place = parsed(text), "entry"
    else:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if first == "{" and len(lines) > 1 and not _ends(lines[0][1]):
            found = [parsed(text)]  # one object, over several lines
        else:
            found = [parsed(line, f"line {number}") for number, line in lines]
        place = "line"
    for number, record in enumerate(found, start=1):
        if not isinstance(record, dict):
            raise InputError(f"{place} {number:,} is no JSON object but {some([record])}; {what} was wanted")
    if not found:
        raise EmptyInput(f"it is empty; {what} was wanted")
    return list(found)


def _ends(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def part(record: dict[str, Any], key: str, kind: type[dict[Any, Any]] | type[list[Any]], where: str) -> Any:
    """What an object holds under a key, which may be missing or null but not of another kind.

    >>> part({"data": [1]}, "data", dict, "task 7")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 'data' of task 7 should be an object; got [1]
    """
    value = record.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        wanted = "an object" if kind is dict else "a list"
        raise InputError(f"{key!r} of {where} should be {wanted}; got {some([value])}")
    return value


def entries(record: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """A list of objects that an object holds under a key."""
    found = part(record, key, list, where)
    for one in found:
        if not isinstance(one, dict):
            raise InputError(f"{key!r} of {where} should hold objects; got {some([one])}")
    return list(found)


def cells(path: Path, separator: str, *, may_lack: tuple[str, ...] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a text table by column name, with the line that each begins on; rows of nothing but blanks are none.

    A row ``may_lack`` the last columns, if they are called so.
    """
    text = io.StringIO(whole_text(path), newline="")
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        reader = csv.reader(text, delimiter=separator)
        names, line = next(reader), 2
        if len(set(names)) < len(names):
            twice = [name for place, name in enumerate(names) if name in names[:place]]
            raise InputError(f"there are several columns called {some(twice)}; give each a name of its own")
        for row in reader:
            if any(row):
                if len(row) < len(names) and set(names[len(row) :]) <= set(may_lack):
                    row += [""] * (len(names) - len(row))
                if len(row) != len(names):
                    raise InputError(f"line {line:,} has {len(row)} columns, not {len(names)}: {some(row)}")
                yield line, dict(zip(names, row, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"it is no table separated by {separator!r}: {error}") from None
    finally:
        csv.field_size_limit(before)


# ---------------------------------------------------------------------- what a file looks like


def header(path: Path, separator: str) -> set[str]:
    """The column names on the first line of a text table, as far as it is one."""
    first = _seen(path).first_line
    try:
        return set(next(csv.reader([first], delimiter=separator), ()))
    except csv.Error:
        return set()


def first_object(path: Path) -> dict[str, Any]:
    """The first object in a JSON file, as far as it is near the beginning; else an object with the keys that are seen there."""
    return _seen(path).record


def first_letters(path: Path) -> str:
    """The first letters of a text file; nothing of any other."""
    return _seen(path).letters


@dataclass(frozen=True)
class _Beginning:
    letters: str
    first_line: str
    record: dict[str, Any]


def _seen(path: Path) -> _Beginning:
    if not path.is_file():
        return _Beginning("", "", {})
    status = path.stat()
    return _beginning(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _beginning(path: Path, changed: int, size: int) -> _Beginning:  # noqa: ARG001  # a file that changed is another
    """How a file begins, which every tool's format wants to know."""
    lines = _text.looks_like_text(path)
    first = next((line for line in lines if line.strip()), "")
    text = "".join(lines).lstrip()
    return _Beginning(text[:1000], first if len(first) <= _text.HEAD else "", first_in(text))


def first_in(text: str) -> dict[str, Any]:
    """The first object in a text of JSON, as :func:`first_object` gives that of a file.

    >>> first_in('[{"id": 1}, {"id": 2}]')
    {'id': 1}
    """
    begin = re.match(r"\[?\s*(?=\{)", text)
    if begin is None:
        return {}
    try:
        record, _ = json.JSONDecoder().raw_decode(text, begin.end())
    except (ValueError, RecursionError):
        return dict.fromkeys(re.findall(r'"([A-Za-z_][\w.-]{0,60})"\s*:', text[: _text.HEAD]))
    return record if isinstance(record, dict) else {}
