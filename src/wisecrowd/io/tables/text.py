"""Text files as people have them: compressed or not, with a byte-order mark or not, and sometimes no text at all."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import pyarrow as pa

from wisecrowd.errors import InputError
from wisecrowd.io.problems import EmptyInput

#: Enough for any header, and for the first records of most files; where not even one line ends, more is looked at.
HEAD, MORE = 1 << 16, 1 << 24
_BYTE_ORDER_MARKS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_MAGIC = {
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "compressed by gzip, but not called .gz",
    b"PK\x03\x04": "a zip or Excel file (save it as CSV)",
}


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file, decompressed if its name says so."""
    try:
        with pa.input_stream(str(path)) as stream:
            head = bytes(stream.read(HEAD))
            return head if len(head) < HEAD or _first_line(head) else head + bytes(stream.read(MORE))
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None


def head_lines(path: Path) -> list[str]:
    """The first lines of a text file; whatever else it may be is refused by name."""
    raw = first_bytes(path)
    if not raw.strip():
        raise EmptyInput("it is empty; a header line and a row per vote were wanted")
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            raise InputError(f"it is {what}, not text")
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            raise InputError(f"it is text in {encoding}; save it as UTF-8")
    if b"\0" in (_first_line(raw) or raw):  # further down, it may be part of an id
        raise InputError("it is not text (there are zero bytes in it); a table in UTF-8 was wanted")
    lines = raw.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)
    whole = lines if len(raw) < HEAD else lines[:-1] or lines
    try:
        return [line.decode("utf-8") for line in whole]
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None


def _first_line(raw: bytes) -> bytes | None:
    """The first line that is not blank, if its end is there."""
    text = raw.lstrip()
    end = re.search(rb"[\r\n]", text)
    return None if end is None else text[: end.start()]


def whole_lines(path: Path) -> list[str]:
    """All lines of a text file, without their ends."""
    head_lines(path)
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None


def looks_like_text(path: Path) -> list[str]:
    """The first lines of a text file, or nothing when it is something else."""
    try:
        return head_lines(path) if path.is_file() else []
    except InputError:
        return []


def not_utf8(error: object) -> InputError:
    """What to say of text in some other encoding."""
    return InputError(
        f"it is not in UTF-8 ({error}); save it as UTF-8, for example: iconv -f LATIN1 -t UTF-8 old.csv > new.csv"
    )
