"""A child process for jobs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

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
