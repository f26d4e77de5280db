"""All aggregators with their defaults on every crowd with gold on this machine."""

from __future__ import annotations

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.registry import methods
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import Aggregate
from wisecrowd.io.datasets import list_datasets

#: Maximum number of votes for methods that need minutes on a large crowd.
AT_MOST = {
    "dewsmv": 100_000,
    "ebcc": 250_000,
    "glad": 1_000_000,
    "lagnn": 1_000_000,
    "minimax-entropy": 100_000,
    "rasch": 1_000_000,
    "two-pl": 1_000_000,
}

#: Datasets with the votes of another dataset, which would count twice in the ranks.
EXCLUDED = {"music_genre_ceka"}

NOTES: dict[str | tuple[str, str], str] = {
    "cifar100n": "One label per task: there is nothing to compare a vote with, and whatever beats a plain copy of the "
    "votes here does so by luck. Models with a 100 x 100 matrix for every worker explain all votes by one class.",
    "cifar10n": "The worker ids of this release do not tell workers apart (their accuracies differ no more than chance "
    "would make them), so models of workers have nothing to learn.",
    "pico_tokens": "One task is one word of a text, and neighbouring words go together, which no method here knows.",
    "ner_mturk_tokens": "One task is one word of a text, and neighbouring words go together, which no method here knows.",
}


def benchmark() -> Benchmark:
    """Return the benchmark of categorical aggregators on all datasets with gold in ``WISECROWD_DATA``.

    >>> "dawid-skene" in benchmark().entries
    True
    """
    listed = list_datasets()
    scored = listed[listed["downloaded"] & (listed["gold"].fillna(0) > 0) & listed["classes"].notna()]
    # Without groups, Panel is equal to Dawid–Skene; it has a benchmark of its own.
    kinds = {
        name: kind for name, kind in methods("aggregate").items() if issubclass(kind, Aggregator) and name != "panel"
    }
    return Benchmark(
        title="Every aggregator on every crowd with gold",
        entries={
            name: Aggregate(name, at_most=AT_MOST.get(name))
            for name, kind in kinds.items()
            if "categorical" in kind.answer_types
        },
        data={name: StoredDataset(name, "distinct") for name in scored.index if name not in EXCLUDED},
        notes=NOTES,
        rows="data",
        ranked=True,
        data_at_hand=True,
        time_limit=60,
        remarks=(
            "Accuracy with ties split; exact repeats of a worker's vote are dropped; every method with its default "
            "parameters. The mean rank is over the crowds for which every ranked method has an answer, and methods that "
            "answer for fewer than four in five crowds are not ranked. *Best on* counts shared first places.",
        ),
    )
