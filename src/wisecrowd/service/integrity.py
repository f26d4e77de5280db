"""Checks of a vote database: its pages, its rows, and whether acknowledged transactions are missing."""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from wisecrowd.errors import InputError
from wisecrowd.service.database import (
    ABOUT,
    CLASS_KIND,
    NAMES,
    ORIGIN_KIND,
    QUESTIONS,
    RECORDS,
    TASK_KIND,
    WORKER_KIND,
    DamagedDatabase,
    check_schema,
    connect,
    connect_read_only,
    mask_password,
    read_records,
    read_vocabularies,
)

#: Maximum number of problems that a check returns.
MAX_PROBLEMS = 20
#: Number of bytes of a sequence file.
_SEQUENCE_BYTES = 20
#: Header of a write-ahead log: magic number, version, page size, checkpoint, two salts, two checksums.
_LOG_HEADER = struct.Struct(">8I")
_LOG_MAGIC = 0x377F0682
#: Header of a frame: page, size of the database after a commit or 0, two salts, two checksums.
_FRAME_HEADER = struct.Struct(">6I")
_NOUNS = {TASK_KIND: "task", WORKER_KIND: "worker", CLASS_KIND: "class", ORIGIN_KIND: "origin"}


class SequenceFile:
    """A file beside an SQLite database with the number of its last acknowledged transaction.

    SQLite drops the end of a write-ahead log that is damaged or missing without a word. The file shows that transactions
    are missing. It is written after each transaction without waiting for the disk: a number that is too small after a
    power failure does no harm.

    Parameters
    ----------
    database : pathlib.Path
        SQLite file.

    Examples
    --------
    >>> file = SequenceFile(Path("votes.db"))
    >>> file.read()
    0
    >>> file.write(7)
    >>> file.read()
    7
    >>> file.close()
    """

    def __init__(self, database: Path) -> None:
        self.database = database
        self._file = os.open(f"{database}.sequence", os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)

    def read(self) -> int:
        """Return the stored number.

        Returns
        -------
        int
            Sequence of the last acknowledged transaction; 0 where the file has none.
        """
        return self.peek(self.database)

    def write(self, sequence: int) -> None:
        """Store a number.

        Parameters
        ----------
        sequence : int
            Sequence of the last acknowledged transaction.
        """
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, f"{sequence:>{_SEQUENCE_BYTES - 1}}\n".encode())

    @staticmethod
    def peek(database: Path) -> int:
        """Return the number in the file beside a database, which need not exist.

        Parameters
        ----------
        database : pathlib.Path
            SQLite file.

        Returns
        -------
        int
            Sequence of the last acknowledged transaction; 0 where there is no file.
        """
        try:
            text = Path(f"{database}.sequence").read_bytes().strip()
        except OSError:
            return 0
        return int(text) if text.isdigit() and len(text) < _SEQUENCE_BYTES else 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def describe_lost_transactions(last: int, acknowledged: int) -> list[str]:
    """Compare the last transaction of a database with the last one that was acknowledged.

    Parameters
    ----------
    last : int
        Sequence of the last transaction of the database.
    acknowledged : int
        Sequence of the last transaction that was acknowledged.

    Returns
    -------
    list of str
        Problems; empty where no transaction is missing.

    Examples
    --------
    >>> describe_lost_transactions(7, 7)
    []
    """
    if acknowledged <= last:
        return []
    return [
        f"it ends with transaction {last:,}, but {acknowledged:,} were acknowledged; its write-ahead log is damaged or missing"
    ]


def find_lost_frames(database: Path) -> list[str]:
    """Check whether SQLite has dropped transactions from a damaged write-ahead log.

    SQLite reads the log up to the first frame that is not valid. That is right for a transaction that a power failure
    interrupted. But if two transactions follow, the first of them was on disk before the second one began.

    Parameters
    ----------
    database : pathlib.Path
        SQLite file to which a connection is open, so that its index of the log is current.

    Returns
    -------
    list of str
        Problems; empty where nothing is lost.

    References
    ----------
    The WAL-Mode File Format, https://www.sqlite.org/walformat.html
    """
    log, index = Path(f"{database}-wal"), Path(f"{database}-shm")
    if not log.exists() or not index.exists() or log.stat().st_size <= _LOG_HEADER.size:
        return []
    with log.open("rb") as file:
        magic, _, page_bytes, _, *salts = _LOG_HEADER.unpack(file.read(_LOG_HEADER.size))[:6]
        if magic & ~1 != _LOG_MAGIC or page_bytes.bit_count() != 1:
            return ["the header of its write-ahead log is damaged"]
        n_valid = int.from_bytes(index.read_bytes()[16:20], sys.byteorder)  # frames that SQLite reads
        frame_bytes = _FRAME_HEADER.size + page_bytes
        position = _LOG_HEADER.size + n_valid * frame_bytes
        n_lost = 0
        while True:
            file.seek(position)
            header = file.read(_FRAME_HEADER.size)
            if len(header) < _FRAME_HEADER.size:
                break
            _, pages_after_commit, *frame_salts = _FRAME_HEADER.unpack(header)[:4]
            n_lost += pages_after_commit > 0 and frame_salts == salts
            position += frame_bytes
    return [f"its write-ahead log is damaged, and {n_lost:,} transactions cannot be read"] if n_lost > 1 else []


def is_corruption(error: BaseException) -> bool:
    """Return whether an error of a database means that its file is damaged.

    Parameters
    ----------
    error : BaseException
        Error of SQLAlchemy or of the driver.

    Returns
    -------
    bool
        Whether SQLite could not understand the file.

    Examples
    --------
    >>> is_corruption(ValueError("another error"))
    False
    """
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, UnicodeDecodeError):
        return True
    if not isinstance(cause, sqlite3.Error):
        return False
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary code
    is_undecodable = isinstance(cause, sqlite3.OperationalError) and "decode to UTF-8" in str(cause)
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT) or is_undecodable


def find_damage(connection: Connection, *, is_full: bool = False) -> list[str]:
    """Check the pages and the rows of a database.

    Parameters
    ----------
    connection : sqlalchemy.engine.Connection
        Open connection to a database with the tables of the service.
    is_full : bool, default=False
        Whether indexes are compared with their tables row by row, which takes longer; SQLite only.

    Returns
    -------
    list of str
        Problems; empty where the database is consistent.
    """
    problems: list[str] = []
    try:
        if connection.dialect.name == "sqlite":
            problems += _check_pages(connection, is_full=is_full)
        problems += _check_counts(connection)
        problems += _check_names(connection)
        problems += _check_records(connection)
    except sql.exc.SQLAlchemyError as error:
        if not is_corruption(error):
            raise
        problems.append(str(getattr(error, "orig", error)).splitlines()[0])
    except UnicodeDecodeError:
        problems.append("it has text that is not UTF-8")
    return problems[:MAX_PROBLEMS]


def check_database(url: str) -> tuple[list[str], int, int]:
    """Check everything in a database without changing it: pages, indexes, checksums of rows, and lost transactions.

    Parameters
    ----------
    url : str
        File name of a SQLite database, or URL of a PostgreSQL database. A service may be running on it.

    Returns
    -------
    problems : list of str
        Problems; empty where the database is in order.
    n_questions : int
        Number of questions that can be read.
    n_records : int
        Number of votes and gold labels that can be read.

    Raises
    ------
    InputError
        If the database does not exist, belongs to another program or version, or cannot be reached.
    """
    engine = connect(url)
    path = Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None
    if path is not None:
        if not path.is_file():
            raise InputError(f"there is no file {url}; name the database of wisecrowd serve")
        engine = connect_read_only(path)
    n_questions = n_records = 0
    problems: list[str] = []
    try:
        acknowledged = SequenceFile.peek(path) if path is not None else 0  # before a running service writes more
        with engine.connect() as connection:
            if ABOUT.name not in sql.inspect(connection).get_table_names():
                raise InputError(f"{mask_password(url)} is not a database of wisecrowd serve")
            check_schema(connection, url)
            problems = find_damage(connection, is_full=True)
            last = int(connection.scalar(sql.select(ABOUT.c.sequence)) or 0)
            if path is not None:
                problems += describe_lost_transactions(last, acknowledged) + find_lost_frames(path)
            vocabularies = read_vocabularies(connection)
        n_questions = len(vocabularies)
        for vocabulary in vocabularies.values():
            n_records += len(read_records(engine, vocabulary.code))
    except DamagedDatabase as error:
        problems.append(str(error))
    except (sql.exc.SQLAlchemyError, UnicodeDecodeError) as error:
        message = str(getattr(error, "orig", error)).splitlines()[0]
        if not is_corruption(error):
            raise InputError(f"the database {mask_password(url)} cannot be read: {message}") from None
        problems = [message]
    finally:
        engine.dispose()
    return list(dict.fromkeys(problems)), n_questions, n_records


def _check_pages(connection: Connection, *, is_full: bool) -> list[str]:
    pragma = "integrity_check" if is_full else "quick_check"
    rows = connection.exec_driver_sql(f"PRAGMA {pragma}({MAX_PROBLEMS})").scalars().all()
    lines = [line for row in rows for line in str(row).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def _check_counts(connection: Connection) -> list[str]:
    """Compare the records of each question in the table with those in its index, which SQLite stores separately."""
    if connection.dialect.name != "sqlite":
        return []
    sums = "SELECT question, count(*), total(task), total(number) FROM records {} GROUP BY question ORDER BY question"
    in_table, in_index = (
        connection.exec_driver_sql(sums.format(place)).all() for place in ("NOT INDEXED", "INDEXED BY records_of_task")
    )
    if in_table == in_index:
        return []
    n_table, n_index = (sum(row[1] for row in rows) for rows in (in_table, in_index))
    return [f"the records in the table ({n_table:,}) differ from those in its index ({n_index:,})"]


def _check_names(connection: Connection) -> list[str]:
    """Check that the names of each question are numbered without gaps."""
    versions = connection.execute(sql.select(ABOUT.c.sequence)).scalars().all()
    problems = [] if len(versions) == 1 else [f"the table about has {len(versions)} rows instead of 1"]
    questions = connection.execute(sql.select(QUESTIONS.c.code, QUESTIONS.c.name).order_by(QUESTIONS.c.code)).all()
    if [code for code, _ in questions] != list(range(len(questions))):
        problems.append("the questions are not numbered without gaps")
    table = NAMES.c
    counts = (table.question, table.kind, sql.func.count(), sql.func.min(table.code), sql.func.max(table.code))
    n_different = sql.func.count(sql.distinct(table.name))
    for question, kind, n, low, high, n_names in connection.execute(
        sql.select(*counts, n_different).group_by(table.question, table.kind)
    ):
        if kind not in _NOUNS or not _is_code(question, len(questions)):
            problems.append(f"names belong to question {question!r} and kind {kind!r}, which do not exist")
        elif (low, high) != (0, n - 1) or n_names != n:
            problems.append(f"the {_NOUNS[kind]} names of question {question} are not numbered without gaps")
    return problems


def _check_records(connection: Connection) -> list[str]:
    """Check that every record refers to names that exist."""
    names: dict[tuple[int, int], int] = {
        (question, kind): n
        for question, kind, n in connection.execute(
            sql.select(NAMES.c.question, NAMES.c.kind, sql.func.count()).group_by(NAMES.c.question, NAMES.c.kind)
        )
    }
    table, problems = RECORDS.c, []
    columns = {TASK_KIND: table.task, WORKER_KIND: table.worker, CLASS_KIND: table.label}
    bounds = [function(column) for column in columns.values() for function in (sql.func.min, sql.func.max)]
    for question, number, *limits in connection.execute(
        sql.select(table.question, sql.func.min(table.number), *bounds).group_by(table.question)
    ):
        if not isinstance(number, int) or number < 1:
            problems.append(f"a record of question {question!r} has the number {number!r}")
        for position, kind in enumerate(columns):
            low, high = limits[2 * position : 2 * position + 2]
            n_names = names.get((question, kind), 0)
            if kind == WORKER_KIND and low is None and high is None:  # gold labels only
                continue
            if not (_is_code(low, n_names) and _is_code(high, n_names)):
                problems.append(
                    f"records of question {question!r} refer to {_NOUNS[kind]} numbers from {low!r} to {high!r}, but "
                    f"{n_names} names exist"
                )
    return problems


def _is_code(value: Any, n_names: int) -> bool:
    return isinstance(value, int) and 0 <= value < n_names
