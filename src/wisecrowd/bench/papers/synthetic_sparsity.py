"""Accuracy of aggregators by the number of votes per task and of votes per worker, on simulated crowds."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import Aggregate

N_TASKS, N_CLASSES = 1000, 4
LABELS_PER_TASK = (1, 2, 3, 5, 10, 20)
LABELS_PER_WORKER = (5, 10, 20, 50, 200, 500)
#: Values of the two numbers while the other one varies.
PER_TASK, PER_WORKER = 5, 100

ENTRIES = (
    "majority-vote",
    "wawa",
    "iwmv",
    "one-coin",
    "hds",
    "dawid-skene",
    "fast-ds",
    "ibcc",
    "ebcc",
    "bwa",
    "mace",
    "glad",
    "ds-worker-clusters",
)


def crowd(per_task: int, per_worker: int) -> SimulatedDataset:
    """Return a crowd of experts, noisy workers, spammers and a few adversaries.

    Parameters
    ----------
    per_task : int
        Votes per task.
    per_worker : int
        Votes per worker.

    Returns
    -------
    SimulatedDataset

    Examples
    --------
    >>> crowd(3, 50).settings["votes_per_task"]
    3
    """
    workers = {"expert": 0.2, "noisy": 0.5, "spammer": 0.25, "adversary": 0.05}
    n_workers = max(per_task, N_TASKS * per_task // per_worker)
    settings = {"n_tasks": N_TASKS, "n_workers": n_workers, "n_classes": N_CLASSES, "votes_per_task": per_task}
    return SimulatedDataset(settings | {"workers": workers})


def benchmark() -> Benchmark:
    """Return the benchmark of both sweeps.

    >>> "3 per task" in benchmark().data
    True
    """
    tasks = {f"{number} per task": crowd(number, PER_WORKER) for number in LABELS_PER_TASK}
    workers = {f"{number} per worker": crowd(PER_TASK, number) for number in LABELS_PER_WORKER}
    return Benchmark(
        title="Accuracy against labels per task and labels per worker",
        entries={name: Aggregate(name) for name in ENTRIES},
        data=tasks | workers,
        rows="data",
        seeds=5,
        remarks=(
            f"{N_TASKS:,} simulated tasks of {N_CLASSES} classes, labelled by experts (20 %), noisy workers (50 %), "
            "spammers (25 %) and adversaries (5 %). The first rows vary the labels per task with about "
            f"{PER_WORKER} labels per worker, the others the labels per worker with {PER_TASK} labels per task, by "
            "changing how many workers there are. Mean and standard deviation over five simulated crowds.",
        ),
    )
