"""Prodigy: JSON lines as ``db-out`` writes them.

An input (``_input_hash``) is a task and a session is a worker. A choice is one question. Accepting or rejecting a label is a
question with the name of that label. Ignored examples are excluded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json import JSONL
from wisecrowd.io.tools.export_files import get_part, peek_object, read_objects
from wisecrowd.io.tools.exported_answers import (
    OWN_CONFIDENCE,
    OWN_LABEL,
    OWN_MODEL,
    OWN_PRIORITY,
    OWN_TASK,
    ExportedAnswers,
    parse_id,
)
from wisecrowd.io.tools.question_votes import make_tool_reader

#: Name of the question in choice examples, which have none in Prodigy.
CHOICE = "choice"
#: Keys that belong to an answer rather than to the example.
_ANSWER_KEYS = {
    "answer", "accept", "_session_id", "_annotator_id", "_timestamp", "_task_hash", "versions", "sessions",
    OWN_LABEL, OWN_CONFIDENCE, OWN_PRIORITY,
}  # fmt: skip


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in a file of annotated examples.

    Parameters
    ----------
    path : Path
        JSON lines.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> record = '{"_input_hash": 5, "_session_id": "news-ann", "label": "SPORT", "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> read_export(Path("answers.jsonl")).get_question("SPORT").labels
    [('accept',)]
    """
    export = ExportedAnswers()
    for number, record in enumerate(read_objects(path, "an example of Prodigy"), start=1):
        location = f"line {number:,}"
        input_hash = record.get(OWN_TASK, record.get("_input_hash"))
        if input_hash is None:
            raise InputError(f"{location} has no _input_hash, which identifies an example of Prodigy")
        task = parse_id(input_hash, "_input_hash", location)
        export.tasks.setdefault(task, {key: record[key] for key in record if key not in _ANSWER_KEYS})
        _add_example(record, task, location, export)
    return export


def _add_example(record: dict[str, Any], task: str, location: str, export: ExportedAnswers) -> None:
    options = get_part(record, "options", list, location)
    accepted = get_part(record, "accept", list, location)
    label, answer = record.get("label"), record.get("answer")
    if "accept" in record or options:
        question = export.get_question(CHOICE)
        question.options.update(dict.fromkeys(_parse_option(option, location) for option in options))
        style = get_part(record, "config", dict, location).get("choice_style")
        question.multiple = question.multiple or style == "multiple"
        question.control["question"] = CHOICE
        labels = [_parse_option(option, location) for option in accepted]
    elif isinstance(label, str) and not record.get("spans"):
        decision = record.get(OWN_LABEL) if answer is None else answer
        question, labels = export.get_question(label), [decision] if decision in ("accept", "reject") else []
        question.options.update(accept=None, reject=None)
        question.control["label"] = label
    else:
        export.excluded[f"{record.get('_view_id') or 'other'} examples"] += 1
        return
    if answer is None:
        if OWN_CONFIDENCE in record and labels:
            question.add_suggestion(task, OWN_MODEL, labels, record[OWN_CONFIDENCE])
        else:
            question.excluded["unanswered"] += 1
    elif answer == "ignore":
        question.excluded["ignored"] += 1
    elif answer == "reject" and "label" not in question.control:
        question.excluded["rejected"] += 1
    else:
        worker = parse_id(record.get("_annotator_id") or record.get("_session_id"), "session", location)
        question.add_answer(task, worker, labels, time=record.get("_timestamp"))


def _parse_option(option: object, location: str) -> str:
    if isinstance(option, dict):
        option = option.get("id", option.get("text"))
    return parse_id(option, "option", location)


def _detect(path: Path) -> bool:
    keys = peek_object(path).keys()
    return "_input_hash" in keys and bool(keys & {"answer", OWN_CONFIDENCE, OWN_PRIORITY})


PRODIGY = make_tool_reader("prodigy", read_export, _detect, lambda path: JSONL)
