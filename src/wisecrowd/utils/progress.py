"""Progress for whoever watches: methods report, and the program that runs them decides what is shown."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeAlias

#: Called with (what is done, steps so far, steps at most, one line of detail).
Listener: TypeAlias = Callable[[str, int, int, str], None]

_listener: ContextVar[Listener | None] = ContextVar("wisecrowd_progress", default=None)


def report(what: str, step: int, total: int, detail: str = "") -> None:
    """Tell the listener, if there is one, how far a long computation has come.

    >>> with listen(lambda what, step, total, detail: print(what, f"{step}/{total}", detail)):
    ...     report("Dawid-Skene", 3, 10, "log-likelihood -12.5")
    Dawid-Skene 3/10 log-likelihood -12.5
    """
    listener = _listener.get()
    if listener is not None:
        listener(what, step, total, detail)


def read_launcher_rank() -> tuple[int, int] | None:
    """The number of this process and how many there are, if a launcher such as ``torchrun`` started several together.

    >>> read_launcher_rank() is None
    True
    """
    told = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")]
    return (int(told[0]), int(told[1])) if all(told) else None


def is_main_process() -> bool:
    """Whether this process prints and writes: of several that were started together, the first.

    >>> is_main_process()
    True
    """
    return (read_launcher_rank() or (0, 1))[0] == 0


@contextlib.contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Send every report made inside the block to ``listener``.

    >>> with listen(lambda *news: print(news)):
    ...     report("reading", 1, 2)
    ('reading', 1, 2, '')
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def show_if(verbose: bool) -> contextlib.AbstractContextManager[None]:
    """A progress bar from the start for a method that is asked for one; otherwise whatever there was.

    >>> with show_if(verbose=False):
    ...     report("nobody looks", 1, 1)
    """
    return show(after=0) if verbose else contextlib.nullcontext()


@contextlib.contextmanager
def show(after: float = 2.0) -> Iterator[None]:
    """Draw a progress bar on standard error for whatever takes longer than ``after`` seconds.

    >>> with show():
    ...     report("quick work shows nothing", 1, 1)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, TextColumn("{task.fields[detail]}"), console=Console(stderr=True), transient=True)
    tasks: dict[str, int] = {}
    begun = time.monotonic()

    def draw(what: str, step: int, total: int, detail: str) -> None:
        if time.monotonic() - begun < after or not is_main_process():
            return
        if not bar.live.is_started:
            bar.start()
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=total, detail=detail)
        bar.update(tasks[what], completed=step, total=total, detail=detail)  # type: ignore[arg-type]  # TaskID is an int

    try:
        with listen(draw):
            yield
    finally:
        if bar.live.is_started:
            bar.stop()
