"""Findings on workers, made without known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import DawidSkene
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo import Demo
from wisecrowd.demo.digits import make_digits_crowd
from wisecrowd.demo.run import EXPECTED_FINDINGS, HARMFUL_FINDINGS
from wisecrowd.demo.verdicts import Verdict, describe, rate_workers


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_hold_for_other_crowds(seed: int) -> None:
    """Not for one lucky crowd only: nearly all who harm are named, and nobody else is."""
    simulation = make_digits_crowd(seed + 10).simulation
    found = pd.Series(
        {one.worker: one.finding for one in rate_workers(simulation.crowd, DawidSkene().fit(simulation.crowd))}
    )
    harmful = simulation.kind.map(lambda kind: EXPECTED_FINDINGS[kind] <= HARMFUL_FINDINGS)
    accused = found.isin(HARMFUL_FINDINGS)
    # A copier may be told from his source by nothing at all, and who copies an expert does little harm.
    assert accused[harmful].sum() >= harmful.sum() - 2
    assert accused[~harmful].sum() <= 1


def test_no_truth_enters_the_verdicts(demo: Demo) -> None:
    """The same votes with every class renamed get the same verdicts: nothing but votes is known."""
    frame = demo.crowd.to_frame()
    frame["label"] = frame["label"].map({str(digit): "abcdefghij"[digit] for digit in range(10)})
    crowd = Crowd.from_frame(frame)
    again = rate_workers(crowd, DawidSkene().fit(crowd))
    assert [(one.worker, one.finding) for one in again] == [(one.worker, one.finding) for one in demo.verdicts]


def test_few_votes_make_no_reputation() -> None:
    votes = [(task, worker, task % 2) for task in range(30) for worker in ("ann", "bob")] + [
        (0, "new", 1),
        (1, "new", 0),
    ]
    crowd = Crowd.from_triples(votes)
    found = {one.worker: one.finding for one in rate_workers(crowd, DawidSkene().fit(crowd))}
    assert found["new"] == "unknown"
    assert "random" not in found.values()


def test_one_class_that_is_nearly_always_true_is_no_button() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.03
    votes = [
        (task, worker, "rare" if truth[task] else "usual") for task in range(400) for worker in ("ann", "bob", "cy")
    ]
    crowd = Crowd.from_triples(votes)
    assert {one.finding for one in rate_workers(crowd, DawidSkene().fit(crowd))} == {"reliable"}


def test_every_finding_has_its_sentence() -> None:
    verdicts = [
        Verdict("w1", "copies", 50, 0.5, "repeats w2"),
        Verdict("w3", "one answer", 50, 0.1, "always says 3"),
        Verdict("w4", "contrary", 50, 0.1, "says 3 for 2"),
        Verdict("w5", "leaning", 50, 0.5, "says 3 in 50%"),
        Verdict("w6", "random", 50, 0.1),
        Verdict("w7", "reliable", 50, 0.95),
        Verdict("w8", "fallible", 50, 0.6),
        Verdict("w9", "unknown", 3, 0.6),
    ]
    lines = describe(verdicts, 10)
    assert len(lines) == len(verdicts)
    assert lines[0] == "w1 repeats w2."
    assert "w6 answers at random: right in 10%, where guessing gives 10%." in lines
    assert "w3 ignores the tasks: w3 always says 3." in lines
    assert lines[-1] == "w9: fewer than 20 votes, too few to tell."
    assert describe([], 10) == []
