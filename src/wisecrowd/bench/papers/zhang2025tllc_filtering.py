"""How right votes are on the tasks that TLLC learns from first, by class, after Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.bench.benchmark import Benchmark, Data, Entry
from wisecrowd.bench.papers._tllc import ACCURACY, OfTasks, class_figure, crowds

N_CLASSES = {"Income": 2, "Leaves": 6, "Music_genre": 10}

ENTRIES: dict[str, Entry] = {"all tasks": OfTasks(is_kept=False), "kept tasks": OfTasks(is_kept=True)}


def benchmark() -> Benchmark:
    """All tasks and those on which votes agree more than on the average task of their class.

    >>> len(benchmark().cells)
    60
    """
    data: dict[str, Data] = {
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
            "Accuracy of the most voted class, drawn among equals by the seed: in all, and by that class. The paper shows bars "
            "without numbers, and says that filtering raises almost every class.",
        ),
    )
