"""Labels per task from one to nine, beside the upper chart of figure 4 of Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.bench._fashion import N_TRAIN
from wisecrowd.bench._zhang import FIGURES, Fashion
from wisecrowd.bench.base import Benchmark
from wisecrowd.bench.zhang2024ccc import ENTRIES, FASHION, ccc

LABELS = (1, 3, 5, 7, 9)


def _data(n_tasks: int = N_TRAIN, epochs: int | None = None) -> dict[str, Fashion]:
    return {f"k = {k}": Fashion("IND-I", k, n_tasks, FIGURES, epochs) for k in LABELS}


def benchmark() -> Benchmark:
    """The crowd IND-I with one to nine labels for each task.

    >>> list(benchmark().data)[0], len(benchmark().cells)
    ('k = 1', 45)
    """
    data = _data()
    return Benchmark(
        title="Zhang et al. 2024, figure 4: labels per task",
        references=("zhang2024coupled",),
        entries={name: ENTRIES[name] for name in ("MajorVote", "CrowdLayer", "CCC")},
        data=data,
        notes=dict.fromkeys(data, FASHION),
        rows="data",
        seeds=3,
        remarks=(
            "The five patterns of IND-I on Fashion-MNIST; test accuracy of the last epoch, of the best by the test set, and of "
            "the one selected by held-out votes. The paper's figure is on CIFAR-10 and has no numbers; with one label per task, "
            "the text says, CCC is above CrowdLayer by 17.15 points at best and by 32.95 at last.",
        ),
    )


def quick() -> Benchmark:
    """On 6,000 images, once each.

    >>> len(quick().cells)
    15
    """
    whole = benchmark()
    return replace(
        whole, title=f"{whole.title}, on 6,000 images", data=_data(n_tasks=6000, epochs=20),
        entries={**whole.entries, "CCC": ccc(warmup=5)}, seeds=1,
    )  # fmt: skip
