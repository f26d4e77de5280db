from __future__ import annotations

from typing import Any

import pytest

from wisecrowd import TextCrowd, simulate_crowd
from wisecrowd.base.answer_crowds import as_answer_crowd
from wisecrowd.errors import InputError

TABLE = {"task": ["t"], "worker": ["ann"], "text": ["a cat"]}


def as_notes(votes: Any) -> TextCrowd:
    return as_answer_crowd(votes, TextCrowd, "notes", columns="task, worker and text", constructors="from_frame(df)")


def test_tables_are_converted_and_crowds_are_kept() -> None:
    crowd = as_notes(TABLE)
    assert isinstance(crowd, TextCrowd)
    assert as_notes(crowd) is crowd


@pytest.mark.parametrize("votes", [simulate_crowd(5, 3).crowd, [("t", "ann", "a cat")], "notes.csv"])
def test_other_votes_are_refused(votes: Any) -> None:
    with pytest.raises(InputError, match=r"takes notes; got \w+\. Build them with TextCrowd\.from_frame\(df\)"):
        as_notes(votes)


def test_empty_crowds_are_refused() -> None:
    with pytest.raises(
        InputError, match="there are no notes; expected a row per task and worker with the columns task"
    ):
        as_notes(as_notes(TABLE).take([]))
