"""What wisecrowd raises: every message says what was wanted, what came, and what to do."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import warnings
from collections.abc import Iterable, Iterator


class WisecrowdError(Exception):
    """Anything wisecrowd refuses to do; the command line prints it without a traceback.

    >>> issubclass(InputError, WisecrowdError)
    True
    """


class InputError(WisecrowdError, ValueError):
    """The data cannot mean what the caller hopes.

    >>> raise InputError("no votes at all")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: no votes at all
    """


class UsageError(WisecrowdError, ValueError):
    """The call asks for something that does not exist or does not fit.

    >>> raise UsageError("ties must be one of 'first', 'random', 'split'; got 'last'")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: ties must be one of 'first', 'random', 'split'; got 'last'
    """


class MissingExtra(WisecrowdError, ImportError):
    """An optional dependency is not installed; the message is the line that installs it.

    >>> raise MissingExtra("fast", "the compiled kernels")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.MissingExtra: the compiled kernels need an optional dependency; install it with: pip install "wisecrowd[fast]"
    """

    def __init__(self, extra: str, what: str) -> None:
        self.extra = extra
        self.what = what
        super().__init__(f'{what} need an optional dependency; install it with: pip install "wisecrowd[{extra}]"')

    def __reduce__(self) -> tuple[type, tuple[str, str]]:  # from one process to another
        return type(self), (self.extra, self.what)


class DiskFull(WisecrowdError, OSError):
    """There is no room left for a file; nothing of it was left behind.

    >>> raise DiskFull("results/labels.parquet")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.DiskFull: the disk is full: no room for results/labels.parquet; make room, and do the same again. ...
    """

    def __init__(self, path: object) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def __str__(self) -> str:
        return (
            f"the disk is full: no room for {self.filename}; make room, and do the same again. "
            "Nothing half-written is left of it"
        )

    def __reduce__(self) -> tuple[type, tuple[object]]:  # from one process to another
        return type(self), (self.filename,)


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says, in whoever's words, that there is no room left.

    >>> is_disk_full(OSError(errno.ENOSPC, "No space left on device")), is_disk_full(OSError("No space left on device"))
    (True, True)
    """
    if not isinstance(error, OSError):
        return False
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)


class DataWarning(UserWarning):
    """The data allow an answer, but somebody should look at them first.

    >>> issubclass(DataWarning, UserWarning)
    True
    """


class NotConverged(UserWarning):
    """The iteration limit came before the tolerance was met.

    >>> issubclass(NotConverged, UserWarning)
    True
    """


def preview(values: Iterable[object], limit: int = 3) -> str:
    """Show the first few values of a possibly long list, for a message.

    >>> preview(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c', …"
    """
    shown: list[str] = []
    for value in values:
        if len(shown) == limit:
            shown.append("…")
            break
        text = repr(value.item() if hasattr(value, "item") else value)
        shown.append(text if len(text) <= 60 else text[:57] + "…" + text[0])
    return ", ".join(shown)


@contextlib.contextmanager
def ignore_fit_warnings() -> Iterator[None]:
    """A block in which a fit is a means: nobody is told that it was cut short, or that the votes are odd.

    >>> with ignore_fit_warnings():
    ...     warnings.warn("stopped early", NotConverged)
    """
    with warnings.catch_warnings():
        for kind in (NotConverged, DataWarning):
            warnings.simplefilter("ignore", kind)
        yield


def suggest_name(word: str, known: Iterable[str]) -> str:
    """Advice for a misspelt name or the initials of one, or nothing when nothing is near.

    >>> suggest_name("dawid-skeene", ["dawid-skene", "one-coin"])
    " Did you mean 'dawid-skene'?"
    >>> suggest_name("DS", ["dawid-skene", "hds"])
    " Did you mean 'dawid-skene'?"
    """
    names = list(known)
    parts = {name: name.split("-") for name in names if "-" in name}
    initials = [name for name, words in parts.items() if "".join(part[:1] for part in words) == word.lower()]
    near = initials or difflib.get_close_matches(word, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_choice(name: str, value: object, allowed: Iterable[object]) -> None:
    """Refuse a value that is not in a closed list.

    >>> check_choice("ties", "split", ["first", "split"])
    """
    choices = list(allowed)
    if value not in choices:
        advice = suggest_name(str(value), [str(choice) for choice in choices])
        raise UsageError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.{advice}")
