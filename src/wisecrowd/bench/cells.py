"""Cells of a benchmark, and the rows that are stored for them.

A cell is one entry on one dataset with one seed. Its row has the figures, or the reason why there are none.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from wisecrowd import __version__
from wisecrowd.bench.benchmark import Benchmark, DataSource, Entry
from wisecrowd.bench.entries import get_identity
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import MissingExtra, NotConverged, WisecrowdError
from wisecrowd.io.datasets import Dataset

#: Stored result of a cell.
Row: TypeAlias = dict[str, Any]

#: States of a row. The first two are final; cells in the other states run again next time.
OK, DECLINED, FAILED, TOO_SLOW, NOT_INSTALLED = "ok", "declined", "failed", "too slow", "not installed"

#: Part of every digest; raise it when a change of code that all entries share changes results.
SHARED_VERSION = "0.1.0"

#: Packages whose versions are stored with every row.
_RECORDED_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "numba", "torch")


@dataclass(frozen=True)
class Cell:
    """One entry on one dataset with one seed.

    Attributes
    ----------
    entry, data : str
        Titles of the entry and of the data.
    seed : int
        Seed of the data and of the entry.
    answer : Entry
        Callable of the entry.
    source : DataSource
        Source of the data.
    digest : str
        Digest of the code and settings of the entry, the data and the seed. A stored row counts only if its digest is equal.
    size : int
        Approximate number of votes.
    """

    entry: str
    data: str
    seed: int
    answer: Entry
    source: DataSource
    digest: str
    size: int

    @property
    def key(self) -> tuple[str, str, int]:
        """Entry, data and seed, by which rows are stored."""
        return self.entry, self.data, self.seed

    def __str__(self) -> str:
        return f"{self.entry} on {self.data}" + (f", seed {self.seed}" if self.seed else "")


def list_cells(benchmark: Benchmark) -> tuple[list[Cell], dict[str, str]]:
    """List the cells of a benchmark that can run on this machine.

    Parameters
    ----------
    benchmark : Benchmark
        Benchmark to run.

    Returns
    -------
    cells : list of Cell
        Cells, those with the most votes first.
    absent : dict of str to str
        Reason by title, for data that are not on this machine.
    """
    absent = {title: reason for title, data in benchmark.data.items() if (reason := data.absence()) is not None}
    available = {title: data for title, data in benchmark.data.items() if title not in absent}
    data_identities = {title: data.identity() for title, data in available.items()}
    sizes = {title: data.size() for title, data in available.items()}
    entry_identities = {title: _identify_entry(entry) for title, entry in benchmark.entries.items()}
    cells = [
        Cell(
            entry, data, seed, benchmark.entries[entry], available[data],
            digest=_digest([SHARED_VERSION, entry_identities[entry], data_identities[data], seed]), size=sizes[data],
        )
        for entry, data, seed in benchmark.cells
        if data in available
    ]  # fmt: skip
    # Large cells run first, so that no process is still busy with one when the others have finished.
    return sorted(cells, key=lambda cell: -cell.size), absent


class DatasetCache:
    """Cache of the last dataset; consecutive cells often share their data."""

    def __init__(self) -> None:
        self._label = ""
        self._dataset: Dataset | None = None

    def load(self, source: DataSource, seed: int) -> Dataset:
        """Load a dataset, or return the cached one.

        Parameters
        ----------
        source : DataSource
            Source of the data.
        seed : int
            Seed of the data.

        Returns
        -------
        Dataset
        """
        label = f"{source!r}, seed {seed if source.is_random else 0}"
        if self._dataset is None or label != self._label:
            self._dataset = None  # free the memory before the next dataset is loaded
            self._label, self._dataset = label, source.load(seed)
            _compute_cached_properties(self._dataset.crowd)
        return self._dataset


def run_cell(cell: Cell, datasets: DatasetCache) -> Row:
    """Run the entry of a cell and score it.

    Parameters
    ----------
    cell : Cell
        Cell to run.
    datasets : DatasetCache
        Cache of the process.

    Returns
    -------
    dict
        Row with the figures. If the entry declined the data or failed, the row has the reason instead.
    """
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            outcome = _run_entry(cell, datasets.load(cell.source, cell.seed))
        except Exception as error:
            outcome = {
                "status": FAILED,
                "seconds": time.perf_counter() - started,
                "reason": " ".join(traceback.format_exception_only(error)).strip(),
                "traceback": traceback.format_exc(),
            }
    if any(issubclass(warning.category, NotConverged) for warning in caught_warnings):
        outcome["converged"] = False
    others = {str(warning.message) for warning in caught_warnings if not issubclass(warning.category, NotConverged)}
    if others:
        outcome["warnings"] = "\n".join(sorted(others))
    return make_row(cell, **outcome)


def _run_entry(cell: Cell, dataset: Dataset) -> Row:
    """Run an entry, measure its time and score its answer."""
    started = time.perf_counter()
    try:
        answer = cell.answer(dataset, cell.seed)
    except WisecrowdError as error:
        status = NOT_INSTALLED if isinstance(error, MissingExtra) else DECLINED
        return {"status": status, "seconds": time.perf_counter() - started, "reason": str(error)}
    seconds = time.perf_counter() - started
    figures = answer if isinstance(answer, Mapping) else cell.source.score(dataset, answer)
    return {"status": OK, "seconds": seconds, "figures": _drop_nonfinite(figures)} | _read_progress(answer)


def make_row(cell: Cell, *, status: str, seconds: float, **outcome: Any) -> Row:
    """Build the row of a cell.

    Parameters
    ----------
    cell : Cell
        Cell that was run.
    status : str
        One of the states of this module.
    seconds : float
        Running time.
    **outcome
        Figures, reason, traceback and other columns.

    Returns
    -------
    dict
        Row with the outcome, the versions, the machine and the time of day.
    """
    return {
        "entry": cell.entry,
        "data": cell.data,
        "seed": cell.seed,
        "status": status,
        "seconds": round(seconds, 4),
        **outcome,
        "digest": cell.digest,
        **describe_environment(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def describe_environment() -> dict[str, str]:
    """Return the versions of the packages and the name of the machine."""
    versions = {"wisecrowd": __version__, "python": platform.python_version()}
    for package in _RECORDED_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions | {"machine": _describe_machine()}


def _describe_machine() -> str:
    """Return the processor and the number of cores."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        models = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{name}, {os.cpu_count()} cores"


def _compute_cached_properties(crowd: Crowd) -> None:
    """Compute the cached properties of a crowd, so that their cost does not count for the first entry."""
    _ = crowd.offset if crowd.is_numeric else (crowd.vote_counts, crowd.layout)


def _drop_nonfinite(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """Replace NaN and infinite figures by None, which JSON can store."""
    return {name: float(value) if math.isfinite(value) else None for name, value in figures.items()}


def _read_progress(answer: Any) -> dict[str, Any]:
    """Return the number of iterations of a fitted method, and whether it converged."""
    iterations, converged = getattr(answer, "n_iter_", None), getattr(answer, "converged_", None)
    return {
        "iterations": None if iterations is None else int(iterations),
        "converged": None if converged is None else bool(converged),
    }


def _identify_entry(entry: Entry) -> Any:
    """Return the identity of an entry, or the error message if its method or a parameter is invalid."""
    try:
        return get_identity(entry)
    except WisecrowdError as error:  # running the cell raises it again, and the table shows it
        return str(error)


def _digest(value: Any) -> str:
    """Return a digest of a JSON-compatible value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
