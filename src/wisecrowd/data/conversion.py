"""Conversion of votes in any form to a crowd in memory."""

from __future__ import annotations

from collections.abc import Sequence

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.errors import UsageError


def as_crowd(votes: CrowdLike, *, numeric: bool = False) -> Crowd:
    """Convert votes to a crowd in memory.

    Parameters
    ----------
    votes : Crowd, table, or sequence of (task, worker, label)
        Votes.
    numeric : bool, default=False
        Whether the labels of a table or of triples are numbers rather than classes.

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
    Crowd(2 votes: 1 tasks x 2 workers, 2 classes, 2.0 votes/task)
    """
    if isinstance(votes, Crowd):
        return votes
    if isinstance(votes, ShardedCrowd):
        raise UsageError("this needs the votes in memory, but the crowd is in shards; load it first with crowd.load()")
    if isinstance(votes, str):
        raise UsageError(f"expected a Crowd or a table of votes; got {votes!r}. Use wisecrowd.read({votes!r})")
    if isinstance(votes, Sequence):
        return Crowd.from_triples(votes, numeric=numeric)
    return Crowd.from_frame(votes, numeric=numeric)
