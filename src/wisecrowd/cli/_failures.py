"""Errors, warnings and notes as single lines on standard error, with exit codes."""

from __future__ import annotations

import contextlib
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import TextIO

import typer

from wisecrowd.cli._console import print_note, warn
from wisecrowd.errors import DataWarning, NotConverged, UsageError, WisecrowdError
from wisecrowd.utils.interruption import restore_interruption

#: Exit codes: bad input, bad usage, Ctrl-C.
BAD_INPUT, BAD_USAGE, INTERRUPTED = 1, 2, 130
#: Message after Ctrl-C of commands that say nothing themselves.
NOTHING_PARTIAL = "no file is left half-written."
#: Maximum characters of a message. The longest regular one, a list of all methods, has a third of them.
LONGEST = 2000


@contextlib.contextmanager
def plain_failures(*, debug: bool = False) -> Iterator[None]:
    """Print expected errors as a red line and exit; print warnings as yellow lines and log messages as notes.

    Unexpected exceptions keep their traceback, which a bug report needs.
    """
    try:
        with restore_interruption(), _plain_warnings(), _plain_notes():
            yield
    except KeyboardInterrupt as stop:  # a command that can resume says so in the exception
        print_note(f"Interrupted: {str(stop) or NOTHING_PARTIAL}", style="red")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader closed the pipe; typer ends the program quietly
        raise
    except (WisecrowdError, OSError, MemoryError) as error:
        if debug:
            print_note(traceback.format_exc())
        print_note(f"Error: {_readable(_message(error))}", style="red")
        raise typer.Exit(BAD_USAGE if isinstance(error, UsageError) else BAD_INPUT) from None


@contextlib.contextmanager
def explain_interruption(describe: Callable[[], str]) -> Iterator[None]:
    """Add to an interruption what is kept, and what the same command would do.

    Parameters
    ----------
    describe : callable
        Function that returns the sentence. It is called after Ctrl-C.
    """
    try:
        with restore_interruption():
            yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(describe()) from None


def _message(error: BaseException) -> str:
    if isinstance(error, WisecrowdError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory for these votes and this method; use wisecrowd shard, or a machine with more memory"
    return str(error)


def _readable(text: str) -> str:
    """Return a message cut in the middle if quoted ids make it very long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    printed: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],  # noqa: ARG001  # the signature is Python's
        filename: str,  # noqa: ARG001
        lineno: int,  # noqa: ARG001
        file: TextIO | None = None,  # noqa: ARG001
        line: str | None = None,  # noqa: ARG001
    ) -> None:
        text = str(message)
        if text not in printed:
            printed.add(text)
            warn(_readable(text))

    with warnings.catch_warnings():
        for category in (DataWarning, NotConverged):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


class _Remarks(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print_note(f"Note: {record.getMessage()}", style="dim")


@contextlib.contextmanager
def _plain_notes() -> Iterator[None]:
    """Print log messages of the readers, such as which column was read as which role."""
    logger, handler = logging.getLogger("wisecrowd"), _Remarks()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
