"""The tables in which votes are kept, and how they are read.

Names of tasks, workers and classes are numbered as they come, so that votes are rows of numbers, and a fit reads nothing
else.
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

#: Kinds of names.
TASK, WORKER, CLASS = 0, 1, 2
#: Of how the tables look; a database of another one is refused.
VERSION = 1

TABLES = sql.MetaData()
ABOUT = sql.Table("about", TABLES, sql.Column("version", sql.Integer, nullable=False))
QUESTIONS = sql.Table(
    "questions", TABLES,
    sql.Column("code", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, nullable=False, unique=True),
)  # fmt: skip
NAMES = sql.Table(
    "names", TABLES,
    sql.Column("question", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.SmallInteger, primary_key=True, autoincrement=False),
    sql.Column("code", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("name", sql.Text, nullable=False),
)  # fmt: skip
# Numbers are of the order in which entries came, and no number is given twice while a service runs: see `read_standing`.
ENTRIES = sql.Table(
    "entries", TABLES,
    sql.Column("number", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True, autoincrement=False),
    sql.Column("source", sql.Text, nullable=False),
    sql.Column("question", sql.Integer, nullable=False),
    sql.Column("task", sql.Integer, nullable=False),
    sql.Column("worker", sql.Integer, nullable=True, comment="none where the truth is known"),
    sql.Column("label", sql.Integer, nullable=False),
    sql.Column("time", sql.Float, nullable=True),
    sql.UniqueConstraint("source", "question"),
    sql.Index("entries_of_task", "question", "task"),
)  # fmt: skip


class Vocabulary:
    """Names in the order in which they came.

    >>> words = Vocabulary()
    >>> words.code("a"), words.code("b"), words.code("a"), words.names
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self.codes = {name: code for code, name in enumerate(self.names)}

    def code(self, name: str) -> int:
        """The number of a name; a new one gets the next."""
        found = self.codes.setdefault(name, len(self.names))
        if found == len(self.names):
            self.names.append(name)
        return found

    def cut(self, length: int) -> None:
        """Forget the names that came last."""
        for name in self.names[length:]:
            del self.codes[name]
        del self.names[length:]

    def __len__(self) -> int:
        return len(self.names)


@dataclass
class QuestionVocabulary:
    """The names of a question."""

    code: int
    name: str
    kinds: tuple[Vocabulary, Vocabulary, Vocabulary] = field(
        default_factory=lambda: (Vocabulary(), Vocabulary(), Vocabulary())
    )

    @property
    def tasks(self) -> Vocabulary:
        """Names of the tasks."""
        return self.kinds[TASK]

    @property
    def workers(self) -> Vocabulary:
        """Names of the workers."""
        return self.kinds[WORKER]

    @property
    def classes(self) -> Vocabulary:
        """Names of the classes."""
        return self.kinds[CLASS]


@dataclass(frozen=True, eq=False)
class Standing:
    """All entries of a question, in the order in which they came; the worker of gold is −1.

    >>> entries = Standing.of([(0, 3, 1, None, 1), (2, None, 1, None, 2)])
    >>> len(entries), len(entries.votes), entries.gold
    (2, 1, {2: 1})
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    time: NDArray[np.float64]
    number: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Standing:
        """From rows of task, worker, label, time and number."""
        task, worker, label, time, number = zip(*rows, strict=True) if rows else ((),) * 5
        return cls(
            np.array(task, dtype=np.int32),
            np.array([-1 if who is None else who for who in worker], dtype=np.int32),
            np.array(label, dtype=np.int32),
            np.array([np.nan if at is None else at for at in time], dtype=np.float64),
            np.array(number, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.number)

    @property
    def votes(self) -> Standing:
        """Without the gold."""
        voted = self.worker >= 0
        return Standing(*(column[voted] for column in self._columns()))

    @property
    def gold(self) -> dict[int, int]:
        """Task -> what is true of it."""
        known = self.worker < 0
        return dict(zip(self.task[known].tolist(), self.label[known].tolist(), strict=True))

    def followed_by(self, later: Standing) -> Standing:
        """With entries that came later."""
        both = zip(self._columns(), later._columns(), strict=True)
        return Standing(*(np.concatenate(columns) for columns in both)) if len(later) else self

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.task, self.worker, self.label, self.time, self.number


def connect(url: str) -> Engine:
    """The engine of a URL, or of a file name: SQLite, safe when the power goes."""
    if "://" not in url:
        url = f"sqlite:///{Path(url).absolute()}"
    try:
        engine = sql.create_engine(url)
    except (sql.exc.ArgumentError, sql.exc.NoSuchModuleError) as error:
        raise UsageError(
            f"{hidden(url)} is no database: {error}. Give a file name, or postgresql+psycopg://…"
        ) from None
    except ImportError as error:
        raise UsageError(
            f'this database wants a driver that is not installed ({error}); for PostgreSQL: pip install "wisecrowd[postgres]"'
        ) from None
    if engine.dialect.name == "sqlite":

        def prepared(connection: Any, _: Any) -> None:
            # Pages go from the log to the file when a fit has read them (see `tidy`), and not while somebody waits for a vote.
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "wal_autocheckpoint=20000"):
                connection.execute(f"PRAGMA {pragma}")

        sql.event.listen(engine, "connect", prepared)
    return engine


def hidden(url: str) -> str:
    """A URL without the password in it.

    >>> hidden("postgresql+psycopg://me:secret@host/votes")
    'postgresql+psycopg://me:***@host/votes'
    """
    try:
        return sql.make_url(url).render_as_string(hide_password=True) if "://" in url else url
    except sql.exc.ArgumentError:
        return "what was given"


def read_words(connection: Connection) -> dict[str, QuestionVocabulary]:
    """All names, by question."""
    found = {}
    for code, name in connection.execute(sql.select(QUESTIONS.c.code, QUESTIONS.c.name).order_by(QUESTIONS.c.code)):
        found[code] = QuestionVocabulary(code, name)
    columns = (NAMES.c.question, NAMES.c.kind, NAMES.c.name)
    for question, kind, name in connection.execute(sql.select(*columns).order_by(*NAMES.primary_key.columns)):
        found[question].kinds[kind].code(name)
    return {words.name: words for words in found.values()}


def tidy(engine: Engine) -> None:
    """Move what is in the log of a SQLite database to its file, as far as nobody has to wait for it."""
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")


def read_standing(engine: Engine, question: int, before: Standing | None = None) -> Standing:
    """All entries of a question; where those ``before`` all stand still, only what came since is read.

    Whatever is changed or taken back loses its number for good, so that entries which are as many as before are the same.
    They are counted last: what is there then was there, too, when the later ones were read.
    """
    table = ENTRIES.c
    ours = table.question == question
    columns = (table.task, table.worker, table.label, table.time, table.number)
    with engine.connect() as connection:
        if before is None or not len(before):
            return Standing.of(connection.execute(sql.select(*columns).where(ours).order_by(table.number)).all())
        last = int(before.number[-1])
        # By their numbers alone, which are a key; SQLite would go through the whole question to find those of it.
        later = sql.select(*columns, table.question).where(table.number > last).order_by(table.number)
        rows = [row[:-1] for row in connection.execute(later) if row[-1] == question]
        n_before = connection.scalar(sql.select(sql.func.count()).where(ours, table.number <= last))
    return before.followed_by(Standing.of(rows)) if n_before == len(before) else read_standing(engine, question)
