"""Prodigy: JSON lines as ``db-out`` writes them.

An input (``_input_hash``) is a task and a session is a worker. A choice is one question. Accepting or rejecting a label is a
question with the name of that label. Spans of texts, boxes of images and texts are questions, too. Ignored examples are excluded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json import JSONL
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object, read_objects
from wisecrowd.io.tools.exported_answers import (
    OWN_CONFIDENCE,
    OWN_LABEL,
    OWN_MODEL,
    OWN_PRIORITY,
    OWN_TASK,
    ExportedAnswers,
    format_label,
    parse_id,
    parse_number,
)
from wisecrowd.io.tools.exported_structures import (
    ExportedMark,
    ExportedStructure,
    get_structure,
    parse_place,
    parse_span,
)
from wisecrowd.io.tools.question_votes import make_tool_reader

#: Name of the question in choice examples, which have none in Prodigy.
CHOICE = "choice"
#: Names of the questions of marks.
SPANS, BOXES = "spans", "boxes"
#: Interfaces in which all spans of a text, or all boxes of an image, are marked.
_SPAN_VIEWS, _BOX_VIEWS = ("ner_manual", "spans_manual"), ("image_manual",)
#: Field of a text that the worker writes, unless the example names another.
TEXT_FIELD = "user_input"
#: Keys that belong to an answer rather than to the example.
_ANSWER_KEYS = {
    "answer", "accept", "spans", TEXT_FIELD, "_session_id", "_annotator_id", "_timestamp", "_task_hash", "versions", "sessions",
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
    if _add_structures(record, task, location, export) and not ("accept" in record or options):
        return
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


def _add_structures(record: dict[str, Any], task: str, location: str, export: ExportedAnswers) -> bool:
    """Add spans, boxes and texts of an example; return whether its interface asks for them."""
    view = record.get("_view_id")
    has_boxes = "image" in record and (view in _BOX_VIEWS or (view in ("blocks", None) and "spans" in record))
    has_spans = not has_boxes and (view in _SPAN_VIEWS or (view in ("blocks", None) and "spans" in record))
    if has_boxes:
        question = get_structure(export, BOXES, "boxes", "pixels")
        question.set_size(task, record.get("width"), record.get("height"))
    elif has_spans:
        question = get_structure(export, SPANS, "spans")
        question.set_text(task, record.get("text"))
    if has_boxes or has_spans:
        parse = _parse_box if has_boxes else _parse_prodigy_span
        entries = get_objects(record, "spans", location)
        marks = question.parse_marks(lambda entry: parse(entry, location, question), entries)
        _add_structure(question, record, task, location, marks)
    field = record.get("field_id") if isinstance(record.get("field_id"), str) else TEXT_FIELD
    if view in ("text_input", "blocks", None) and isinstance(record.get(str(field)), str):
        texts = get_structure(export, str(field), "texts")
        texts.control["field"] = str(field)
        _add_structure(texts, record, task, location, format_label(record[str(field)]))
        return True
    return has_boxes or has_spans


def _add_structure(
    question: ExportedStructure, record: dict[str, Any], task: str, location: str, answer: list[ExportedMark] | str
) -> None:
    decision = record.get("answer")
    if decision is None and OWN_CONFIDENCE in record:
        question.add_suggestion(task, OWN_MODEL, answer, record[OWN_CONFIDENCE])
    elif decision is None:
        question.excluded["unanswered"] += 1
    elif decision != "accept":
        question.excluded["ignored" if decision == "ignore" else "rejected"] += 1
    else:
        worker = parse_id(record.get("_annotator_id") or record.get("_session_id"), "session", location)
        question.add_answer(task, worker, answer, time=record.get("_timestamp"))


def _parse_prodigy_span(entry: dict[str, Any], location: str, question: ExportedStructure) -> ExportedMark | None:  # noqa: ARG001
    return parse_span(entry.get("start"), entry.get("end"), entry.get("label"), location, entry.get("score"))


def _parse_box(entry: dict[str, Any], location: str, question: ExportedStructure) -> ExportedMark | None:
    """Return a box; None for polygons and freehand drawings, which are counted."""
    if entry.get("type", "rect") != "rect":
        question.excluded[f"{entry['type']} shapes"] += 1
        return None
    if "x" in entry:
        place = parse_place((entry.get(key) for key in ("x", "y", "width", "height")), "box", location)
    else:  # examples from other sources have corners only
        corners = [parse_place(point, "box", location) for point in get_part(entry, "points", list, location)]
        if not corners or any(len(corner) != 2 for corner in corners):
            raise InputError(f"a box of {location} has neither x, y, width and height nor points")
        (left, right), (top, bottom) = ((min(side), max(side)) for side in zip(*corners, strict=True))
        place = (left, top, right - left, bottom - top)
    label = entry.get("label")
    return ExportedMark(place, None if label is None else format_label(label), parse_number(entry.get("score")))


def _parse_option(option: object, location: str) -> str:
    if isinstance(option, dict):
        option = option.get("id", option.get("text"))
    return parse_id(option, "option", location)


def _detect(path: Path) -> bool:
    keys = peek_object(path).keys()
    return "_input_hash" in keys and bool(keys & {"answer", OWN_CONFIDENCE, OWN_PRIORITY})


PRODIGY = make_tool_reader("prodigy", read_export, _detect, lambda path: JSONL)
