"""Changes that clients send to the service. Each set of votes has a source, so clients can resend, change or delete it."""

from __future__ import annotations

import json
from typing import NamedTuple, TypeAlias


class VoteRecord(NamedTuple):
    """A vote as the database stores it, or the truth of a task.

    Attributes
    ----------
    question : str
        Name of the question.
    task : str
        Task id.
    worker : str or None
        Worker id; None for a gold label.
    label : str
        Label of the vote, or true class of the task.
    time : float or None
        Time of the vote in seconds since 1970.

    Examples
    --------
    >>> VoteRecord("mood", "t1", "ann", "good").is_gold
    False
    """

    question: str
    task: str
    worker: str | None
    label: str
    time: float | None = None

    @property
    def is_gold(self) -> bool:
        """True for a gold label, False for a vote."""
        return self.worker is None


class Upsert(NamedTuple):
    """Replacement of all records of a source, for example of one annotation in a labelling tool.

    Attributes
    ----------
    source : str
        Key under which the records are stored.
    records : tuple of VoteRecord
        Records that replace the previous ones; none deletes them.
    origin : str, default=None
        Mark of the project in a labelling tool, if it is known. A question accepts votes from one project only.

    Examples
    --------
    >>> Upsert("id:7", ()).records
    ()
    """

    source: str
    records: tuple[VoteRecord, ...]
    origin: str | None = None


class RegisterTasks(NamedTuple):
    """Registration of tasks that may have no votes yet.

    Attributes
    ----------
    question : str
        Name of the question.
    tasks : tuple of str
        Task ids.
    origin : str, default=None
        Mark of the project in a labelling tool, if it is known.

    Examples
    --------
    >>> RegisterTasks("mood", ("t1", "t2")).question
    'mood'
    """

    question: str
    tasks: tuple[str, ...]
    origin: str | None = None


class DeleteTasks(NamedTuple):
    """Deletion of all votes and gold labels on some tasks.

    Attributes
    ----------
    question_prefix : str
        The deletion applies to every question whose name starts with this prefix.
    tasks : tuple of str
        Task ids.
    origin : str, default=None
        Mark of the project in a labelling tool, if it is known.

    Examples
    --------
    >>> DeleteTasks("12:", ("t1",)).question_prefix
    '12:'
    """

    question_prefix: str
    tasks: tuple[str, ...]
    origin: str | None = None


Event: TypeAlias = Upsert | RegisterTasks | DeleteTasks


def build_source(record: VoteRecord, vote_id: str | None = None) -> str:
    """Return the source of a single vote: its id, or its task and worker where it has no id.

    A worker who votes again on a task without an id therefore changes the previous vote. Ids are scoped to a question, so the
    answers of one form to several questions may share an id.

    Parameters
    ----------
    record : VoteRecord
        Vote or gold label.
    vote_id : str, default=None
        Id that the client sent with the vote.

    Returns
    -------
    str
        Source.

    Examples
    --------
    >>> vote = VoteRecord("mood", "t1", "ann", "good")
    >>> build_source(vote, "v-1"), build_source(vote)
    ('id:["mood", "v-1"]', 'of:["mood", "t1", "ann"]')
    """
    if vote_id is not None:
        return f"id:{json.dumps((record.question, vote_id))}"
    return f"of:{json.dumps((record.question, record.task, record.worker))}"


def parse_vote_id(source: str) -> str | None:
    """Return the id that a vote was sent with.

    Parameters
    ----------
    source : str
        Source made by `build_source`.

    Returns
    -------
    str or None
        Vote id; None where the vote has no id.

    Examples
    --------
    >>> parse_vote_id('id:["mood", "v-1"]'), parse_vote_id('of:["mood", "t1", "ann"]')
    ('v-1', None)
    """
    return str(json.loads(source.removeprefix("id:"))[1]) if source.startswith("id:") else None
