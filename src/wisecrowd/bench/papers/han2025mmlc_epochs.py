"""Accuracy of MMLC by the number of training epochs, and the number that hidden votes select."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers._han import ACCURACY, EPOCHS, LONG, NOTES, SURPRISE, AtEpoch, crowds

NUMBERS = (5, 10, 20, 30, 40, 60, 80, 100, LONG)


def benchmark() -> Benchmark:
    """Return the benchmark of MMLC after 5 to 150 epochs.

    >>> list(benchmark().entries)[-2:]
    ['chosen by hidden votes', 'best by truth']
    """
    return Benchmark(
        title="MMLC by the number of epochs",
        references=("han2025mmlc",),
        entries={f"{number} epochs": AtEpoch("mmlc", at=number, until=LONG) for number in NUMBERS}
        | {
            "chosen by hidden votes": AtEpoch("mmlc", at="chosen", until=LONG),
            "best by truth": AtEpoch("mmlc", at="best", until=LONG),
        },
        data=crowds(ACCURACY, SURPRISE, EPOCHS),
        notes={"best by truth": "An upper limit that needs the truth.", **NOTES},
        seeds=2,
        remarks=(
            "Accuracy of the oracle worker on the labelled tasks by number of epochs, in one run. Beside it "
            "is the mean −log P of a fifth of the votes, hidden from a second run, which stops 30 epochs "
            "after its best.",
        ),
    )
