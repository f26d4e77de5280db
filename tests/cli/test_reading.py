from __future__ import annotations

from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.cli._reading import Reading, read_truth
from wisecrowd.errors import InputError

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
READING = Reading(task="image_id")


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
