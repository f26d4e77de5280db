"""The number of groups of workers in CCC, beside the lower chart of figure 4 of Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.bench._zhang import AS_MANY, FIGURES, GROUPS, Fashion, Trained
from wisecrowd.bench.base import Benchmark, Entry
from wisecrowd.bench.zhang2024ccc import FASHION, ccc

NUMBERS = (1, 5, 10, 20, 30, 50, 100, 250)
SHOWN = (*FIGURES, GROUPS, AS_MANY)


def _entries(warmup: int) -> dict[str, Entry]:
    plain: dict[str, Entry] = {"CrowdLayer": Trained("crowd-layer")}
    return plain | {f"G = {number}": ccc(warmup, n_groups=number) for number in NUMBERS}


def benchmark() -> Benchmark:
    """The crowd IND-I; one group for all workers, to one for each.

    >>> len(benchmark().cells)
    27
    """
    return Benchmark(
        title="Zhang et al. 2024, figure 4: number of groups",
        references=("zhang2024coupled",),
        entries=_entries(warmup=10),
        data={"IND-I": Fashion("IND-I", figures=SHOWN)},
        notes={"IND-I": FASHION},
        seeds=3,
        remarks=(
            "250 workers of five patterns on Fashion-MNIST. The adjusted Rand index compares groups with patterns: those of CCC, "
            "and five by K-means over the same matrices. The paper's figure is on CIFAR-10 and has no numbers; it finds too "
            "few and too many groups to be worse.",
        ),
    )


def quick() -> Benchmark:
    """On 6,000 images, once each.

    >>> len(quick().cells)
    9
    """
    whole = benchmark()
    few = {"IND-I": Fashion("IND-I", n_tasks=6000, epochs=20, figures=SHOWN)}
    return replace(whole, title=f"{whole.title}, on 6,000 images", entries=_entries(warmup=5), data=few, seeds=1)
