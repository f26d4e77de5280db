"""What can be wrong with a file as a whole, told apart so that an examination can give it a name."""

from __future__ import annotations

from wisecrowd.errors import InputError


class EmptyInput(InputError):
    """There are no votes in it.

    >>> raise EmptyInput("it is empty")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.EmptyInput: it is empty
    """


class MissingColumn(InputError):
    """A column is not there, or could be any of several.

    >>> raise MissingColumn("there is no task column")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MissingColumn: there is no task column
    """

    def __init__(self, message: str, roles: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        #: What the missing columns were wanted for.
        self.roles = roles


class MixedTypes(InputError):
    """A column holds text here and numbers there.

    >>> raise MixedTypes("'task' holds int and str")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MixedTypes: 'task' holds int and str
    """
