"""Completion for workers with many votes only, after figure 5 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, DataSource
from wisecrowd.bench.papers._han import ACCURACY, DENSITY, NAMES, STATISTICAL, AfterFilling, BusyWorkersOnly

#: Votes are completed for workers with more votes than this; the paper goes in steps of ten to 190, 1,140 and 400.
THRESHOLDS = {"LabelMe": (0, 20, 50, 100), "Text": (0, 20, 100, 300), "Music": (0, 20, 100, 200)}


def benchmark() -> Benchmark:
    """Return the benchmark of aggregators after MMLC-df, by threshold.

    >>> list(benchmark().data)[0]
    'LabelMe, beyond 0'
    """
    data: dict[str, DataSource] = {
        f"{title}, beyond {number}": BusyWorkersOnly(NAMES[title], "distinct", (ACCURACY, DENSITY), min_votes=number)
        for title, numbers in THRESHOLDS.items()
        for number in numbers
    }
    return Benchmark(
        title="Han et al. 2025, figure 5: for how many workers votes are filled in",
        references=("han2025mmlc",),
        entries={title: AfterFilling(name, "mmlc-fill") for title, name in STATISTICAL.items()},
        data=data,
        rows="data",
        seeds=5,
        remarks=(
            "Votes are filled in on all tasks for workers with more labels than the threshold; other workers "
            "keep their votes only. *Density* is the share of (task, worker) pairs with a vote afterwards. "
            "Every filled vote counts like a real one. The paper's figure has no numbers.",
        ),
    )
