"""doccano: a zip (or folder) with a file for each annotator, in JSON lines, JSON or CSV.

The name of a file is that of the worker. A project in which all share one set of labels (``all.jsonl``) does not tell who
said what, and cannot be read as votes.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path, PurePosixPath
from typing import Any

from wisecrowd.errors import InputError, some
from wisecrowd.io.tables.archives import is_clutter, is_zip, members
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import first_in, first_object, header, objects_in, whole_text
from wisecrowd.io.tools.gathering import OWN, OWN_CONFIDENCE, OWN_TASK, Gathering, identity

_SUFFIXES = (".jsonl", ".json", ".csv")
#: Columns of categories: of text and image classification, and of intent detection.
QUESTIONS = ("label", "cats")
SHARED = "all"
#: What doccano writes for whoever confirmed no example, in lines, in JSON and in CSV.
_NOTHING = ("", "[]", '""')


def gather(path: Path) -> Gathering:
    """All that the files of the annotators tell.

    >>> Path("export").mkdir()
    >>> _ = Path("export/ann.jsonl").write_text('{"id": 1, "text": "Hi", "label": ["good"]}\\n')
    >>> gather(Path("export")).question("label").worker
    ['ann']
    """
    gathered = Gathering()
    for name, text in _files(path):
        worker = PurePosixPath(name).stem
        for number, record in enumerate(_records(name, text), start=1):
            _example(record, worker, f"line {number:,} of {name}", gathered)
    return gathered


def _files(path: Path) -> list[tuple[str, str]]:
    if path.is_dir():
        files = [
            (file.name, whole_text(file))
            for file in sorted(path.iterdir())
            if file.suffix in _SUFFIXES and not is_clutter(file.name) and file.stat().st_size
        ]
    elif is_zip(path):
        files = members(path, _SUFFIXES)
    else:
        files = [(path.name, whole_text(path))]
    files = [(name, text) for name, text in files if text.strip() not in _NOTHING]
    if not files:
        raise InputError("there is no file of an annotator in it: NAME.jsonl was wanted, one for each")
    own = path.is_file() and not is_zip(path) and OWN_CONFIDENCE in first_object(path)
    if own:
        return [(f"{OWN}.jsonl", files[0][1])]
    if len(files) == 1 and PurePosixPath(files[0][0]).stem == SHARED:
        raise InputError(
            f"{files[0][0]} is what all annotators share, so that nobody can tell who said what; turn off "
            "'Share annotations across all users' in doccano's project, and export again"
        )
    return files


def _records(name: str, text: str) -> list[dict[str, Any]]:
    if not name.endswith(".csv"):
        try:
            return objects_in(text, "an example of doccano")
        except InputError as error:
            error.args = (f"{name}: {error}",)
            raise
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise InputError(f"{name} is no table: {error}") from None
    # In its tables, doccano joins the labels of a text by #.
    return [dict(row) | {"label": (row.get("label") or "").split("#") if row.get("label") else []} for row in rows]


def _example(record: dict[str, Any], worker: str, where: str, gathered: Gathering) -> None:
    task = identity(record.get(OWN_TASK) or record.get("id"), "example", where)
    gathered.tasks.setdefault(
        task, {key: value for key, value in record.items() if key not in (*QUESTIONS, "entities", "Comments")}
    )
    if record.get("entities"):
        gathered.left_out["spans"] += len(record["entities"])
    for name in QUESTIONS:
        if name not in record:
            continue
        said = record[name] if record[name] is not None else []
        if not isinstance(said, list):
            said = [said]
        if any(isinstance(one, list | dict) for one in said):
            gathered.left_out["spans"] += len(said)
            continue
        asked = gathered.question(name)
        asked.control["column"] = name
        if not said:
            asked.left_out["empty"] += 1  # the file of an annotator lists all examples, seen or not
        elif worker.startswith(OWN):
            asked.suggested(task, worker, said, record.get(OWN_CONFIDENCE))
        else:
            asked.answer(task, worker, said)
    if not any(name in record for name in QUESTIONS) and "entities" not in record:
        raise InputError(f"{where} has no label; its keys are {some(record, 8)}")


def _sniff(path: Path) -> bool:
    """A zip or folder of nothing but tables, the first of which begins as doccano's do; what wisecrowd wrote for it."""
    if path.is_dir():
        return _sniff_folder(path)
    if not is_zip(path):
        record = first_object(path)
        return OWN_CONFIDENCE in record and any(isinstance(record.get(name), list) for name in QUESTIONS)
    try:
        found = members(path, _SUFFIXES, only=True, at_most=3)
    except InputError:
        return False
    name, text = next(((name, text) for name, text in found if text.strip() not in _NOTHING), ("", ""))
    if name.endswith(".csv"):
        return {"id", "text", "label"} <= set(next(csv.reader(io.StringIO(text, newline="")), ()))
    first = first_in(text.lstrip())
    return "id" in first and bool(first.keys() & {*QUESTIONS, "entities"})


def _sniff_folder(folder: Path) -> bool:
    """Tables in a folder may be anybody's, so that more is wanted of them: lists of labels, or the column of comments."""
    files = [file for file in sorted(folder.iterdir()) if not is_clutter(file.name)]
    if not files or not all(file.suffix in _SUFFIXES and file.is_file() for file in files):
        return False
    for file in files:
        if file.suffix == ".csv":
            if {"id", "text", "label", "Comments"} <= header(file, ","):
                return True
        elif "id" in (first := first_object(file)):
            return any(isinstance(first.get(name), list) for name in (*QUESTIONS, "entities"))
    return False


DOCCANO = tool_format("doccano", "an export of doccano, with a file for each annotator", gather, _sniff)
