"""Checks of label sets at their thresholds."""

from __future__ import annotations

from typing import Any

from wisecrowd import LabelSetCrowd
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.label_set_checks import check_label_sets

SETS = ["a", "a|b", "b", "a|c", "c", ""]


def rows(n_tasks: int = 6, workers: str = "xyz") -> list[tuple[Any, Any, Any]]:
    return [
        (task, who, SETS[(task + shift) % len(SETS)]) for task in range(n_tasks) for shift, who in enumerate(workers)
    ]


def check(votes: list[tuple[Any, Any, Any]], **options: Any) -> dict[str, Finding]:
    columns = dict(zip(("task", "worker", "labels"), map(list, zip(*votes, strict=True)), strict=True))
    crowd = LabelSetCrowd.from_frame(columns, **options)
    return {finding.name: finding for finding in check_label_sets(crowd)}


def test_sound_sets_have_no_findings() -> None:
    assert check(rows()) == {}


def test_constant_workers() -> None:
    found = check([*rows(), *((task, "same", "a|b") for task in range(6)), *((task, "lazy", "") for task in range(6))])
    assert found["one-answer-workers"].examples == ("same",)
    assert found["empty-set-workers"].examples == ("lazy",)
    assert "one-answer-workers" not in check([*rows(), *((task, "same", "a|b") for task in range(4))])


def test_workers_who_agree_on_one_set_are_not_constant() -> None:
    assert "one-answer-workers" not in check([(task, who, "a") for task in range(6) for who in "xyz"])


def test_single_votes() -> None:
    assert check([*rows(), (99, "x", "a")])["one-vote-tasks"].severity == "note"
    assert check([*rows(), (0, "w", "a")])["one-vote-workers"].examples == ("w",)
    assert "single-worker" in check(rows(workers="x"))
    assert check(rows(), tasks=[*range(6), 99])["no-vote-tasks"].examples == (99,)


def test_labels() -> None:
    assert check(rows(), labels=["a", "b", "c", "z"])["unused-labels"].examples == ("z",)
    assert check([(task, who, f"z|{labels}") for task, who, labels in rows()])["always-marked-labels"].examples == (
        "z",
    )
    assert check([(1, "x", ""), (1, "y", "")], labels=["a"])["no-marks"].severity == "warning"
    assert check([*rows(n_tasks=40), (0, "w", "z"), (1, "w", "a")])["rare-labels"].examples == ("z",)


def test_similar_labels_are_found() -> None:
    assert check([*rows(), (0, "w", "A "), (1, "w", "a")])["labels-differ-by-case-or-space"].count == 2
