"""Checks of texts at their thresholds."""

from __future__ import annotations

from typing import Any

from wisecrowd import TextCrowd, check_votes
from wisecrowd.io.validation.text_checks import check_texts


def rows(n_tasks: int = 6) -> dict[str, list[Any]]:
    pairs = [(task, worker) for task in range(n_tasks) for worker in "xyz"]
    return {
        "task": [task for task, _ in pairs],
        "worker": [worker for _, worker in pairs],
        "text": [f"text {task} by {worker}" for task, worker in pairs],
    }


def names(table: dict[str, list[Any]]) -> list[str]:
    return [finding.name for finding in check_texts(TextCrowd.from_frame(table))]


def test_sound_texts_have_no_findings() -> None:
    assert names(rows()) == []


def test_empty_and_constant_texts() -> None:
    table = rows()
    assert names(table | {"text": ["?!", *table["text"][1:]]}) == ["empty-texts"]
    constant = ["same" if worker == "x" else text for worker, text in zip(table["worker"], table["text"], strict=True)]
    assert names(table | {"text": constant}) == ["one-answer-workers"]
    assert [finding.name for finding in check_texts(TextCrowd.from_frame(table).take([]))] == ["empty-file"]


def test_tables_are_recognised() -> None:
    report = check_votes(rows())
    assert report.ok
    assert "texts" in report.notes[0].message
    assert check_votes(TextCrowd.from_frame(rows())).summary.startswith("TextCrowd")
