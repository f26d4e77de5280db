"""A process beside the service that computes for it, one thing after the other."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")

#: How far it stands back: who answers goes first, but where other programs take all there is, it still gets some.
NICE = 10

_log = logging.getLogger(__name__)


class Helper:
    """Starts with the first thing that it is asked for; when it dies, the next thing is done by a new one.

    >>> helper = Helper()
    >>> helper.submit(pow, 2, 5).result()
    32
    >>> helper.end()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool = self._new()

    def submit(self, function: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Future[Found]:
        """What a function finds, which must be one of a module."""
        with self._lock:
            try:
                return self._pool.submit(function, *given, **named)
            except BrokenProcessPool:
                _log.error("a process that computes has died, and is made anew")
                self._pool = self._new()
                return self._pool.submit(function, *given, **named)

    @property
    def processes(self) -> list[Any]:
        """What is running."""
        return list((self._pool._processes or {}).values())

    def end(self) -> None:
        """At once: nobody waits for what nobody will see."""
        for process in self.processes:
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _new(self) -> ProcessPoolExecutor:
        # A process that was forked would hold our locks and our connections as they were at that moment.
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=stand_back)


def stand_back() -> None:
    """Let this process leave the processor to the service, and end when the service does, however that ended."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()
