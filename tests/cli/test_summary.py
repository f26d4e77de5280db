from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from wisecrowd import Crowd, MajorityVote
from wisecrowd.cli._summary import _worker_lines, rank_workers, summarise, summary_lines
from wisecrowd.evaluate.confidence import estimate_confidence


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["worker"] for row in rows]


def _summarise_majority(crowd: Crowd) -> dict[str, Any]:
    fitted = MajorityVote().fit(crowd)
    return summarise(fitted, crowd, estimate_confidence(fitted, crowd))


def test_figures() -> None:
    crowd = Crowd.from_triples(
        [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat"), ("t2", "bob", "cat")],
        tasks=["t1", "t2", "t3"],
    )
    fitted = MajorityVote().fit(crowd)
    estimate = estimate_confidence(fitted, crowd)
    summary = summarise(fitted, crowd, estimate)
    assert summary["classes"] == {"cat": 0.75, "dog": 0.25}
    voted = estimate.confidence[:2]
    n_unsure = int((voted < 0.6).sum())
    assert summary["confidence"] == {
        "mean": round(float(voted.mean()), 6), "tasks": 2, "under_0.6": n_unsure, "tied": 1,
    }  # fmt: skip
    assert summary["expected_accuracy"] == estimate.accuracy.to_dict()
    assert summary["without_votes"] == 1
    shown = dict(summary_lines(summary))
    assert shown["Unlabelled"].startswith("1 task without a vote")
    assert shown["Certainty"].startswith(f"mean confidence {voted.mean():.3f}; ")
    assert shown["Certainty"].endswith("under 0.6, 1 tied")
    assert shown["Accuracy"] == f"expected {estimate.accuracy}, by votes alone"


def test_one_lucky_vote_does_not_make_the_best_worker() -> None:
    workers = pd.DataFrame(
        {"n_votes": [4, 5, 100, 100, 100, 4, 0], "accuracy": [1.0, 0.95, 0.9, 0.5, 0.2, 0.0, np.nan]},
        index=list("abcdefg"),
    )
    ranking = rank_workers(workers)
    assert names(ranking["best"]) == ["b", "c"]
    assert names(ranking["worst"]) == ["e", "d"]
    assert ranking["with_too_few_votes"] == 2
    shown = dict(_worker_lines(ranking))
    assert shown["Left out"] == "2 workers with fewer than 5 votes, too few to rank"


def test_nobody_is_among_the_best_and_the_worst() -> None:
    """Of equals, who did more comes first."""
    workers = pd.DataFrame({"n_votes": [5, 9, 6, 8, 7], "accuracy": [0.8] * 5}, index=list("abcde"))
    ranking = rank_workers(workers)
    assert (names(ranking["best"]), names(ranking["worst"])) == (["b", "d"], ["e", "c"])


def test_the_order_is_that_of_the_figures_shown() -> None:
    rng = np.random.default_rng(0)
    workers = pd.DataFrame({"n_votes": rng.integers(5, 500, 30), "accuracy": rng.random(30)})
    ranking = rank_workers(workers)
    assert [row["accuracy"] for row in ranking["best"]] == workers["accuracy"].nlargest(3).round(6).tolist()
    assert [row["accuracy"] for row in ranking["worst"]] == workers["accuracy"].nsmallest(3).round(6).tolist()


def test_one_lucky_number_does_not_make_the_best_worker() -> None:
    workers = pd.DataFrame(
        {"n_votes": [1, 100, 100, 100, 100, 1], "rmse": [0.0, 0.1, 1.0, 2.0, 3.0, 4.0]}, index=list("abcdef")
    )
    ranking = rank_workers(workers)
    assert (names(ranking["best"]), names(ranking["worst"])) == (["b", "c"], ["e", "d"])


def test_few_workers_are_all_shown() -> None:
    ranking = rank_workers(
        pd.DataFrame({"n_votes": [1, 30, 40], "accuracy": [0.5, 1.0, 0.7]}, index=["ann", "bob", "cy"])
    )
    assert _worker_lines(ranking) == [("Workers", "bob 100% (30 votes), cy 70% (40 votes), ann 50% (1 vote)")]


def test_a_crowd_of_passers_by_has_no_best() -> None:
    ranking = rank_workers(
        pd.DataFrame({"n_votes": [1, 2, 3, 4], "accuracy": [0.5, 1.0, 0.7, 0.1]}, index=list("abcd"))
    )
    assert _worker_lines(ranking) == [("Left out", "4 workers with fewer than 5 votes, too few to rank")]


def test_many_classes_are_counted() -> None:
    crowd = Crowd.from_triples([(task, "ann", f"class {task}") for task in range(20)])
    assert dict(summary_lines(_summarise_majority(crowd)))["Classes"].endswith("and 14 more")


def test_a_class_with_an_endless_name_is_cut() -> None:
    crowd = Crowd.from_triples([("t1", "ann", "x" * 2_000_000), ("t2", "ann", "cat")])
    shown = dict(summary_lines(_summarise_majority(crowd)))["Classes"]
    assert "cat 50.0%" in shown
    assert "x… 50.0%" in shown
    assert len(shown) < 80
