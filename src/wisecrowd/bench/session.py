"""Run of a benchmark in a folder: the remaining cells, their execution and the tables."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.cells import Cell, Row, list_cells
from wisecrowd.bench.confirmation import choose_sample, find_confirmed, has_equal_figures, measure_spread
from wisecrowd.bench.render import describe_run, render_markdown, render_text
from wisecrowd.bench.results import Results
from wisecrowd.bench.runner import run_cells
from wisecrowd.errors import UsageError, suggest_name
from wisecrowd.utils.files import write_text


class Session:
    """Benchmark with the folder of its results, ``<name>.parquet`` and ``<name>.md``.

    Parameters
    ----------
    benchmark : Benchmark
        Benchmark to run.
    folder : Path
        Folder of the results.
    only : iterable of str, default=()
        Titles or patterns (``"D_*"``) of entries and data to run; all if it is empty.
    seeds : int, optional
        Number of seeds, instead of that of the benchmark.
    time_limit : float, optional
        Seconds after which a cell is stopped, instead of those of the benchmark.
    fresh : bool, default=False
        Run cells with a stored result again.

    Attributes
    ----------
    todo : list of Cell
        Cells to run.
    n_settled : int
        Number of cells with a stored result.
    absent : dict of str to str
        Reason by title, for data that are not on this machine.

    Raises
    ------
    UsageError
        If ``seeds`` or ``time_limit`` is not positive, or if nothing matches a pattern.

    Examples
    --------
    >>> import tempfile
    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> from wisecrowd.bench.entries import Aggregate
    >>> small = Benchmark(
    ...     name="small", title="A small one", entries={"MV": Aggregate("majority-vote")},
    ...     data={"easy": SimulatedDataset({"n_tasks": 50, "workers": ["expert(0.999)"] * 3})},
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
        self.only = _match_titles(benchmark, only)
        self._results = Results(folder, benchmark.name)
        cells, self.absent = list_cells(self.benchmark)
        selected = [cell for cell in cells if _is_selected(self.only, cell.entry, cell.data)]
        self.todo = [cell for cell in selected if fresh or not self._results.is_settled(cell, self.time_limit)]
        self.n_settled = len(selected) - len(self.todo)

    def run(self, jobs: int) -> Generator[tuple[Cell, Row]]:
        """Run the remaining cells and write the tables.

        Parameters
        ----------
        jobs : int
            Number of processes.

        Yields
        ------
        cell : Cell
            Cell that has finished.
        row : dict
            Its row, which is on disk already. Closing the generator loses only the cells that are running.
        """
        rows = run_cells(self.todo, jobs=jobs, time_limit=self.time_limit)
        with self._results.open_journal(), contextlib.closing(rows):
            self._results.drop(key for key in list(self._results.rows) if not self._is_current(key))
            try:
                for cell, row in rows:
                    self._results.add(row)
                    yield cell, row
            finally:
                if self._results.rows:
                    write_text(self._results.markdown, self.markdown())

    def choose_sample(self, n_per_entry: int = 2) -> list[Cell]:
        """Choose outdated cells that `confirm` runs again, the quickest of every entry and of every dataset.

        Parameters
        ----------
        n_per_entry : int, default=2
            Number of datasets of every entry.

        Returns
        -------
        list of Cell
        """
        return choose_sample(self.outdated, self._get_stored_seconds, n_per_entry)

    def confirm(self, sample: Sequence[Cell], jobs: int) -> Generator[tuple[Cell, Row, bool]]:
        """Run a sample of the outdated cells, and keep the results that it confirms.

        The rows of the sample are stored. At the end, other outdated rows become valid if all cells of the sample with their
        entry, and all with their data, have the figures that were stored; each names the day in ``confirmed``.

        Parameters
        ----------
        sample : sequence of Cell
            Cells to run, from `choose_sample`.
        jobs : int
            Number of processes.

        Yields
        ------
        cell : Cell
            Cell that has finished.
        row : dict
            Its row.
        is_equal : bool
            Whether its figures are equal to the stored ones, up to the spread over the seeds.
        """
        outdated = self.outdated
        equal: dict[tuple[str, str, int], bool] = {}
        rows = run_cells(sample, jobs=jobs, time_limit=self.time_limit)
        with self._results.open_journal(), contextlib.closing(rows):
            stored = dict(self._results.rows)
            for cell, row in rows:
                of_cell = [stored[key] for key in stored if key[:2] == cell.key[:2]]
                equal[cell.key] = has_equal_figures(stored[cell.key], row, measure_spread(of_cell))
                self._results.add(row)
                yield cell, row, equal[cell.key]
            today = datetime.now(UTC).date().isoformat()
            for cell in find_confirmed(outdated, equal):
                self._results.add(stored[cell.key] | {"digest": cell.digest, "confirmed": today})
            write_text(self._results.markdown, self.markdown())

    def _get_stored_seconds(self, cell: Cell) -> float:
        """Return the running time of the stored row of a cell."""
        return float(self._results.rows[cell.key]["seconds"])

    def _is_current(self, key: tuple[str, str, int]) -> bool:
        """Return whether the benchmark still has the entry and the data of a row."""
        entry, data, _ = key
        return entry in self.benchmark.entries and (data in self.benchmark.data or self.benchmark.data_at_hand)

    @property
    def rows(self) -> list[Row]:
        """Stored rows, one for every entry, data and seed."""
        return list(self._results.rows.values())

    @property
    def outdated(self) -> list[Cell]:
        """Cells whose stored row is of other code, settings or data."""
        return [cell for cell in self.todo if self._results.has_row(cell)]

    @property
    def missing(self) -> list[Cell]:
        """Cells without a stored row."""
        return [cell for cell in self.todo if not self._results.has_row(cell)]

    @property
    def surplus(self) -> list[tuple[str, str, int]]:
        """Entry, data and seed of stored rows that the benchmark does not have."""
        cells, data = set(self.benchmark.cells), self.benchmark.data
        is_elsewhere = self.benchmark.data_at_hand  # rows on data of other machines stay
        return [key for key in self._results.rows if key not in cells and (key[1] in data or not is_elsewhere)]

    def text(self, width: int = 80) -> str:
        """Render the tables and footnotes as plain text.

        Parameters
        ----------
        width : int, default=80
            Maximum number of characters in a line.

        Returns
        -------
        str
        """
        return render_text(self.benchmark, self.rows, width=width, only=self.only)

    def markdown(self) -> str:
        """Render the page of the benchmark with all stored rows, whatever ``only`` selects."""
        return render_markdown(self.benchmark, self.rows)

    def describe_run(self) -> str:
        """Describe the run: number of results, time, dates, versions and machine."""
        return describe_run(self.rows)


def _match_titles(benchmark: Benchmark, only: Iterable[str]) -> tuple[Collection[str], Collection[str]]:
    """Return the titles of entries and of data that match the patterns; an empty collection stands for all."""
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


def _is_selected(only: tuple[Collection[str], Collection[str]], entry: str, data: str) -> bool:
    """Return whether a cell is among the selected titles."""
    entries, sources = only
    return (not entries or entry in entries) and (not sources or data in sources)
