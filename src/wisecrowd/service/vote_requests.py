"""Fast path of ``POST /votes``: from the bytes of a request to validated events, and back to a receipt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.database import SIMILAR_CLASSES_ADVICE
from wisecrowd.service.events import Event, Upsert, VoteRecord, build_source
from wisecrowd.service.schemas import (
    DEFAULT_QUESTION,
    MAX_ITEMS_PER_REQUEST,
    MAX_NAME_CHARACTERS,
    MAX_SECONDS,
    VOTES,
    Vote,
    VoteReceipt,
)
from wisecrowd.service.store import StoreChange

#: Fields of a vote.
_FIELDS = frozenset(Vote.model_fields)
#: Integers below this are shorter than the longest name.
_MAX_PLAIN_INTEGER = 10**18


def parse_votes(body: bytes) -> list[Event]:
    """Validate the body of a request that sends votes.

    Votes whose fields are plain strings and integers, as nearly all are, are checked here without building a pydantic model
    for each of them. Any other body goes through the model `Vote`, which accepts more forms and describes what is wrong.

    Parameters
    ----------
    body : bytes
        JSON: a vote or a list of votes.

    Returns
    -------
    list of Upsert
        One event for each vote.

    Raises
    ------
    pydantic.ValidationError
        If the body is not a vote or a list of votes.

    Examples
    --------
    >>> parse_votes(b'{"task": "t1", "worker": "ann", "label": "good"}')[0].records[0].label
    'good'
    """
    events = _parse_plain_votes(body)
    if events is not None:
        return events
    votes = VOTES.validate_json(body)
    return [
        _build_event(vote.to_record(), None if vote.id is None else str(vote.id))
        for vote in (votes if isinstance(votes, list) else [votes])
    ]


def _build_event(record: VoteRecord, vote_id: str | None) -> Upsert:
    return Upsert(build_source(record, vote_id), (record,))


def _parse_plain_votes(body: bytes) -> list[Event] | None:
    """Return the events of votes in their plain form; None where the model has to decide."""
    try:
        votes = json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
    if type(votes) is dict:
        votes = [votes]
    elif type(votes) is not list or not 0 < len(votes) <= MAX_ITEMS_PER_REQUEST:
        return None
    events: list[Event] = []
    for vote in votes:
        event = _parse_plain_vote(vote)
        if event is None:
            return None
        events.append(event)
    return events


def _parse_plain_vote(vote: Any) -> Upsert | None:
    if type(vote) is not dict or not _FIELDS.issuperset(vote):
        return None
    task, worker = _plain_name(vote.get("task")), _plain_name(vote.get("worker"))
    label, question = _plain_text(vote.get("label")), _plain_text(vote.get("question", DEFAULT_QUESTION))
    if task is None or worker is None or label is None or question is None:
        return None
    vote_id, time = vote.get("id"), vote.get("time")
    if vote_id is not None:
        vote_id = _plain_name(vote_id)
        if vote_id is None:
            return None
    if time is not None:
        if type(time) not in (int, float) or not 0 <= time <= MAX_SECONDS:
            return None
        time = float(time)
    return _build_event(VoteRecord(question, task, worker, label, time), vote_id)


def _plain_name(value: Any) -> str | None:
    """Return a string or a short integer as a name; None for any other value."""
    if type(value) is int and -_MAX_PLAIN_INTEGER < value < _MAX_PLAIN_INTEGER:
        return str(value)
    return _plain_text(value)


def _plain_text(value: Any) -> str | None:
    """Return a string of printable characters, which excludes NUL and surrogates; None for any other value."""
    if type(value) is str and 0 < len(value) <= MAX_NAME_CHARACTERS and value.isprintable() and not value.isspace():
        return value
    return None


async def write_events(coordinator: Coordinator, events: Sequence[Event]) -> VoteReceipt:
    """Wait until events are on disk.

    Parameters
    ----------
    coordinator : Coordinator
        Coordinator of the service.
    events : sequence of Upsert, RegisterTasks or DeleteTasks
        Events of one request.

    Returns
    -------
    VoteReceipt
        Number of new, changed and unchanged votes.

    Raises
    ------
    ServiceBusy
        If too many events wait.
    WriteFailed
        If the database did not accept the events.
    """
    if not events:
        return VoteReceipt()
    loop = asyncio.get_running_loop()
    written: asyncio.Future[StoreChange] = loop.create_future()

    def settle(change: StoreChange | None, error: Exception | None) -> None:
        if written.cancelled():  # the client is gone; its events are stored nevertheless
            return
        if error is not None:
            written.set_exception(error)
        elif change is not None:
            written.set_result(change)

    coordinator.submit(events, settle, loop=loop)
    outcomes = (await written).outcomes
    return VoteReceipt(
        new=outcomes.count("new"), changed=outcomes.count("changed"), unchanged=outcomes.count("unchanged"),
        warnings=_warn_similar_classes(coordinator, events) or None,
    )  # fmt: skip


def _warn_similar_classes(coordinator: Coordinator, events: Sequence[Event]) -> list[str]:
    """Return warnings about labels of a request that probably mean the same as another class."""
    labels: dict[str, set[str]] = {}
    for event in events:
        for record in event.records if isinstance(event, Upsert) else ():
            labels.setdefault(record.question, set()).add(record.label)
    warnings = []
    for name, used in labels.items():
        vocabulary = coordinator.store.vocabularies.get(name)
        if vocabulary is None:
            continue
        sentences, similar = vocabulary.find_similar_classes()
        if not similar.isdisjoint(used):
            warnings += [f"question {name!r}: {sentence}. {SIMILAR_CLASSES_ADVICE}" for sentence in sentences]
    return warnings
