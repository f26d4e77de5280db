"""Accuracy of CCC by the number of worker groups, after the lower chart of figure 4 of Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._zhang import AS_MANY, FIGURES, GROUPS, EpochLearner, FashionCrowd
from wisecrowd.bench.papers.zhang2024ccc import FASHION, ccc

NUMBERS = (1, 5, 30, 100, 250)
SHOWN = (*FIGURES, GROUPS, AS_MANY)


def benchmark() -> Benchmark:
    """Return the benchmark on the crowd IND-I, from one group for all workers to one for each.

    >>> len(benchmark().cells)
    12
    """
    plain: dict[str, Entry] = {"CrowdLayer": EpochLearner("crowd-layer")}
    return Benchmark(
        title="Zhang et al. 2024, figure 4: number of groups",
        references=("zhang2024coupled",),
        entries=plain | {f"G = {number}": ccc(n_groups=number) for number in NUMBERS},
        data={"IND-I": FashionCrowd("IND-I", figures=SHOWN)},
        notes={"IND-I": FASHION},
        seeds=2,
        remarks=(
            "250 workers of five patterns on Fashion-MNIST. The adjusted Rand index compares groups with patterns: those of CCC, "
            "and five by K-means over the same matrices. The paper's figure is on CIFAR-10 and has no numbers; it finds too "
            "few and too many groups to be worse.",
        ),
    )
