"""Argilla 2: records as ``dataset.records.to_json`` writes them, or flat, as ``to_datasets`` does.

Only responses that were submitted count, as far as the file tells: ``to_json`` does not. Suggestions are votes of machines
that go by their ``agent``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tools.answers import tool_format, written_set
from wisecrowd.io.tools.exports import entries, first_object, objects, part
from wisecrowd.io.tools.gathering import Asked, Gathering, family, identity
from wisecrowd.io.tools.hugging_face import class_names, is_parquet, known_schema, rows_of

RESPONSES, SUGGESTION = ".responses", ".suggestion"
#: What is said of records that do not tell who only began to answer.
UNTOLD = (
    "to_json does not tell drafts and discarded answers from submitted ones, so that all are votes; to_datasets does"
)


def gather(path: Path) -> Gathering:
    """All that records tell, in whichever of the two forms.

    >>> response = '{"value": "good", "user_id": "ann", "status": "submitted"}'
    >>> record = f'{{"id": "r1", "fields": {{}}, "suggestions": {{}}, "responses": {{"mood": [{response}]}}}}'
    >>> _ = Path("records.json").write_text(f"[{record}]")
    >>> gather(Path("records.json")).question("mood").worker
    ['ann']
    """
    gathered = Gathering()
    records = rows_of(path) if is_parquet(path) else objects(path, "a record of Argilla")
    names, in_words = class_names(path), _answered_in_words(records)
    for number, record in enumerate(records, start=1):
        where = f"record {number:,}"
        told = record.get("id")
        task = identity(record.get("_server_id", number) if told is None else told, "record", where)
        if "responses" in record or "suggestions" in record:
            _nested(record, task, where, gathered)
        elif any(key.endswith((RESPONSES, SUGGESTION)) for key in record):
            _flat(record, task, where, gathered, names, in_words)
        else:
            raise InputError(
                f"{where} has neither responses nor suggestions, as a record of Argilla has; its keys are {list(record)[:12]}"
            )
    for name, order in _orders(records).items():
        if name in gathered.asked:
            if order is None:
                gathered.notes.append(f"answers to {name!r} are rankings, it seems; their order is not read")
            gathered.asked[name].control |= {"ranked": "yes"} if order is None else {"order": written_set(order)}
    return gathered


def _orders(records: list[dict[str, Any]]) -> dict[str, tuple[str, ...] | None]:
    """Questions to which all answers hold the same options, as rankings do -> their order, or None where orders differ."""
    seen: dict[str, set[tuple[str, ...]]] = {}
    for record in records:
        for name, values in _lists(record):
            seen.setdefault(name, set()).update(tuple(map(str, value)) for value in values if isinstance(value, list))
    alike = {name: orders for name, orders in seen.items() if len({frozenset(order) for order in orders}) == 1}
    return {name: next(iter(orders)) if len(orders) == 1 else None for name, orders in alike.items()}


def _lists(record: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """What people answered to each question, in either form."""
    responses = record.get("responses")
    for name, told in responses.items() if isinstance(responses, dict) else ():
        yield name, [one.get("value") for one in told or () if isinstance(one, dict)]
    for key, value in record.items():
        if key.endswith(RESPONSES) and isinstance(value, list):
            yield key.removesuffix(RESPONSES), value


def _nested(record: dict[str, Any], task: str, where: str, gathered: Gathering) -> None:
    gathered.tasks[task] = {key: record[key] for key in ("id", "fields", "metadata", "_server_id") if key in record}
    for name, responses in part(record, "responses", dict, where).items():
        for response in entries({name: responses}, name, where):
            status = response.get("status", "submitted")
            if "status" not in response and UNTOLD not in gathered.notes:
                gathered.notes.append(UNTOLD)
            _response(gathered, name, task, response.get("user_id"), response.get("value"), status, where)
    for name, suggestion in part(record, "suggestions", dict, where).items():
        if not isinstance(suggestion, dict):
            raise InputError(f"the suggestion {name!r} of {where} should be an object with a value")
        _suggestion(gathered, name, task, suggestion.get("agent"), suggestion.get("value"), suggestion.get("score"))


def _flat(
    record: dict[str, Any], task: str, where: str, gathered: Gathering, labels: Mapping[str, list[str]], in_words: set[str]
) -> None:  # fmt: skip
    names = [key.removesuffix(RESPONSES) for key in record if key.endswith(RESPONSES)]
    fields = {key: value for key, value in record.items() if not _is_part(key)}
    gathered.tasks[task] = {"id": record.get("id"), "fields": fields}
    for name in names:
        key = name + RESPONSES
        values, users = part(record, key, list, where), part(record, f"{key}.users", list, where)
        states = part(record, f"{key}.status", list, where) or ["submitted"] * len(values)
        if not len(values) == len(users) == len(states):
            raise InputError(
                f"{where} has {len(values)} responses to {name!r}, {len(users)} users and {len(states)} states"
            )
        for user, value, status in zip(users, values, states, strict=True):
            _response(gathered, name, task, user, value, status, where)
    for key in [key for key in record if key.endswith(SUGGESTION) and record[key] is not None]:
        name, value = key.removesuffix(SUGGESTION), record[key]
        if key in labels:
            # to_datasets numbers labels as they come, and even the lack of one.
            value = labels[key][value] or None if value in range(len(labels[key])) else None
        elif name in in_words and isinstance(value, int):
            gathered.question(name).left_out["suggestions by number"] += 1
            continue
        _suggestion(gathered, name, task, record.get(f"{key}.agent"), value, record.get(f"{key}.score"))


def _answered_in_words(records: list[dict[str, Any]]) -> set[str]:
    """Questions that people answered in words; where a suggestion is a number, it stands for a word that JSON lines lack."""
    return {
        key.removesuffix(RESPONSES)
        for record in records
        for key, value in record.items()
        if key.endswith(RESPONSES) and isinstance(value, list) and any(isinstance(one, str) for one in value)
    }


def _is_part(key: str) -> bool:
    """Whether a flat key is of a question rather than of a field."""
    told = any(mark in key for mark in (RESPONSES, SUGGESTION))
    return told or key in ("id", "_server_id", "status", "inserted_at", "updated_at")


def _response(
    gathered: Gathering, name: str, task: str, user: object, value: object, status: object, where: str
) -> None:
    asked = _asked(gathered, name, value)
    if asked is None:
        return
    if status not in ("submitted", None):
        asked.left_out[f"{status}"] += 1
    elif value is None:
        asked.left_out["empty"] += 1
    else:
        asked.answer(task, identity(user, "user", where), value if isinstance(value, list) else [value])


def _suggestion(gathered: Gathering, name: str, task: str, agent: object, value: object, score: object) -> None:
    asked = _asked(gathered, name, value)
    if asked is None or value is None:
        return
    model = str(agent or "suggestions")
    gathered.groups.setdefault(model, family(model))
    # Of several options each has a score; the answer is as sure as its least sure part.
    lowest = min(score, default=None) if isinstance(score, list) else score
    asked.suggested(task, model, value if isinstance(value, list) else [value], lowest)


def _asked(gathered: Gathering, name: str, value: object) -> Asked | None:
    """The question, unless it asks for spans or ranks, which are lists of objects."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value)):
        ranked = "rank" in next(_objects(value), {})
        gathered.left_out["rankings" if ranked else "spans"] += 1
        return None
    asked = gathered.question(name)
    asked.multiple = asked.multiple or isinstance(value, list)
    asked.control["question"] = name
    # A rating comes as a number, and is given back as one.
    if isinstance(value, int | float) and not isinstance(value, bool):
        asked.control["value"] = "number"
    return asked


def _objects(value: object) -> Iterator[dict[str, Any]]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield one


def _sniff(path: Path) -> bool:
    if is_parquet(path):
        schema = known_schema(path)
        names = set() if schema is None else set(schema.names)
    else:
        record = first_object(path)
        names = set(record)
        if {"fields", "responses", "suggestions"} <= names:
            return True
    return any(name + ".users" in names for name in names if name.endswith(RESPONSES))


ARGILLA = tool_format("argilla", "records of Argilla 2", gather, _sniff)
