"""Six aggregators after completion by TLLC and WSLC, after Zhang, Jiang and Li (ICML 2025)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._tllc import (
    AGGREGATORS,
    NUMBERED,
    SPREAD,
    WAYS,
    AggregatorAfterCompleter,
    crowds,
    findings,
    title,
)

COMPLETERS = {"none": None, "WSLC": "wslc", "TLLC": "tllc"}
#: Title of rows that are not in the paper: filled votes of a task share the weight of the real votes of an average task.
SHARED = "TLLC, shared"

ENTRIES: dict[str, Entry] = {
    **{
        title(name, way): AggregatorAfterCompleter(COMPLETERS[way], aggregator=method)
        for name, method in AGGREGATORS.items()
        for way in WAYS
    },
    **{
        title(name, SHARED): AggregatorAfterCompleter("tllc", aggregator=AGGREGATORS[name], weight="shared")
        for name in ("MV", "MNLDP")
    },
}

NOTES: dict[str | tuple[str, str], str] = {
    "Income": SPREAD,
    "Income, numbered": NUMBERED,
    **dict.fromkeys(
        ("DEWSMV", "AALI", "LAGNN"),
        "Only the abstract is published; the page of the method lists what is published and what is a guess.",
    ),
}


def on_paper_crowds(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the tests of the paper on its three crowds.

    >>> on_paper_crowds([])
    ()
    """
    paper = crowds(twice=False)
    return findings(row for row in rows if row["data"] in paper)


def benchmark() -> Benchmark:
    """Return the benchmark of six aggregators on real votes, after WSLC and after TLLC.

    >>> len(benchmark().entries)
    20
    """
    return Benchmark(
        title="Zhang, Jiang and Li 2025: aggregation after votes were filled in by features",
        references=("zhang2025tllc", "wu2025worker"),
        entries=ENTRIES,
        data=crowds(),
        notes=NOTES,
        findings=on_paper_crowds,
        seeds=10,
        remarks=(
            "Accuracy on the labelled tasks. A filled vote counts as much as a real one, as in the paper, "
            "except in the rows *shared*. Ten seeds where something is random. The paper shows its results as "
            "bars without numbers and claims that TLLC is significantly better than WSLC. The one number of "
            "TLLC that it prints, 74.94 % on Income, is in `zhang2025tllc-sensitivity`.",
            "TLLC is a reconstruction: the architecture of its network, its rates and pairs, and the exact "
            "condition for filling in were not available. Our settings were chosen by held-out votes, never "
            "by the truth.",
        ),
        time_limit=1200,
    )


def quick() -> Benchmark:
    """Return the benchmark with majority vote only and three seeds.

    >>> list(quick().entries)
    ['MV', 'MV + WSLC', 'MV + TLLC', 'MV + TLLC, shared']
    """
    whole = benchmark()
    entries = {name: entry for name, entry in whole.entries.items() if name.split(" + ")[0] == "MV"}
    return Benchmark(
        title="Zhang, Jiang and Li 2025, in a minute: majority vote before and after",
        references=whole.references,
        entries=entries,
        data=whole.data,
        notes={name: note for name, note in NOTES.items() if name in whole.data},
        findings=on_paper_crowds,
        seeds=3,
        remarks=("A small version of `zhang2025tllc`, with majority vote only.",),
    )
