"""CrowdFlower (Figure Eight, Appen): the full report in CSV, with a row per judgment.

Questions are the columns that have correct answers beside them (``NAME_gold``), or that differ between the judgments of a
unit. Columns that were shown to workers are the same for all judgments.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from wisecrowd.errors import InputError, preview
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.csv import CSV
from wisecrowd.io.tools.export_files import iter_rows, peek_header
from wisecrowd.io.tools.exported_answers import ExportedAnswers, parse_id, parse_timestamp
from wisecrowd.io.tools.question_votes import make_tool_reader

UNIT, WORKER, GOLD = "_unit_id", "_worker_id", "_gold"
#: Columns that hardly any other table has. One of them beside unit and worker identifies the report.
_TYPICAL_COLUMNS = {"_trust", "_tainted", "_golden", "_started_at", "_missed"}


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in a full report.

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
    >>> _ = Path("full.csv").write_text("_unit_id,_worker_id,animal,animal_gold\\n1,w1,dog,cat\\n")
    >>> animal = read_export(Path("full.csv")).get_question("animal")
    >>> animal.labels, animal.truth
    ([('dog',)], {'1': ('cat',)})
    """
    export = ExportedAnswers()
    rows = list(iter_rows(path, ","))
    if not rows:
        raise EmptyInput(
            "there are no judgments in it, only a header; export the results again when workers have answered"
        )
    names = list(rows[0][1])
    if not {UNIT, WORKER} <= set(names):
        raise InputError(
            f"the columns {UNIT} and {WORKER} are missing; give the full report, because the aggregated report has no "
            f"workers. The columns are {preview(names, 12)}"
        )
    questions = _find_questions(names, [row for _, row in rows])
    answer_columns = set(questions)
    multiple = {name for name in questions if any("\n" in row[name].strip() for _, row in rows)}
    data_columns = [name for name in names if not _is_judgment_column(name) and name not in answer_columns]
    page_sizes = Counter(_get_page(row) for _, row in rows)
    for line, row in rows:
        location = f"line {line:,}"
        task, worker = parse_id(row[UNIT], "unit", location), parse_id(row[WORKER], "worker", location)
        if task not in export.tasks:
            export.tasks[task] = {name: row[name] for name in data_columns}
        if row.get("_channel"):
            export.groups.setdefault(worker, row["_channel"])
        time = _parse_time(row.get("_created_at", ""))
        # The time is that of a page. All units on the page share it.
        seconds = (time - _parse_time(row.get("_started_at", ""))) / page_sizes[_get_page(row)]
        for name in questions:
            question = export.get_question(name)
            question.multiple = question.multiple or name in multiple
            if row.get(name + GOLD):
                question.add_gold(task, _parse_labels(row[name + GOLD], name in multiple))
            if row.get("_tainted", "").lower() == "true":
                question.excluded["tainted"] += 1
            elif not row[name].strip():
                question.excluded["empty"] += 1
            else:
                labels = _parse_labels(row[name], name in multiple)
                question.add_answer(task, worker, labels, time=time, seconds=seconds)
    return export


def _find_questions(names: list[str], rows: list[dict[str, str]]) -> list[str]:
    candidates, all_names = [name for name in names if not _is_judgment_column(name)], set(names)
    questions = {name for name in candidates if name + GOLD in all_names}
    first_rows: dict[str, dict[str, str]] = {}
    for row in rows:
        first_row = first_rows.setdefault(row[UNIT], row)
        questions.update(name for name in candidates if row[name] != first_row[name])
    if not questions:
        raise InputError(
            "the columns of the answers cannot be recognised: none has correct answers beside it (NAME_gold), and none "
            f'differs between judgments of a unit; read it as a table: format="csv", label="NAME". The columns are '
            f"{preview(names, 12)}"
        )
    return [name for name in names if name in questions]


def _is_judgment_column(name: str) -> bool:
    """Return whether a column is about the judgment rather than the unit."""
    return name.startswith("_") or name.endswith((GOLD, "_gold_reason")) or name == "orig__golden"


def _get_page(row: dict[str, str]) -> tuple[str, ...]:
    return row[WORKER], row.get("_started_at", ""), row.get("_created_at", "")


def _parse_labels(text: str, multiple: bool) -> list[str]:
    """Parse an answer. Several labels are on separate lines."""
    return [line.strip() for line in text.split("\n") if line.strip()] if multiple else [text]


def _parse_time(text: str) -> float:
    """Parse a timestamp. CrowdFlower writes the month first."""
    for pattern in ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M"):
        try:
            return datetime.strptime(text.strip(), pattern).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return parse_timestamp(text)


def _detect(path: Path) -> bool:
    names = peek_header(path, ",")
    return {UNIT, WORKER} <= names and bool(names & _TYPICAL_COLUMNS)


CROWDFLOWER = make_tool_reader("crowdflower", read_export, _detect, lambda path: CSV)
