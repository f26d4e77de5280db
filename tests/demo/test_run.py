"""The demo as a whole."""

from __future__ import annotations

import pytest

from wisecrowd.demo import Demo, run_demo
from wisecrowd.demo.digits import WORKERS
from wisecrowd.errors import UsageError

SOME = ("dawid-skene", "one-coin", "majority-vote")


def test_who_enters(demo: Demo) -> None:
    assert {entry.method for entry in demo.contest.entries} == set(SOME)
    with pytest.raises(UsageError, match="dawid-skene"):
        run_demo(only=["one-coin"])


def test_the_check_counts_against_the_known_kinds(demo: Demo) -> None:
    check = demo.check()
    assert check["workers"].to_dict() == WORKERS
    assert (check["right"] <= check["workers"]).all()
    missed = check["workers"] - check["right"]
    assert all(bool(text) == bool(n) for text, n in zip(check["rated_as"], missed, strict=True))
    workers = demo.workers()
    assert workers["simulated_type"].to_dict() == demo.simulation.kind.to_dict()
    spammers = workers[workers["simulated_type"] == "spammer"]
    assert (spammers["finding"] == "random").sum() == check.loc["spammer", "right"]
