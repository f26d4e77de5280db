"""Checks of the number of votes of each worker, and on each task or item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.errors import preview
from wisecrowd.io.validation.findings import Finding
from wisecrowd.utils.text import count_noun


def check_votes_per_worker(
    workers: pd.Index,
    n_votes: NDArray[np.int64],
    *,
    noun: str = "votes",
    once: str = "voted once, which does not show their accuracy",
) -> Iterator[Finding]:
    """Find crowds of one worker, and workers with one vote.

    Parameters
    ----------
    workers : Index of shape (n_workers,)
        Worker ids.
    n_votes : ndarray of shape (n_workers,)
        Number of votes of each worker.
    noun : str, default="votes"
        Word for votes in messages.
    once : str, default="voted once, which does not show their accuracy"
        Predicate of workers with one vote.

    Yields
    ------
    Finding
        At most one of each name: ``single-worker`` and ``one-vote-workers``.

    Examples
    --------
    >>> [finding.name for finding in check_votes_per_worker(pd.Index(["ann", "bob"]), np.array([0, 1]))]
    ['single-worker', 'one-vote-workers']
    """
    active, single_vote = np.flatnonzero(n_votes), workers[n_votes == 1]
    if active.size == 1:
        yield Finding(
            name="single-worker",
            severity="warning",
            count=1,
            examples=tuple(workers[active]),
            message=f"all {noun} are by {preview(workers[active])}, so workers cannot be compared",
        )
    if len(single_vote):
        yield Finding(
            name="one-vote-workers",
            severity="warning" if len(single_vote) > active.size / 2 else "note",
            count=len(single_vote),
            examples=tuple(single_vote[:3]),
            message=f"{len(single_vote):,} of {count_noun(active.size, 'worker')} {once} ({preview(single_vote)})",
        )


def check_votes_per_task(
    tasks: pd.Index,
    n_votes: NDArray[np.int64],
    *,
    noun: str = "task",
    never: str = "have no vote",
    once: str | None = "have one vote, which no other confirms",
) -> Iterator[Finding]:
    """Find tasks, or compared items, with no vote or one vote.

    Parameters
    ----------
    tasks : Index of shape (n_tasks,)
        Ids of tasks or items.
    n_votes : ndarray of shape (n_tasks,)
        Number of votes on each.
    noun : str, default="task"
        Word for a task, in messages and in the names of findings.
    never : str, default="have no vote"
        Predicate of tasks without votes.
    once : str or None, default="have one vote, which no other confirms"
        Predicate of tasks with one vote; None if one vote is no reason for a finding.

    Yields
    ------
    Finding
        At most one of each name: ``no-vote-tasks`` and ``one-vote-tasks``, with the plural of the noun.

    Examples
    --------
    >>> for finding in check_votes_per_task(pd.Index(["t1", "t2", "t3"]), np.array([0, 1, 2])):
    ...     print(finding)
    note     no-vote-tasks: 1 of 3 tasks have no vote ('t1')
    note     one-vote-tasks: 1 of 2 tasks have one vote, which no other confirms ('t2')
    """
    no_vote, single_vote = tasks[n_votes == 0], tasks[n_votes == 1]
    n_voted = len(tasks) - len(no_vote)
    if len(no_vote):
        yield Finding(
            name=f"no-vote-{noun}s",
            severity="note",
            count=len(no_vote),
            examples=tuple(no_vote[:3]),
            message=f"{len(no_vote):,} of {count_noun(len(tasks), noun)} {never} ({preview(no_vote)})",
        )
    if len(single_vote) and once is not None:
        yield Finding(
            name=f"one-vote-{noun}s",
            severity="warning" if len(single_vote) > n_voted / 2 else "note",
            count=len(single_vote),
            examples=tuple(single_vote[:3]),
            message=f"{len(single_vote):,} of {count_noun(n_voted, noun)} {once} ({preview(single_vote)})",
        )
