"""Crowds that can be evaluated."""

from __future__ import annotations

import pytest

from wisecrowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.inputs import require_categorical_crowd

ROWS = [("t1", "ann", "a"), ("t1", "bob", "b"), ("t2", "ann", "b")]


def test_frames_become_crowds() -> None:
    crowd = Crowd.from_triples(ROWS)
    assert require_categorical_crowd(crowd.to_frame(), "diagnosis") == crowd


def test_completed_votes_are_dropped() -> None:
    names = {"tasks": ["t1", "t2"], "workers": ["ann", "bob"], "classes": ["a", "b"]}
    crowd = Crowd.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1], observed=[True, False, True], **names)
    kept = require_categorical_crowd(crowd, "diagnosis")
    assert kept.n_votes == 2
    assert kept.tasks.tolist() == ["t1", "t2"]


def test_other_crowds_are_refused() -> None:
    with pytest.raises(UsageError, match="planning needs class labels, but the labels of this crowd are numbers"):
        require_categorical_crowd(Crowd.from_triples([("t1", "ann", 1.5)], numeric=True), "planning")
    with pytest.raises(UsageError, match="planning needs worker ids, but this crowd has none"):
        require_categorical_crowd(Crowd.from_triples(ROWS).drop_workers(), "planning")
