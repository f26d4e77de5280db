"""Toloka: the table of assignments, in TSV. ``OUTPUT:`` columns are questions, ``GOLDEN:`` columns their right answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from wisecrowd.errors import InputError, some
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.csv import TSV
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import cells, header
from wisecrowd.io.tools.gathering import Gathering, identity, moment

OUTPUT, GOLDEN, INPUT = "OUTPUT:", "GOLDEN:", "INPUT:"
WORKER, TASK, STATUS, PAGE = (f"ASSIGNMENT:{name}" for name in ("worker_id", "task_id", "status", "assignment_id"))
#: Assignments that hold answers; what is active, skipped, expired or rejected does not count.
_COUNTS = {"", "ACCEPTED", "APPROVED", "SUBMITTED"}


def gather(path: Path) -> Gathering:
    """All that the table tells.

    >>> _ = Path("a.tsv").write_text("INPUT:image\\tOUTPUT:animal\\tASSIGNMENT:worker_id\\na.jpg\\tcat\\tw1\\n")
    >>> gather(Path("a.tsv")).question("animal").said
    [('cat',)]
    """
    gathered = Gathering()
    rows = list(cells(path, "\t"))
    if not rows:
        raise EmptyInput("there are no assignments in it: the header is followed by nothing")
    names = list(rows[0][1])
    questions = [name.removeprefix(OUTPUT) for name in names if name.startswith(OUTPUT)]
    if not questions or WORKER not in names:
        raise InputError(
            f"columns such as OUTPUT:result and {WORKER} were wanted, as Toloka's table of assignments has them; the "
            f"columns are {some(names, 12)}"
        )
    inputs = [name for name in names if name.startswith(INPUT)]
    lists = {name for name in questions if all(_is_list(row[OUTPUT + name]) for _, row in rows if row[OUTPUT + name])}
    pages = Counter(row.get(PAGE, "") for _, row in rows)
    for line, row in rows:
        where = f"line {line:,}"
        task = row.get(TASK) or _told_by(row, inputs, where)
        gathered.tasks.setdefault(task, {name: row[name] for name in inputs})
        for name in questions:
            asked = gathered.question(name)
            if row.get(GOLDEN + name):
                asked.gold(task, _said(row[GOLDEN + name], name in lists))
            if row.get(STATUS, "") not in _COUNTS:
                asked.left_out[row[STATUS].lower()] += 1
            elif not row[OUTPUT + name]:
                asked.left_out["empty"] += 1
            else:
                asked.multiple = asked.multiple or name in lists
                asked.answer(
                    task,
                    identity(row[WORKER], "worker", where),
                    _said(row[OUTPUT + name], name in lists),
                    time=row.get("ASSIGNMENT:submitted") or row.get("ASSIGNMENT:started"),
                    # The time is of a page, which all its tasks share.
                    seconds=_taken(row) / pages[row.get(PAGE, "")] if PAGE in row else None,
                )
    return gathered


def _told_by(row: dict[str, str], inputs: list[str], where: str) -> str:
    """Without ids, a task is what was shown."""
    shown = [row[name] for name in inputs if row[name]]
    if not shown:
        raise InputError(f"{where} has neither {TASK} nor an INPUT: column that says what it is about")
    return shown[0] if len(inputs) == 1 else json.dumps({name: row[name] for name in inputs}, ensure_ascii=False)


def _taken(row: dict[str, str]) -> float:
    return moment(row.get("ASSIGNMENT:submitted")) - moment(row.get("ASSIGNMENT:started"))


def _is_list(text: str) -> bool:
    if not text.startswith("["):
        return False
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _said(text: str, is_list: bool) -> list[str]:
    return json.loads(text) if is_list and _is_list(text) else [text]


def _sniff(path: Path) -> bool:
    names = header(path, "\t")
    return WORKER in names and any(name.startswith(OUTPUT) for name in names)


TOLOKA = tool_format("toloka", "Toloka's table of assignments", gather, _sniff, lambda path: TSV)
