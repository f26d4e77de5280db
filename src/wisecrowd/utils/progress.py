"""Progress reports of long computations.

Methods call `report`. The program that runs them decides with `listen`, `show` or `show_if` who receives the reports.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeAlias

#: Receiver of reports, called with title, number of finished steps, largest number of steps and one line of detail.
Listener: TypeAlias = Callable[[str, int, int, str], None]

#: Total of computations that report their progress in percent. They have parts with progress of their own.
PERCENT = 100
#: Share of the steps from which the time left is estimated. Iterations that may converge at any step hardly ever get that far.
MIN_ESTIMATED_SHARE = 0.1

_listener: ContextVar[Listener | None] = ContextVar("wisecrowd_progress", default=None)


def report(title: str, step: int, total: int, detail: str = "") -> None:
    """Report the progress of a long computation to the current listener, if any.

    Parameters
    ----------
    title : str
        Name of the computation.
    step : int
        Number of finished steps.
    total : int
        Largest number of steps.
    detail : str, default=""
        One line of further information.

    Examples
    --------
    >>> with listen(lambda title, step, total, detail: print(title, f"{step}/{total}", detail)):
    ...     report("Dawid-Skene", 3, 10, "log-likelihood -12.5")
    Dawid-Skene 3/10 log-likelihood -12.5
    """
    listener = _listener.get()
    if listener is not None:
        listener(title, step, total, detail)


def read_launcher_rank() -> tuple[int, int] | None:
    """Read the rank of this process from the environment that a launcher such as ``torchrun`` sets.

    Returns
    -------
    tuple of int or None
        Rank of this process and number of processes; None if no launcher started it.

    Examples
    --------
    >>> read_launcher_rank() is None
    True
    """
    variables = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")]
    return (int(variables[0]), int(variables[1])) if all(variables) else None


def is_main_process() -> bool:
    """Return whether this process prints and writes: the only one, or the first of those that a launcher started.

    Returns
    -------
    bool
        True for rank zero.

    Examples
    --------
    >>> is_main_process()
    True
    """
    return (read_launcher_rank() or (0, 1))[0] == 0


@contextlib.contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Send every report made inside the block to a listener.

    Parameters
    ----------
    listener : callable
        Called with title, step, total and detail.

    Examples
    --------
    >>> with listen(lambda *arguments: print(arguments)):
    ...     report("reading", 1, 2)
    ('reading', 1, 2, '')
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def show_if(verbose: bool) -> contextlib.AbstractContextManager[None]:
    """Show a progress bar at once if ``verbose``; otherwise keep the current listener.

    Parameters
    ----------
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    context manager
        To be used around the computation.

    Examples
    --------
    >>> with show_if(verbose=False):
    ...     report("quiet", 1, 1)
    """
    return show(after=0) if verbose else contextlib.nullcontext()


@contextlib.contextmanager
def show(after: float = 2.0) -> Iterator[None]:
    """Draw a progress bar on standard error, with an estimate of the time left, for computations longer than ``after`` seconds.

    Parameters
    ----------
    after : float, default=2.0
        Delay in seconds, so that quick computations draw nothing.

    Examples
    --------
    >>> with show():
    ...     report("quick", 1, 1)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        """Estimated time left, once there is something to estimate it from."""

        def render(self, task: Task) -> Text:
            return super().render(task) if task.percentage >= 100 * MIN_ESTIMATED_SHARE else Text("")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TimeLeft(),
    )
    bar = Progress(*columns, TextColumn("{task.fields[detail]}"), console=Console(stderr=True), transient=True)
    bar_ids: dict[str, int] = {}
    start = time.monotonic()

    def draw(title: str, step: int, total: int, detail: str) -> None:
        if time.monotonic() - start < after or not is_main_process():
            return
        if not bar.live.is_started:
            bar.start()
        if title not in bar_ids:
            bar_ids[title] = bar.add_task(title, total=total, detail=detail)
        bar.update(bar_ids[title], completed=step, total=total, detail=detail)  # type: ignore[arg-type]  # TaskID is int

    try:
        with listen(draw):
            yield
    finally:
        if bar.live.is_started:
            bar.stop()


@contextlib.contextmanager
def write_lines(write: Callable[[str], None], after: float = 10.0, every: float = 30.0) -> Iterator[None]:
    """Write a line about the progress now and then, for log files and pipes.

    A computation that reports its start (step 0) has a share of its work in percent and an estimate of the time left. Iterations
    report steps from 1 and may converge at any step, so a line has the step and the largest number of steps.

    Parameters
    ----------
    write : callable
        Called with each line.
    after : float, default=10.0
        Seconds before the first line, so that quick computations write nothing.
    every : float, default=30.0
        Smallest number of seconds between two lines.

    Examples
    --------
    >>> with write_lines(print, after=0):
    ...     report("Dawid-Skene", 1, 500, "log-likelihood -12.5")
    Dawid-Skene: step 1 of at most 500 after 0 s (log-likelihood -12.5)
    """
    start = time.monotonic()
    first_report: dict[str, tuple[float, int]] = {}
    outer: tuple[str, int, int, str] | None = None
    last_line = start + after - every

    def describe(title: str, step: int, total: int, detail: str) -> None:
        nonlocal last_line, outer
        now = time.monotonic()
        first_report.setdefault(title, (now, step))
        knows_end = first_report[title][1] == 0
        if total == PERCENT and knows_end:
            outer = (title, step, total, detail)
        if now - last_line < every or not is_main_process():
            return
        last_line = now
        if outer is not None and outer[0] != title and outer[1] < PERCENT:
            detail = f"{outer[3]}: {title} {step}/{total}"
            title, step, total, _ = outer
            knows_end = True
        begin, first_step = first_report[title]
        position = f"{100 * step / max(total, 1):.0f} %" if knows_end else f"step {step:,} of at most {total:,}"
        line = f"{title}: {position} after {_format_seconds(now - start)}"
        if knows_end and step >= MIN_ESTIMATED_SHARE * total and step > first_step:
            line += f", about {_format_seconds((now - begin) * (total - step) / (step - first_step))} left"
        write(f"{line} ({detail})" if detail else line)

    with listen(describe):
        yield


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
