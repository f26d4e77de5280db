"""Dimension, epochs and batch size of TLLC on Income, compared with the tables of Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._tllc import ACCURACY, NUMBERED, SPREAD, AggregatorAfterCompleter, crowds

#: Settings that are not varied, as in the paper.
BASE = {"embedding": 2, "epochs": 2, "batch_size": 32}
#: Accuracy in per cent.
PUBLISHED = {
    "embedding": {2: 74.94, 4: 71.83, 6: 71.66, 8: 73.33, 10: 72.66},
    "epochs": {2: 74.94, 4: 72.33, 6: 73.00, 8: 72.16, 10: 72.83},
    "batch_size": {8: 71.83, 16: 72.50, 32: 74.94, 64: 73.33, 128: 73.16},
}
TITLES = {"embedding": "dimension", "epochs": "epochs", "batch_size": "batch"}


def rows() -> dict[str, tuple[Entry, float]]:
    """Return the entry and the published accuracy by title.

    >>> len(rows())
    15
    """
    return {
        f"{TITLES[name]} {value}": (AggregatorAfterCompleter("tllc", BASE | {name: value}), round(percent / 100, 4))
        for name, values in PUBLISHED.items()
        for value, percent in values.items()
    }


def benchmark() -> Benchmark:
    """Return the benchmark of majority vote after TLLC with one setting changed at a time.

    >>> benchmark().published["dimension 2", "Income", "accuracy"]
    0.7494
    """
    data = crowds()
    plain: dict[str, Entry] = {"votes alone": AggregatorAfterCompleter(), "defaults": AggregatorAfterCompleter("tllc")}
    brief = AggregatorAfterCompleter(
        "tllc", BASE | {"pretrain_epochs": 2, "pretrain_rate": 1e-2, "learning_rate": 1e-2}
    )
    return Benchmark(
        title="Zhang, Jiang and Li 2025: sensitivity of TLLC on Income",
        references=("zhang2025tllc",),
        entries=plain | {name: entry for name, (entry, _) in rows().items()} | {"2 epochs of both": brief},
        data={name: data[name] for name in ("Income", "Income, numbered")},
        published={(name, "Income", ACCURACY): percent for name, (_, percent) in rows().items()},
        notes={
            "Income": SPREAD,
            "Income, numbered": NUMBERED,
            "epochs 2": "Epochs of fine-tuning each worker's network. The pretrained network has 50; the paper does not "
            "distinguish the two.",
            "2 epochs of both": "Two epochs of pretraining and two of fine-tuning, both with a rate of .01.",
            "defaults": "Ten epochs; otherwise the settings above.",
        },
        seeds=10,
        remarks=(
            "Accuracy of majority vote after TLLC; every filled vote counts as a real one. The paper does not "
            "name the aggregator of its figures. Parameters that are not varied have the paper's values: "
            "dimension 2, 2 epochs, batches of 32 tasks. Rows that vary nothing are the same fit.",
            "The paper's figure for its own settings, 74.94 %, stands apart from all others, which are within "
            "1.3 points of plain majority vote, 72.08 %.",
        ),
        time_limit=600,
    )


def quick() -> Benchmark:
    """Return the benchmark with the extreme settings and two seeds.

    >>> len(quick().entries)
    7
    """
    whole = benchmark()
    ends = [f"{TITLES[name]} {value}" for name, values in PUBLISHED.items() for value in (min(values), max(values))]
    entries = {name: entry for name, entry in whole.entries.items() if name in ("votes alone", *ends)}
    return Benchmark(
        title=whole.title + ", in a minute",
        references=whole.references,
        entries=entries,
        data={"Income": whole.data["Income"]},
        published={key: value for key, value in whole.published.items() if key[0] in entries},
        notes={"Income": SPREAD},
        seeds=2,
        remarks=("A small version of `zhang2025tllc-sensitivity`: the least and the largest of each setting.",),
    )
