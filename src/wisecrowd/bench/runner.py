"""Processes that answer cells: one that hangs is stopped, one that dies takes only its cell with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from multiprocessing import connection
from typing import Any

from wisecrowd.base.registry import methods
from wisecrowd.bench.cells import FAILED, TOO_SLOW, Cell, DatasetCache, Row, evaluate, make_row
from wisecrowd.errors import UsageError

#: Each process computes on one core: parallel methods inside of parallel cells would only be in each other's way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_processes = multiprocessing.get_context("spawn")


def run_cells(cells: Sequence[Cell], *, jobs: int = 1, time_limit: float | None = None) -> Generator[tuple[Cell, Row]]:
    """Answer every cell in ``jobs`` processes, and yield each row as it comes; leaving the loop stops the processes."""
    if jobs < 1:
        raise UsageError(f"jobs must be 1 or more; got {jobs}")
    waiting = deque(cells)
    workers = [_Worker() for _ in range(min(jobs, len(cells)))]
    try:
        while waiting or any(worker.cell for worker in workers):
            for worker in workers:
                if worker.cell is None and waiting:
                    worker.take(_next(waiting, worker.last))
            busy = [worker for worker in workers if worker.cell is not None]
            connection.wait([worker.pipe for worker in busy], _patience(busy, time_limit))
            for worker in busy:
                assert worker.cell is not None
                cell = worker.cell
                row = worker.finished(time_limit)
                if row is not None:
                    yield cell, row
    finally:
        for worker in workers:
            worker.stop()


def _next(waiting: deque[Cell], last: Cell | None) -> Cell:
    """Rather a cell on the data that the process has loaded than the first."""
    same = (cell for cell in waiting if last and (cell.data, cell.seed) == (last.data, last.seed))
    chosen = next(same, waiting[0])
    waiting.remove(chosen)
    return chosen


def _patience(busy: list[_Worker], time_limit: float | None) -> float | None:
    if time_limit is None:
        return None
    return max(0.0, time_limit - max(worker.seconds for worker in busy))


class _Worker:
    """A process and the cell that it is at; the process starts with its first cell, and again after an accident."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.last: Cell | None = None
        self._process: Any = None
        self._begun = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def take(self, cell: Cell) -> None:
        if self._process is None:
            self._start()
        try:
            message = pickle.dumps(cell)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"the entry {cell.entry!r} cannot be sent to another process ({error}); use a function or class that "
                "its module defines by name"
            ) from None
        self.cell, self._begun = cell, time.monotonic()
        with contextlib.suppress(OSError):  # it died before it got anything to do, which `finished` will find
            self.pipe.send_bytes(message)

    def finished(self, time_limit: float | None) -> Row | None:
        """The row of the cell if there is one by now."""
        assert self.cell is not None
        cell = self.cell
        row: Row | None = None
        if self.pipe.poll():
            try:
                message: Row | str = self.pipe.recv()
                row = (
                    make_row(cell, status=FAILED, seconds=0.0, reason=message) if isinstance(message, str) else message
                )
            except (EOFError, OSError):
                self._process.join(timeout=10)
                row = make_row(cell, status=FAILED, seconds=self.seconds, reason=_cause(self._process.exitcode))
                self.stop()
        elif time_limit is not None and self.seconds >= time_limit:
            reason = f"stopped after {time_limit:g} seconds"
            row = make_row(cell, status=TOO_SLOW, seconds=time_limit, reason=reason)
            self.stop()
        if row is not None:
            self.cell, self.last = None, cell
        return row

    def stop(self) -> None:
        if self._process is not None:
            self.pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        self.pipe, theirs = _processes.Pipe()
        self._process = _processes.Process(target=_serve, args=(theirs,), daemon=True)
        with _environment(dict.fromkeys(_ONE_THREAD, "1")):
            self._process.start()
        theirs.close()


def _serve(pipe: connection.Connection) -> None:
    """The life of a process: answer cells until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops this process
    threading.Thread(target=_die_with_parent, daemon=True).start()
    methods()  # finding them takes a moment, which should not count for the first one
    shelf = DatasetCache()
    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pipe.recv_bytes()
            try:
                cell: Cell = pickle.loads(message)
            except Exception as error:  # whatever importing the entry's module may raise
                pipe.send(f"the entry cannot be loaded in another process: {error}")
            else:
                pipe.send(evaluate(cell, shelf))


def _die_with_parent() -> None:
    """A parent that was killed cannot stop its children, and a cell may take minutes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _cause(exitcode: int | None) -> str:
    if exitcode == -signal.SIGKILL:
        return "the process was killed, probably because memory ran out"
    return f"the process ended with exit code {exitcode}"


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
