"""Amazon Mechanical Turk: the results of a batch in CSV. ``Answer.*`` columns are questions, ``Input.*`` what was shown.

A question is one column of text (several chosen boxes are joined by ``|``), a column of true and false for each option, or
JSON in ``Answer.taskAnswers``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, preview
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.csv import CSV
from wisecrowd.io.tables.json_text import parse_json
from wisecrowd.io.tools.export_files import iter_rows, peek_header
from wisecrowd.io.tools.exported_answers import ExportedAnswers, parse_id, parse_timestamp
from wisecrowd.io.tools.question_votes import make_tool_reader

ANSWER, INPUT, TASK_ANSWERS = "Answer.", "Input.", "Answer.taskAnswers"
#: Columns for the requester's decision. They are in the header, but rows may lack them.
_DECISION_COLUMNS = ("Approve", "Reject")
_TRUE, _BOOLEAN = "true", {"true", "false", ""}
#: Time zones in timestamps such as "Mon Dec 10 11:23:12 PST 2018".
_TIME_ZONES = {"PST": timezone(timedelta(hours=-8)), "PDT": timezone(timedelta(hours=-7)), "UTC": UTC, "GMT": UTC}


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in the results of a batch.

    Parameters
    ----------
    path : Path
        CSV file.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> _ = Path("batch.csv").write_text("HITId,WorkerId,Answer.animal.label\\nh1,w1,cat\\n")
    >>> read_export(Path("batch.csv")).get_question("animal").labels
    [('cat',)]
    """
    export = ExportedAnswers()
    rows = list(iter_rows(path, ",", optional_columns=_DECISION_COLUMNS))
    if not rows:
        raise EmptyInput(
            "there are no assignments in it, only a header; export the results again when workers have answered"
        )
    names = list(rows[0][1])
    if not {"HITId", "WorkerId"} <= set(names) or not any(name.startswith(ANSWER) for name in names):
        raise InputError(
            "it has no columns HITId, WorkerId and Answer.…, so it is not the results of a batch; the columns are "
            f"{preview(names, 12)}"
        )
    columns = _find_columns(names, [row for _, row in rows])
    multiple = {name for name, parts in columns.items() if any(_has_several(row, parts) for _, row in rows)}
    for line, row in rows:
        location = f"line {line:,}"
        task = parse_id(row["HITId"], "HIT", location)
        export.tasks.setdefault(task, {name: row[name] for name in names if name.startswith(INPUT)})
        for name, labels in _iter_answers(row, columns, multiple, location):
            question = export.get_question(name)
            question.multiple = question.multiple or name in multiple
            if row.get("AssignmentStatus") == "Rejected":
                question.excluded["rejected"] += 1
            elif not labels and name not in multiple:
                question.excluded["empty"] += 1
            else:
                question.add_answer(
                    task,
                    parse_id(row["WorkerId"], "worker", location),
                    labels,
                    time=_parse_time(row.get("SubmitTime", "")),
                    seconds=row.get("WorkTimeInSeconds"),
                )
    return export


def _find_columns(names: list[str], rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return the column of each option by question. A question in one column has the option ""."""
    columns: dict[str, dict[str, str]] = {}
    for name in names:
        if not name.startswith(ANSWER) or name == TASK_ANSWERS:
            continue
        suffix = name.removeprefix(ANSWER)
        question, dot, option = suffix.rpartition(".")
        if dot and option == "label":
            columns[question] = {"": name}
        elif dot and question and option and all(row[name].strip().lower() in _BOOLEAN for row in rows):
            columns.setdefault(question, {})[option] = name
        else:
            columns[suffix] = {"": name}
    # For a single checkbox, true and false are both answers.
    return {name: {"": next(iter(parts.values()))} if len(parts) == 1 else parts for name, parts in columns.items()}


def _has_several(row: dict[str, str], parts: dict[str, str]) -> bool:
    if "" in parts:
        return "|" in row[parts[""]]
    return sum(row[column].strip().lower() == _TRUE for column in parts.values()) > 1


def _iter_answers(
    row: dict[str, str], columns: dict[str, dict[str, str]], multiple: set[str], location: str
) -> Iterator[tuple[str, list[Any]]]:
    if row.get(TASK_ANSWERS):
        yield from _iter_json_answers(row[TASK_ANSWERS], location)
    for name, parts in columns.items():
        if "" not in parts:
            yield name, [option for option, column in parts.items() if row[column].strip().lower() == _TRUE]
            continue
        text = row[parts[""]]
        if name in multiple:
            yield name, [option for option in text.split("|") if option]
        else:
            yield name, [text] if text else []


def _iter_json_answers(text: str, location: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the answers of Mechanical Turk's own form elements: a list with one object."""
    value = parse_json(text, f"{TASK_ANSWERS} on {location}")
    for form in value if isinstance(value, list) else [value]:
        if not isinstance(form, dict):
            raise InputError(f"{TASK_ANSWERS} on {location} should hold an object; got {preview([form])}")
        for name, answer in form.items():
            if isinstance(answer, dict) and "label" in answer:
                yield name, [answer["label"]]
            elif isinstance(answer, dict) and answer and all(isinstance(item, bool) for item in answer.values()):
                yield name, [option for option, chosen in answer.items() if chosen]
            elif isinstance(answer, dict | list):
                yield name, [json.dumps(answer, ensure_ascii=False, sort_keys=True)]
            else:
                yield name, [] if answer in (None, "") else [answer]


def _parse_time(text: str) -> object:
    words = text.split()
    if len(words) == 6 and words[4] in _TIME_ZONES:
        try:
            local_time = datetime.strptime(" ".join([*words[:4], words[5]]), "%a %b %d %H:%M:%S %Y")
        except ValueError:
            return math.nan
        return local_time.replace(tzinfo=_TIME_ZONES[words[4]])
    return parse_timestamp(text)


def _detect(path: Path) -> bool:
    names = peek_header(path, ",")
    return {"HITId", "WorkerId"} <= names and any(name.startswith(ANSWER) for name in names)


MTURK = make_tool_reader("mturk", read_export, _detect, lambda path: CSV)
