"""Amazon Mechanical Turk: the results of a batch, in CSV. ``Answer.*`` columns are questions, ``Input.*`` say what was shown.

A question may be one column of texts (several chosen boxes are joined by ``|``), a column of true and false for each option,
or JSON in ``Answer.taskAnswers``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, some
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.csv import CSV
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import cells, header, parsed
from wisecrowd.io.tools.gathering import Gathering, identity, moment

ANSWER, INPUT, ALL = "Answer.", "Input.", "Answer.taskAnswers"
#: Columns for the requester's verdict, which rows need not have although the header does.
_TO_FILL_IN = ("Approve", "Reject")
_TRUE, _BOOLEAN = "true", {"true", "false", ""}
#: Mechanical Turk writes times as "Mon Dec 10 11:23:12 PST 2018".
_ZONES = {"PST": timezone(timedelta(hours=-8)), "PDT": timezone(timedelta(hours=-7)), "UTC": UTC, "GMT": UTC}


def gather(path: Path) -> Gathering:
    """All that the results of a batch tell.

    >>> _ = Path("batch.csv").write_text("HITId,WorkerId,Answer.animal.label\\nh1,w1,cat\\n")
    >>> gather(Path("batch.csv")).question("animal").said
    [('cat',)]
    """
    gathered = Gathering()
    rows = list(cells(path, ",", may_lack=_TO_FILL_IN))
    if not rows:
        raise EmptyInput("there are no assignments in it: the header is followed by nothing")
    names = list(rows[0][1])
    absent = [name for name in ("HITId", "WorkerId") if name not in names]
    if absent or not any(name.startswith(ANSWER) for name in names):
        raise InputError(
            "columns HITId, WorkerId and Answer.… were wanted, as the results of a batch have them; the columns are "
            f"{some(names, 12)}"
        )
    columns = _columns(names, [row for _, row in rows])
    several = {name for name, parts in columns.items() if any(_is_several(row, parts) for _, row in rows)}
    for line, row in rows:
        where = f"line {line:,}"
        task = identity(row["HITId"], "HIT", where)
        gathered.tasks.setdefault(task, {name: row[name] for name in names if name.startswith(INPUT)})
        for name, said in _answers(row, columns, several, where):
            asked = gathered.question(name)
            asked.multiple = asked.multiple or name in several
            if row.get("AssignmentStatus") == "Rejected":
                asked.left_out["rejected"] += 1
            elif not said and name not in several:
                asked.left_out["empty"] += 1
            else:
                asked.answer(
                    task,
                    identity(row["WorkerId"], "worker", where),
                    said,
                    time=_time(row.get("SubmitTime", "")),
                    seconds=row.get("WorkTimeInSeconds"),
                )
    return gathered


def _columns(names: list[str], rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """Question -> option -> column; a question in one column has the option ""."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        if not name.startswith(ANSWER) or name == ALL:
            continue
        told = name.removeprefix(ANSWER)
        question, dot, option = told.rpartition(".")
        if dot and option == "label":
            found[question] = {"": name}
        elif dot and question and option and all(row[name].strip().lower() in _BOOLEAN for row in rows):
            found.setdefault(question, {})[option] = name
        else:
            found[told] = {"": name}
    # A box that stands alone is ticked or not, and both are answers.
    return {name: {"": next(iter(parts.values()))} if len(parts) == 1 else parts for name, parts in found.items()}


def _is_several(row: dict[str, str], parts: dict[str, str]) -> bool:
    if "" in parts:
        return "|" in row[parts[""]]
    return sum(row[column].strip().lower() == _TRUE for column in parts.values()) > 1


def _answers(
    row: dict[str, str], columns: dict[str, dict[str, str]], several: set[str], where: str
) -> Iterator[tuple[str, list[Any]]]:
    if row.get(ALL):
        yield from _all_in_one(row[ALL], where)
    for name, parts in columns.items():
        if "" not in parts:
            yield name, [option for option, column in parts.items() if row[column].strip().lower() == _TRUE]
            continue
        text = row[parts[""]]
        if name in several:
            yield name, [option for option in text.split("|") if option]
        else:
            yield name, [text] if text else []


def _all_in_one(text: str, where: str) -> Iterator[tuple[str, list[Any]]]:
    """Answers of forms that Mechanical Turk's own elements make: a list with one object."""
    told = parsed(text, f"{ALL} on {where}")
    for form in told if isinstance(told, list) else [told]:
        if not isinstance(form, dict):
            raise InputError(f"{ALL} on {where} should hold an object; got {some([form])}")
        for name, value in form.items():
            if isinstance(value, dict) and "label" in value:
                yield name, [value["label"]]
            elif isinstance(value, dict) and value and all(isinstance(one, bool) for one in value.values()):
                yield name, [option for option, chosen in value.items() if chosen]
            elif isinstance(value, dict | list):
                yield name, [json.dumps(value, ensure_ascii=False, sort_keys=True)]
            else:
                yield name, [] if value in (None, "") else [value]


def _time(text: str) -> object:
    words = text.split()
    if len(words) == 6 and words[4] in _ZONES:
        try:
            naive = datetime.strptime(" ".join([*words[:4], words[5]]), "%a %b %d %H:%M:%S %Y")
        except ValueError:
            return math.nan
        return naive.replace(tzinfo=_ZONES[words[4]])
    return moment(text)


def _sniff(path: Path) -> bool:
    names = header(path, ",")
    return {"HITId", "WorkerId"} <= names and any(name.startswith(ANSWER) for name in names)


MTURK = tool_format("mturk", "results of Mechanical Turk", gather, _sniff, lambda path: CSV)
