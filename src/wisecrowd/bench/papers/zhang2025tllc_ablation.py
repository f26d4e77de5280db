"""Ablation of TLLC, and change of worker accuracy by completion, after Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, DataSource, Entry
from wisecrowd.bench.papers._tllc import (
    ACCURACY,
    DENSITY,
    NUMBERED,
    SHARED,
    SHIFT,
    SPREAD,
    CompletionEffects,
    WithAdversaries,
    crowds,
)

SHOWN = (ACCURACY, SHARED, DENSITY, SHIFT)

ENTRIES: dict[str, Entry] = {
    "votes alone": CompletionEffects(),
    "WSLC": CompletionEffects("wslc"),
    "WSLC, cells of TLLC": CompletionEffects("wslc", cells_of="tllc"),
    "TLLC": CompletionEffects("tllc"),
    "no filtering": CompletionEffects("tllc", {"filtering": False}),
    "no pretraining": CompletionEffects("tllc", {"pretrain_epochs": 0}),
    "no fine-tuning": CompletionEffects("tllc", {"epochs": 0}),
    "nearest inside": CompletionEffects("tllc", {"rule": "nearest_inside"}),
    "first inside": CompletionEffects("tllc", {"rule": "first"}),
    "no radius": CompletionEffects("tllc", {"rule": "all"}),
    "equal pairs balanced": CompletionEffects("tllc", {"balance": True}),
    "dimension 2": CompletionEffects("tllc", {"embedding": 2}),
}

#: Data with the adversaries that the paper names as the limitation of TLLC.
ADVERSARIES: dict[str, DataSource] = {
    f"{title}, {number} adversaries": WithAdversaries(name, "distinct", SHOWN, n_adversaries=number)
    for title, name in (("Income", "income"), ("Leaves", "leaves"))
    for number in (3, 10)
}


def benchmark() -> Benchmark:
    """Return the benchmark of majority vote after TLLC and its ablations.

    >>> len(benchmark().entries)
    12
    """
    return Benchmark(
        title="Zhang, Jiang and Li 2025: TLLC without its parts, and what becomes of workers",
        references=("zhang2025tllc",),
        entries=ENTRIES,
        data=crowds(*SHOWN) | ADVERSARIES,
        notes={
            "Income": SPREAD,
            "Income, numbered": NUMBERED,
            "no fine-tuning": "All workers share one network and have centres of their own.",
            "first inside": "The loop as the paper prints it: the first class whose ball contains the task.",
        },
        rows="data",
        seeds=10,
        remarks=(
            "Accuracy of majority vote with filled votes that count as real ones (as in the paper), and with "
            "filled votes that together weigh as much as the real votes on an average task; the share of "
            "cells with a vote; and the mean change of a worker's accuracy. The paper shows bars without "
            "numbers: every part helps (on Income), and workers change less by TLLC than by WSLC. *WSLC, cells of "
            "TLLC* fills only what TLLC fills, so that workers are compared at equal density.",
            "Here, too, workers change less by TLLC, which also fills in less. Most of the effect comes from "
            "pretraining. Filtering helps on Leaves only. Fine-tuned networks keep workers as they were, but "
            "the vote afterwards is about as good without them, because every worker has centres of their "
            "own.",
            "The last data are the limitation that the paper states: three or ten added workers label half of the tasks, four "
            "fifths of them wrongly. Mean over ten seeds; each draws other adversaries. Here the limitation does not show: TLLC "
            "loses less than the votes alone and than WSLC.",
        ),
        time_limit=600,
    )


def quick() -> Benchmark:
    """Return the benchmark with three entries and two seeds.

    >>> list(quick().entries)
    ['votes alone', 'WSLC', 'TLLC']
    """
    whole = benchmark()
    return Benchmark(
        title=whole.title + ", in a minute",
        references=whole.references,
        entries={name: ENTRIES[name] for name in ("votes alone", "WSLC", "TLLC")},
        data=whole.data,
        notes={"Income": SPREAD, "Income, numbered": NUMBERED},
        rows="data",
        seeds=2,
        remarks=("A small version of `zhang2025tllc-ablation`.",),
    )
