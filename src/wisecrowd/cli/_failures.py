"""What a person sees when something goes wrong: one message that says what to do, and an exit code."""

from __future__ import annotations

import contextlib
import logging
import traceback
import warnings
from collections.abc import Iterator
from typing import TextIO

import typer

from wisecrowd.cli._console import remark, warn
from wisecrowd.errors import DataWarning, NotConverged, UsageError, WisecrowdError

#: Exit codes: bad input, bad usage, Ctrl-C.
BAD_INPUT, BAD_USAGE, INTERRUPTED = 1, 2, 130
#: Characters of a message at most; the longest of ours, a list of all methods, has a third of them.
LONGEST = 2000


@contextlib.contextmanager
def plain_failures(*, debug: bool = False) -> Iterator[None]:
    """Turn what is raised inside into a red line and an exit code, warnings into yellow lines, and notes into lines.

    What is not foreseen keeps its traceback: it is a bug, and the traceback is what a report of it needs.
    """
    try:
        with _plain_warnings(), _plain_notes():
            yield
    except KeyboardInterrupt as stop:  # a command that can go on says so
        remark(f"Interrupted; {str(stop) or 'nothing is left half-written.'}", style="red")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # whoever read the output has seen enough; typer ends the program quietly
        raise
    except (WisecrowdError, OSError, MemoryError) as error:
        if debug:
            remark(traceback.format_exc())
        remark(f"Error: {_readable(_message(error))}", style="red")
        raise typer.Exit(BAD_USAGE if isinstance(error, UsageError) else BAD_INPUT) from None


def _message(error: BaseException) -> str:
    if isinstance(error, WisecrowdError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "the memory of this machine does not suffice for these votes and this method"
    return str(error)


def _readable(text: str) -> str:
    """A message of bearable length, whatever ids and names it quotes."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    said: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],  # noqa: ARG001  # the signature is Python's
        filename: str,  # noqa: ARG001
        lineno: int,  # noqa: ARG001
        file: TextIO | None = None,  # noqa: ARG001
        line: str | None = None,  # noqa: ARG001
    ) -> None:
        text = str(message)
        if text not in said:
            said.add(text)
            warn(_readable(text))

    with warnings.catch_warnings():
        for category in (DataWarning, NotConverged):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


class _Remarks(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        remark(f"Note: {record.getMessage()}", style="dim")


@contextlib.contextmanager
def _plain_notes() -> Iterator[None]:
    """Show what the readers log, such as which column they took for which."""
    logger, handler = logging.getLogger("wisecrowd"), _Remarks()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
