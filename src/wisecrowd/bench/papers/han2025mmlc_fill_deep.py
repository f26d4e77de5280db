"""Learners after completion of missing votes, compared with the other half of table 2 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._han import ACCURACY, CHANGE, DEEP, NOTES, LearnerAfterFilling, crowds
from wisecrowd.bench.papers.han2025mmlc_fill import FILLERS

LEARNERS = {**DEEP, "MMLC-owf": "mmlc"}

ENTRIES: dict[str, Entry] = {}
for _title, _name in LEARNERS.items():
    ENTRIES[_title] = LearnerAfterFilling(_name)
    for _filler, _completer in FILLERS.items():
        ENTRIES[f"{_title}, {_filler}"] = LearnerAfterFilling(_name, _completer)

#: Accuracy in per cent, and its change after each completer in points.
_LINES = """
  LabelMe Max-MIG  80.02 +1.90 +1.76 +2.23 +4.81
  LabelMe CoNAL    81.46 -1.92 -0.78 +0.02 +1.73
  LabelMe CrowdAR  82.14 +3.21 +2.52 -0.69 +2.49
  LabelMe MMLC-owf 81.74 -2.91 +0.05 -1.41 +1.65
  Text    Max-MIG  70.31 -1.24 -1.87 +0.33 +3.88
  Text    CoNAL    72.75 -1.33 -2.27 +0.62 +2.16
  Text    CrowdAR  70.48 +0.37 -0.33 +1.96 +3.63
  Text    MMLC-owf 74.31 -2.04 -0.15 +0.39 +1.46
  Music   Max-MIG  74.22 +1.42 +0.32 +5.54 +4.77
  Music   CoNAL    76.02 +7.97 +4.65 +5.55 +6.37
  Music   CrowdAR  78.54 +1.46 +2.31 +1.97 +2.47
  Music   MMLC-owf 79.14 +0.24 +0.75 +1.62 +1.43
"""


def published() -> dict[tuple[str, str, str], float]:
    """Return the values of table 2 for learners.

    >>> published()["CoNAL, G_MV", "Music", "change"], published()["CrowdAR", "LabelMe", "accuracy"]
    (7.97, 0.8214)
    """
    figures: dict[tuple[str, str, str], float] = {}
    for data, title, before, *changes in (line.split() for line in _LINES.strip().splitlines()):
        figures[title, data, ACCURACY] = round(float(before) / 100, 4)
        figures |= {
            (f"{title}, {filler}", data, CHANGE): float(change) for filler, change in zip(FILLERS, changes, strict=True)
        }
    return figures


def benchmark() -> Benchmark:
    """Return the benchmark of four learners after four completers; it takes hours.

    >>> len(benchmark().entries)
    20
    """
    return Benchmark(
        title="Han et al. 2025, table 2: learners after votes were filled in",
        references=("han2025mmlc",),
        entries=ENTRIES,
        data=crowds(CHANGE, ACCURACY),
        published=published(),
        notes=NOTES,
        seeds=5,
        remarks=(
            "As `han2025mmlc-fill`, for methods that look at features themselves: accuracy of their classifier on the labelled "
            "tasks. Every filled vote counts like a real one. A learner sees 59, 154 and 44 votes on each task, of which all but "
            "2.5, 8.9 and 4.2 are predictions.",
        ),
        time_limit=3600,
    )  # fmt: skip
