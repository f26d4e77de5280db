"""Memorisation of noise by CrowdLayer and CCC in a setting that was fixed before the run, after Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, DataSource, Entry
from wisecrowd.bench.papers._fashion import PixelComponents
from wisecrowd.bench.papers._zhang import FIGURES, EpochLearner, FashionCrowd
from wisecrowd.bench.papers.zhang2024ccc import TWO
from wisecrowd.simulate import PATTERN_SETS

#: Number of labelled images, of which a tenth selects the epoch.
N_TASKS = 8000
#: Number of workers of each of the five patterns. With three labels per image, a worker has 686 labels on average, as in the paper.
PER_PATTERN = 7
#: Settings of CCC: as many groups as patterns, the paper's correction rate, warm-up and number of trusted labels.
CORRECTION = {"n_groups": 5, "gamma": 0.5, "trusted": 1000, "warmup": 10}

ENTRIES: dict[str, Entry] = {
    "CrowdLayer": EpochLearner("crowd-layer"),
    TWO: EpochLearner("ccc", {"gamma": 0.0}),
    "CCC": EpochLearner("ccc", CORRECTION),
}

NOTE = (
    "8,000 images with 256 principal components of their pixels, three labels per image from 35 workers of five patterns. Network "
    "of 512 and 256 units with batch norm and without dropout. SGD with momentum .9 and weight decay .0005 for network and worker "
    "matrices, 60 epochs, a tenth of the rate after 40; rate times steps as in the paper."
)


def crowd(patterns: str, votes_per_task: int = 3) -> FashionCrowd:
    """Return the crowd of a set of patterns.

    >>> crowd("COR-I").size()
    24000
    """
    return FashionCrowd(
        patterns,
        votes_per_task,
        n_tasks=N_TASKS,
        figures=FIGURES,
        filters=PixelComponents(),
        trained_as="fashion memorising",
        workers_per_pattern=PER_PATTERN,
    )


def benchmark() -> Benchmark:
    """Return the benchmark of three methods on eight crowds with ten seeds.

    >>> len(benchmark().cells)
    240
    """
    data: dict[str, DataSource] = {name: crowd(name) for name in PATTERN_SETS}
    return Benchmark(
        title="Zhang et al. 2024: memorisation of noise",
        references=("zhang2024coupled",),
        entries=ENTRIES,
        data=data,
        notes=dict.fromkeys(data, NOTE),
        rows="data",
        seeds=10,
        remarks=(
            "*Last* is the test accuracy of the last epoch, *best* that of the best epoch by the test set, *selected* that of "
            "the epoch whose predictions agree most with held-out votes. In the paper, CrowdLayer falls by 5 to 20 points from "
            "its best epoch to its last, and CCC by less than one. The setting was fixed before these seeds were run; an audit "
            "with three other seeds of COR-I had found falls of 5.7 and 1.4 points in it. *Two networks* is the mean of two "
            "networks without correction, the part of CCC that any method could have.",
        ),
        time_limit=3600,
    )


def quick() -> Benchmark:
    """Return the benchmark on one crowd with one seed.

    >>> len(quick().cells)
    3
    """
    return Benchmark(
        title="Zhang et al. 2024: memorisation of noise, one crowd and one seed",
        references=("zhang2024coupled",),
        entries=ENTRIES,
        data={"COR-I": crowd("COR-I")},
        notes={"COR-I": NOTE},
        rows="data",
        remarks=("A small version of `zhang2024ccc-memorisation`.",),
    )
