"""Accuracy by the number of votes per task, after the upper chart of figure 4 of Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers.zhang2024ccc_memorisation import ENTRIES, NOTE, crowd

LABELS = (1, 3, 5, 9)


def benchmark() -> Benchmark:
    """Return the benchmark on the crowd IND-I with one to nine votes per task.

    >>> list(benchmark().data)[0], list(benchmark().entries)
    ('k = 1', ['CrowdLayer', 'two networks, γ = 0', 'CCC'])
    """
    data = {f"k = {k}": crowd("IND-I", k) for k in LABELS}
    return Benchmark(
        title="Zhang et al. 2024, figure 4: labels per task",
        references=("zhang2024coupled",),
        entries=ENTRIES,
        data=data,
        notes=dict.fromkeys(data, NOTE),
        rows="data",
        seeds=2,
        remarks=(
            "The five patterns of IND-I on Fashion-MNIST in the setting of `zhang2024ccc-memorisation`; test accuracy of the "
            "last epoch, of the best by the test set, and of the one selected by held-out votes. The paper's figure is on "
            "CIFAR-10 and has no numbers; with one label per task, the text says, CCC is above CrowdLayer by 17.15 points at "
            "best and by 32.95 at last.",
        ),
    )
