"""Validation of crowds for evaluation, diagnosis and planning."""

from __future__ import annotations

from typing import Any

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


def require_categorical_crowd(crowd: Any, purpose: str) -> Crowd:
    """The votes that somebody cast; ``purpose`` is done with them takes classes and worker ids.

    >>> require_categorical_crowd(Crowd.from_triples([("t1", "ann", 0.5)], numeric=True), "votes are planned")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: votes are planned by classes and worker ids, and the labels of this crowd are numbers
    """
    if isinstance(crowd, str):
        raise UsageError(f"votes were wanted; got {crowd!r}. Read the file first: wisecrowd.read({crowd!r})")
    votes = crowd if isinstance(crowd, Crowd) else Crowd.from_frame(crowd)
    if votes.is_numeric:
        raise UsageError(f"{purpose} by classes and worker ids, and the labels of this crowd are numbers")
    if not votes.has_workers:
        raise UsageError(f"{purpose} by classes and worker ids, and this crowd has no worker ids")
    return votes.select_observed()
