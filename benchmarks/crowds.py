"""Simulated votes for speed measurements: Zipf-distributed workers, string ids, shuffled rows, no repeated votes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray


class Votes(NamedTuple):
    """Integer codes sorted by (task, worker)."""

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]
    truth: NDArray[np.int64]
    n_workers: int


def make(n_votes: int, n_workers: int, n_classes: int, *, per_task: int = 5, seed: int = 0) -> Votes:
    """Draw votes; the r-th busiest worker gives 1/r as many as the busiest, and every worker has an accuracy."""
    rng = np.random.default_rng(seed)
    n_tasks = n_votes // per_task
    activity = np.cumsum(1 / np.arange(1, n_workers + 1))
    cell = np.empty(0, dtype=np.int64)
    while len(cell) < n_votes:
        size = int(1.3 * (n_votes - len(cell))) + 100
        worker = np.searchsorted(activity, rng.random(size) * activity[-1])
        cell = np.unique(np.concatenate([cell, rng.integers(n_tasks, size=size) * n_workers + worker]))
    task, rank = np.divmod(np.sort(rng.choice(cell, n_votes, replace=False)), n_workers)
    worker = rng.permutation(n_workers)[rank]
    truth = rng.integers(n_classes, size=n_tasks)
    right = rng.random(n_votes) < rng.uniform(0.4, 0.95, size=n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(n_classes, size=n_votes))
    order = np.lexsort((worker, task))
    return Votes(task[order], worker[order], label[order], truth, n_workers)


def write(votes: Votes, folder: Path) -> None:
    """Write ``votes.parquet`` and ``truth.parquet`` with string ids and shuffled rows."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(1).permutation(len(votes.task))
    columns = {
        "task": _names("task", len(votes.truth)).take(votes.task[order]),
        "worker": _names("worker", votes.n_workers).take(votes.worker[order]),
        "label": _names("class", int(votes.label.max()) + 1).take(votes.label[order]),
    }
    pq.write_table(pa.table(columns), folder / "votes.parquet")
    classes = _names("class", int(votes.truth.max()) + 1)
    tasks = _names("task", len(votes.truth))
    pq.write_table(pa.table({"task": tasks, "label": classes.take(votes.truth)}), folder / "truth.parquet")


def _names(kind: str, count: int) -> pa.Array:
    width = len(str(count))
    return pa.array([f"{kind}-{number:0{width}d}" for number in range(count)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name in ("n_votes", "n_workers", "n_classes"):
        parser.add_argument(name, type=int)
    options = parser.parse_args()
    write(make(options.n_votes, options.n_workers, options.n_classes), options.folder)
