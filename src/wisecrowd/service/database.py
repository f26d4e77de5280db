"""Tables of the vote database and functions that read them.

Names of tasks, workers and classes are numbered in order of arrival. Votes are therefore rows of integers, and a fit reads
nothing else.
"""

from __future__ import annotations

import re
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Engine

from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.tables.similar_ids import describe_similar_ids, list_similar_ids

#: What to do about labels that differ in their spelling only.
SIMILAR_CLASSES_ADVICE = "Send one spelling, and send the votes with the other spellings again."
#: Kinds of names, as the column ``kind`` has them.
TASK_KIND, WORKER_KIND, CLASS_KIND, ORIGIN_KIND = 0, 1, 2, 3
NAME_KINDS = (TASK_KIND, WORKER_KIND, CLASS_KIND, ORIGIN_KIND)
#: Kind of the names of questions in their checksum.
QUESTION_KIND = 4
#: Version of the tables; `wisecrowd.service.migrations` converts databases with an earlier one.
SCHEMA_VERSION = 4
#: Seconds after which an attempt to connect to PostgreSQL fails, and after which a connection that is cut off counts as lost.
CONNECT_SECONDS, NETWORK_SECONDS = 5, 20
_URL_HELP = (
    "Name an SQLite file, such as votes.db, or a PostgreSQL database: postgresql://user:password@host:5432/name. Special "
    "characters of the password are percent-encoded: @ is %40, / is %2F, # is %23"
)

METADATA = sql.MetaData()
# Every transaction that changes anything raises the sequence and sets the writer, so that lost and foreign ones are noticed.
ABOUT = sql.Table(
    "about", METADATA,
    sql.Column("version", sql.Integer, nullable=False),
    sql.Column("sequence", sql.BigInteger, nullable=False),
    sql.Column("writer", sql.Text, nullable=False),
)  # fmt: skip
QUESTIONS = sql.Table(
    "questions", METADATA,
    sql.Column("code", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, nullable=False, unique=True),
    sql.Column("checksum", sql.BigInteger, nullable=False, comment="checksum_name with the kind of questions"),
)  # fmt: skip
NAMES = sql.Table(
    "names", METADATA,
    sql.Column("question", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.SmallInteger, primary_key=True, autoincrement=False),
    sql.Column("code", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, nullable=False),
    sql.Column("checksum", sql.BigInteger, nullable=False, comment="checksum_name"),
)  # fmt: skip
# Numbers follow the order of arrival, and a running service never uses a number twice: `read_records` relies on it.
RECORDS = sql.Table(
    "records", METADATA,
    sql.Column("number", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True, autoincrement=False),
    sql.Column("source", sql.Text, nullable=False),
    sql.Column("question", sql.Integer, nullable=False),
    sql.Column("task", sql.Integer, nullable=False),
    sql.Column("worker", sql.Integer, nullable=True, comment="NULL for a gold label"),
    sql.Column("label", sql.Integer, nullable=False),
    sql.Column("time", sql.Float, nullable=True),
    sql.Column("checksum", sql.BigInteger, nullable=False, comment="checksum_record"),
    sql.UniqueConstraint("source", "question"),
    sql.Index("records_of_task", "question", "task"),
)  # fmt: skip


#: Odd factors of the fields of a record in its checksum, as in multiplicative hashing. A change of one field changes the sum.
_FACTORS = {
    "number": 0x9E3779B97F4A7C15, "question": 0xC2B2AE3D27D4EB4F, "task": 0x165667B19E3779F9, "worker": 0xD6E8FEB86659FD93,
    "label": 0xA0761D6478BD642F, "time": 0xE7037ED1A0B428DB,
}  # fmt: skip
_UINT64 = 2**64 - 1


class DamagedDatabase(InputError):
    """Rows of the database are not as they were written.

    Examples
    --------
    >>> issubclass(DamagedDatabase, InputError)
    True
    """


def checksum_name(question: int, kind: int, code: int, name: str) -> int:
    """Return the checksum of a name.

    Parameters
    ----------
    question, kind, code : int
        Key of the name.
    name : str
        Name.

    Returns
    -------
    int
        Checksum of 32 bits.

    Examples
    --------
    >>> checksum_name(0, 1, 2, "ann") == checksum_name(0, 1, 2, "anm")
    False
    """
    return zlib.crc32(f"{question}:{kind}:{code}:{name}".encode())


def checksum_record(number: int, question: int, task: int, worker: int | None, label: int, time: float | None) -> int:
    """Return the checksum of a record.

    Parameters
    ----------
    number, question, task, label : int
        Columns of the record.
    worker : int or None
        Number of the worker; None for a gold label.
    time : float or None
        Time of the vote.

    Returns
    -------
    int
        Checksum of 32 bits.

    Examples
    --------
    >>> checksum_record(1, 0, 5, 2, 1, None) == checksum_record(1, 0, 5, 2, 0, None)
    False
    """
    time_bits = 0 if time is None else struct.unpack("<Q", struct.pack("<d", time))[0]
    total = (
        number * _FACTORS["number"] + question * _FACTORS["question"] + task * _FACTORS["task"]
        + (-1 if worker is None else worker) * _FACTORS["worker"] + label * _FACTORS["label"] + time_bits * _FACTORS["time"]
    )  # fmt: skip
    return (total & _UINT64) >> 32


class NameRegistry:
    """Names in order of arrival, each with a number.

    Parameters
    ----------
    names : iterable of str, default=()
        Initial names.

    Examples
    --------
    >>> registry = NameRegistry()
    >>> registry.add("a"), registry.add("b"), registry.add("a"), registry.names
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self.codes = {name: code for code, name in enumerate(self.names)}

    def add(self, name: str) -> int:
        """Return the number of a name; a new name gets the next number.

        Parameters
        ----------
        name : str
            Name.

        Returns
        -------
        int
            Number of the name.
        """
        code = self.codes.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code

    def truncate(self, length: int) -> None:
        """Remove the names that were added last.

        Parameters
        ----------
        length : int
            Number of names to keep.
        """
        for name in self.names[length:]:
            del self.codes[name]
        del self.names[length:]

    def __len__(self) -> int:
        return len(self.names)


@dataclass
class QuestionVocabulary:
    """Names of the tasks, workers and classes of a question, and the project that it belongs to.

    Attributes
    ----------
    code : int
        Number of the question.
    name : str
        Name of the question.
    kinds : tuple of NameRegistry
        Tasks, workers, classes and origins, by kind.
    """

    code: int
    name: str
    kinds: tuple[NameRegistry, ...] = field(default_factory=lambda: tuple(NameRegistry() for _ in NAME_KINDS))
    _similar: tuple[int, list[str], frozenset[str]] = field(default=(0, [], frozenset()), repr=False, compare=False)

    @property
    def tasks(self) -> NameRegistry:
        """Task ids."""
        return self.kinds[TASK_KIND]

    @property
    def workers(self) -> NameRegistry:
        """Worker ids."""
        return self.kinds[WORKER_KIND]

    @property
    def classes(self) -> NameRegistry:
        """Class names."""
        return self.kinds[CLASS_KIND]

    @property
    def origins(self) -> NameRegistry:
        """Mark of the project in a labelling tool whose votes the question has; empty if it is unknown."""
        return self.kinds[ORIGIN_KIND]

    def find_similar_classes(self) -> tuple[list[str], frozenset[str]]:
        """Return classes that probably mean the same.

        Returns
        -------
        sentences : list of str
            Sentences that name the classes, with what they differ by.
        classes : frozenset of str
            All these classes.

        Examples
        --------
        >>> mood = QuestionVocabulary(0, "mood")
        >>> _ = [mood.classes.add(name) for name in ("good", "bad", "Good")]
        >>> mood.find_similar_classes()[0]
        ["2 labels differ only by case or space, but count as different ('good', 'Good')"]
        """
        names = self.classes.names
        if len(names) != self._similar[0]:  # classes are few and seldom new, but every vote asks
            index = pd.Index(names[:], dtype=object)
            self._similar = len(index), describe_similar_ids({"label": index}), frozenset(list_similar_ids(index))
        return self._similar[1], self._similar[2]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of tasks, workers and classes."""
        return len(self.tasks), len(self.workers), len(self.classes)


@dataclass(frozen=True, eq=False)
class RecordColumns:
    """All records of a question as columns, in order of arrival.

    Attributes
    ----------
    task, worker, label : ndarray of int32
        Numbers of the names; the worker of a gold label is −1.
    time : ndarray of float64
        Seconds since 1970; NaN where unknown.
    number : ndarray of int64
        Numbers of the records.

    Examples
    --------
    >>> records = RecordColumns.from_rows([(0, 3, 1, None, 1), (2, None, 1, None, 2)])
    >>> len(records), len(records.votes), records.gold
    (2, 1, {2: 1})
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    time: NDArray[np.float64]
    number: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]]) -> RecordColumns:
        """Build the columns from rows.

        Parameters
        ----------
        rows : sequence of sequences
            Task, worker, label, time and number of each record.

        Returns
        -------
        RecordColumns
            Columns.
        """
        task, worker, label, time, number = zip(*rows, strict=True) if rows else ((),) * 5
        return cls(
            np.array(task, dtype=np.int32),
            np.array([-1 if code is None else code for code in worker], dtype=np.int32),
            np.array(label, dtype=np.int32),
            np.array([np.nan if seconds is None else seconds for seconds in time], dtype=np.float64),
            np.array(number, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.number)

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns."""
        return self.task, self.worker, self.label, self.time, self.number

    @property
    def votes(self) -> RecordColumns:
        """Records without gold labels."""
        is_vote = self.worker >= 0
        return RecordColumns(*(column[is_vote] for column in self.columns))

    @property
    def gold(self) -> dict[int, int]:
        """True class of each gold task."""
        is_gold = self.worker < 0
        return dict(zip(self.task[is_gold].tolist(), self.label[is_gold].tolist(), strict=True))

    def checksums(self, question: int) -> NDArray[np.int64]:
        """Return the checksum of each record, as `checksum_record` does.

        Parameters
        ----------
        question : int
            Number of the question.

        Returns
        -------
        ndarray of int64
            Checksums.
        """
        time_bits = np.where(np.isnan(self.time), 0.0, self.time).view(np.uint64)
        columns: dict[str, NDArray[Any]] = {
            "number": self.number, "task": self.task, "worker": self.worker, "label": self.label
        }  # fmt: skip
        total = time_bits * np.uint64(_FACTORS["time"]) + np.uint64(question * _FACTORS["question"] & _UINT64)
        for name, column in columns.items():
            total += column.astype(np.int64).view(np.uint64) * np.uint64(_FACTORS[name])
        return (total >> np.uint64(32)).astype(np.int64)

    def append(self, later: RecordColumns) -> RecordColumns:
        """Return these records followed by later ones.

        Parameters
        ----------
        later : RecordColumns
            Records that arrived after these.

        Returns
        -------
        RecordColumns
            All records.
        """
        if not len(later):
            return self
        return RecordColumns(*(np.concatenate(columns) for columns in zip(self.columns, later.columns, strict=True)))


def connect(url: str) -> Engine:
    """Create the engine of a database.

    Parameters
    ----------
    url : str
        File name of a SQLite database, or URL of a SQLite or PostgreSQL database.

    Returns
    -------
    sqlalchemy.engine.Engine
        Engine. SQLite is configured so that committed votes survive a power failure.

    Raises
    ------
    UsageError
        If the URL is invalid or its driver is not installed.
    """
    parsed = _parse_url(url)
    options: dict[str, Any] = {}
    if parsed.get_backend_name() == "postgresql":
        # A connection that a restart or a firewall has cut must neither be used again nor be waited for.
        options = {
            "pool_pre_ping": True,
            "connect_args": {
                "connect_timeout": CONNECT_SECONDS, "keepalives_idle": NETWORK_SECONDS, "keepalives_interval": 5,
                "keepalives_count": 3, "tcp_user_timeout": 1_000 * NETWORK_SECONDS,
            },
        }  # fmt: skip
    try:
        engine = sql.create_engine(parsed, **options)
    except ImportError as error:
        raise UsageError(
            f'the driver of this database is not installed ({error}); for PostgreSQL: pip install "wisecrowd[postgres]"'
        ) from None
    if engine.dialect.name == "sqlite":
        sql.event.listen(engine, "connect", _configure_sqlite)
    return engine


def _parse_url(url: str) -> sql.URL:
    """Return a database URL with its driver. Messages do not repeat the URL, because it may contain a password."""
    scheme = re.match(r"[a-z0-9+.-]+(?=:)", url, re.IGNORECASE)
    is_url = "://" in url or (scheme is not None and scheme[0].lower().startswith(("postgres", "sqlite")))
    if not is_url:
        return sql.URL.create("sqlite", database=str(Path(url).absolute()))
    try:
        parsed = sql.make_url(url)
    except (sql.exc.ArgumentError, ValueError):  # ValueError where the port is not a number
        raise UsageError(f"the database URL cannot be read. {_URL_HELP}") from None
    backend, _, driver = parsed.drivername.lower().partition("+")
    if backend == "sqlite" and parsed.database:
        return parsed
    if backend not in ("postgresql", "postgres") or driver not in ("", "psycopg"):
        raise UsageError(f"{parsed.drivername}:// is not a database that wisecrowd serve can use. {_URL_HELP}")
    if "@" in (parsed.host or "") or not 0 < (parsed.port or 1) < 65536:
        raise UsageError(f"the database URL has an invalid host or port. {_URL_HELP}")
    return parsed.set(drivername="postgresql+psycopg")


def _configure_sqlite(connection: Any, _: Any) -> None:
    # `checkpoint_wal` moves pages from the log to the file after a fit, so an automatic checkpoint must not delay a vote.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "wal_autocheckpoint=20000"):
        connection.execute(f"PRAGMA {pragma}")


def connect_read_only(path: Path) -> Engine:
    """Create the engine of an SQLite file that is read but never changed, not even by moving its write-ahead log.

    Parameters
    ----------
    path : pathlib.Path
        SQLite file.

    Returns
    -------
    sqlalchemy.engine.Engine
        Engine.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    return sql.create_engine("sqlite://", creator=lambda: sqlite3.connect(address, uri=True), poolclass=sql.NullPool)


def mask_password(url: str) -> str:
    """Return a database URL without its password.

    Parameters
    ----------
    url : str
        File name or URL.

    Returns
    -------
    str
        Text for messages.

    Examples
    --------
    >>> mask_password("postgresql+psycopg://me:secret@host/votes")
    'postgresql+psycopg://me:***@host/votes'
    """
    try:
        return sql.make_url(url).render_as_string(hide_password=True) if "://" in url else url
    except (sql.exc.ArgumentError, ValueError):
        return "this URL"


def find_passwords(url: str) -> list[str]:
    """Return the password in a database URL as it is and as the URL spells it, so that logs can mask it.

    Parameters
    ----------
    url : str
        File name or URL.

    Returns
    -------
    list of str
        Spellings; empty where there is no password.

    Examples
    --------
    >>> find_passwords("postgresql://me:p%40ss@host/votes"), find_passwords("votes.db")
    (['p@ss', 'p%40ss'], [])
    """
    try:
        password = sql.make_url(url).password if "://" in url else None
    except (sql.exc.ArgumentError, ValueError):
        return []
    if not password:
        return []
    spelled = re.search(r"://[^/@]*?:([^@]*)@", url)
    return list(dict.fromkeys([str(password), *([spelled[1]] if spelled else [])]))


def check_schema(connection: Connection, url: str) -> None:
    """Refuse a database with the tables of another version of wisecrowd.

    Parameters
    ----------
    connection : sqlalchemy.engine.Connection
        Open connection to a database with the table ``about``.
    url : str
        Name of the database in messages.

    Raises
    ------
    InputError
        If the version of the tables is another one; the message says how to convert them.
    """
    version = connection.scalar(sql.select(ABOUT.c.version))
    if version is None or version == SCHEMA_VERSION:
        return
    name = mask_password(url)
    if isinstance(version, int) and version < SCHEMA_VERSION:
        raise InputError(
            f"{name} was written by an earlier version of wisecrowd (schema {version} instead of {SCHEMA_VERSION}); convert it "
            f"with: wisecrowd database migrate {name}"
        )
    raise InputError(
        f"{name} was written by a later version of wisecrowd (schema {version} instead of {SCHEMA_VERSION}); install that version"
    )


def read_vocabularies(connection: Connection) -> dict[str, QuestionVocabulary]:
    """Read the names of all questions.

    Parameters
    ----------
    connection : sqlalchemy.engine.Connection
        Open connection.

    Returns
    -------
    dict of str to QuestionVocabulary
        Vocabularies by the name of the question.

    Raises
    ------
    DamagedDatabase
        If a name is not as it was written.
    """
    vocabularies = {}
    for code, name, checksum in connection.execute(sql.select(QUESTIONS).order_by(QUESTIONS.c.code)):
        if checksum != checksum_name(code, QUESTION_KIND, code, name):
            raise DamagedDatabase(f"the name of question {code} is not as it was written")
        vocabularies[code] = QuestionVocabulary(code, name)
    for question, kind, code, name, checksum in connection.execute(
        sql.select(NAMES).order_by(*NAMES.primary_key.columns)
    ):
        if question not in vocabularies or kind not in NAME_KINDS:
            raise DamagedDatabase(f"the name {name[:40]!r} belongs to no question")
        registry = vocabularies[question].kinds[kind]
        if checksum != checksum_name(question, kind, code, name) or registry.add(name) != code:
            raise DamagedDatabase(f"the name {name[:40]!r} is not as it was written")
    return {vocabulary.name: vocabulary for vocabulary in vocabularies.values()}


def checkpoint_wal(engine: Engine) -> None:
    """Move the write-ahead log of a SQLite database to its file without blocking the writer.

    Parameters
    ----------
    engine : sqlalchemy.engine.Engine
        Engine; other databases than SQLite are left alone.
    """
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")


def read_records(engine: Engine, question: int, previous: RecordColumns | None = None) -> RecordColumns:
    """Read all records of a question.

    A record that changes or is deleted loses its number for good. If as many records as before have the old numbers, these
    records are unchanged, and only later ones are read.

    Parameters
    ----------
    engine : sqlalchemy.engine.Engine
        Engine of the database.
    question : int
        Number of the question.
    previous : RecordColumns, default=None
        Result of an earlier call.

    Returns
    -------
    RecordColumns
        Records in order of arrival.

    Raises
    ------
    DamagedDatabase
        If a record is not as it was written.
    """
    table = RECORDS.c
    is_question = table.question == question
    columns = (table.task, table.worker, table.label, table.time, table.number, table.checksum)
    with engine.connect() as connection:
        if previous is None or not len(previous):
            rows = connection.execute(sql.select(*columns).where(is_question).order_by(table.number)).all()
            return _verify_rows(rows, question)
        last = int(previous.number[-1])
        # Selected by number alone, which is a key: SQLite would scan the whole question to filter by both.
        query = sql.select(*columns, table.question).where(table.number > last).order_by(table.number)
        later = [row[:-1] for row in connection.execute(query) if row[-1] == question]
        # Counted last, so that records counted here existed when the later ones were read.
        n_previous = connection.scalar(sql.select(sql.func.count()).where(is_question, table.number <= last))
    if n_previous != len(previous):
        return read_records(engine, question)
    return previous.append(_verify_rows(later, question))


def _verify_rows(rows: Sequence[Sequence[Any]], question: int) -> RecordColumns:
    """Return the records of rows that end with a checksum."""
    try:
        records = RecordColumns.from_rows([row[:-1] for row in rows])
        is_changed = records.checksums(question) != np.array([row[-1] for row in rows], dtype=np.int64)
    except (OverflowError, TypeError, ValueError):
        raise DamagedDatabase("a record has a value that is no number") from None
    if is_changed.any():
        number = records.number[is_changed.argmax()]
        raise DamagedDatabase(
            f"{is_changed.sum():,} records are not as they were written, the first one has number {number}"
        )
    return records
