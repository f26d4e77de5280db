"""doccano: a zip file or folder with one file per annotator, in JSON lines, JSON or CSV.

The name of a file is the name of the worker. A project whose annotators share one set of labels (``all.jsonl``) does not
record the workers and cannot be read as votes.
"""

from __future__ import annotations

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
from wisecrowd.io.tools.question_votes import make_tool_reader

_SUFFIXES = (".jsonl", ".json", ".csv")
#: Keys of categories: in text and image classification, and in intent detection.
QUESTIONS = ("label", "cats")
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
    for name, text in _read_files(path):
        worker = PurePosixPath(name).stem
        for number, record in enumerate(_parse_records(name, text), start=1):
            _add_example(record, worker, f"line {number:,} of {name}", export)
    return export


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


def _add_example(record: dict[str, Any], worker: str, location: str, export: ExportedAnswers) -> None:
    task = parse_id(record.get(OWN_TASK) or record.get("id"), "example", location)
    export.tasks.setdefault(
        task, {key: value for key, value in record.items() if key not in (*QUESTIONS, "entities", "Comments")}
    )
    if entities := get_part(record, "entities", list, location):
        export.excluded["spans"] += len(entities)
    for name in QUESTIONS:
        if name not in record:
            continue
        labels = record[name] if record[name] is not None else []
        if not isinstance(labels, list):
            labels = [labels]
        if any(isinstance(label, list | dict) for label in labels):
            export.excluded["spans"] += len(labels)
            continue
        question = export.get_question(name)
        question.control["column"] = name
        if not labels:
            question.excluded["empty"] += 1  # every file lists all examples, labelled or not
        elif worker.startswith(OWN_MODEL):
            question.add_suggestion(task, worker, labels, record.get(OWN_CONFIDENCE))
        else:
            question.add_answer(task, worker, labels)
    if not any(name in record for name in QUESTIONS) and "entities" not in record:
        raise InputError(f"{location} has no label; its keys are {preview(record, 8)}")


def _detect(path: Path) -> bool:
    """Return whether a path holds nothing but doccano's tables, or a file that wisecrowd wrote for doccano."""
    if path.is_dir():
        return _detect_folder(path)
    if not is_zip(path):
        record = peek_object(path)
        return OWN_CONFIDENCE in record and any(isinstance(record.get(name), list) for name in QUESTIONS)
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
