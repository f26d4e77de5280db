"""Time and memory of the Crowd Mixture Model and of DL-EM with their networks, after figure 3 of Mena and Ñanculef."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers._mena import GaussianGroups, MenaLearner
from wisecrowd.bench.papers.mena2020 import LAPLACE, WORKERS, title
from wisecrowd.bench.papers.mena2020_scaling import FIGURES, Scaling


def benchmark() -> Benchmark:
    """Return the benchmark from a hundred workers to ten thousand.

    >>> list(benchmark().entries)
    ['CMM', 'DL-EM']
    """
    return Benchmark(
        title="Mena and Ñanculef 2019, figure 3 with the network of the paper",
        references=("mena2019revisiting",),
        entries={
            "CMM": Scaling(MenaLearner("cmm", {"start": "authors"}, authors_network=True)),
            "DL-EM": Scaling(MenaLearner("raykar", LAPLACE)),
        },
        data={title(number): GaussianGroups(number, figures=FIGURES) for number in WORKERS},
        rows="data",
        seeds=2,
        remarks=(
            "As `mena2020-scaling`, with the network of set-up (1), 16 hidden units, which is trained for one epoch per iteration. "
            "Its training takes most of the time of either method, which therefore hardly depends on the number of workers.",
        ),
    )
