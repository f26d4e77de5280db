"""Fewer labels for each task, beside figure 2 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Data
from wisecrowd.bench.entries import Aggregate
from wisecrowd.bench.papers._han import ACCURACY, NAMES, STATISTICAL, AtMost, Oracle

#: At most so many on a task.
LABELS = {"LabelMe": (1, 2, 3), "Text": (3, 6, 9, 15), "Music": (3, 5, 7)}


def benchmark() -> Benchmark:
    """Aggregators and MMLC by the number of labels.

    >>> list(benchmark().data)[:3]
    ['LabelMe, 1', 'LabelMe, 2', 'LabelMe, 3']
    """
    data: dict[str, Data] = {
        f"{title}, {number}": AtMost(NAMES[title], "distinct", (ACCURACY,), most=number)
        for title, numbers in LABELS.items()
        for number in numbers
    }
    return Benchmark(
        title="Han et al. 2025, figure 2: labels per task",
        references=("han2025mmlc",),
        entries={title: Aggregate(name) for title, name in STATISTICAL.items()} | {"MMLC-owf": Oracle("mmlc")},
        data=data,
        rows="data",
        seeds=2,
        remarks=(
            "Accuracy on the labelled tasks when no more than so many labels are kept on each, drawn anew by every seed; all "
            "labels of a task that has fewer. The paper's figure has no numbers; its text says that MMLC gains with labels and "
            "may underfit where they are few.",
        ),
    )
