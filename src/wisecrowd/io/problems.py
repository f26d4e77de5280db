"""Errors about a whole input file, and helpers that name the file in a message."""

from __future__ import annotations

import contextlib
import csv
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from wisecrowd.data.vocabulary import check_encodable
from wisecrowd.errors import InputError, WisecrowdError, is_disk_full, preview

#: Errors that parsers and decoders raise for invalid data. Errors of our own code are of other types.
_LIBRARY_ERRORS = (
    pa.ArrowException, csv.Error, ValueError, OverflowError, NotImplementedError, EOFError, OSError,
)  # fmt: skip
#: Characters of a library's message that are shown. Some quote the whole file.
_MAX_MESSAGE_CHARS = 200
#: Names for messages of local copies of other inputs.
_names_of_copies: dict[Path, str] = {}


class EmptyInput(InputError):
    """Error for an input without votes.

    Examples
    --------
    >>> raise EmptyInput("the file is empty")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.EmptyInput: the file is empty
    """


class MissingColumn(InputError):
    """Error for a column that is missing or ambiguous.

    Parameters
    ----------
    message : str
        Error message.
    roles : tuple of str, default=()
        Roles of the missing columns, such as ``"task"``.
    candidates : dict of str to str, optional
        Columns that may have these roles.

    Examples
    --------
    >>> raise MissingColumn("there is no task column")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MissingColumn: there is no task column
    """

    def __init__(self, message: str, roles: tuple[str, ...] = (), candidates: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.roles = roles
        self.candidates = candidates or {}


class MixedTypes(InputError):
    """Error for a column that mixes types, such as text and numbers.

    Examples
    --------
    >>> raise MixedTypes("'task' holds int and str")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MixedTypes: 'task' holds int and str
    """


def check_file_name(path: Path) -> None:
    """Raise an error if a file name is not valid UTF-8, because Arrow cannot open such files.

    Parameters
    ----------
    path : Path
        File or folder.

    Raises
    ------
    InputError
        If the name cannot be encoded as UTF-8.

    Examples
    --------
    >>> check_file_name(Path("caf\\udce9.csv"))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the name of 'caf\\udce9.csv' is not in UTF-8; rename it
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"the name of {preview([path.name])} is not in UTF-8; rename it") from None


def check_file_type(path: Path) -> None:
    """Raise an error for a pipe, socket or device, which would block or never end. Files are read more than once.

    Parameters
    ----------
    path : Path
        File or folder. It need not exist.

    Raises
    ------
    InputError
        If it is neither a file nor a folder.

    Examples
    --------
    >>> check_file_type(Path("/dev/null"))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: /dev/null is a pipe or a device, which cannot be read more than once; save it to a file first
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # the reader reports why
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is a pipe or a device, which cannot be read more than once; save it to a file first")


@contextlib.contextmanager
def convert_errors() -> Iterator[None]:
    """Turn the errors of parsing libraries in the block into an `InputError`.

    Examples
    --------
    >>> with convert_errors():
    ...     int("9" * 5000)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: it cannot be read: Exceeds the limit (4300 digits) for integer string conversion: ...
    """
    try:
        with check_encodable():
            yield
    except WisecrowdError:
        raise
    except RecursionError as error:
        raise InputError("it has too many nested levels; it may be damaged") from error
    except MemoryError as error:
        raise InputError("it needs more memory than there is; it may be damaged") from error
    except _LIBRARY_ERRORS as error:
        if is_disk_full(error):
            raise
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"it cannot be read: {shorten_message(message)}") from error


def shorten_message(error: object) -> str:
    """Return the message of a library on one line of limited length.

    Parameters
    ----------
    error : object
        Exception or message.

    Returns
    -------
    str
        Beginning of the message.

    Examples
    --------
    >>> shorten_message(ValueError("invalid\\n  literal"))
    'invalid literal'
    """
    text = " ".join(str(error)[: 4 * _MAX_MESSAGE_CHARS].split())
    return text if len(text) <= _MAX_MESSAGE_CHARS else text[:_MAX_MESSAGE_CHARS] + "…"


def name_copy(path: Path, name: str) -> None:
    """Register the name by which messages call a local copy of another input.

    Parameters
    ----------
    path : Path
        Copy.
    name : str
        Name for messages, such as "standard input".
    """
    _names_of_copies[path] = name


def display_name(path: Path) -> str:
    """Return the name of a file for messages: that of the original if the file is a copy.

    Parameters
    ----------
    path : Path
        File or folder.

    Returns
    -------
    str

    Examples
    --------
    >>> display_name(Path("votes.csv"))
    'votes.csv'
    """
    return _names_of_copies.get(path, str(path))


@contextlib.contextmanager
def prefix_errors(path: Path) -> Iterator[None]:
    """Put the file name in front of every `InputError` in the block. Errors of parsing libraries become one.

    Parameters
    ----------
    path : Path
        File or folder that the block reads.

    Examples
    --------
    >>> with prefix_errors(Path("votes.csv")):
    ...     raise InputError("it is empty")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: votes.csv: it is empty
    """
    check_file_name(path)
    check_file_type(path)
    try:
        with convert_errors():
            yield
    except InputError as error:
        error.args = (f"{display_name(path)}: {error}",)  # in place: subclasses carry attributes besides the message
        raise
