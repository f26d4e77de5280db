"""A child process for jobs."""

from __future__ import annotations

import logging
import multiprocessing.util
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from wisecrowd.service.background_process import NICENESS, BackgroundProcess


@pytest.fixture
def background() -> Iterator[BackgroundProcess]:
    process = BackgroundProcess()
    yield process
    process.terminate()


def test_jobs_run_in_another_process_with_a_lower_priority(background: BackgroundProcess) -> None:
    assert background.processes == [], "nothing starts before the first job"
    own = os.nice(0)
    assert background.submit(os.getpid).result() != os.getpid()
    assert background.submit(os.nice, 0).result() == min(own + NICENESS, 19)
    assert background.submit(os.getpid).result() == background.processes[0].pid


def test_an_error_is_what_the_caller_sees(background: BackgroundProcess) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        background.submit(int, "seven").result()


def test_a_dead_process_is_replaced(background: BackgroundProcess, caplog: pytest.LogCaptureFixture) -> None:
    first = background.submit(os.getpid).result()
    with pytest.raises(Exception, match="terminated abruptly"):
        background.submit(os._exit, 3).result()
    with caplog.at_level(logging.ERROR):
        assert background.submit(os.getpid).result() != first
    assert "a background process died" in caplog.text


def test_termination_ends_the_process(background: BackgroundProcess) -> None:
    background.submit(os.getpid).result()
    (child,) = background.processes
    background.terminate()
    child.join(10)
    assert not child.is_alive()


def test_running_job_is_cancelled(background: BackgroundProcess) -> None:
    assert background.submit(pow, 2, 3).result() == 8  # the child has started
    endless = background.submit(time.sleep, 600)
    background.cancel(endless)
    with pytest.raises((BrokenProcessPool, CancelledError)):
        endless.result(60)
    assert background.submit(pow, 2, 4).result() == 16


def test_cancelling_a_job_does_not_stop_another_one(background: BackgroundProcess) -> None:
    first, second = background.submit(time.sleep, 0.2), background.submit(pow, 2, 5)
    background.cancel(first)
    assert second.result(60) == 32


class _StoppedError(Exception):
    """A signal was handled."""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of threads are POSIX only")
def test_a_signal_while_the_process_starts_is_handled_when_it_has_started(
    background: BackgroundProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread receives the signal, so that blocking it in the main thread does not help."""
    waiting = threading.Event()
    other = threading.Thread(target=waiting.wait)
    other.start()
    spawn = multiprocessing.util.spawnv_passfds

    def spawn_and_signal(*args: Any) -> int:
        signal.pthread_kill(other.ident or 0, signal.SIGTERM)
        time.sleep(0.05)
        return spawn(*args)

    def stop(*_: object) -> None:
        raise _StoppedError

    background.submit(os.getpid).result()  # starts the tracker of semaphores
    background.terminate()
    second = BackgroundProcess()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", spawn_and_signal)
        with pytest.raises(_StoppedError):
            second.submit(os.getpid)
        assert [process.is_alive() for process in second.processes] == [True]
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)
        waiting.set()
        other.join()
        second.terminate()
    assert [process.is_alive() for process in second.processes] == [False]
