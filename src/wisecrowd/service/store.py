"""Where votes are kept: a database that a kill leaves whole. SQLite unless it is told otherwise, PostgreSQL by URL.

One service writes to a database; any number of programs may read it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from wisecrowd.errors import InputError
from wisecrowd.service.database_schema import (
    ABOUT,
    CLASS,
    ENTRIES,
    NAMES,
    QUESTIONS,
    TABLES,
    TASK,
    VERSION,
    WORKER,
    QuestionVocabulary,
    connect,
    hidden,
    read_words,
)
from wisecrowd.service.events import DeleteTasks, Entry, RegisterTasks, Told, Upsert

Outcome = Literal["new", "changed", "same"]
#: Keys that are looked up at once.
AT_ONCE = 500
#: What every SQLite database begins with.
_SQLITE = b"SQLite format 3\0"


@dataclass
class Change:
    """What came of something that was told: the outcome of each part, and what of it a model must know.

    >>> Change(["new"]).altered
    set()
    """

    outcomes: list[Outcome] = field(default_factory=list)
    #: Votes that are new, (question, task, worker, label), in order.
    added: list[tuple[int, int, int, int]] = field(default_factory=list)
    #: Tasks of which other votes stand than before, or another truth: (question, task).
    altered: set[tuple[int, int]] = field(default_factory=set)


class Store:
    """A database that is open for writing, by this program alone.

    >>> store = Store("votes.db")
    >>> store.tell([Upsert("id:1", (Entry("mood", "t1", "ann", "good"),))]).outcomes
    ['new']
    >>> store.tell([Upsert("id:1", (Entry("mood", "t1", "ann", "good"),))]).outcomes
    ['same']
    >>> store.words["mood"].tasks.names
    ['t1']
    >>> store.close()
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = connect(url)
        self.words: dict[str, QuestionVocabulary] = {}
        self._number = 0
        self._only = contextlib.ExitStack()
        try:
            self._lock()
            self._prepare()
        except sql.exc.SQLAlchemyError as error:
            self.close()
            raise InputError(f"the database {hidden(url)} cannot be used: {_reason(error)}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others write to it."""
        self._only.close()
        self.engine.dispose()

    # ------------------------------------------------------------------ writing

    def tell(self, told: Sequence[Told]) -> Change:
        """Keep all of it, or nothing where that fails: when this returns, it survives a kill."""
        marks = {name: tuple(map(len, words.kinds)) for name, words in self.words.items()}
        number = self._number
        try:
            with self.engine.begin() as connection:
                change = _Telling(self, connection).all(told)
        except BaseException:
            for name in list(self.words):
                if name not in marks:
                    del self.words[name]
                else:
                    for kind, length in zip(self.words[name].kinds, marks[name], strict=True):
                        kind.cut(length)
            self._number = number
            raise
        return change

    def next_number(self) -> int:
        """Entries are numbered in the order in which they come."""
        self._number += 1
        return self._number

    # ------------------------------------------------------------------ reading

    def said(self, question: int, after: int, limit: int) -> list[tuple[int, str, int, int | None, int, float | None]]:
        """Entries in the order in which they came, after the one of a number: number, source, task, worker, label, time."""
        table = ENTRIES.c
        query = (
            sql.select(table.number, table.source, table.task, table.worker, table.label, table.time)
            .where(table.question == question, table.number > after)
            .order_by(table.number)
            .limit(limit)
        )
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def votes_on(self, question: int, tasks: Iterable[int]) -> dict[int, dict[int, int]]:
        """Task -> worker -> label, as it stands; a worker's last vote on a task is the one that counts."""
        found: dict[int, dict[int, int]] = {task: {} for task in tasks}
        for task, worker, label in self._of_tasks(question, list(found), gold=False):
            found[task].pop(worker, None)
            found[task][worker] = label
        return found

    def gold_of(self, question: int, tasks: Iterable[int]) -> dict[int, int | None]:
        """Task -> what is known of it."""
        found: dict[int, int | None] = dict.fromkeys(tasks)
        for task, _, label in self._of_tasks(question, list(found), gold=True):
            found[task] = label
        return found

    def gold(self, question: int) -> dict[int, int]:
        """All truth that is known of a question's tasks."""
        table = ENTRIES.c
        query = sql.select(table.task, table.label).where(table.question == question, table.worker.is_(None))
        with self.engine.connect() as connection:
            return {row.task: row.label for row in connection.execute(query.order_by(table.number))}

    def _of_tasks(self, question: int, tasks: list[int], *, gold: bool) -> Iterator[tuple[int, int, int]]:
        table = ENTRIES.c
        which = table.worker.is_(None) if gold else table.worker.is_not(None)
        with self.engine.connect() as connection:
            for part in _parts(tasks):
                query = (
                    sql.select(table.task, table.worker, table.label)
                    .where(table.question == question, table.task.in_(part), which)
                    .order_by(table.number)
                )
                yield from (tuple(row) for row in connection.execute(query))

    # ------------------------------------------------------------------ inside

    def _lock(self) -> None:
        if self.engine.dialect.name == "sqlite":
            import filelock

            place = Path(str(self.engine.url.database)).resolve()  # by whatever name, it is one file
            _check_file(place, self.url)
            lock = filelock.FileLock(f"{place}.lock")
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                raise InputError(
                    f"another wisecrowd serve writes to {self.url}; stop it first, or use its address"
                ) from None
            except OSError as error:
                raise InputError(f"{self.url} cannot be written: {error.strerror}") from None
            self._only.callback(lock.release)
            return
        if self.engine.dialect.name == "postgresql":
            connection = self._only.enter_context(self.engine.connect())
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            if not connection.scalar(sql.text("SELECT pg_try_advisory_lock(7319862)")):
                raise InputError(
                    f"another wisecrowd serve writes to {hidden(self.url)}; stop it first, or use its address"
                )

    def _prepare(self) -> None:
        with self.engine.begin() as connection:
            tables = set(sql.inspect(connection).get_table_names())
            if tables and not tables & set(TABLES.tables) and self.engine.dialect.name == "sqlite":
                raise InputError(f"{self.url} is a database of something else; name a file that is not there yet")
            TABLES.create_all(connection)
            version = connection.scalar(sql.select(ABOUT.c.version))
            if version is None:
                connection.execute(ABOUT.insert(), {"version": VERSION})
            elif version != VERSION:
                raise InputError(
                    f"{hidden(self.url)} was written by another version of wisecrowd ({version}, not {VERSION})"
                )
            self.words = read_words(connection)
            self._number = int(connection.scalar(sql.select(sql.func.max(ENTRIES.c.number))) or 0)


class _Telling:
    """One transaction: what stands is looked up once, compared in memory, and written in a few statements."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self.store, self.connection = store, connection
        self.change = Change()
        self.stands: dict[str, dict[int, dict[str, Any]]] = {}
        self.gone: set[str] = set()  # sources of which something that is in the database goes
        self.dirty: dict[str, None] = {}  # sources that are to be written

    def all(self, told: Sequence[Told]) -> Change:
        self._look_up([each.source for each in told if isinstance(each, Upsert)])
        before = {name: tuple(map(len, words.kinds)) for name, words in self.store.words.items()}
        for each in told:
            if isinstance(each, Upsert):
                self.change.outcomes.append(self._put(each))
            elif isinstance(each, RegisterTasks):
                self.change.outcomes.append(self._expect(each))
            else:
                self.change.outcomes.append(self._drop(each))
        self._write(before)
        return self.change

    def _look_up(self, sources: list[str]) -> None:
        for part in _parts(list(dict.fromkeys(sources))):
            query = sql.select(ENTRIES).where(ENTRIES.c.source.in_(part))
            for row in self.connection.execute(query).mappings():
                self.stands.setdefault(row["source"], {})[row["question"]] = dict(row)

    def _put(self, put: Upsert) -> Outcome:
        before = self.stands.get(put.source, {})
        after = {row["question"]: row for row in (self._row(put.source, entry) for entry in put.entries)}
        said_before, said_after = ({question: _said(row) for question, row in rows.items()} for rows in (before, after))
        if said_before == said_after:
            return "same"
        for question in before.keys() | after.keys():
            if said_before.get(question) == said_after.get(question):
                after[question]["number"] = before[question]["number"]  # it came when it came
                continue
            altered = [rows[question]["task"] for rows in (before, after) if question in rows]
            row = after.get(question)
            if question in before or row is None or row["worker"] is None:
                self.change.altered.update((question, task) for task in altered)
            else:
                self.change.added.append((question, row["task"], row["worker"], row["label"]))
        self.stands[put.source] = after
        self.dirty[put.source] = None
        if before:
            self.gone.add(put.source)
        return "changed" if before else "new"

    def _row(self, source: str, entry: Entry) -> dict[str, Any]:
        words = self._words(entry.question)
        return {
            "source": source, "question": words.code, "task": words.tasks.code(entry.task),
            "worker": None if entry.worker is None else words.workers.code(entry.worker),
            "label": words.classes.code(entry.label), "time": entry.time, "number": self.store.next_number(),
        }  # fmt: skip

    def _words(self, question: str) -> QuestionVocabulary:
        words = self.store.words.get(question)
        if words is None:
            words = self.store.words[question] = QuestionVocabulary(len(self.store.words), question)
        return words

    def _expect(self, expect: RegisterTasks) -> Outcome:
        words = self._words(expect.question)
        before = len(words.tasks)
        for task in expect.tasks:
            words.tasks.code(task)
        return "new" if len(words.tasks) > before else "same"

    def _drop(self, drop: DeleteTasks) -> Outcome:
        self._flush()
        found = False
        for name, words in self.store.words.items():
            codes = [words.tasks.codes[task] for task in drop.tasks if task in words.tasks.codes]
            if not name.startswith(drop.prefix) or not codes:
                continue
            for part in _parts(codes):
                which = (ENTRIES.c.question == words.code) & ENTRIES.c.task.in_(part)
                rows = self.connection.execute(sql.select(ENTRIES.c.source, ENTRIES.c.task).where(which)).all()
                self.connection.execute(ENTRIES.delete().where(which))
                for source, task in rows:
                    found = True
                    self.change.altered.add((words.code, task))
                    self.stands.get(source, {}).pop(words.code, None)
        return "changed" if found else "same"

    def _flush(self) -> None:
        for part in _parts(sorted(self.gone)):
            self.connection.execute(ENTRIES.delete().where(ENTRIES.c.source.in_(part)))
        rows = [row for source in self.dirty for row in self.stands[source].values()]
        if rows:
            self.connection.execute(ENTRIES.insert(), rows)
        self.gone.clear()
        self.dirty.clear()

    def _write(self, before: Mapping[str, tuple[int, ...]]) -> None:
        self._flush()
        questions = [
            {"code": words.code, "name": name} for name, words in self.store.words.items() if name not in before
        ]
        if questions:
            self.connection.execute(QUESTIONS.insert(), questions)
        names = [
            {"question": words.code, "kind": kind, "code": code, "name": words.kinds[kind].names[code]}
            for name, words in self.store.words.items()
            for kind in (TASK, WORKER, CLASS)
            for code in range(before.get(name, (0, 0, 0))[kind], len(words.kinds[kind]))
        ]
        if names:
            self.connection.execute(NAMES.insert(), names)


def _check_file(place: Path, url: str) -> None:
    """Refuse what is no database before anything is made beside it; a new one is for its owner alone."""
    if place.is_dir():
        raise InputError(f"{url} is a folder; name a file, for example {Path(url) / 'votes.db'}")
    if not place.parent.is_dir():
        raise InputError(f"{url} cannot be written: there is no folder {place.parent}; make it first")
    try:
        if not place.exists():
            place.touch(mode=0o600)
        elif place.stat().st_nlink > 1:
            raise InputError(f"{url} is one of several hard links to a file, which SQLite cannot keep safe; use a copy")
        with place.open("rb") as file:
            head = file.read(len(_SQLITE))
    except OSError as error:
        raise InputError(f"{url} cannot be written: {error.strerror}") from None
    if head and head != _SQLITE:
        raise InputError(
            f"{url} is no database, and is left alone; votes are kept in a file of their own. To begin with the votes in it: "
            f"wisecrowd serve votes.db --from {url}"
        )


def _parts(keys: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(keys), AT_ONCE):
        yield keys[start : start + AT_ONCE]


def _said(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What an entry says, whenever it came."""
    return tuple(row[name] for name in ("task", "worker", "label", "time"))


def _reason(error: sql.exc.SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
