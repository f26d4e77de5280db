"""Conversion of votes in any form to a crowd in memory."""

from __future__ import annotations

from collections.abc import Sequence

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.errors import UsageError


def as_crowd(votes: CrowdLike, answer_type: AnswerType = "categorical") -> Crowd:
    """Convert votes to a crowd in memory.

    Parameters
    ----------
    votes : Crowd, table, or sequence of (task, worker, label)
        Votes.
    answer_type : {"categorical", "ordinal", "numeric"}, default="categorical"
        What the labels of a table or of triples are. A crowd knows its own answer type.

    Returns
    -------
    Crowd
        The same votes.

    Raises
    ------
    UsageError
        If the votes are in shards, or a text.

    Examples
    --------
    >>> as_crowd([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    Crowd(2 votes: 1 task x 2 workers, 2 classes, 2.0 votes/task)
    """
    if isinstance(votes, Crowd):
        return votes
    if isinstance(votes, ShardedCrowd):
        raise UsageError(
            "this function needs all votes in memory, but this crowd is on disk, in shards; pass crowd.load() if it fits, or see "
            "the page on large data for functions that take shards"
        )
    if isinstance(votes, str):
        raise UsageError(f"expected a Crowd or a table of votes; got {votes!r}. Use wisecrowd.read({votes!r})")
    numeric, ordered = answer_type == "numeric", answer_type == "ordinal"
    if isinstance(votes, Sequence):
        return Crowd.from_triples(votes, numeric=numeric, ordered=ordered)
    return Crowd.from_frame(votes, numeric=numeric, ordered=ordered)
