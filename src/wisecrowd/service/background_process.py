"""A child process that runs the fits of the service one after the other."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Niceness of the child. Answers to requests go first, but a busy machine does not starve the fits.
NICENESS = 10

_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}

_log = logging.getLogger(__name__)


class _ChildProcess(SpawnProcess):
    """Process that Ctrl-C in a terminal does not interrupt, not even while it starts; its parent ends it."""

    def start(self) -> None:
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            super().start()
            return
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # the child inherits it
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _TrackingContext(SpawnContext):
    """Spawn context that remembers its processes, so that they can be terminated.

    A forked child would inherit the locks and connections of the service in whatever state they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[SpawnProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        process = _ChildProcess(*args, **kwargs)
        self.processes.append(process)
        return process


class BackgroundProcess:
    """A child process that starts with its first job and is replaced when it dies.

    Examples
    --------
    >>> background = BackgroundProcess()
    >>> background.submit(pow, 2, 5).result()
    32
    >>> background.terminate()
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a job that is cancelled counts itself as finished in the same thread
        self._n_unfinished = 0
        self._start_pool()

    def submit(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        """Run a function in the child.

        Parameters
        ----------
        function : callable
            Function of a module, so that it can be pickled.
        *args, **kwargs
            Arguments of the function.

        Returns
        -------
        concurrent.futures.Future
            Result of the function.
        """
        with self._lock, _postponed_signals():
            try:
                job = self._pool.submit(function, *args, **kwargs)
            except BrokenProcessPool:
                _log.error("a background process died; starting a new one")
                self._start_pool()
                job = self._pool.submit(function, *args, **kwargs)
            self._n_unfinished += 1
        job.add_done_callback(self._count_finished)
        return job

    def _count_finished(self, _: Future[Any]) -> None:
        with self._lock:
            self._n_unfinished -= 1

    @property
    def processes(self) -> list[SpawnProcess]:
        """Processes that were started and may still run."""
        return [process for process in self._context.processes if process.pid is not None]

    def cancel(self, job: Future[Any]) -> None:
        """Cancel a job. The child is stopped if it runs the job and no other one waits; a new one starts with the next job.

        Parameters
        ----------
        job : concurrent.futures.Future
            Result of `submit`.
        """
        with self._lock:
            if job.cancel() or job.done() or self._n_unfinished > 1:
                return
            for process in self.processes:
                process.kill()
            self._start_pool()

    def terminate(self) -> None:
        """Stop the child at once and drop the jobs that wait."""
        for process in self.processes:
            process.kill()  # while it starts, it does not heed SIGTERM
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start_pool(self) -> None:
        self._context = _TrackingContext()
        self._pool = ProcessPoolExecutor(1, mp_context=self._context, initializer=initialize_child)


@contextlib.contextmanager
def _postponed_signals() -> Iterator[None]:
    """Handle SIGINT and SIGTERM after the block, so that no exception of a handler leaves a process half started.

    Blocking the signals in this thread is not enough: another thread receives them, and the main thread handles them.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield
        return
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    handlers = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not Python's
    for number in handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in received:
        signal.raise_signal(late)


def initialize_child() -> None:
    """Lower the priority of this process and end it when its parent ends, not with Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()
