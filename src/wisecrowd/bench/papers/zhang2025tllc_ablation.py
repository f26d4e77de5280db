"""TLLC without each of its parts, and what filling does to workers, after Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._tllc import ACCURACY, DENSITY, NUMBERED, SHARED, SHIFT, SPREAD, Compared, crowds

SHOWN = (ACCURACY, SHARED, DENSITY, SHIFT)

ENTRIES: dict[str, Entry] = {
    "votes alone": Compared(),
    "WSLC": Compared("wslc"),
    "TLLC": Compared("tllc"),
    "no filtering": Compared("tllc", {"filtering": False}),
    "no pretraining": Compared("tllc", {"pretrain_epochs": 0}),
    "no fine-tuning": Compared("tllc", {"epochs": 0}),
    "nearest inside": Compared("tllc", {"rule": "nearest_inside"}),
    "first inside": Compared("tllc", {"rule": "first"}),
    "no radius": Compared("tllc", {"rule": "all"}),
    "equal pairs balanced": Compared("tllc", {"balance": True}),
    "dimension 2": Compared("tllc", {"embedding": 2}),
}


def benchmark() -> Benchmark:
    """Majority vote after TLLC and after less than TLLC.

    >>> len(benchmark().entries)
    11
    """
    return Benchmark(
        title="Zhang, Jiang and Li 2025: TLLC without its parts, and what becomes of workers",
        references=("zhang2025tllc",),
        entries=ENTRIES,
        data=crowds(*SHOWN),
        notes={
            "Income": SPREAD,
            "Income, numbered": NUMBERED,
            "no fine-tuning": "All workers have the network of all, and centres of their own.",
            "first inside": "The paper's loop taken by its letter: the first class in whose ball a task lies.",
        },
        rows="data",
        seeds=10,
        remarks=(
            "Accuracy of majority vote, with filled votes that count as real ones (the paper's way) and with those that weigh "
            "together as much as the real ones on an average task; the share of cells with a vote; and by how much the share of "
            "right labels of a worker changes, on average over workers. The paper shows bars without numbers: that every part "
            "helps (on Income), and that workers change less by TLLC than by WSLC.",
            "Here workers do change less by TLLC, which also fills in less. Pretraining carries the method; filtering helps on "
            "Leaves and nowhere else, and networks of workers' own keep workers as they were, but the vote afterwards is about as "
            "good without them, since each has centres of their own.",
        ),
        time_limit=600,
    )


def quick() -> Benchmark:
    """Three rows, twice.

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
