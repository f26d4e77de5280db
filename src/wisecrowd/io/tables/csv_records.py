"""Positions of records in a delimited text file: line numbers, and quotation marks that are never closed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from wisecrowd.errors import InputError
from wisecrowd.io.compressed_files import open_input

#: Bytes read at a time.
_CHUNK_BYTES = 1 << 24


def find_record_lines(path: Path, separator: str, records: Sequence[int]) -> list[int] | None:
    """Return the lines on which records begin. Blank lines count as lines but not as records.

    Parameters
    ----------
    path : Path
        Delimited text file.
    separator : str
        Separator of its columns.
    records : sequence of int
        Positions of records in ascending order. The header is record 0, on line 1.

    Returns
    -------
    list of int or None
        Line numbers from 1. None if the file cannot be parsed.

    Examples
    --------
    >>> path = Path("votes.csv")
    >>> _ = path.write_text('task,label\\n\\n1,"two\\nlines"\\n2,cat\\n')
    >>> find_record_lines(path, ",", [0, 1, 2])
    [1, 3, 5]
    """
    requested = set(records)
    lines: list[int] = []
    record, line = 0, 1
    with open_input(path, in_memory=False) as stream:
        reader = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline=""), delimiter=separator)
        try:
            for row in reader:
                if row and record in requested:
                    lines.append(line)
                if len(lines) == len(requested):
                    return lines
                record, line = record + bool(row), reader.line_num + 1
        except csv.Error:  # a value of more than 128 KB
            return None
    return None


def check_quotes_closed(path: Path, separator: str) -> None:
    """Raise an error if a quotation mark is never closed: the rest of the file would be one value.

    Parameters
    ----------
    path : Path
        Delimited text file.
    separator : str
        Separator of its columns.

    Raises
    ------
    InputError
        If a quotation mark is not closed. The message names its line.

    Examples
    --------
    >>> path = Path("votes.csv")
    >>> _ = path.write_text('task,label\\n1,"cat\\n2,dog\\n')
    >>> check_quotes_closed(path, ",")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the quotation mark on line 2 is never closed, so the rest of the file ...
    """
    try:
        if not _may_be_open(path, separator):
            return
        with open_input(path) as stream:
            text = stream.read()
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}") from None
    mark = re.escape(separator.encode())
    # One match over all closed values: a loop over them in Python takes many times as long.
    end, inside = rb"[\r\n" + mark + rb"]", rb"[^\r\n" + mark + rb"]*+"
    quoted = rb'"[^"]*+(?:""[^"]*+)*+'
    closed = re.compile(rb"(?:\xef\xbb\xbf)?(?:(?:" + quoted + rb'"|(?!"))' + inside + end + rb")*+")
    begin = closed.match(text).end()  # type: ignore[union-attr]  # the pattern matches the empty text
    if re.compile(quoted + rb"\Z").match(text, begin):
        line = len(re.findall(rb"\r\n?|\n", text[:begin])) + 1
        raise InputError(
            f"the quotation mark on line {line:,} is never closed, so the rest of the file would be one value; "
            'close it, or write "" for a quotation mark within quotes'
        )


def _may_be_open(path: Path, separator: str) -> bool:
    """Return whether the last quotation mark of a file may open a value. A certain answer takes far longer."""
    surroundings, previous = b"", b"\n"  # the beginning of a file is the beginning of a line
    with open_input(path, in_memory=False) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            # The mark and its two neighbours may be split over two chunks.
            text = previous + chunk
            position = text.rfind(b'"')
            if position > 0:
                surroundings = text[position - 1 : position + 2]
            previous = text[-2:]
    return bool(surroundings) and (
        surroundings[:1] in (b"\n", b"\r", b'"', b"\xbf", separator.encode())
        or surroundings[2:3] not in (b"", b"\n", b"\r", separator.encode())
    )
