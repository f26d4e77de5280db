"""Processes that run cells; a process that hangs is stopped, and a crash affects only one cell."""

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
from wisecrowd.bench.cells import FAILED, TOO_SLOW, Cell, DatasetCache, Row, make_row, run_cell
from wisecrowd.errors import UsageError

#: Variables set to 1 in every process, because threads inside of parallel processes slow each other down.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

_context = multiprocessing.get_context("spawn")


def run_cells(cells: Sequence[Cell], *, jobs: int = 1, time_limit: float | None = None) -> Generator[tuple[Cell, Row]]:
    """Run cells in several processes.

    Parameters
    ----------
    cells : sequence of Cell
        Cells to run.
    jobs : int, default=1
        Number of processes.
    time_limit : float, optional
        Seconds after which a cell is stopped.

    Yields
    ------
    cell : Cell
        Cell that has finished.
    row : dict
        Its row. Closing the generator stops the processes.

    Raises
    ------
    UsageError
        If ``jobs`` is less than 1, or if an entry cannot be pickled.
    """
    if jobs < 1:
        raise UsageError(f"jobs must be 1 or more; got {jobs}")
    waiting = deque(cells)
    processes = [_CellProcess() for _ in range(min(jobs, len(cells)))]
    try:
        while waiting or any(process.cell for process in processes):
            for process in processes:
                if process.cell is None and waiting:
                    process.start_cell(_pop_next(waiting, process.last_cell))
            busy = [process for process in processes if process.cell is not None]
            connection.wait([process.pipe for process in busy], _remaining_seconds(busy, time_limit))
            for process in busy:
                assert process.cell is not None
                cell = process.cell
                row = process.poll_row(time_limit)
                if row is not None:
                    yield cell, row
    finally:
        for process in processes:
            process.stop()


def _pop_next(waiting: deque[Cell], last: Cell | None) -> Cell:
    """Remove and return the next cell, preferably one on the data that the process has loaded."""
    same = (cell for cell in waiting if last and (cell.data, cell.seed) == (last.data, last.seed))
    chosen = next(same, waiting[0])
    waiting.remove(chosen)
    return chosen


def _remaining_seconds(busy: list[_CellProcess], time_limit: float | None) -> float | None:
    """Return the time until the first cell reaches its limit."""
    if time_limit is None:
        return None
    return max(0.0, time_limit - max(process.seconds for process in busy))


class _CellProcess:
    """Process and the cell that it runs; it starts with its first cell, and again after a crash."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.last_cell: Cell | None = None
        self._process: Any = None
        self._started = 0.0

    @property
    def seconds(self) -> float:
        """Running time of the current cell."""
        return time.monotonic() - self._started

    def start_cell(self, cell: Cell) -> None:
        """Send a cell to the process."""
        if self._process is None:
            self._start()
        try:
            message = pickle.dumps(cell)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"the entry {cell.entry!r} cannot be sent to another process ({error}); use a function or class that "
                "its module defines by name"
            ) from None
        self.cell, self._started = cell, time.monotonic()
        with contextlib.suppress(OSError):  # the process has died, which `poll_row` reports
            self.pipe.send_bytes(message)

    def poll_row(self, time_limit: float | None) -> Row | None:
        """Return the row of the cell, or None while it runs."""
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
                row = make_row(cell, status=FAILED, seconds=self.seconds, reason=_explain_exit(self._process.exitcode))
                self.stop()
        elif time_limit is not None and self.seconds >= time_limit:
            reason = f"stopped after {time_limit:g} seconds"
            row = make_row(cell, status=TOO_SLOW, seconds=time_limit, reason=reason)
            self.stop()
        if row is not None:
            self.cell, self.last_cell = None, cell
        return row

    def stop(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self.pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        """Start the process with a pipe to it."""
        self.pipe, child_pipe = _context.Pipe()
        self._process = _context.Process(target=_run_process, args=(child_pipe,), daemon=True)
        with _set_environment(dict.fromkeys(_THREAD_VARIABLES, "1")):
            self._process.start()
        child_pipe.close()


def _run_process(pipe: connection.Connection) -> None:
    """Run cells until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and stops this process
    threading.Thread(target=_die_with_parent, daemon=True).start()
    methods()  # fill the registry now, so that its cost does not count for the first cell
    datasets = DatasetCache()
    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pipe.recv_bytes()
            try:
                cell: Cell = pickle.loads(message)
            except Exception as error:  # importing the module of the entry may raise anything
                pipe.send(f"the entry cannot be loaded in another process: {error}")
            else:
                pipe.send(run_cell(cell, datasets))


def _die_with_parent() -> None:
    """Exit when the parent ends; a parent that was killed cannot stop its children."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _explain_exit(exitcode: int | None) -> str:
    """Return why a process ended."""
    if exitcode == -signal.SIGKILL:
        return "the process was killed, probably because memory ran out"
    return f"the process ended with exit code {exitcode}"


@contextlib.contextmanager
def _set_environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables inside the block."""
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
