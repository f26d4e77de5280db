"""Text files: decompression, encoding checks, and the first lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from wisecrowd.errors import InputError
from wisecrowd.io.compressed_files import check_compressed_file, open_input
from wisecrowd.io.problems import EmptyInput

#: Bytes that are read to look at a file: enough for any header and the first records of most files.
HEAD_BYTES = 1 << 16
#: Bytes that are read in addition if the first line does not end within `HEAD_BYTES`.
EXTRA_HEAD_BYTES = 1 << 24
#: Columns of a delimited table. A reader keeps several kilobytes for each, so that a line of separators could fill the memory.
MAX_COLUMNS = 100_000
_BYTE_ORDER_MARKS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
#: First bytes of files that are not text, and what such a file is.
_MAGIC = {
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "compressed by gzip, but not called .gz",
    b"PK\x03\x04": "a zip or Excel file (name a workbook .xlsx, or save it as CSV)",
}


def read_head_bytes(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed if its suffix says so.

    Parameters
    ----------
    path : Path
        File, plain or compressed.

    Returns
    -------
    bytes
        At least the first line.
    """
    try:
        with open_input(path) as stream:
            head = bytes(stream.read(HEAD_BYTES))
            complete = len(head) < HEAD_BYTES or _first_line(head)
            return head if complete else head + bytes(stream.read(EXTRA_HEAD_BYTES))
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}") from None


def read_head_lines(path: Path) -> list[str]:
    """Return the first lines of a text file.

    Parameters
    ----------
    path : Path
        File, plain or compressed.

    Returns
    -------
    list of str
        Lines with their line breaks.

    Raises
    ------
    EmptyInput
        If the file is empty.
    InputError
        If the file is not text in UTF-8. The message says what it is.
    """
    raw = read_head_bytes(path)
    if not raw.strip():
        raise EmptyInput("it is empty; expected a header line and a row per vote")
    for magic, noun in _MAGIC.items():
        if raw.startswith(magic):
            raise InputError(f"it is {noun}, not text")
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            raise InputError(f"it is text in {encoding}; save it as UTF-8")
    if b"\0" in (_first_line(raw) or raw):  # further down, it may be part of an id
        raise InputError("it is not text (there are zero bytes in it); expected a table in UTF-8")
    lines = raw.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)
    complete_lines = lines if len(raw) < HEAD_BYTES else lines[:-1] or lines
    try:
        return [line.decode("utf-8") for line in complete_lines]
    except UnicodeDecodeError as error:
        raise encoding_error(error) from None


def _first_line(raw: bytes) -> bytes | None:
    """Return the first line that is not blank, or None if it does not end."""
    text = raw.lstrip()
    end = re.search(rb"[\r\n]", text)
    return None if end is None else text[: end.start()]


def check_column_count(lines: Sequence[str], separator: str) -> None:
    """Raise an error if the first line of a table has too many columns.

    Parameters
    ----------
    lines : sequence of str
        First lines of a file.
    separator : str
        Separator of the columns.

    Raises
    ------
    InputError
        If there are more than `MAX_COLUMNS`.

    Examples
    --------
    >>> check_column_count(["task,worker,label"], ",")
    """
    first_line = next((line for line in lines if line.strip()), "")
    n_columns = first_line.count(separator) + 1
    if n_columns > MAX_COLUMNS:
        raise InputError(
            f"its first line has {n_columns:,} columns, more than {MAX_COLUMNS:,}; write one vote per row, or features as arrays "
            "(npz)"
        )


def read_text(path: Path) -> str:
    """Read a text file, decompressed if its suffix says so.

    Parameters
    ----------
    path : Path
        File in UTF-8.

    Returns
    -------
    str
        Text.

    Raises
    ------
    InputError
        If the file is not text in UTF-8.
    """
    read_head_lines(path)
    check_compressed_file(path)
    try:
        with open_input(path) as stream:
            return bytes(stream.read()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise encoding_error(error) from None
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}") from None


def read_lines(path: Path) -> list[str]:
    """Return all lines of a text file without their line breaks.

    Parameters
    ----------
    path : Path
        File in UTF-8.

    Returns
    -------
    list of str
        Lines.
    """
    return read_text(path).splitlines()


def peek_lines(path: Path) -> list[str]:
    """Return the first lines of a text file, or an empty list for anything else.

    Every format looks at these lines to recognise a file, so those of the last file are cached.

    Parameters
    ----------
    path : Path
        File or folder.

    Returns
    -------
    list of str
        Lines with their line breaks.
    """
    if not path.is_file():
        return []
    status = path.stat()
    return list(_peek_lines(path, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=1)
def _peek_lines(path: Path, modified: int, size: int) -> tuple[str, ...]:  # noqa: ARG001  # a modified file is read again
    try:
        return tuple(read_head_lines(path))
    except InputError:
        return ()


def encoding_error(cause: object) -> InputError:
    """Return the error for text that is not UTF-8.

    Parameters
    ----------
    cause : object
        Error of the decoder.

    Returns
    -------
    InputError
        Error with advice.
    """
    return InputError(
        f"it is not in UTF-8 ({cause}); save it as UTF-8, for example: iconv -f LATIN1 -t UTF-8 old.csv > new.csv"
    )
