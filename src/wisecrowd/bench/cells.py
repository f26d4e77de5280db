"""One entry answers for one dataset: the row that comes of it, whatever happens."""

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
from wisecrowd.bench.benchmark import Benchmark, Data, Entry
from wisecrowd.bench.entries import identity_of
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import MissingExtra, NotConverged, WisecrowdError
from wisecrowd.io.datasets import Dataset

#: What a cell came to, as it is stored.
Row: TypeAlias = dict[str, Any]

#: The states of a row. The first two are final; the others are tried again by the next run.
OK, DECLINED, FAILED, TOO_SLOW, NOT_INSTALLED = "ok", "declined", "failed", "too slow", "not installed"

_VERSIONS_OF = ("numpy", "scipy", "pandas", "scikit-learn", "numba", "torch")


@dataclass(frozen=True)
class Cell:
    """Something to be run. The digest is of everything that must be equal for an old answer to count."""

    entry: str
    data: str
    seed: int
    answer: Entry
    source: Data
    digest: str
    size: int

    @property
    def key(self) -> tuple[str, str, int]:
        """Where its row belongs."""
        return self.entry, self.data, self.seed

    def __str__(self) -> str:
        return f"{self.entry} on {self.data}" + (f", seed {self.seed}" if self.seed else "")


def list_cells(benchmark: Benchmark) -> tuple[list[Cell], dict[str, str]]:
    """Everything that can be run here, the largest data first, and which data cannot be had, with the reason."""
    absent = {title: reason for title, data in benchmark.data.items() if (reason := data.absence()) is not None}
    here = {title: data for title, data in benchmark.data.items() if title not in absent}
    of_data = {title: data.identity() for title, data in here.items()}
    sizes = {title: data.size() for title, data in here.items()}
    of_entry = {title: _identity(entry) for title, entry in benchmark.entries.items()}
    cells = [
        Cell(
            entry, data, seed, benchmark.entries[entry], here[data],
            digest=_digest([__version__, of_entry[entry], of_data[data], seed]), size=sizes[data],
        )
        for entry, data, seed in benchmark.cells
        if data in here
    ]  # fmt: skip
    # The long ones first, so that none of them is left over for the end, when only one process has something to do.
    return sorted(cells, key=lambda cell: -cell.size), absent


class DatasetCache:
    """Loads data, and keeps the last: cells on the same data follow each other."""

    def __init__(self) -> None:
        self._label = ""
        self._dataset: Dataset | None = None

    def load(self, source: Data, seed: int) -> Dataset:
        """The dataset, perhaps as it was loaded before."""
        label = f"{source!r}, seed {seed if source.is_random else 0}"
        if self._dataset is None or label != self._label:
            self._dataset = None  # two large datasets at once may be too much
            self._label, self._dataset = label, source.load(seed)
            _compute_cached_properties(self._dataset.crowd)
        return self._dataset


def evaluate(cell: Cell, shelf: DatasetCache) -> Row:
    """Let the entry answer and score it; a refusal and a failure are results too."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            outcome = _answer_cell(cell, shelf.load(cell.source, cell.seed))
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


def _answer_cell(cell: Cell, dataset: Dataset) -> Row:
    started = time.perf_counter()
    try:
        answer = cell.answer(dataset, cell.seed)
    except WisecrowdError as error:
        status = NOT_INSTALLED if isinstance(error, MissingExtra) else DECLINED
        return {"status": status, "seconds": time.perf_counter() - started, "reason": str(error)}
    seconds = time.perf_counter() - started
    figures = answer if isinstance(answer, Mapping) else cell.source.score(dataset, answer)
    return {"status": OK, "seconds": seconds, "figures": _finite(figures)} | _read_progress(answer)


def make_row(cell: Cell, *, status: str, seconds: float, **outcome: Any) -> Row:
    """What is stored of a cell: what it is, what came of it, and under which circumstances."""
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
    """Versions and the machine."""
    versions = {"wisecrowd": __version__, "python": platform.python_version()}
    for package in _VERSIONS_OF:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions | {"machine": _machine()}


def _machine() -> str:
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        models = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    return f"{name}, {os.cpu_count()} cores"


def _compute_cached_properties(crowd: Crowd) -> None:
    """Ask for what a crowd works out once and keeps: it is not the first method that should pay for it."""
    _ = crowd.offset if crowd.is_numeric else (crowd.vote_counts, crowd.layout)


def _finite(figures: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: float(value) if math.isfinite(value) else None for name, value in figures.items()}


def _read_progress(answer: Any) -> dict[str, Any]:
    iterations, converged = getattr(answer, "n_iter_", None), getattr(answer, "converged_", None)
    return {
        "iterations": None if iterations is None else int(iterations),
        "converged": None if converged is None else bool(converged),
    }


def _identity(entry: Entry) -> Any:
    try:
        return identity_of(entry)
    except (
        WisecrowdError
    ) as error:  # a method that does not exist, a parameter that it refuses: to be shown in the table
        return str(error)


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:16]
