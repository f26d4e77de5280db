"""Exports of a real doccano 1.8.4, as integration/doccano.py recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.io import read_project
from wisecrowd.io.tools.consensus_export import write_answers, write_queue

RECORDED = Path(__file__).parents[2] / "recorded" / "doccano"
MOOD = [
    ("1", "ann", "good"), ("1", "bob", "good"), ("1", "eva.m", "good"), ("2", "ann", "bad"), ("2", "bob", "bad"),
    ("2", "eva.m", "good"), ("3", "ann", "good"), ("3", "bob", "bad"), ("3", "eva.m", "good"), ("4", "ann", "so, so"),
    ("4", "bob", "good"),
]  # fmt: skip


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_all_forms_are_recognised_and_say_the_same(form: str) -> None:
    project = read_project(RECORDED / f"mood-{form}.zip")
    assert project.format == "doccano"
    assert rows(project.get_question().crowd) == MOOD
    assert "Comments" not in project.tasks["1"]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_who_confirmed_nothing_has_an_empty_file(form: str) -> None:
    crowd = read_project(RECORDED / f"approved-{form}.zip").get_question().crowd
    assert rows(crowd) == [vote for vote in MOOD if vote[0] != "1"]


def test_sets_and_intents() -> None:
    topics = read_project(RECORDED / "topics.zip").get_question()
    assert topics.kind == "multiple"
    assert {label for _, _, label in rows(topics.crowd)} == {"food", "price", "food|place"}
    intents = read_project(RECORDED / "intents.zip").get_question("cats")
    assert [label for _, _, label in rows(intents.crowd)] == [label for _, _, label in MOOD]


@pytest.mark.parametrize(
    ("before", "after", "question"),
    [
        ("mood-jsonl", "again-mood-jsonl", "label"),
        ("mood-jsonl", "again-mood-csv", "label"),
        ("topics", "again-topics-jsonl", "label"),
        ("intents", "again-intents-jsonl", "cats"),
    ],
)
def test_the_consensus_is_known_again(before: str, after: str, question: str) -> None:
    votes = read_project(RECORDED / f"{before}.zip").get_question(question)
    again = read_project(RECORDED / f"{after}.zip").get_question(question)
    assert again.crowd == votes.crowd
    model = wc.MajorityVote().fit(votes.crowd)
    assert again.consensus is not None
    assert again.consensus["label"].to_dict() == model.labels_.to_dict()
    assert again.consensus["confidence"].tolist() == pytest.approx(model.posterior_.max(axis=1).tolist())


def test_what_is_imported_has_no_holes_and_is_ascii(tmp_path: Path) -> None:
    """doccano guesses encodings, and cannot store what is missing beside only some examples."""
    project = read_project(RECORDED / "mood-jsonl.zip")
    labels = wc.MajorityVote().fit(project.get_question().crowd).labels_
    write_answers(labels, project, tmp_path / "answers.jsonl")
    write_queue(["4", "1"], project, tmp_path / "queue.jsonl")
    for name in ("answers", "queue"):
        text = (tmp_path / f"{name}.jsonl").read_bytes().decode("ascii")
        records = [json.loads(line) for line in text.splitlines()]
        assert len({tuple(record) for record in records}) == 1
        assert all(value is not None for record in records for value in record.values())
        assert all("label" in record for record in records)
    assert {record["page"] for record in records} == {7.0, ""}


def test_intents_are_imported_with_entities(tmp_path: Path) -> None:
    project = read_project(RECORDED / "intents.zip")
    write_queue(list(project.tasks)[:1], project, tmp_path / "queue.jsonl")
    record = json.loads((tmp_path / "queue.jsonl").read_text())
    assert record["cats"] == record["entities"] == []
