"""Toloka: the table of assignments in TSV. ``OUTPUT:`` columns are questions, ``GOLDEN:`` columns their correct answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from wisecrowd.errors import InputError, preview
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.csv import TSV
from wisecrowd.io.tools.export_files import iter_rows, peek_header
from wisecrowd.io.tools.exported_answers import ExportedAnswers, parse_id, parse_timestamp
from wisecrowd.io.tools.question_votes import make_tool_reader

OUTPUT, GOLDEN, INPUT = "OUTPUT:", "GOLDEN:", "INPUT:"
WORKER, TASK, STATUS, PAGE = (f"ASSIGNMENT:{name}" for name in ("worker_id", "task_id", "status", "assignment_id"))
#: Statuses of assignments whose answers are votes. Active, skipped, expired and rejected ones are excluded.
_VALID_STATUSES = {"", "ACCEPTED", "APPROVED", "SUBMITTED"}


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in a table of assignments.

    Parameters
    ----------
    path : Path
        TSV file.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> _ = Path("a.tsv").write_text("INPUT:image\\tOUTPUT:animal\\tASSIGNMENT:worker_id\\na.jpg\\tcat\\tw1\\n")
    >>> read_export(Path("a.tsv")).get_question("animal").labels
    [('cat',)]
    """
    export = ExportedAnswers()
    rows = list(iter_rows(path, "\t"))
    if not rows:
        raise EmptyInput(
            "there are no assignments in it, only a header; export the results again when workers have answered"
        )
    names = list(rows[0][1])
    questions = [name.removeprefix(OUTPUT) for name in names if name.startswith(OUTPUT)]
    if not questions or WORKER not in names:
        raise InputError(
            f"it has no columns such as OUTPUT:result and {WORKER}, so it is not Toloka's table of assignments; the "
            f"columns are {preview(names, 12)}"
        )
    inputs = [name for name in names if name.startswith(INPUT)]
    multiple = {
        name for name in questions if all(_is_list(row[OUTPUT + name]) for _, row in rows if row[OUTPUT + name])
    }
    page_sizes = Counter(row.get(PAGE, "") for _, row in rows)
    for line, row in rows:
        location = f"line {line:,}"
        task = row.get(TASK) or _make_task_id(row, inputs, location)
        export.tasks.setdefault(task, {name: row[name] for name in inputs})
        for name in questions:
            question = export.get_question(name)
            if row.get(GOLDEN + name):
                question.add_gold(task, _parse_labels(row[GOLDEN + name], name in multiple))
            if row.get(STATUS, "") not in _VALID_STATUSES:
                question.excluded[row[STATUS].lower()] += 1
            elif not row[OUTPUT + name]:
                question.excluded["empty"] += 1
            else:
                question.multiple = question.multiple or name in multiple
                question.add_answer(
                    task,
                    parse_id(row[WORKER], "worker", location),
                    _parse_labels(row[OUTPUT + name], name in multiple),
                    time=row.get("ASSIGNMENT:submitted") or row.get("ASSIGNMENT:started"),
                    # The time is that of a page. All tasks on the page share it.
                    seconds=_page_seconds(row) / page_sizes[row.get(PAGE, "")] if PAGE in row else None,
                )
    return export


def _make_task_id(row: dict[str, str], inputs: list[str], location: str) -> str:
    """Return the input that was shown, which identifies a task without an id."""
    shown = [row[name] for name in inputs if row[name]]
    if not shown:
        raise InputError(f"{location} has neither {TASK} nor an INPUT: column that identifies the task")
    return shown[0] if len(inputs) == 1 else json.dumps({name: row[name] for name in inputs}, ensure_ascii=False)


def _page_seconds(row: dict[str, str]) -> float:
    return parse_timestamp(row.get("ASSIGNMENT:submitted")) - parse_timestamp(row.get("ASSIGNMENT:started"))


def _is_list(text: str) -> bool:
    if not text.startswith("["):
        return False
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _parse_labels(text: str, multiple: bool) -> list[str]:
    """Parse an answer. Several labels are a JSON list."""
    return json.loads(text) if multiple and _is_list(text) else [text]


def _detect(path: Path) -> bool:
    names = peek_header(path, "\t")
    return WORKER in names and any(name.startswith(OUTPUT) for name in names)


TOLOKA = make_tool_reader("toloka", read_export, _detect, lambda path: TSV)
