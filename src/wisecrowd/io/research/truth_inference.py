"""The folders of two truth-inference benchmarks: ``answer.csv`` or ``label.csv`` with the votes, ``truth.csv``.

Zheng, Li, Li, Shan and Cheng (2017), Truth inference in crowdsourcing: is the problem solved? PVLDB 10(5);
Li, Rubinstein and Cohn (2019), Exploiting worker correlation for label aggregation in crowdsourcing, ICML.
"""

from __future__ import annotations

from pathlib import Path

from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.tables.csv import read_truth, read_votes

_NAMES = ("answer.csv", "label.csv")


def _votes(path: Path, options: Options) -> Votes:
    file = next((path / name for name in _NAMES if (path / name).is_file()), None)
    if file is None:
        raise InputError(f"there is neither {' nor '.join(_NAMES)} here")
    return read_votes(file, options)


def _truth(path: Path, task: str | None, truth: str | None) -> Truth | None:
    file = path / "truth.csv"
    return read_truth(file, task, truth) if file.is_file() else None


TRUTH_INFERENCE = Format(
    name="truth-inference",
    about="a folder with answer.csv or label.csv, and truth.csv",
    patterns=(),
    votes=_votes,
    sniff=lambda path: any((path / name).is_file() for name in _NAMES),
    truth=_truth,
)
