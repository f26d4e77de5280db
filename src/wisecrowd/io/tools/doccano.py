"""doccano: a zip file or folder with one file per annotator, in JSON lines, JSON or CSV.

The name of a file is the name of the worker. A project whose annotators share one set of labels (``all.jsonl``) does not
record the workers and cannot be read as votes. Files of versions before 1.5 list the spans of all users of an example
(``annotations``), with the number of the user.

doccano lists all examples for every annotator, also those that the annotator never saw, unless only approved examples are exported.
An example without spans is a vote only in the latter case, which shows in files of different examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.archives import is_system_file, is_zip, peek_zip_texts, read_zip_texts
from wisecrowd.io.tables.text_files import read_text
from wisecrowd.io.tools.export_files import (
    get_part,
    parse_first_object,
    parse_header,
    parse_objects,
    parse_rows,
    peek_header,
    peek_object,
)
from wisecrowd.io.tools.exported_answers import OWN_CONFIDENCE, OWN_MODEL, OWN_TASK, ExportedAnswers, parse_id
from wisecrowd.io.tools.exported_structures import ExportedMark, get_structure, parse_span
from wisecrowd.io.tools.question_votes import make_tool_reader

_SUFFIXES = (".jsonl", ".json", ".csv")
#: Keys of categories: in text and image classification, and in intent detection.
QUESTIONS = ("label", "cats")
#: Keys of spans: in sequence labelling, in relation extraction and intent detection, and in old versions.
SPAN_COLUMNS = ("label", "entities", "annotations")
SHARED = "all"
#: Content of the file of an annotator who confirmed no example, in JSON lines, JSON and CSV.
_EMPTY_CONTENTS = ("", "[]", '""')


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in the files of the annotators.

    Parameters
    ----------
    path : Path
        Zip file, folder, or the file of one annotator.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> Path("export").mkdir()
    >>> _ = Path("export/ann.jsonl").write_text('{"id": 1, "text": "Hi", "label": ["good"]}\\n')
    >>> read_export(Path("export")).get_question("label").worker
    ['ann']
    """
    export = ExportedAnswers()
    files = [(name, _parse_records(name, text)) for name, text in _read_files(path)]
    examples = [{str(record.get(OWN_TASK) or record.get("id")) for record in records} for _, records in files]
    only_approved = len(files) > 1 and any(ids != examples[0] for ids in examples)
    span_columns = _find_span_columns(record for _, records in files for record in records)
    for name, records in files:
        worker = PurePosixPath(name).stem
        for number, record in enumerate(records, start=1):
            location = f"line {number:,} of {name}"
            _add_example(record, worker, location, export, span_columns)
            for column in span_columns & record.keys():
                _add_spans(record, column, worker, location, export, counts_empty=only_approved)
    for question in export.structures.values():
        if n := question.excluded["not seen, or without spans"]:
            question.notes.append(
                f"{n:,} examples without spans are not votes, because doccano also lists examples that an annotator never saw; "
                "export only approved documents to count them"
            )
    return export


def _find_span_columns(records: Iterable[dict[str, Any]]) -> set[str]:
    """Return the keys that hold spans in some record."""
    columns: set[str] = set()
    for record in records:
        for column in SPAN_COLUMNS:
            entries = record.get(column)
            if isinstance(entries, list) and entries and isinstance(entries[0], list | dict):
                columns.add(column)
    return columns


def _add_spans(
    record: dict[str, Any], column: str, worker: str, location: str, export: ExportedAnswers, *, counts_empty: bool
) -> None:
    task = parse_id(record.get(OWN_TASK) or record.get("id"), "example", location)
    question = get_structure(export, column, "spans")
    question.control["column"] = column
    if "cats" in record:
        question.control["cats"] = "yes"
    question.set_text(task, record.get("text"))
    by_worker: dict[str, list[ExportedMark]] = {} if column == "annotations" else {worker: []}
    for entry in get_part(record, column, list, location):
        user = worker
        if isinstance(entry, dict):
            question.control["entries"] = "objects"
            if column == "annotations":
                user = parse_id(entry.get("user"), "user", location)
        marks = question.parse_marks(lambda one: _parse_doccano_span(one, location), [entry])
        by_worker.setdefault(user, []).extend(marks)
    for user, marks in by_worker.items():
        if user.startswith(OWN_MODEL):
            question.add_suggestion(task, user, marks, record.get(OWN_CONFIDENCE))
        elif marks or counts_empty:
            question.add_answer(task, user, marks)
        else:
            question.excluded["not seen, or without spans"] += 1


def _parse_doccano_span(entry: object, location: str) -> ExportedMark:
    if isinstance(entry, dict):
        return parse_span(entry.get("start_offset"), entry.get("end_offset"), entry.get("label"), location)
    if isinstance(entry, list) and len(entry) == 3:
        start, end, label = entry
        return parse_span(start, end, label, location)
    raise InputError(f"a span of {location} should be [start, end, label]; got {preview([entry])}")


def _read_files(path: Path) -> list[tuple[str, str]]:
    if path.is_dir():
        files = [
            (file.name, read_text(file))
            for file in sorted(path.iterdir())
            if file.suffix in _SUFFIXES and not is_system_file(file.name) and file.stat().st_size
        ]
    elif is_zip(path):
        files = read_zip_texts(path, _SUFFIXES)
    else:
        files = [(path.name, read_text(path))]
    files = [(name, text) for name, text in files if text.strip() not in _EMPTY_CONTENTS]
    if not files:
        raise InputError("there is no file of an annotator in it; expected one file NAME.jsonl for each")
    is_own = path.is_file() and not is_zip(path) and OWN_CONFIDENCE in peek_object(path)
    if is_own:
        return [(f"{OWN_MODEL}.jsonl", files[0][1])]
    if len(files) == 1 and PurePosixPath(files[0][0]).stem == SHARED:
        raise InputError(
            f"{files[0][0]} holds labels that all annotators share, so it does not record the workers; turn off "
            "'Share annotations across all users' in doccano's project, and export again"
        )
    return files


def _parse_records(name: str, text: str) -> list[dict[str, Any]]:
    if not name.endswith(".csv"):
        try:
            return parse_objects(text, "an example of doccano")
        except InputError as error:
            error.args = (f"{name}: {error}",)
            raise
    try:
        rows = [row for _, row in parse_rows(text, ",")]
    except InputError as error:
        error.args = (f"{name}: {error}",)
        raise
    # In tables, doccano joins the labels of a text by #.
    return [row | {"label": row["label"].split("#") if row.get("label") else []} for row in rows]


def _add_example(
    record: dict[str, Any], worker: str, location: str, export: ExportedAnswers, span_columns: set[str]
) -> None:
    task = parse_id(record.get(OWN_TASK) or record.get("id"), "example", location)
    export.tasks.setdefault(
        task,
        {
            key: value
            for key, value in record.items()
            if key not in (*QUESTIONS, *SPAN_COLUMNS, "relations", "Comments")
        },
    )
    get_part(record, "entities", list, location)
    for name in QUESTIONS:
        if name not in record or name in span_columns:
            continue
        labels = record[name] if record[name] is not None else []
        if not isinstance(labels, list):
            labels = [labels]
        question = export.get_question(name)
        question.control["column"] = name
        if not labels:
            question.excluded["empty"] += 1  # every file lists all examples, labelled or not
        elif worker.startswith(OWN_MODEL):
            question.add_suggestion(task, worker, labels, record.get(OWN_CONFIDENCE))
        else:
            question.add_answer(task, worker, labels)
    if not any(name in record for name in (*QUESTIONS, *SPAN_COLUMNS)):
        raise InputError(f"{location} has no label; its keys are {preview(record, 8)}")


def _detect(path: Path) -> bool:
    """Return whether a path holds nothing but doccano's tables, or a file that wisecrowd wrote for doccano."""
    if path.is_dir():
        return _detect_folder(path)
    if not is_zip(path):
        record = peek_object(path)
        if {"id", "text", "annotations", "annotation_approver"} <= record.keys():
            return True  # versions before 1.5
        return OWN_CONFIDENCE in record and any(isinstance(record.get(name), list) for name in (*QUESTIONS, "entities"))
    files = peek_zip_texts(path, _SUFFIXES, only_these=True, max_files=3)
    name, text = next(((name, text) for name, text in files if text.strip() not in _EMPTY_CONTENTS), ("", ""))
    if name.endswith(".csv"):
        return {"id", "text", "label"} <= parse_header(text, ",")
    first = parse_first_object(text.lstrip())
    return "id" in first and bool(first.keys() & {*QUESTIONS, "entities"})


def _detect_folder(folder: Path) -> bool:
    """Return whether a folder is doccano's. Any tool writes tables, so a list of labels or comments is required."""
    files = [file for file in sorted(folder.iterdir()) if not is_system_file(file.name)]
    if not files or not all(file.suffix in _SUFFIXES and file.is_file() for file in files):
        return False
    for file in files:
        if file.suffix == ".csv":
            if {"id", "text", "label", "Comments"} <= peek_header(file, ","):
                return True
        elif "id" in (first := peek_object(file)):
            return any(isinstance(first.get(name), list) for name in (*QUESTIONS, "entities"))
    return False


DOCCANO = make_tool_reader("doccano", read_export, _detect)
