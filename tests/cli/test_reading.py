from __future__ import annotations

from pathlib import Path

import pytest

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
