"""Prodigy: JSON lines as ``db-out`` writes them.

An input (``_input_hash``) is a task, a session is a worker. A choice becomes one question; accepting or rejecting a label
becomes a question of that label's name. What was ignored is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json import JSONL
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import first_object, objects, part
from wisecrowd.io.tools.gathering import OWN, OWN_CONFIDENCE, OWN_LABEL, OWN_PRIORITY, OWN_TASK, Gathering, identity

#: What the question is called that Prodigy has no name for.
CHOICE = "choice"
#: What belongs to an answer rather than to the example.
_ANSWERED = {
    "answer", "accept", "_session_id", "_annotator_id", "_timestamp", "_task_hash", "versions", "sessions",
    OWN_LABEL, OWN_CONFIDENCE, OWN_PRIORITY,
}  # fmt: skip


def gather(path: Path) -> Gathering:
    """All that annotated examples tell.

    >>> record = '{"_input_hash": 5, "_session_id": "news-ann", "label": "SPORT", "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> gather(Path("answers.jsonl")).question("SPORT").said
    [('accept',)]
    """
    gathered = Gathering()
    for number, record in enumerate(objects(path, "an example of Prodigy"), start=1):
        where = f"line {number:,}"
        told = record.get(OWN_TASK, record.get("_input_hash"))
        if told is None:
            raise InputError(f"{where} has no _input_hash, by which Prodigy tells examples apart")
        task = identity(told, "_input_hash", where)
        gathered.tasks.setdefault(task, {key: record[key] for key in record if key not in _ANSWERED})
        _example(record, task, where, gathered)
    return gathered


def _example(record: dict[str, Any], task: str, where: str, gathered: Gathering) -> None:
    options = part(record, "options", list, where)
    accepted = part(record, "accept", list, where)
    label, answer = record.get("label"), record.get("answer")
    if "accept" in record or options:
        asked = gathered.question(CHOICE)
        asked.options.update(dict.fromkeys(_option(option, where) for option in options))
        asked.multiple = asked.multiple or part(record, "config", dict, where).get("choice_style") == "multiple"
        asked.control["question"] = CHOICE
        said = [_option(option, where) for option in accepted]
    elif isinstance(label, str) and not record.get("spans"):
        told = record.get(OWN_LABEL) if answer is None else answer
        asked, said = gathered.question(label), [told] if told in ("accept", "reject") else []
        asked.options.update(accept=None, reject=None)
        asked.control["label"] = label
    else:
        gathered.left_out[f"{record.get('_view_id') or 'other'} examples"] += 1
        return
    if answer is None:
        if OWN_CONFIDENCE in record and said:
            asked.suggested(task, OWN, said, record[OWN_CONFIDENCE])
        else:
            asked.left_out["unanswered"] += 1
    elif answer == "ignore":
        asked.left_out["ignored"] += 1
    elif answer == "reject" and "label" not in asked.control:
        asked.left_out["rejected"] += 1
    else:
        worker = identity(record.get("_annotator_id") or record.get("_session_id"), "session", where)
        asked.answer(task, worker, said, time=record.get("_timestamp"))


def _option(option: object, where: str) -> str:
    if isinstance(option, dict):
        option = option.get("id", option.get("text"))
    return identity(option, "option", where)


def _sniff(path: Path) -> bool:
    keys = first_object(path).keys()
    return "_input_hash" in keys and bool(keys & {"answer", OWN_CONFIDENCE, OWN_PRIORITY})


PRODIGY = tool_format("prodigy", "annotations of Prodigy in JSON lines", gather, _sniff, lambda path: JSONL)
