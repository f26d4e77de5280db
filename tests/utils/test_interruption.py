from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import pytest

from wisecrowd.utils.interruption import restore_interruption


def interrupt_and_fail() -> None:
    """Raise as a compiled library that gets a KeyboardInterrupt from a Python callback."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    raise RuntimeError("reading the schema failed")


def test_an_error_after_ctrl_c_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt) as stop, restore_interruption():
        interrupt_and_fail()
    assert str(stop.value.__cause__) == "reading the schema failed"


@contextlib.contextmanager
def replace_interruption() -> Iterator[None]:
    """Replace an interruption that was restored within the block by another error."""
    try:
        with restore_interruption():
            yield
    except KeyboardInterrupt:
        raise RuntimeError from None


def test_nested_blocks() -> None:
    with pytest.raises(KeyboardInterrupt), restore_interruption(), replace_interruption():
        interrupt_and_fail()


def test_an_ordinary_interruption_and_an_ordinary_error() -> None:
    with pytest.raises(KeyboardInterrupt), restore_interruption():
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(RuntimeError), restore_interruption():
        raise RuntimeError


def test_the_handler_is_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    with restore_interruption():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with restore_interruption():
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone() -> None:
    handlers = []

    def read_handler() -> None:
        with restore_interruption():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=read_handler)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
