"""Where the records of a text table stand in their file: lines are what people can look up, blank ones included."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from wisecrowd.errors import InputError

_CHUNK = 1 << 24


def lines_of_records(path: Path, separator: str, records: Sequence[int]) -> list[int] | None:
    """The line on which each of some records begins, both in ascending order; the header is record 0, on line 1.

    >>> path = Path("votes.csv")
    >>> _ = path.write_text('task,label\\n\\n1,"two\\nlines"\\n2,cat\\n')
    >>> lines_of_records(path, ",", [0, 1, 2])
    [1, 3, 5]
    """
    wanted, found, record, begin = set(records), [], 0, 1
    with pa.input_stream(str(path)) as stream:
        reader = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline=""), delimiter=separator)
        try:
            for row in reader:
                if row and record in wanted:
                    found.append(begin)
                if len(found) == len(wanted):
                    return found
                record, begin = record + bool(row), reader.line_num + 1
        except csv.Error:  # a value of more than 128 KB
            return None
    return None


def refuse_open_quote(path: Path, separator: str) -> None:
    """Raise when a quotation mark is never closed, since all that follows it would count as one value.

    >>> path = Path("votes.csv")
    >>> _ = path.write_text('task,label\\n1,"cat\\n2,dog\\n')
    >>> refuse_open_quote(path, ",")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the quotation mark on line 2 is never closed, so that the rest of the file ...
    """
    try:
        if not _may_be_open(path, separator):
            return
        with pa.input_stream(str(path)) as stream:
            text = stream.read()
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None
    mark = re.escape(separator.encode())
    # One match over all values that are closed, for a loop over them in Python takes many times as long.
    end, inside = rb"[\r\n" + mark + rb"]", rb"[^\r\n" + mark + rb"]*+"
    quoted = rb'"[^"]*+(?:""[^"]*+)*+'
    closed = re.compile(rb"(?:\xef\xbb\xbf)?(?:(?:" + quoted + rb'"|(?!"))' + inside + end + rb")*+")
    begin = closed.match(text).end()  # type: ignore[union-attr]  # it matches nothing at least
    if re.compile(quoted + rb"\Z").match(text, begin):
        line = len(re.findall(rb"\r\n?|\n", text[:begin])) + 1
        raise InputError(
            f"the quotation mark on line {line:,} is never closed, so that the rest of the file would be one value; "
            'close it, or write "" for a quotation mark within quotes'
        )


def _may_be_open(path: Path, separator: str) -> bool:
    """Whether the last quotation mark of a file could open a value; telling for sure takes far longer."""
    around, before = b"", b"\n"  # a file begins like a line
    with pa.input_stream(str(path)) as stream:
        while chunk := stream.read(_CHUNK):
            # Mark, one byte before it and one after may lie in two chunks.
            text = before + chunk
            place = text.rfind(b'"')
            if place > 0:
                around = text[place - 1 : place + 2]
            before = text[-2:]
    return bool(around) and (
        around[:1] in (b"\n", b"\r", b'"', b"\xbf", separator.encode())
        or around[2:3] not in (b"", b"\n", b"\r", separator.encode())
    )
