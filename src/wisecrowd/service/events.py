"""What is told to the service: entries under a source, which whoever sent them can send again, change or take back."""

from __future__ import annotations

import json
from typing import NamedTuple, TypeAlias


class Entry(NamedTuple):
    """A vote; or, where ``worker`` is None, the truth of a task.

    >>> Entry("mood", "t1", "ann", "good").is_gold
    False
    """

    question: str
    task: str
    worker: str | None
    label: str
    time: float | None = None

    @property
    def is_gold(self) -> bool:
        """Whether it is known, and not just somebody's vote."""
        return self.worker is None


class Upsert(NamedTuple):
    """From now on, these entries and no others stand under a source, such as an annotation of a labelling tool.

    >>> Upsert("id:7", ()).entries  # whatever stood there is taken back
    ()
    """

    source: str
    entries: tuple[Entry, ...]


class RegisterTasks(NamedTuple):
    """There are such tasks, whether or not anybody votes on them.

    >>> RegisterTasks("mood", ("t1", "t2")).question
    'mood'
    """

    question: str
    tasks: tuple[str, ...]


class DeleteTasks(NamedTuple):
    """Some tasks are gone, with all that was said of them, from every question whose name begins so.

    >>> DeleteTasks("12:", ("t1",)).prefix
    '12:'
    """

    prefix: str
    tasks: tuple[str, ...]


def id_of(source: str) -> str | None:
    """The id that a vote was sent with, if it was with one.

    >>> id_of('id:["mood", "v-1"]'), id_of('of:["mood", "t1", "ann"]')
    ('v-1', None)
    """
    return str(json.loads(source.removeprefix("id:"))[1]) if source.startswith("id:") else None


Told: TypeAlias = Upsert | RegisterTasks | DeleteTasks


def source_of(vote: Entry, name: str | None = None) -> str:
    """Under what a single vote stands: the id that it was sent with, else whose vote on what it is.

    A worker who votes again on a task without an id thus changes their vote. Ids are of a question, so that answers to several
    may have the one of the form that they were given in.

    >>> source_of(Entry("mood", "t1", "ann", "good"), "v-1"), source_of(Entry("mood", "t1", "ann", "good"))
    ('id:["mood", "v-1"]', 'of:["mood", "t1", "ann"]')
    """
    if name is not None:
        return f"id:{json.dumps([vote.question, name])}"
    return f"of:{json.dumps([vote.question, vote.task, vote.worker])}"
