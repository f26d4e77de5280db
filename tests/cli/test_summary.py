from __future__ import annotations

import numpy as np
import pandas as pd

from wisecrowd import Crowd, MajorityVote
from wisecrowd.cli._summary import _ranked, lines, summarise


def test_figures() -> None:
    crowd = Crowd.from_triples(
        [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat"), ("t2", "bob", "cat")],
        tasks=["t1", "t2", "t3"],
    )
    summary = summarise(MajorityVote().fit(crowd), crowd)
    assert summary["classes"] == {"cat": 0.75, "dog": 0.25}
    assert summary["confidence"] == {"mean": 0.75, "tasks": 2, "under_0.6": 1, "tied": 1}
    assert summary["without_votes"] == 1
    told = dict(lines(summary))
    assert told["Unlabelled"].startswith("1 task without a vote")
    assert told["Certainty"] == "mean confidence 0.750; 1 task under 0.6, 1 tied"


def test_one_lucky_vote_does_not_make_the_best_worker() -> None:
    workers = pd.DataFrame(
        {"n_labels": [1, 100, 100, 100, 1, 0], "accuracy": [1.0, 0.95, 0.5, 0.2, 0.0, np.nan]}, index=list("abcdef")
    )
    ranked = _ranked(workers)
    assert [row["worker"] for row in ranked["best"]][:1] == ["b"]
    assert [row["worker"] for row in ranked["worst"]][:1] == ["d"]
    assert not {row["worker"] for row in ranked["best"]} & {row["worker"] for row in ranked["worst"]}
    assert "f" not in {row["worker"] for rows in ranked.values() for row in rows}


def test_one_lucky_number_does_not_make_the_best_worker() -> None:
    workers = pd.DataFrame({"n_labels": [1, 100, 100, 100, 1], "rmse": [0.0, 0.1, 1.0, 3.0, 4.0]}, index=list("abcde"))
    ranked = _ranked(workers)
    assert ranked["best"][0]["worker"] == "b"
    assert ranked["worst"][0]["worker"] == "d"


def test_a_single_worker_is_the_best_and_nobody_the_worst() -> None:
    ranked = _ranked(pd.DataFrame({"n_labels": [3], "accuracy": [1.0]}, index=["ann"]))
    assert ([row["worker"] for row in ranked["best"]], ranked["worst"]) == (["ann"], [])


def test_many_classes_are_counted() -> None:
    crowd = Crowd.from_triples([(task, "ann", f"class {task}") for task in range(20)])
    assert dict(lines(summarise(MajorityVote().fit(crowd), crowd)))["Classes"].endswith("and 14 more")
