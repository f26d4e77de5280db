from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.cli._reading import GoldReading, read_truth
from wisecrowd.errors import InputError, UsageError

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
READING = GoldReading(task="image_id")


def test_the_task_column_may_be_called_as_that_of_the_votes_or_not(tmp_path: Path) -> None:
    for name in ("image_id", "task"):
        (tmp_path / "gold.csv").write_text(f"{name},truth\nt1,cat\n")
        assert read_truth(tmp_path / "gold.csv", READING, CROWD).to_dict() == {"t1": "cat"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("image_id,truth\nt1,cat\nt1,dog\n", "1 task has more than one truth"),
        ("image_id,said_by_experts\nt1,cat\n", "there is no truth column"),
        ("task,said_by_experts\nt1,cat\n", "there is no truth column"),
        ("image_id,truth\nt1\n", "line 2 has 1 columns"),
    ],
)
def test_the_true_error_shows(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "gold.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_truth(tmp_path / "gold.csv", READING, CROWD)


def test_gold_columns_are_named_apart_from_those_of_the_votes(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("nr,expert_says,label\nt1,cat,dog\n")
    reading = GoldReading(task="image_id", gold_task="nr", gold_label="expert_says")
    assert read_truth(tmp_path / "gold.csv", reading, CROWD).to_dict() == {"t1": "cat"}


def test_the_error_about_gold_advises_options_that_name_columns_of_gold(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("nr,expert_says\nt1,cat\n")
    with pytest.raises(InputError, match=r"\(--gold-task NAME --gold-label NAME\)"):
        read_truth(tmp_path / "gold.csv", GoldReading(), CROWD)
    (tmp_path / "gold.csv").write_text("task,gold,expert\nt1,cat,cat\n")
    with pytest.raises(InputError, match=r"say which: truth=\"gold\" \(--gold-label gold\)"):
        read_truth(tmp_path / "gold.csv", GoldReading(), CROWD)


def test_gold_columns_without_gold_are_refused() -> None:
    GoldReading(gold_task="nr").check_gold_columns(None, Path("gold.csv"))
    with pytest.raises(UsageError, match="no such table is given"):
        GoldReading(gold_task="nr").check_gold_columns(None, None)


@pytest.mark.parametrize(
    "command", [("check",), ("aggregate", "-m", "majority-vote", "--json"), ("diagnose",), ("plan", "--budget", "3")]
)
def test_votes_come_through_a_pipe(app: Any, votes: Path, command: tuple[str, ...]) -> None:
    name, *options = command
    result = CliRunner().invoke(app, [name, "-", *options], input=votes.read_bytes())
    assert result.exit_code == 0, result.output
    assert "48 votes" in result.output or '"votes": "-"' in result.output


def test_votes_and_gold_come_from_remote_storage(run: Any, votes: Path, gold: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")
    storage = fsspec.filesystem("memory")
    storage.put(str(votes), "/bucket/votes.csv")
    storage.put(str(gold), "/bucket/gold.csv")
    words = ("aggregate", "memory://bucket/votes.csv", "--score", "memory://bucket/gold.csv", "--json")
    assert json.loads(run(*words).stdout)["summary"]["score"]["accuracy"] == 1
    assert "memory://bucket/absent.csv" in run("check", "memory://bucket/absent.csv").stderr
    assert "curl -L -O https://example.org/v.csv" in " ".join(run("check", "https://example.org/v.csv").stderr.split())
