"""Exceptions, warnings and helpers for their messages.

A message says what is wrong, what was expected, and what to do.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import warnings
from collections.abc import Iterable, Iterator


class WisecrowdError(Exception):
    """Base class of all errors that wisecrowd raises; the command line prints them without a traceback.

    Examples
    --------
    >>> issubclass(InputError, WisecrowdError)
    True
    """


class InputError(WisecrowdError, ValueError):
    """Invalid data.

    Examples
    --------
    >>> raise InputError("no votes at all")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: no votes at all
    """


class UsageError(WisecrowdError, ValueError):
    """Invalid argument, or a call that does not fit the object.

    Examples
    --------
    >>> raise UsageError("ties must be one of 'first', 'random', 'split'; got 'last'")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: ties must be one of 'first', 'random', 'split'; got 'last'
    """


class NoPosterior(UsageError, AttributeError):
    """Error of methods that estimate numbers or scores and therefore have no posterior; ``hasattr`` returns False.

    Examples
    --------
    >>> from wisecrowd import Crowd, Mean
    >>> fitted = Mean().fit(Crowd.from_triples([("t1", "ann", 2.5)], numeric=True))
    >>> hasattr(fitted, "posterior_"), hasattr(fitted, "labels_")
    (False, True)
    """


class NotFitted(UsageError, AttributeError):
    """Fitted attribute that a method does not have, because it is not fitted or was saved without it.

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> DawidSkene().prior_
    Traceback (most recent call last):
        ...
    wisecrowd.errors.NotFitted: this DawidSkene has no prior_; call fit first, or load the result of a complete fit
    >>> hasattr(DawidSkene(), "prior_")
    False
    """


class MissingExtra(WisecrowdError, ImportError):
    """Missing optional dependency; the message contains the command that installs it.

    Parameters
    ----------
    extra : str
        Name of the extra of the ``wisecrowd`` package.
    feature : str
        Feature that needs it, as the plural subject of a sentence.

    Examples
    --------
    >>> raise MissingExtra("fast", "the compiled kernels")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.MissingExtra: the compiled kernels need an optional dependency; install it with: pip install "wisecrowd[fast]"
    """

    def __init__(self, extra: str, feature: str) -> None:
        self.extra = extra
        self.feature = feature
        super().__init__(f'{feature} need an optional dependency; install it with: pip install "wisecrowd[{extra}]"')

    def __reduce__(self) -> tuple[type, tuple[str, str]]:  # to pickle it between processes
        return type(self), (self.extra, self.feature)


class DiskFull(WisecrowdError, OSError):
    """No room left on the disk for a file; the partial file has been removed.

    Parameters
    ----------
    path : path-like
        File that did not fit.

    Examples
    --------
    >>> raise DiskFull("results/labels.parquet")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.DiskFull: the disk is full: no room for results/labels.parquet; make room and run the same command again. ...
    """

    def __init__(self, path: object) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def __str__(self) -> str:
        return (
            f"the disk is full: no room for {self.filename}; make room and run the same command again. "
            "The partial file has been removed"
        )

    def __reduce__(self) -> tuple[type, tuple[object]]:  # to pickle it between processes
        return type(self), (self.filename,)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error means that the disk is full.

    Parameters
    ----------
    error : BaseException
        Error of the operating system or of a library.

    Returns
    -------
    bool
        True for a full disk or an exceeded quota.

    Examples
    --------
    >>> is_disk_full(OSError(errno.ENOSPC, "No space left on device")), is_disk_full(OSError("No space left on device"))
    (True, True)
    """
    if not isinstance(error, OSError):
        return False
    return error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)


class DataWarning(UserWarning):
    """Data that can be used but deserve a check.

    Examples
    --------
    >>> issubclass(DataWarning, UserWarning)
    True
    """


class NotConverged(UserWarning):
    """Iteration limit reached before convergence.

    Examples
    --------
    >>> issubclass(NotConverged, UserWarning)
    True
    """


def preview(values: Iterable[object], limit: int = 3) -> str:
    """Format the first few values of a possibly long list for a message.

    Parameters
    ----------
    values : iterable
        Values.
    limit : int, default=3
        Number of values to show.

    Returns
    -------
    str
        The values separated by commas, with an ellipsis if there are more. Long values are shortened.

    Examples
    --------
    >>> preview(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c', …"
    """
    texts: list[str] = []
    for value in values:
        if len(texts) == limit:
            texts.append("…")
            break
        text = repr(value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value)  # of numpy
        texts.append(text if len(text) <= 60 else text[:57] + "…" + text[0])
    return ", ".join(texts)


@contextlib.contextmanager
def ignore_fit_warnings() -> Iterator[None]:
    """Silence warnings about convergence and data, for fits that are intermediate steps.

    Examples
    --------
    >>> with ignore_fit_warnings():
    ...     warnings.warn("stopped early", NotConverged)
    """
    with warnings.catch_warnings():
        for kind in (NotConverged, DataWarning):
            warnings.simplefilter("ignore", kind)
        yield


def suggest_name(word: str, names: Iterable[str]) -> str:
    """Suggest the name that a misspelt word or initials probably mean.

    Parameters
    ----------
    word : str
        Word that is no name.
    names : iterable of str
        Valid names.

    Returns
    -------
    str
        Question with a leading space, to append to a message; empty if no name is similar.

    Examples
    --------
    >>> suggest_name("dawid-skeene", ["dawid-skene", "one-coin"])
    " Did you mean 'dawid-skene'?"
    >>> suggest_name("DS", ["dawid-skene", "hds"])
    " Did you mean 'dawid-skene'?"
    """
    candidates = list(names)
    parts = {name: name.split("-") for name in candidates if "-" in name}
    initials = [name for name, words in parts.items() if "".join(part[:1] for part in words) == word.lower()]
    similar = initials or difflib.get_close_matches(word, candidates, n=1)
    return f" Did you mean {similar[0]!r}?" if similar else ""


def check_choice(name: str, value: object, allowed: Iterable[object]) -> None:
    """Raise when a value is not one of the allowed values.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
        Value of the argument.
    allowed : iterable
        Allowed values.

    Raises
    ------
    UsageError
        With all allowed values, and a suggestion if the value looks misspelt.

    Examples
    --------
    >>> check_choice("ties", "split", ["first", "split"])
    """
    choices = list(allowed)
    if value not in choices:
        advice = suggest_name(str(value), [str(choice) for choice in choices])
        raise UsageError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.{advice}")
