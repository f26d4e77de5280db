"""Task difficulty with the network of appendix A.2 of Xu et al. (2019), on images of shirts."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers._xu import FIGURES, Shirts, XuLearner
from wisecrowd.bench.papers.xu2019 import ADAPTIVE, COMPARED
from wisecrowd.bench.papers.xu2019_shirts import NOTES, STRUCTURAL
from wisecrowd.nn.image_networks import FourConvolutions

#: Title of the row with a confusion matrix per worker.
MATRIX = "Adaptive, matrix"


def benchmark() -> Benchmark:
    """Return the benchmark of four methods with four convolutions, on structural labels of 1,000 images.

    >>> list(benchmark().entries)
    ['Majority Voting', 'Original EM', 'Adaptive', 'Fixed', 'Adaptive, matrix']
    """
    learners = {title: cast(XuLearner, entry) for title, entry in COMPARED.items()}
    learners[MATRIX] = XuLearner("adaptive-difficulty", {"worker_model": "matrix"})
    return Benchmark(
        title="Xu et al. 2019, table 2 with the network of the paper, on other images",
        references=("xu2019difficulty",),
        entries={title: replace(entry, classifier=FourConvolutions()) for title, entry in learners.items()},
        data={STRUCTURAL: Shirts(labels="structural", n_tasks=1000, figures=FIGURES)},
        notes={
            ADAPTIVE: NOTES[ADAPTIVE],
            MATRIX: "A confusion matrix per worker; with two classes the model is the same: the row shows the noise of training.",
        },
        seeds=2,
        remarks=(
            "Four convolutions (32, 32, 64, 64 channels) with pooling, batch norm and dropout, as in appendix A.2, on 1,000 shirts "
            "and T-shirts of 28 x 28 pixels, padded before each convolution because the network is made for 150 x 150. Twenty "
            "passes, one epoch each. Otherwise as `xu2019-shirts`.",
        ),
        time_limit=1800,
    )
