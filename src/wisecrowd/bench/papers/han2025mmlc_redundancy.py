"""Accuracy with fewer votes per task, after figure 2 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, DataSource
from wisecrowd.bench.entries import Aggregate
from wisecrowd.bench.papers._han import ACCURACY, DEEP, NAMES, STATISTICAL, LimitedVotes, Oracle, TrainingTaskScores

#: Maximum number of votes per task.
LABELS = {"LabelMe": (1, 2, 3), "Text": (3, 6, 9, 15), "Music": (3, 5, 7)}


def benchmark() -> Benchmark:
    """Return the benchmark of aggregators and MMLC by the number of votes per task.

    >>> list(benchmark().data)[:3]
    ['LabelMe, 1', 'LabelMe, 2', 'LabelMe, 3']
    """
    data: dict[str, DataSource] = {
        f"{title}, {number}": LimitedVotes(NAMES[title], "distinct", (ACCURACY,), most=number)
        for title, numbers in LABELS.items()
        for number in numbers
    }
    return Benchmark(
        title="Han et al. 2025, figure 2: labels per task",
        references=("han2025mmlc",),
        entries={
            **{title: Aggregate(name) for title, name in STATISTICAL.items()},
            **{title: TrainingTaskScores(name) for title, name in DEEP.items()},
            "MMLC-owf": Oracle("mmlc"),
        },
        data=data,
        rows="data",
        seeds=5,
        remarks=(
            "Accuracy on the labelled tasks with at most so many labels on each task, drawn at random by every seed; tasks with "
            "fewer labels keep all of them. The paper's figure has no numbers; its text says that MMLC gains with labels and "
            "may underfit where they are few.",
        ),
    )
