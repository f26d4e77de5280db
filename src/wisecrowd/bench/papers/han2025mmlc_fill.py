"""Aggregators after completion of missing votes, compared with table 2 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._han import ACCURACY, CHANGE, NOTES, STATISTICAL, AfterFilling, crowds

FILLERS = {"G_MV": "gmv", "G_IRT": "girt", "TDG4Crowd": "tdg4crowd", "MMLC-df": "mmlc-fill"}

ENTRIES: dict[str, Entry] = {}
for _title, _name in STATISTICAL.items():
    ENTRIES[_title] = AfterFilling(_name)
    for _filler, _completer in FILLERS.items():
        ENTRIES[f"{_title}, {_filler}"] = AfterFilling(_name, _completer)

#: Accuracy in per cent, and its change after each completer in points.
_LINES = """
  LabelMe MV  76.76 -0.03 -2.87 +1.88 +3.89
  LabelMe DS  79.73 -2.87 +0.06 -1.05 +1.72
  LabelMe FDS 77.78 +0.07 +0.20 +0.93 +3.38
  LabelMe HDS 76.66 -0.23 +0.18 +2.02 +2.48
  Text    MV  71.33 +0.53 -0.26 -0.01 +3.35
  Text    DS  70.72 +1.80 +0.01 +0.38 +4.02
  Text    FDS 71.45 +0.88 -0.63 -0.16 +3.26
  Text    HDS 71.21 +0.24 -0.39 -1.30 +2.18
  Music   MV  71.42 -0.95 +6.72 +5.73 +7.58
  Music   DS  77.14 -5.95 +0.27 +1.57 +2.41
  Music   FDS 77.57 -6.47 +0.41 +0.81 +1.57
  Music   HDS 78.01 -7.25 +0.52 +0.70 +0.12
"""


def published() -> dict[tuple[str, str, str], float]:
    """Return the values of table 2 for aggregators that use only votes.

    >>> published()["DS, MMLC-df", "Text", "change"], published()["DS", "Text", "accuracy"]
    (4.02, 0.7072)
    """
    figures: dict[tuple[str, str, str], float] = {}
    for data, title, before, *changes in (line.split() for line in _LINES.strip().splitlines()):
        figures[title, data, ACCURACY] = round(float(before) / 100, 4)
        figures |= {
            (f"{title}, {filler}", data, CHANGE): float(change) for filler, change in zip(FILLERS, changes, strict=True)
        }
    return figures


def benchmark() -> Benchmark:
    """Return the benchmark of four aggregators after four completers.

    >>> len(benchmark().entries)
    20
    """
    return Benchmark(
        title="Han et al. 2025, table 2: aggregators after votes were filled in",
        references=("han2025mmlc",),
        entries=ENTRIES,
        data=crowds(CHANGE, ACCURACY),
        published=published(),
        notes=NOTES,
        seeds=5,
        remarks=(
            "Every worker's vote on every task is filled in and counts like a real one (`fill_weight=1`), as in the paper: 59, 154 "
            "and 44 votes on each task. *Change* is accuracy after filling in less that before, in points. Completers have their "
            "defaults; MMLC is trained for as many epochs as hidden votes choose. The paper's other aggregators are learners, "
            "which look at features themselves.",
        ),
        time_limit=1800,
    )  # fmt: skip
