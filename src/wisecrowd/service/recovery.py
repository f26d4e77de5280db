"""Recovery of a damaged SQLite database: a new database with everything that can still be read."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from wisecrowd.errors import InputError, UsageError
from wisecrowd.service.database import (
    ABOUT,
    CLASS_KIND,
    METADATA,
    NAMES,
    QUESTION_KIND,
    QUESTIONS,
    RECORDS,
    SCHEMA_VERSION,
    TASK_KIND,
    WORKER_KIND,
    checksum_name,
    checksum_record,
)
from wisecrowd.utils.files import atomic_path

#: Maximum number of reads that may fail in a table. It bounds the time for a table of which nothing can be read.
MAX_FAILED_READS = 200_000
#: Number of rows that are searched where the size of a table cannot be read.
UNKNOWN_ROWS = 2**20
#: Number of rows that are written in one statement.
ROWS_PER_STATEMENT = 10_000


@dataclass
class Recovery:
    """Result of a recovery.

    Attributes
    ----------
    n_questions : int
        Number of questions in the new database.
    n_records : int
        Number of votes and gold labels in the new database.
    n_lost : int
        Number of votes and gold labels that exist but cannot be read, as far as it is known.
    """

    n_questions: int
    n_records: int
    n_lost: int


@dataclass
class _Salvage:
    """Readable rows: names by their old key, and records in order of arrival."""

    questions: dict[int, str] = field(default_factory=dict)
    names: dict[tuple[int, int, int], str] = field(default_factory=dict)
    records: list[tuple[Any, ...]] = field(default_factory=list)
    n_lost: int = 0


def recover_database(source: Path, target: Path) -> Recovery:
    """Copy everything that can be read from a damaged database to a new one. The damaged database is not changed.

    Parameters
    ----------
    source : pathlib.Path
        Damaged SQLite file; its write-ahead log is read, too.
    target : pathlib.Path
        New SQLite file.

    Returns
    -------
    Recovery
        Number of questions and records that were copied or lost.

    Raises
    ------
    InputError
        If there is no such file, or nothing in it can be read.
    UsageError
        If the target exists.
    """
    if not source.is_file():
        raise InputError(f"there is no file {source}; name the database of wisecrowd serve")
    if target.exists():
        raise UsageError(f"{target} exists; choose another name for the recovered database")
    with tempfile.TemporaryDirectory(dir=target.absolute().parent) as folder:
        copy = Path(folder) / "damaged.db"  # SQLite changes the files of a database even when it only reads it
        for suffix in ("", "-wal"):
            if Path(f"{source}{suffix}").exists():
                shutil.copyfile(f"{source}{suffix}", f"{copy}{suffix}")
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            salvage = _read_everything(connection)
    if not salvage.records and not salvage.names:
        raise InputError(f"nothing can be read from {source}; restore a backup")
    with atomic_path(target) as path:
        n_records = _write_everything(path, salvage)
    n_lost = salvage.n_lost + len(salvage.records) - n_records
    return Recovery(len(salvage.questions), n_records, n_lost)


def _read_everything(connection: sqlite3.Connection) -> _Salvage:
    salvage = _Salvage()
    for code, name, checksum in _read_rows(connection, "questions", "code, name, checksum"):
        if _is_text(name) and checksum == checksum_name(code, QUESTION_KIND, code, name):
            salvage.questions[code] = name
    for question, kind, code, name, checksum in _read_rows(connection, "names", "question, kind, code, name, checksum"):
        if _is_text(name) and checksum == checksum_name(question, kind, code, name):
            salvage.names[question, kind, code] = name
    for question, _, _ in salvage.names:  # the name of a question may be lost without its votes
        salvage.questions.setdefault(question, f"question {question}")
    columns = "number, source, question, task, worker, label, time, checksum"
    rows = list(_read_rows(connection, "records", columns))
    salvage.records = [row for row in rows if _is_record(row)]
    with contextlib.suppress(sqlite3.Error):  # the index may be whole where the table is not
        [[n_indexed]] = connection.execute("SELECT count(*) FROM records INDEXED BY records_of_task")
        salvage.n_lost = max(n_indexed - len(salvage.records), 0)
    salvage.n_lost = max(salvage.n_lost, len(rows) - len(salvage.records))
    return salvage


def _read_rows(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table in order, in ranges that are halved where they cannot be read."""
    try:
        [[last]] = connection.execute(f"SELECT max(rowid) FROM {table} NOT INDEXED")
    except (sqlite3.Error, OverflowError):
        last = UNKNOWN_ROWS
    query = f"SELECT {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    ranges, n_failed = [(0, last if isinstance(last, int) else 0)], 0
    while ranges and n_failed < MAX_FAILED_READS:
        low, high = ranges.pop()
        try:
            rows = connection.execute(query, (low, high)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):
            n_failed += 1
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]  # the lower half is read first
        else:
            yield from rows


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_record(row: tuple[Any, ...]) -> bool:
    number, source, question, task, worker, label, time, checksum = row
    are_codes = all(isinstance(code, int) and code >= 0 for code in (number, question, task, label, worker or 0))
    if not are_codes or not _is_text(source) or not isinstance(time, float | None):
        return False
    return bool(checksum == checksum_record(number, question, task, worker, label, time))


def _write_everything(path: Path, salvage: _Salvage) -> int:
    """Write a new database, in which names are numbered without gaps, and return the number of its records."""
    question_codes = {old: new for new, old in enumerate(sorted(salvage.questions))}
    codes: dict[tuple[int, int, int], int] = {}
    next_code: dict[tuple[int, int], int] = {}
    for question, kind, code in sorted(salvage.names):
        codes[question, kind, code] = next_code.get((question, kind), 0)
        next_code[question, kind] = codes[question, kind, code] + 1
    questions = [
        {
            "code": new,
            "name": salvage.questions[old],
            "checksum": checksum_name(new, QUESTION_KIND, new, salvage.questions[old]),
        }
        for old, new in question_codes.items()
    ]
    names = [_name_row(question_codes[key[0]], key[1], codes[key], name) for key, name in salvage.names.items()]
    records = []
    for number, source, question, task, worker, label, time, _ in salvage.records:
        keys = [(question, TASK_KIND, task), (question, CLASS_KIND, label)]
        if worker is not None:
            keys.append((question, WORKER_KIND, worker))
        if all(key in codes for key in keys):
            row = {
                "number": number, "question": question_codes[question], "task": codes[keys[0]],
                "worker": None if worker is None else codes[keys[2]], "label": codes[keys[1]], "time": time,
            }  # fmt: skip
            records.append({**row, "source": source, "checksum": checksum_record(**row)})
    engine = sql.create_engine(sql.URL.create("sqlite", database=str(path)), poolclass=sql.NullPool)
    with engine.begin() as connection:
        METADATA.create_all(connection)
        connection.execute(ABOUT.insert(), {"version": SCHEMA_VERSION, "sequence": 0, "writer": ""})
        for table, rows in ((QUESTIONS, questions), (NAMES, names), (RECORDS, records)):
            for start in range(0, len(rows), ROWS_PER_STATEMENT):
                connection.execute(table.insert(), rows[start : start + ROWS_PER_STATEMENT])
    return len(records)


def _name_row(question: int, kind: int, code: int, name: str) -> dict[str, Any]:
    checksum = checksum_name(question, kind, code, name)
    return {"question": question, "kind": kind, "code": code, "name": name, "checksum": checksum}
