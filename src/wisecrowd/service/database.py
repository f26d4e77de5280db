"""Tables of the vote database and functions that read them.

Names of tasks, workers and classes are numbered in order of arrival. Votes are therefore rows of integers, and a fit reads
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sql
from numpy.typing import NDArray
from sqlalchemy.engine import Connection, Engine

from wisecrowd.errors import UsageError

#: Kinds of names, as the column ``kind`` has them.
TASK_KIND, WORKER_KIND, CLASS_KIND = 0, 1, 2
#: Version of the tables; a database with another version is refused.
SCHEMA_VERSION = 2

METADATA = sql.MetaData()
ABOUT = sql.Table("about", METADATA, sql.Column("version", sql.Integer, nullable=False))
QUESTIONS = sql.Table(
    "questions", METADATA,
    sql.Column("code", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, nullable=False, unique=True),
)  # fmt: skip
NAMES = sql.Table(
    "names", METADATA,
    sql.Column("question", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.SmallInteger, primary_key=True, autoincrement=False),
    sql.Column("code", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, nullable=False),
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
    sql.UniqueConstraint("source", "question"),
    sql.Index("records_of_task", "question", "task"),
)  # fmt: skip


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
    """Names of the tasks, workers and classes of a question.

    Attributes
    ----------
    code : int
        Number of the question.
    name : str
        Name of the question.
    kinds : tuple of NameRegistry
        Tasks, workers and classes.
    """

    code: int
    name: str
    kinds: tuple[NameRegistry, NameRegistry, NameRegistry] = field(
        default_factory=lambda: (NameRegistry(), NameRegistry(), NameRegistry())
    )

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
        File name of a SQLite database or an SQLAlchemy URL.

    Returns
    -------
    sqlalchemy.engine.Engine
        Engine. SQLite is configured so that committed votes survive a power failure.

    Raises
    ------
    UsageError
        If the URL is invalid or its driver is not installed.
    """
    if "://" not in url:
        url = f"sqlite:///{Path(url).absolute()}"
    try:
        engine = sql.create_engine(url)
    except (sql.exc.ArgumentError, sql.exc.NoSuchModuleError) as error:
        raise UsageError(
            f"{mask_password(url)} is not a database URL: {error}. Use a file name or postgresql+psycopg://…"
        ) from None
    except ImportError as error:
        raise UsageError(
            f'the driver of this database is not installed ({error}); for PostgreSQL: pip install "wisecrowd[postgres]"'
        ) from None
    if engine.dialect.name == "sqlite":
        sql.event.listen(engine, "connect", _configure_sqlite)
    return engine


def _configure_sqlite(connection: Any, _: Any) -> None:
    # `checkpoint_wal` moves pages from the log to the file after a fit, so an automatic checkpoint must not delay a vote.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "wal_autocheckpoint=20000"):
        connection.execute(f"PRAGMA {pragma}")


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
    except sql.exc.ArgumentError:
        return "this URL"


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
    """
    vocabularies = {}
    for code, name in connection.execute(sql.select(QUESTIONS.c.code, QUESTIONS.c.name).order_by(QUESTIONS.c.code)):
        vocabularies[code] = QuestionVocabulary(code, name)
    columns = (NAMES.c.question, NAMES.c.kind, NAMES.c.name)
    for question, kind, name in connection.execute(sql.select(*columns).order_by(*NAMES.primary_key.columns)):
        vocabularies[question].kinds[kind].add(name)
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
    """
    table = RECORDS.c
    is_question = table.question == question
    columns = (table.task, table.worker, table.label, table.time, table.number)
    with engine.connect() as connection:
        if previous is None or not len(previous):
            rows = connection.execute(sql.select(*columns).where(is_question).order_by(table.number)).all()
            return RecordColumns.from_rows(rows)
        last = int(previous.number[-1])
        # Selected by number alone, which is a key: SQLite would scan the whole question to filter by both.
        query = sql.select(*columns, table.question).where(table.number > last).order_by(table.number)
        later = [row[:-1] for row in connection.execute(query) if row[-1] == question]
        # Counted last, so that records counted here existed when the later ones were read.
        n_previous = connection.scalar(sql.select(sql.func.count()).where(is_question, table.number <= last))
    if n_previous != len(previous):
        return read_records(engine, question)
    return previous.append(RecordColumns.from_rows(later))
