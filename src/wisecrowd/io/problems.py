"""Errors about a whole input file, and helpers that name the file in a message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from wisecrowd.data.vocabulary import check_encodable
from wisecrowd.errors import InputError, preview


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

    Examples
    --------
    >>> raise MissingColumn("there is no task column")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MissingColumn: there is no task column
    """

    def __init__(self, message: str, roles: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.roles = roles


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


@contextlib.contextmanager
def prefix_errors(path: Path) -> Iterator[None]:
    """Put the file name in front of the message of every `InputError` raised in the block.

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
    try:
        with check_encodable():
            yield
    except InputError as error:
        error.args = (f"{path}: {error}",)  # in place: subclasses carry attributes besides the message
        raise
