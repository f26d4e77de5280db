"""Accuracy of CCC by the number of worker groups, after the lower chart of figure 4 of Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._zhang import AS_MANY, FIGURES, GROUPS, EpochLearner
from wisecrowd.bench.papers.zhang2024ccc import TWO
from wisecrowd.bench.papers.zhang2024ccc_memorisation import CORRECTION, NOTE, crowd

NUMBERS = (1, 2, 5, 15, 35)
SHOWN = (*FIGURES, GROUPS, AS_MANY)


def benchmark() -> Benchmark:
    """Return the benchmark on the crowd IND-I, from one group for all workers to one for each.

    >>> list(benchmark().entries)
    ['CrowdLayer', 'two networks, γ = 0', 'G = 1', 'G = 2', 'G = 5', 'G = 15', 'G = 35']
    """
    plain: dict[str, Entry] = {"CrowdLayer": EpochLearner("crowd-layer"), TWO: EpochLearner("ccc", {"gamma": 0.0})}
    return Benchmark(
        title="Zhang et al. 2024, figure 4: number of groups",
        references=("zhang2024coupled",),
        entries=plain | {f"G = {number}": EpochLearner("ccc", CORRECTION | {"n_groups": number}) for number in NUMBERS},
        data={"IND-I": replace(crowd("IND-I"), figures=SHOWN)},
        notes={"IND-I": NOTE},
        seeds=2,
        remarks=(
            "35 workers of five patterns on Fashion-MNIST, in the setting of `zhang2024ccc-memorisation`, in which corrections "
            "matter. The adjusted Rand index compares groups with patterns: those of CCC, and five by K-means over the same "
            "matrices. The paper's figure is on CIFAR-10 and has no numbers; it finds too few and too many groups to be worse.",
        ),
    )
