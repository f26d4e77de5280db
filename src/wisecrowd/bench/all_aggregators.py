"""Every aggregator as it comes out of the box, on every crowd with gold that is at hand."""

from __future__ import annotations

from wisecrowd.base import Aggregator
from wisecrowd.bench.base import Benchmark
from wisecrowd.bench.data import Stored
from wisecrowd.bench.entries import Aggregate
from wisecrowd.datasets import list_datasets
from wisecrowd.registry import methods

#: Methods that would need minutes for a large crowd: the most labels that they are asked to answer for here.
AT_MOST: dict[str, int] = {}


def benchmark() -> Benchmark:
    """All methods that choose between classes x all datasets with classes and gold in ``WISECROWD_DATA``."""
    listed = list_datasets()
    scored = listed[listed["downloaded"] & (listed["gold"].fillna(0) > 0) & listed["classes"].notna()]
    kinds = {name: kind for name, kind in methods("aggregate").items() if issubclass(kind, Aggregator)}
    return Benchmark(
        title="Every aggregator on every crowd with gold",
        entries={name: Aggregate(name, at_most=AT_MOST.get(name)) for name, kind in kinds.items() if not kind.numeric},
        data={name: Stored(name, "distinct") for name in scored.index},
        rows="data",
        ranked=True,
        time_limit=60,
        remarks=(
            "Accuracy with ties split; exact repeats of a worker's vote are dropped; every method with its default "
            "parameters. The mean rank is over the crowds for which every ranked method has an answer, and methods that "
            "answer for fewer than four in five crowds are not ranked.",
        ),
    )
