"""Separation of the true classes by the networks of TLLC with and without transfer, after Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._tllc import NEIGHBOUR, SILHOUETTE, SPREAD, EmbeddingSeparation, crowds

ENTRIES: dict[str, Entry] = {
    "with transfer": EmbeddingSeparation(),
    "without transfer": EmbeddingSeparation({"pretrain_epochs": 0}),
    "without transfer, 50 epochs": EmbeddingSeparation({"pretrain_epochs": 0, "epochs": 50, "learning_rate": 1e-3}),
    "shared network": EmbeddingSeparation(is_shared=True),
}


def benchmark() -> Benchmark:
    """Return the benchmark of four kinds of networks on three crowds.

    >>> len(benchmark().cells)
    60
    """
    return Benchmark(
        title="Zhang, Jiang and Li 2025: embeddings with and without transfer",
        references=("zhang2025tllc",),
        entries=ENTRIES,
        data=crowds(SILHOUETTE, NEIGHBOUR, twice=False),
        notes={
            "Income": SPREAD,
            "without transfer, 50 epochs": "As many epochs, at the same rate, as the shared network has.",
            "shared network": "The network before it is tuned to a worker.",
        },
        seeds=5,
        remarks=(
            "Every worker's network embeds all tasks (`TLLC.embed`). *Silhouette* is that of the true classes; *nearest neighbour* "
            "is the share of tasks whose nearest other task has the same true class. Mean over the workers with two classes or "
            "more. The paper shows the embedding of one worker as a picture: classes cluster better with transfer.",
        ),
        time_limit=600,
    )
