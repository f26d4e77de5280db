"""Ctrl-C while a compiled library runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def restore_interruption() -> Iterator[None]:
    """Raise KeyboardInterrupt if an exception ends the block after Ctrl-C.

    Compiled libraries call Python code and turn its KeyboardInterrupt into an error of their own: DuckDB into
    ``InvalidInputException`` or ``RuntimeError``, for example. Without this, an interrupted program seems to have failed.

    Examples
    --------
    >>> with restore_interruption():
    ...     int("a")  # no Ctrl-C
    Traceback (most recent call last):
        ...
    ValueError: invalid literal for int() with base 10: 'a'
    """
    handler = signal.getsignal(signal.SIGINT)
    # Python handles signals in the main thread only. SIGINT may be ignored, or belong to a program that embeds Python.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    is_interrupted = False

    def record_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        handler(number, frame)

    signal.signal(signal.SIGINT, record_signal)
    try:
        yield
    except Exception as error:
        if is_interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
