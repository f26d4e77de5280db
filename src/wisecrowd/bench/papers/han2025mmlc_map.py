"""Distance of workers from the oracle of MMLC and their accuracy, after figure 4 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers._han import CORRELATION, NOTES, ON_MAP, VECTOR_SPREAD, WorkerDistances, crowds


def benchmark() -> Benchmark:
    """Return the benchmark of MMLC on three crowds.

    >>> list(benchmark().entries)
    ['MMLC', 'MMLC, 60 epochs']
    """
    return Benchmark(
        title="Han et al. 2025, figure 4: workers around the oracle",
        references=("han2025mmlc",),
        entries={"MMLC": WorkerDistances("mmlc"), "MMLC, 60 epochs": WorkerDistances("mmlc", {"epochs": 60})},
        data=crowds(CORRELATION, ON_MAP, "workers", VECTOR_SPREAD),
        notes={
            **NOTES,
            "MMLC, 60 epochs": "Longer than hidden votes choose, so that the vectors of workers differ more.",
        },
        rows="data",
        seeds=3,
        remarks=(
            "Spearman's correlation of the distance between a worker's vector and the oracle's with the worker's accuracy, over "
            "workers with ten votes or more: in the space of mixtures, and on the map (Isomap, 36 neighbours). The paper shows "
            "maps of its three crowds and says that workers near the oracle are more accurate, which would be a negative "
            "correlation.",
        ),
        time_limit=1800,
    )
