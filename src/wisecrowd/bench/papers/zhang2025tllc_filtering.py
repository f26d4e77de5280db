"""Accuracy of the majority vote on the tasks that TLLC keeps, by class, after Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.bench.benchmark import Benchmark, DataSource, Entry
from wisecrowd.bench.papers._tllc import ACCURACY, FilteredTasks, class_figure, crowds

N_CLASSES = {"Income": 2, "Leaves": 6, "Music_genre": 10}

ENTRIES: dict[str, Entry] = {"all tasks": FilteredTasks(is_kept=False), "kept tasks": FilteredTasks(is_kept=True)}


def benchmark() -> Benchmark:
    """Return the benchmark on all tasks, and on tasks with more agreement than the average of their class.

    >>> len(benchmark().cells)
    60
    """
    data: dict[str, DataSource] = {
        name: replace(source, figures=(ACCURACY, "tasks", *map(class_figure, range(N_CLASSES[name]))))
        for name, source in crowds(twice=False).items()
    }
    return Benchmark(
        title="Zhang, Jiang and Li 2025: filtering, by class",
        references=("zhang2025tllc",),
        entries=ENTRIES,
        data=data,
        rows="data",
        seeds=10,
        remarks=(
            "Accuracy of the class with most votes, ties drawn at random by the seed: over all tasks, and by "
            "that class. The paper shows bars without numbers and says that filtering raises almost every "
            "class.",
        ),
    )
