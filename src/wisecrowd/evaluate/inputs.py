"""Validation of crowds for evaluation, diagnosis and planning."""

from __future__ import annotations

from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.errors import UsageError


def require_categorical_crowd(crowd: CrowdLike, purpose: str) -> Crowd:
    """Return the observed votes of a crowd with classes and worker ids.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes. Votes that a completer filled in are dropped.
    purpose : str
        Task that needs the votes, as the subject of the error message.

    Returns
    -------
    Crowd

    Raises
    ------
    UsageError
        If the labels are numbers, or the crowd has no worker ids.

    Examples
    --------
    >>> require_categorical_crowd(Crowd.from_triples([("t1", "ann", 0.5)], numeric=True), "planning votes")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: planning votes needs class labels, but the labels of this crowd are numbers
    """
    votes = as_crowd(crowd)
    if votes.is_numeric:
        raise UsageError(f"{purpose} needs class labels, but the labels of this crowd are numbers")
    if not votes.has_workers:
        raise UsageError(f"{purpose} needs worker ids, but this crowd has none")
    return votes.select_observed()
