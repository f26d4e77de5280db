"""Folders of two truth-inference benchmarks: votes in ``answer.csv`` or ``label.csv``, truth in ``truth.csv``.

References
----------
Y. Zheng, G. Li, Y. Li, C. Shan and R. Cheng (2017). Truth inference in crowdsourcing: is the problem solved? PVLDB 10(5).

Y. Li, B. Rubinstein and T. Cohn (2019). Exploiting worker correlation for label aggregation in crowdsourcing. ICML.
"""

from __future__ import annotations

from pathlib import Path

from wisecrowd.errors import InputError
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.tables.csv import read_truth, read_votes
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable

_NAMES = ("answer.csv", "label.csv")


def _read_votes(path: Path, options: ReadOptions) -> VoteTable:
    file = next((path / name for name in _NAMES if (path / name).is_file()), None)
    if file is None:
        raise InputError(f"there is neither {' nor '.join(_NAMES)} here")
    return read_votes(file, options)


def _read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable | None:
    file = path / "truth.csv"
    return read_truth(file, task, truth) if file.is_file() else None


TRUTH_INFERENCE = FormatReader(
    read_votes=_read_votes,
    detect=lambda path: any((path / name).is_file() for name in _NAMES),
    read_truth=_read_truth,
)
