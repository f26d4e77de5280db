"""A run of a benchmark in a folder: what is left to do, doing it, and the tables that come of it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Iterable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.cells import Cell, Row, list_cells
from wisecrowd.bench.render import as_markdown, as_text, provenance
from wisecrowd.bench.results import Results
from wisecrowd.bench.runner import run_cells
from wisecrowd.errors import UsageError, suggest_name
from wisecrowd.utils.files import write_text


class Session:
    """One benchmark and the folder that holds its results: ``<name>.parquet`` and ``<name>.md``.

    ``only`` narrows to some entries and data, by title or pattern; ``seeds`` and ``time_limit`` replace the
    benchmark's own; ``fresh`` runs again what was run before.

    >>> import tempfile
    >>> from wisecrowd.bench.data import Simulated
    >>> from wisecrowd.bench.entries import Aggregate
    >>> small = Benchmark(
    ...     name="small", title="A small one", entries={"MV": Aggregate("majority-vote")},
    ...     data={"easy": Simulated({"n_tasks": 50, "workers": ["expert(0.999)"] * 3})},
    ... )
    >>> session = Session(small, Path(tempfile.mkdtemp()))
    >>> [(str(cell), row["status"], row["figures"]["accuracy"]) for cell, row in session.run(jobs=1)]
    [('MV on easy', 'ok', 1.0)]
    >>> len(Session(small, session.folder).todo)
    0
    """

    def __init__(
        self,
        benchmark: Benchmark,
        folder: Path,
        *,
        only: Iterable[str] = (),
        seeds: int | None = None,
        time_limit: float | None = None,
        fresh: bool = False,
    ) -> None:
        if seeds is not None and seeds < 1:
            raise UsageError(f"seeds must be 1 or more; got {seeds}")
        if time_limit is not None and time_limit <= 0:
            raise UsageError(f"the time limit must be positive; got {time_limit}")
        self.benchmark = benchmark if seeds is None else replace(benchmark, seeds=seeds)
        self.folder = folder
        self.time_limit = time_limit if time_limit is not None else benchmark.time_limit
        self.only = _chosen(benchmark, only)
        self._results = Results(folder, benchmark.name)
        cells, self.absent = list_cells(self.benchmark)
        chosen = [cell for cell in cells if _within(self.only, cell.entry, cell.data)]
        self.todo = [cell for cell in chosen if fresh or not self._results.settled(cell, self.time_limit)]
        #: How many cells an earlier run has done.
        self.n_settled = len(chosen) - len(self.todo)

    def run(self, jobs: int) -> Generator[tuple[Cell, Row]]:
        """Do what is left to do, and yield each row when it is on the disk; the tables are written at the end.

        Whoever leaves the loop before the end loses the cells that were running, and nothing else.
        """
        rows = run_cells(self.todo, jobs=jobs, time_limit=self.time_limit)
        with self._results.writing(), contextlib.closing(rows):
            self._results.drop(key for key in list(self._results.rows) if not self._has(key))
            try:
                for cell, row in rows:
                    self._results.add(row)
                    yield cell, row
            finally:
                if self._results.rows:
                    write_text(self._results.markdown, self.markdown())

    def _has(self, key: tuple[str, str, int]) -> bool:
        entry, data, _ = key
        return entry in self.benchmark.entries and (data in self.benchmark.data or self.benchmark.data_at_hand)

    @property
    def rows(self) -> list[Row]:
        """Everything that has been run so far, a row for each entry, data and seed."""
        return list(self._results.rows.values())

    def text(self, width: int = 80) -> str:
        """The tables and their footnotes, no wider than that."""
        return as_text(self.benchmark, self.rows, width=width, only=self.only)

    def markdown(self) -> str:
        """The page of the benchmark: everything that has been run, with ``only`` or without."""
        return as_markdown(self.benchmark, self.rows)

    def provenance(self) -> str:
        """How much was run, when, with what, and on which machine."""
        return provenance(self.rows)


def _chosen(benchmark: Benchmark, only: Iterable[str]) -> tuple[Collection[str], Collection[str]]:
    """Titles of entries and of data that patterns name; an empty side means all of it."""
    entries: dict[str, None] = {}
    data: dict[str, None] = {}
    for pattern in only:
        matches = [
            (side, title)
            for side, titles in ((entries, benchmark.entries), (data, benchmark.data))
            for title in titles
            if fnmatch(title.lower(), pattern.lower())
        ]
        if not matches:
            titles = [*benchmark.entries, *benchmark.data]
            raise UsageError(
                f"nothing in {benchmark.name} is called {pattern!r}.{suggest_name(pattern, titles)} "
                f"There are: {', '.join(titles)}"
            )
        for side, title in matches:
            side[title] = None
    return entries, data


def _within(only: tuple[Collection[str], Collection[str]], entry: str, data: str) -> bool:
    entries, datas = only
    return (not entries or entry in entries) and (not datas or data in datas)
