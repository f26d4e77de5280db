"""Argilla 2: records as ``dataset.records.to_json`` writes them, or flat, as ``to_datasets`` does.

Only submitted responses are votes, if the file has a status, which ``to_json`` does not write. Suggestions are votes of
machines, named after their ``agent``. A submitted response without spans is a vote: its user marked nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.parquet import is_parquet
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object, read_objects
from wisecrowd.io.tools.exported_answers import ExportedAnswers, ExportedQuestion, guess_model_family, parse_id
from wisecrowd.io.tools.exported_structures import ExportedMark, ExportedStructure, get_structure, parse_span
from wisecrowd.io.tools.hugging_face import read_class_names, read_parquet_rows, read_valid_schema
from wisecrowd.io.tools.label_sets import format_label_set
from wisecrowd.io.tools.question_votes import make_tool_reader

RESPONSES, SUGGESTION = ".responses", ".suggestion"
#: Note for records without a status.
NO_STATUS_NOTE = (
    "to_json does not mark drafts and discarded answers, so all answers are votes; to_datasets writes the status"
)


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in a file of records, nested or flat.

    Parameters
    ----------
    path : Path
        JSON, JSON lines or Parquet.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> response = '{"value": "good", "user_id": "ann", "status": "submitted"}'
    >>> record = f'{{"id": "r1", "fields": {{}}, "suggestions": {{}}, "responses": {{"mood": [{response}]}}}}'
    >>> _ = Path("records.json").write_text(f"[{record}]")
    >>> read_export(Path("records.json")).get_question("mood").worker
    ['ann']
    """
    export = ExportedAnswers()
    records = read_parquet_rows(path) if is_parquet(path) else read_objects(path, "a record of Argilla")
    class_names, text_questions = read_class_names(path), _find_text_questions(records)
    for name in _find_span_questions(records):
        get_structure(export, name, "spans").control["question"] = name
    for number, record in enumerate(records, start=1):
        location = f"record {number:,}"
        record_id = record.get("id")
        task = parse_id(record.get("_server_id", number) if record_id is None else record_id, "record", location)
        if "responses" in record or "suggestions" in record:
            _add_nested_record(record, task, location, export)
        elif any(key.endswith((RESPONSES, SUGGESTION)) for key in record):
            _add_flat_record(record, task, location, export, class_names, text_questions)
        else:
            raise InputError(
                f"{location} has neither responses nor suggestions, so it is not a record of Argilla; its keys are "
                f"{preview(record, 12)}"
            )
    for name, order in _find_orders(records).items():
        if name in export.questions:
            if order is None:
                export.notes.append(
                    f"answers to {name!r} seem to be rankings; wisecrowd.read_comparisons reads their order"
                )
            control = {"ranked": "yes"} if order is None else {"order": format_label_set(order)}
            export.questions[name].control |= control
    for name, question in export.questions.items():
        if not question.control.get("ranked"):  # lists of options that are no rankings
            export.rankings.pop(name, None)
    return export


def _find_span_questions(records: list[dict[str, Any]]) -> list[str]:
    """Return the questions whose answers are lists of objects with a start and an end."""
    names: dict[str, None] = {}
    for record in records:
        for name, values in _iter_values(record):
            if any(_is_span_list(value) for value in values):
                names[name] = None
    return list(names)


def _iter_values(record: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each question with its responses and suggestions, from a nested or flat record."""
    yield from _iter_responses(record)
    suggestions = record.get("suggestions")
    for name, suggestion in suggestions.items() if isinstance(suggestions, dict) else ():
        yield name, [suggestion.get("value")] if isinstance(suggestion, dict) else []
    for key, value in record.items():
        if key.endswith(SUGGESTION):
            yield key.removesuffix(SUGGESTION), [value]


def _is_span_list(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and {"start", "end"} <= item.keys() for item in value)
    )


def _parse_spans(
    question: ExportedStructure, value: object, location: str, scores: object = None
) -> list[ExportedMark]:
    entries = value if isinstance(value, list) else [value]
    values = scores if isinstance(scores, list) and len(scores) == len(entries) else [None] * len(entries)

    def parse(pair: tuple[Any, Any]) -> ExportedMark:
        entry, score = pair
        if not isinstance(entry, dict):
            raise InputError(
                f"a span of {location} should be an object with start, end and label; got {preview([entry])}"
            )
        return parse_span(entry.get("start"), entry.get("end"), entry.get("label"), location, score)

    return question.parse_marks(parse, zip(entries, values, strict=True))


def _set_lengths(question: ExportedStructure, task: str, fields: object) -> None:
    """Note the length of the text if a record has one text only; otherwise the field of the spans is unknown."""
    texts = [value for value in fields.values() if isinstance(value, str)] if isinstance(fields, dict) else []
    if len(texts) == 1:
        question.set_text(task, texts[0])


def _find_orders(records: list[dict[str, Any]]) -> dict[str, tuple[str, ...] | None]:
    """Return the questions whose answers all hold the same options, with the order, or None if orders differ.

    Rankings look like this.
    """
    answers: dict[str, set[tuple[str, ...]]] = {}
    for record in records:
        for name, values in _iter_responses(record):
            lists = (tuple(map(str, value)) for value in values if isinstance(value, list))
            answers.setdefault(name, set()).update(lists)
    rankings = {name: orders for name, orders in answers.items() if len({frozenset(order) for order in orders}) == 1}
    return {name: next(iter(orders)) if len(orders) == 1 else None for name, orders in rankings.items()}


def _iter_responses(record: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each question with its responses, from a nested or flat record."""
    responses = record.get("responses")
    for name, entries in responses.items() if isinstance(responses, dict) else ():
        yield (
            name,
            [entry.get("value") for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict)],
        )
    for key, value in record.items():
        if key.endswith(RESPONSES) and isinstance(value, list):
            yield key.removesuffix(RESPONSES), value


def _add_nested_record(record: dict[str, Any], task: str, location: str, export: ExportedAnswers) -> None:
    export.tasks[task] = {key: record[key] for key in ("id", "fields", "metadata", "_server_id") if key in record}
    for name, responses in get_part(record, "responses", dict, location).items():
        for response in get_objects({name: responses}, name, location):
            status = response.get("status", "submitted")
            if "status" not in response and NO_STATUS_NOTE not in export.notes:
                export.notes.append(NO_STATUS_NOTE)
            _add_response(export, name, task, response.get("user_id"), response.get("value"), status, location)
    for name, suggestion in get_part(record, "suggestions", dict, location).items():
        if not isinstance(suggestion, dict):
            raise InputError(f"the suggestion {name!r} of {location} should be an object with a value")
        agent, value, score = (suggestion.get(key) for key in ("agent", "value", "score"))
        if name in export.structures:
            _add_span_suggestion(export, name, task, agent, value, score, location)
            continue
        _add_suggestion(export, name, task, agent, value, _parse_score(score, name, location))


def _add_flat_record(
    record: dict[str, Any],
    task: str,
    location: str,
    export: ExportedAnswers,
    class_names: Mapping[str, list[str]],
    text_questions: set[str],
) -> None:
    names = [key.removesuffix(RESPONSES) for key in record if key.endswith(RESPONSES)]
    fields = {key: value for key, value in record.items() if not _is_question_key(key)}
    export.tasks[task] = {"id": record.get("id"), "fields": fields}
    for name in names:
        key = name + RESPONSES
        values, users = get_part(record, key, list, location), get_part(record, f"{key}.users", list, location)
        statuses = get_part(record, f"{key}.status", list, location) or ["submitted"] * len(values)
        if not len(values) == len(users) == len(statuses):
            raise InputError(
                f"{location} has {len(values)} responses to {name!r}, {len(users)} users and {len(statuses)} states"
            )
        for user, value, status in zip(users, values, statuses, strict=True):
            _add_response(export, name, task, user, value, status, location)
    for key in [key for key in record if key.endswith(SUGGESTION) and record[key] is not None]:
        name, value = key.removesuffix(SUGGESTION), record[key]
        if name in export.structures:
            agent, scores = record.get(f"{key}.agent"), record.get(f"{key}.score")
            _add_span_suggestion(export, name, task, agent, value, scores, location)
            continue
        if key in class_names:
            # to_datasets numbers labels in order of appearance, including a missing label.
            is_class = isinstance(value, int) and 0 <= value < len(class_names[key])
            value = (class_names[key][value] or None) if is_class else None
        elif name in text_questions and isinstance(value, int):
            export.get_question(name).excluded["suggestions by number"] += 1
            continue
        score = _parse_score(record.get(f"{key}.score"), name, location)
        _add_suggestion(export, name, task, record.get(f"{key}.agent"), value, score)


def _find_text_questions(records: list[dict[str, Any]]) -> set[str]:
    """Return questions answered in text. A suggestion by number refers to a text that JSON lines do not contain."""
    return {
        key.removesuffix(RESPONSES)
        for record in records
        for key, value in record.items()
        if key.endswith(RESPONSES) and isinstance(value, list) and any(isinstance(entry, str) for entry in value)
    }


def _is_question_key(key: str) -> bool:
    """Return whether a flat key belongs to a question rather than a field."""
    is_answer = any(mark in key for mark in (RESPONSES, SUGGESTION))
    return is_answer or key in ("id", "_server_id", "status", "inserted_at", "updated_at")


def _add_response(
    export: ExportedAnswers, name: str, task: str, user: object, value: object, status: object, location: str
) -> None:
    if name in export.structures:
        structure = export.structures[name]
        _set_lengths(structure, task, export.tasks[task].get("fields"))
        if status not in ("submitted", None):
            structure.excluded[f"{status}"] += 1
        elif value is None:
            structure.excluded["empty"] += 1
        else:
            structure.add_answer(task, parse_id(user, "user", location), _parse_spans(structure, value, location))
        return
    if status in ("submitted", None) and (order := _parse_ranking(value)) is not None:
        export.rankings.setdefault(name, []).append((task, parse_id(user, "user", location), order))
    question = _get_question(export, name, value)
    if question is None:
        return
    if status not in ("submitted", None):
        question.excluded[f"{status}"] += 1
    elif value is None:
        question.excluded["empty"] += 1
    else:
        question.add_answer(task, parse_id(user, "user", location), value if isinstance(value, list) else [value])


def _parse_ranking(value: object) -> tuple[tuple[str, ...], ...] | None:
    """Return groups of equal items, the best first, from a list of options or of objects with a rank; None if it is neither."""
    if not isinstance(value, list) or len(value) < 2:
        return None
    if all(isinstance(item, str) for item in value):
        return tuple((item,) for item in value) if len(set(value)) == len(value) else None
    groups: dict[Any, list[str]] = {}
    for item in value:
        rank = item.get("rank") if isinstance(item, dict) else None
        if not isinstance(rank, int | float) or not isinstance(item.get("value"), str):
            return None
        groups.setdefault(rank, []).append(item["value"])
    items = [name for group in groups.values() for name in group]
    return tuple(tuple(groups[rank]) for rank in sorted(groups)) if len(set(items)) == len(items) else None


def _parse_score(score: object, name: str, location: str) -> float | None:
    """Return the score of a suggestion. Several options have one each; the answer is as certain as the least certain one."""
    scores: list[Any] = [item for item in (score if isinstance(score, list) else [score]) if item is not None]
    if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in scores):
        raise InputError(
            f"the score of the suggestion {preview([name])} of {location} should be a number or a list of numbers; got "
            f"{preview([score])}"
        )
    return min(scores, default=None)


def _add_span_suggestion(
    export: ExportedAnswers, name: str, task: str, agent: object, value: object, score: object, location: str
) -> None:
    if value is None:
        return
    model = str(agent or "suggestions")
    export.groups.setdefault(model, guess_model_family(model))
    lowest = _parse_score(score, name, location)
    question = export.structures[name]
    question.add_suggestion(task, model, _parse_spans(question, value, location, score), lowest)


def _add_suggestion(
    export: ExportedAnswers, name: str, task: str, agent: object, value: object, score: float | None
) -> None:
    question = _get_question(export, name, value)
    if question is None or value is None:
        return
    model = str(agent or "suggestions")
    export.groups.setdefault(model, guess_model_family(model))
    question.add_suggestion(task, model, value if isinstance(value, list) else [value], score)


def _get_question(export: ExportedAnswers, name: str, value: object) -> ExportedQuestion | None:
    """Return the question, or None if its answers are lists of other objects, such as ranks."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict | list) for item in value)):
        objects = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        is_ranking = bool(objects) and "rank" in objects[0]
        if not (is_ranking and name in export.rankings):
            export.excluded["rankings" if is_ranking else "objects"] += 1
        return None
    question = export.get_question(name)
    question.multiple = question.multiple or isinstance(value, list)
    question.control["question"] = name
    # A rating is a number, and must be written back as one.
    if isinstance(value, int | float) and not isinstance(value, bool):
        question.control["value"] = "number"
    return question


def _detect(path: Path) -> bool:
    if is_parquet(path):
        schema = read_valid_schema(path)
        names = set() if schema is None else set(schema.names)
    else:
        names = set(peek_object(path))
        if {"fields", "responses", "suggestions"} <= names:
            return True
    return any(name + ".users" in names for name in names if name.endswith(RESPONSES))


ARGILLA = make_tool_reader("argilla", read_export, _detect)
