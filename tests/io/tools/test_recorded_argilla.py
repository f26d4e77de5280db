"""Records that the SDK of Argilla 2.8.0 exported from a real server, as integration/argilla.py recorded them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.io import read_project
from wisecrowd.io.tools.consensus_export import write_answers

RECORDED = Path(__file__).parents[2] / "recorded" / "argilla"
NAMES = {number: name for name, number in json.loads((RECORDED / "users.json").read_text()).items()}
MOOD = [
    ("r0", "ann", "good"), ("r0", "bob", "good"), ("r0", "eva", "good"), ("r1", "ann", "bad"), ("r1", "bob", "bad"),
    ("r1", "eva", "good"), ("r2", "ann", "good"),
]  # fmt: skip


def rows(crowd: wc.Crowd) -> list[tuple[str, str, str]]:
    return sorted((row.task, NAMES[row.worker], row.label) for row in crowd.to_frame().itertuples())


@pytest.mark.parametrize("name", ["before-flat.json", "before.parquet", "before.jsonl"])
def test_flat_forms_tell_who_submitted(name: str) -> None:
    project = read_project(RECORDED / name)
    mood = project.questions["mood"]
    assert rows(mood.people) == MOOD
    assert mood.excluded["draft"] == mood.excluded["discarded"] == 1
    assert project.notes == ()
    assert {question.kind for question in project.questions.values()} == {"single", "multiple"}
    assert rows(project.questions["stars"].people)[:2] == [("r0", "ann", "5"), ("r0", "bob", "4")]
    assert ("r0", "bob", "food|price") in rows(project.questions["topics"].people)


def test_to_json_does_not_tell_and_that_is_said() -> None:
    project = read_project(RECORDED / "before.json")
    (note,) = project.notes
    assert "does not mark drafts" in note
    mood = rows(project.questions["mood"].people)
    assert [vote for vote in mood if vote[0] in ("r0", "r1", "r2")] == MOOD
    assert len(mood) == len(MOOD) + 2


@pytest.mark.parametrize("name", ["before.json", "before-flat.json", "before.parquet"])
def test_suggestions_are_told_in_words(name: str) -> None:
    """to_datasets numbers labels as they come, and the lack of one, too; Parquet keeps the names."""
    mood = read_project(RECORDED / name).questions["mood"]
    assert mood.machines == ["bert-1"]
    said = mood.crowd.select_workers(["bert-1"]).to_frame().set_index("task")["label"]
    assert (len(said), said["r0"], said["r1"]) == (3, "good", "bad")
    assert "r2" not in said


def test_numbers_without_names_are_no_votes() -> None:
    project = read_project(RECORDED / "before.jsonl")
    assert project.questions["mood"].machines == []
    assert project.questions["mood"].excluded["suggestions by number"] == 4
    assert project.questions["stars"].machines == ["bert-1"]  # a rating is its number


@pytest.mark.parametrize("name", ["after.json", "after.parquet"])
def test_the_consensus_is_known_again(name: str) -> None:
    votes, again = read_project(RECORDED / "before.parquet"), read_project(RECORDED / name)
    for question in ("mood", "topics", "stars"):
        people = votes.questions[question].people
        consensus = again.questions[question].consensus
        assert consensus is not None
        assert consensus["label"].to_dict() == wc.MajorityVote().fit(people).labels_.to_dict()
        assert not any(worker.startswith("wisecrowd") for worker in again.questions[question].machines)


def test_what_is_loaded_is_ascii(tmp_path: Path) -> None:
    """from_json reads in the encoding of the system."""
    project = read_project(RECORDED / "before.json")
    write_answers(
        wc.MajorityVote().fit(project.questions["mood"].people).labels_,
        project,
        tmp_path / "back.json",
        question="mood",
    )
    text = (tmp_path / "back.json").read_bytes().decode("ascii")
    assert "東京" in json.loads(text)[2]["fields"]["text"]
