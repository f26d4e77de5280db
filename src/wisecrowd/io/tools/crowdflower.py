"""CrowdFlower (Figure Eight, Appen): the full report, in CSV: a row per judgment.

Questions are the columns that have right answers beside them (``NAME_gold``), or that differ between the judgments of a
unit: what was shown is the same for all of them.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from wisecrowd.errors import InputError, some
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.csv import CSV
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import cells, header
from wisecrowd.io.tools.gathering import Gathering, identity, moment

UNIT, WORKER, GOLD = "_unit_id", "_worker_id", "_gold"
#: Columns that the full report has and hardly any other table; one of them beside unit and worker will do.
_OWN = {"_trust", "_tainted", "_golden", "_started_at", "_missed"}


def gather(path: Path) -> Gathering:
    """All that the full report tells.

    >>> _ = Path("full.csv").write_text("_unit_id,_worker_id,animal,animal_gold\\n1,w1,dog,cat\\n")
    >>> animal = gather(Path("full.csv")).question("animal")
    >>> animal.said, animal.truth
    ([('dog',)], {'1': ('cat',)})
    """
    gathered = Gathering()
    rows = list(cells(path, ","))
    if not rows:
        raise EmptyInput("there are no judgments in it: the header is followed by nothing")
    names = list(rows[0][1])
    if not {UNIT, WORKER} <= set(names):
        raise InputError(
            f"the columns {UNIT} and {WORKER} were wanted, as the full report has them (the aggregated one does not tell "
            f"who said what); the columns are {some(names, 12)}"
        )
    questions = _questions(names, [row for _, row in rows])
    several = {name for name in questions if any("\n" in row[name].strip() for _, row in rows)}
    pages = Counter(_page(row) for _, row in rows)
    for line, row in rows:
        where = f"line {line:,}"
        task, worker = identity(row[UNIT], "unit", where), identity(row[WORKER], "worker", where)
        gathered.tasks.setdefault(task, {name: row[name] for name in names if not _is_about(name, questions)})
        if row.get("_channel"):
            gathered.groups.setdefault(worker, row["_channel"])
        for name in questions:
            asked = gathered.question(name)
            asked.multiple = asked.multiple or name in several
            if row.get(name + GOLD):
                asked.gold(task, _said(row[name + GOLD], name in several))
            if row.get("_tainted", "").lower() == "true":
                asked.left_out["tainted"] += 1
            elif not row[name].strip():
                asked.left_out["empty"] += 1
            else:
                taken = _time(row.get("_created_at", "")) - _time(row.get("_started_at", ""))
                # The time is of a page, which all its units share.
                asked.answer(
                    task, worker, _said(row[name], name in several), time=_time(row.get("_created_at", "")),
                    seconds=taken / pages[_page(row)],
                )  # fmt: skip
    return gathered


def _questions(names: list[str], rows: list[dict[str, str]]) -> list[str]:
    candidates = [name for name in names if not _is_about(name, [])]
    known = {name for name in candidates if name + GOLD in names}
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        begun = first.setdefault(row[UNIT], row)
        known.update(name for name in candidates if row[name] != begun[name])
    if not known:
        raise InputError(
            "nobody can tell which columns are answers: none has right answers beside it (NAME_gold), and none differs "
            f'between judgments of a unit; read it as a table: format="csv", label="NAME". The columns are {some(names, 12)}'
        )
    return [name for name in names if name in known]


def _is_about(name: str, questions: list[str]) -> bool:
    """Whether a column is about the judgment rather than the unit."""
    return name.startswith("_") or name.endswith((GOLD, "_gold_reason")) or name in ("orig__golden", *questions)


def _page(row: dict[str, str]) -> tuple[str, ...]:
    return row[WORKER], row.get("_started_at", ""), row.get("_created_at", "")


def _said(text: str, several: bool) -> list[str]:
    """Several answers stand on lines of their own."""
    return [line.strip() for line in text.split("\n") if line.strip()] if several else [text]


def _time(text: str) -> float:
    """CrowdFlower writes the month first."""
    for way in ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M"):
        try:
            return datetime.strptime(text.strip(), way).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return moment(text)


def _sniff(path: Path) -> bool:
    names = header(path, ",")
    return {UNIT, WORKER} <= names and bool(names & _OWN)


CROWDFLOWER = tool_format("crowdflower", "the full report of CrowdFlower", gather, _sniff, lambda path: CSV)
