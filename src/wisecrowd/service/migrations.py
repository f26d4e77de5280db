"""Conversion of databases of earlier versions, and backups of SQLite databases.

| schema | versions of wisecrowd | difference from the one before |
| --- | --- | --- |
| 1 | 0.1 | |
| 2 | 0.1 | votes are numbered in the order of arrival; ids of votes are scoped to a question |
| 3 | 0.1 | checksums, and the number of the last transaction |
| 4 | 0.2 | sources of Label Studio contain the server and the project; questions have an origin |
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from wisecrowd.errors import InputError, UsageError
from wisecrowd.service.database import (
    ABOUT,
    METADATA,
    NAMES,
    QUESTION_KIND,
    QUESTIONS,
    RECORDS,
    SCHEMA_VERSION,
    DamagedDatabase,
    checksum_name,
    checksum_record,
    connect,
    mask_password,
)
from wisecrowd.service.integrity import check_database, is_corruption
from wisecrowd.service.writers import SqliteWriter, create_writer, explain_damage
from wisecrowd.utils.files import atomic_path

#: Schema from which on rows have checksums.
FIRST_WITH_CHECKSUMS = 3
#: Schema from which on ids of votes are scoped to a question, and the one from which on annotations are scoped to a project.
FIRST_WITH_SCOPED_IDS, FIRST_WITH_SCOPED_ANNOTATIONS = 2, 4
#: Kind of the names of questions in the checksums of schema 3.
OLD_QUESTION_KIND = 3
#: Number of rows that are converted in one statement.
ROWS_PER_STATEMENT = 10_000
#: Prefix of the tables of the earlier schema while they are converted.
OLD = "old_"
_ANNOTATION = "label-studio:"


@dataclass(frozen=True)
class Migration:
    """Result of a conversion.

    Attributes
    ----------
    version : int
        Schema of the database before.
    n_questions, n_records : int
        Number of questions, and of votes and gold labels.
    backup : pathlib.Path or None
        Copy of an SQLite database as it was before.
    """

    version: int
    n_questions: int
    n_records: int
    backup: Path | None


def migrate_database(url: str) -> Migration:
    """Convert a database of an earlier version in place, in one transaction: all of it or nothing.

    Parameters
    ----------
    url : str
        File name of a SQLite database, of which a copy is made first, or URL of a PostgreSQL database.

    Returns
    -------
    Migration
        Earlier schema, and what was converted.

    Raises
    ------
    InputError
        If the database does not exist, is damaged, belongs to another program, or a service uses it.
    UsageError
        If the database has the current schema.

    Examples
    --------
    >>> import inspect
    >>> list(inspect.signature(migrate_database).parameters)
    ['url']
    """
    engine = connect(url)
    if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).is_file():
        raise InputError(f"there is no file {url}; name the database of wisecrowd serve")
    writer = create_writer(engine, url, wait_seconds=0.0)
    try:
        with writer.begin() as connection:
            if isinstance(writer, SqliteWriter):
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            version = _read_version(connection, url)
            backup = None
            if isinstance(writer, SqliteWriter):
                backup = writer.path.with_name(f"{writer.path.name}.schema-{version}")
                if backup.exists():
                    raise UsageError(f"{backup} exists, from an earlier attempt; move it away and try again")
                _copy_sqlite(writer.path, backup)
            n_questions, n_records = _convert(connection, version)
        return Migration(version, n_questions, n_records, backup)
    except DamagedDatabase as error:
        raise InputError(explain_damage(url, str(error))) from None
    except sql.exc.SQLAlchemyError as error:
        message = str(getattr(error, "orig", None) or error).splitlines()[0]
        if is_corruption(error):
            raise InputError(explain_damage(url, message)) from None
        raise InputError(f"{mask_password(url)} cannot be converted, and is as it was: {message}") from None
    finally:
        writer.close()
        engine.dispose()


def back_up_database(source: Path, target: Path) -> tuple[int, int]:
    """Copy an SQLite database, also while a service writes to it, and check the copy.

    Parameters
    ----------
    source : pathlib.Path
        Database.
    target : pathlib.Path
        Copy to create. It appears complete or not at all, and has all votes that were acknowledged before the call.

    Returns
    -------
    n_questions, n_records : int
        Number of questions, and of votes and gold labels in the copy.

    Raises
    ------
    InputError
        If there is no such database, or the copy is damaged, as the database then is.
    UsageError
        If the target exists.

    Examples
    --------
    >>> from wisecrowd.service.store import Store
    >>> Store("votes.db").close()
    >>> back_up_database(Path("votes.db"), Path("backup.db"))
    (0, 0)
    """
    if not source.is_file():
        raise InputError(f"there is no file {source}; name the database of wisecrowd serve")
    if target.exists():
        raise UsageError(f"{target} exists; choose another name for the backup")
    try:
        with atomic_path(target) as path:
            _copy_pages(source, path)
            problems, n_questions, n_records = check_database(str(path))
            if problems:
                raise InputError(explain_damage(str(source), problems[0]))
    except sqlite3.Error as error:
        raise InputError(explain_damage(str(source), str(error))) from None
    return n_questions, n_records


def _copy_sqlite(source: Path, target: Path) -> None:
    with atomic_path(target) as path:
        _copy_pages(source, path)


def _copy_pages(source: Path, target: Path) -> None:
    """Copy an SQLite database with its write-ahead log into one file."""
    with (
        contextlib.closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as original,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it


def _read_version(connection: Connection, url: str) -> int:
    if ABOUT.name not in sql.inspect(connection).get_table_names():
        raise InputError(f"{mask_password(url)} is not a database of wisecrowd serve")
    version = connection.scalar(sql.text("SELECT version FROM about"))
    if version == SCHEMA_VERSION:
        raise UsageError(f"{mask_password(url)} has the current schema ({version}); start wisecrowd serve with it")
    if not isinstance(version, int) or not 1 <= version < SCHEMA_VERSION:
        raise InputError(
            f"{mask_password(url)} has the schema {version}, and this version of wisecrowd knows 1 to {SCHEMA_VERSION}; "
            "install the newest version"
        )
    return version


def _convert(connection: Connection, version: int) -> tuple[int, int]:
    """Write the current tables from those of an earlier schema, and remove the latter."""
    votes = "entries" if version < FIRST_WITH_SCOPED_IDS else "records"
    sequence = connection.scalar(sql.text("SELECT sequence FROM about")) if version >= FIRST_WITH_CHECKSUMS else 0
    connection.execute(sql.text(f"DROP INDEX {votes}_of_task"))
    for table in ("about", "questions", "names", votes):
        connection.execute(sql.text(f"ALTER TABLE {table} RENAME TO {OLD}{table}"))
    METADATA.create_all(connection)
    connection.execute(ABOUT.insert(), {"version": SCHEMA_VERSION, "sequence": int(sequence or 0), "writer": ""})
    questions: dict[int, str] = {}
    for rows in _read_old(connection, "questions", ("code", "name"), version):
        for code, name, checksum in rows:
            _verify(checksum, checksum_name(code, OLD_QUESTION_KIND, code, name), f"the name of question {code}")
            questions[code] = name
        new_questions = [
            {"code": code, "name": name, "checksum": checksum_name(code, QUESTION_KIND, code, name)}
            for code, name, _ in rows
        ]
        connection.execute(QUESTIONS.insert(), new_questions)
    name_columns = ("question", "kind", "code", "name")
    for rows in _read_old(connection, "names", name_columns, version):
        for *key, checksum in rows:
            _verify(checksum, checksum_name(*key), f"the name {key[-1][:40]!r}")
        new_names = [dict(zip(name_columns, key, strict=True)) | {"checksum": checksum_name(*key)} for *key, _ in rows]
        connection.execute(NAMES.insert(), new_names)
    n_records = 0
    columns = ("number", "question", "task", "worker", "label", "time", "source")
    for rows in _read_old(connection, votes, columns, version, key="number"):
        new_records = []
        for number, *values, source, checksum in rows:
            _verify(checksum, checksum_record(number, *values), f"record {number}")
            # Schema 1 did not forbid that two votes share a number.
            n_records = max(n_records + 1, number) if version >= FIRST_WITH_SCOPED_IDS else n_records + 1
            record = dict(zip(columns[1:], values, strict=False)) | {"number": n_records}
            new_records.append(
                record
                | {
                    "source": convert_source(source, questions[values[0]], version),
                    "checksum": checksum_record(n_records, *values),
                }
            )
        connection.execute(RECORDS.insert(), new_records)
    n_votes = connection.scalar(sql.select(sql.func.count()).select_from(RECORDS))
    for table in ("about", "questions", "names", votes):
        connection.execute(sql.text(f"DROP TABLE {OLD}{table}"))
    return len(questions), int(n_votes or 0)


def _read_old(
    connection: Connection, table: str, columns: Sequence[str], version: int, key: str | None = None
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of an old table in parts. A row ends with its checksum, or None where the schema has none."""
    checksum = "checksum" if version >= FIRST_WITH_CHECKSUMS else "NULL"
    order = ", ".join(columns[:3]) if key is None else f"{key}, source, question"
    query = f"SELECT {', '.join(columns)}, {checksum} FROM {OLD}{table} ORDER BY {order}"
    options = {"stream_results": True, "yield_per": ROWS_PER_STATEMENT}
    for rows in connection.execute(sql.text(query), execution_options=options).partitions():
        yield [tuple(row) for row in rows]


def _verify(checksum: int | None, expected: int, what: str) -> None:
    if checksum is not None and checksum != expected:
        raise DamagedDatabase(f"{what} is not as it was written")


def convert_source(source: str, question: str, version: int) -> str:
    """Convert the source of a vote from an earlier database schema to the current one.

    A source identifies a vote: it contains the id that the sender gave to the vote. If a vote with the same source is sent again,
    it replaces the stored vote. Without the conversion, it would be stored a second time.

    Parameters
    ----------
    source : str
        Source of a vote in the earlier schema.
    question : str
        Name of the question that the vote answers.
    version : int
        Number of the earlier schema.

    Returns
    -------
    str
        Source of the vote in the current schema.

    Examples
    --------
    >>> convert_source("id:v-1", "mood", 1), convert_source("label-studio:5", "12:mood", 3)
    ('id:["mood", "v-1"]', 'label-studio:["", "12", "5"]')
    """
    if version < FIRST_WITH_SCOPED_IDS and source.startswith("id:"):
        return f"id:{json.dumps((question, source.removeprefix('id:')))}"
    if version < FIRST_WITH_SCOPED_ANNOTATIONS and source.startswith(_ANNOTATION):
        project = question.partition(":")[0]
        return f"{_ANNOTATION}{json.dumps(('', project, source.removeprefix(_ANNOTATION)))}"
    return source
