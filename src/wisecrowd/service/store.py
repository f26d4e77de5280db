"""Durable storage of votes: SQLite by default, PostgreSQL by URL.

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
from wisecrowd.service.database import (
    ABOUT,
    CLASS_KIND,
    METADATA,
    NAMES,
    QUESTIONS,
    RECORDS,
    SCHEMA_VERSION,
    TASK_KIND,
    WORKER_KIND,
    QuestionVocabulary,
    connect,
    mask_password,
    read_vocabularies,
)
from wisecrowd.service.events import DeleteTasks, Event, RegisterTasks, Upsert, VoteRecord

Outcome = Literal["new", "changed", "unchanged"]
#: Number of keys in one SQL statement; SQLite limits the number of bound parameters.
KEYS_PER_STATEMENT = 500
#: Key of the advisory lock in PostgreSQL; an arbitrary constant that all versions share.
ADVISORY_LOCK_KEY = 7319862
#: First bytes of every SQLite database.
_SQLITE_HEADER = b"SQLite format 3\0"


@dataclass
class StoreChange:
    """Effect of some events on the database.

    Attributes
    ----------
    outcomes : list of {"new", "changed", "unchanged"}
        Outcome of each event.
    added : list of tuple
        New votes as (question, task, worker, label), in order of arrival.
    altered : set of tuple
        Tasks whose existing votes or gold label changed, as (question, task).

    Examples
    --------
    >>> StoreChange(["new"]).altered
    set()
    """

    outcomes: list[Outcome] = field(default_factory=list)
    added: list[tuple[int, int, int, int]] = field(default_factory=list)
    altered: set[tuple[int, int]] = field(default_factory=set)


class Store:
    """A database that this process alone writes to.

    Parameters
    ----------
    url : str
        File name of a SQLite database or an SQLAlchemy URL.

    Attributes
    ----------
    vocabularies : dict of str to QuestionVocabulary
        Names of each question, by the name of the question.

    Raises
    ------
    InputError
        If the database cannot be opened, belongs to another program, or another service writes to it.

    Examples
    --------
    >>> store = Store("votes.db")
    >>> store.apply([Upsert("id:1", (VoteRecord("mood", "t1", "ann", "good"),))]).outcomes
    ['new']
    >>> store.apply([Upsert("id:1", (VoteRecord("mood", "t1", "ann", "good"),))]).outcomes
    ['unchanged']
    >>> store.vocabularies["mood"].tasks.names
    ['t1']
    >>> store.close()
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = connect(url)
        self.vocabularies: dict[str, QuestionVocabulary] = {}
        self._last_number = 0
        self._write_lock = contextlib.ExitStack()
        try:
            self._acquire_lock()
            self._prepare_tables()
        except sql.exc.SQLAlchemyError as error:
            self.close()
            raise InputError(f"the database {mask_password(url)} cannot be used: {_first_line(error)}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the database."""
        self._write_lock.close()
        self.engine.dispose()

    # ------------------------------------------------------------------ writing

    def apply(self, events: Sequence[Event]) -> StoreChange:
        """Write events in one transaction: all of them, or none where an error is raised.

        Parameters
        ----------
        events : sequence of Upsert, RegisterTasks or DeleteTasks
            Events in order of arrival.

        Returns
        -------
        StoreChange
            Outcomes, new votes and altered tasks. The events are on disk when this returns.
        """
        lengths = {name: tuple(map(len, vocabulary.kinds)) for name, vocabulary in self.vocabularies.items()}
        last_number = self._last_number
        try:
            with self.engine.begin() as connection:
                return _Transaction(self, connection).apply(events)
        except BaseException:
            self._restore_names(lengths)
            self._last_number = last_number
            raise

    def next_number(self) -> int:
        """Return the number of the next record.

        Returns
        -------
        int
            Number, larger than all before.
        """
        self._last_number += 1
        return self._last_number

    # ------------------------------------------------------------------ reading

    def list_records(
        self, question: int, after: int, limit: int
    ) -> list[tuple[int, str, int, int | None, int, float | None]]:
        """Return records in order of arrival.

        Parameters
        ----------
        question : int
            Number of the question.
        after : int
            Number of the record after which the list starts.
        limit : int
            Maximum number of records.

        Returns
        -------
        list of tuple
            Number, source, task, worker, label and time of each record.
        """
        table = RECORDS.c
        query = (
            sql.select(table.number, table.source, table.task, table.worker, table.label, table.time)
            .where(table.question == question, table.number > after)
            .order_by(table.number)
            .limit(limit)
        )
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def votes_on(self, question: int, tasks: Iterable[int]) -> dict[int, dict[int, int]]:
        """Return the votes on some tasks. The last vote of a worker on a task counts.

        Parameters
        ----------
        question : int
            Number of the question.
        tasks : iterable of int
            Numbers of the tasks.

        Returns
        -------
        dict
            Task to worker to label.
        """
        votes: dict[int, dict[int, int]] = {task: {} for task in tasks}
        for task, worker, label in self._select_records(question, list(votes), gold=False):
            votes[task].pop(worker, None)
            votes[task][worker] = label
        return votes

    def gold_on(self, question: int, tasks: Iterable[int]) -> dict[int, int | None]:
        """Return the gold labels of some tasks.

        Parameters
        ----------
        question : int
            Number of the question.
        tasks : iterable of int
            Numbers of the tasks.

        Returns
        -------
        dict
            Task to class; None for a task without a gold label.
        """
        gold: dict[int, int | None] = dict.fromkeys(tasks)
        for task, _, label in self._select_records(question, list(gold), gold=True):
            gold[task] = label
        return gold

    def all_gold(self, question: int) -> dict[int, int]:
        """Return all gold labels of a question.

        Parameters
        ----------
        question : int
            Number of the question.

        Returns
        -------
        dict
            Task to class.
        """
        table = RECORDS.c
        query = sql.select(table.task, table.label).where(table.question == question, table.worker.is_(None))
        with self.engine.connect() as connection:
            return {row.task: row.label for row in connection.execute(query.order_by(table.number))}

    def _select_records(self, question: int, tasks: list[int], *, gold: bool) -> Iterator[tuple[int, int, int]]:
        table = RECORDS.c
        is_wanted = table.worker.is_(None) if gold else table.worker.is_not(None)
        with self.engine.connect() as connection:
            for part in _split_keys(tasks):
                query = (
                    sql.select(table.task, table.worker, table.label)
                    .where(table.question == question, table.task.in_(part), is_wanted)
                    .order_by(table.number)
                )
                yield from (tuple(row) for row in connection.execute(query))

    # ------------------------------------------------------------------ opening

    def _acquire_lock(self) -> None:
        """Make sure that no other service writes to the database."""
        message = f"another wisecrowd serve writes to {mask_password(self.url)}; stop it first, or use its address"
        if self.engine.dialect.name == "sqlite":
            import filelock

            path = Path(str(self.engine.url.database)).resolve()  # several names may lead to one file
            _check_sqlite_file(path, self.url)
            lock = filelock.FileLock(f"{path}.lock")
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                raise InputError(message) from None
            except OSError as error:
                raise InputError(f"{self.url} cannot be written: {error.strerror}") from None
            self._write_lock.callback(lock.release)
        elif self.engine.dialect.name == "postgresql":
            connection = self._write_lock.enter_context(self.engine.connect())
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            if not connection.scalar(sql.text(f"SELECT pg_try_advisory_lock({ADVISORY_LOCK_KEY})")):
                raise InputError(message)

    def _prepare_tables(self) -> None:
        with self.engine.begin() as connection:
            tables = set(sql.inspect(connection).get_table_names())
            if tables and not tables & set(METADATA.tables) and self.engine.dialect.name == "sqlite":
                raise InputError(f"{self.url} is a database of another program; name a file that does not exist yet")
            version = connection.scalar(sql.select(ABOUT.c.version)) if ABOUT.name in tables else None
            if version not in (None, SCHEMA_VERSION):
                raise InputError(
                    f"{mask_password(self.url)} was written by another version of wisecrowd "
                    f"(schema {version} instead of {SCHEMA_VERSION}); name a new file and import the votes with --from"
                )
            METADATA.create_all(connection)
            if version is None:
                connection.execute(ABOUT.insert(), {"version": SCHEMA_VERSION})
            self.vocabularies = read_vocabularies(connection)
            self._last_number = int(connection.scalar(sql.select(sql.func.max(RECORDS.c.number))) or 0)

    def _restore_names(self, lengths: Mapping[str, tuple[int, ...]]) -> None:
        """Forget the names of a transaction that failed."""
        for name in list(self.vocabularies):
            if name not in lengths:
                del self.vocabularies[name]
            else:
                for registry, length in zip(self.vocabularies[name].kinds, lengths[name], strict=True):
                    registry.truncate(length)


class _Transaction:
    """One transaction: existing records are read once, compared in memory, and written in a few statements."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self.store, self.connection = store, connection
        self.change = StoreChange()
        self.records_by_source: dict[str, dict[int, dict[str, Any]]] = {}
        self.sources_to_delete: set[str] = set()
        self.sources_to_insert: dict[str, None] = {}

    def apply(self, events: Sequence[Event]) -> StoreChange:
        self._read_sources([event.source for event in events if isinstance(event, Upsert)])
        lengths = {name: tuple(map(len, vocabulary.kinds)) for name, vocabulary in self.store.vocabularies.items()}
        for event in events:
            if isinstance(event, Upsert):
                outcome = self._upsert(event)
            elif isinstance(event, RegisterTasks):
                outcome = self._register_tasks(event)
            else:
                outcome = self._delete_tasks(event)
            self.change.outcomes.append(outcome)
        self._write(lengths)
        return self.change

    def _read_sources(self, sources: list[str]) -> None:
        for part in _split_keys(list(dict.fromkeys(sources))):
            query = sql.select(RECORDS).where(RECORDS.c.source.in_(part))
            for row in self.connection.execute(query).mappings():
                self.records_by_source.setdefault(row["source"], {})[row["question"]] = dict(row)

    def _upsert(self, event: Upsert) -> Outcome:
        before = self.records_by_source.get(event.source, {})
        after = {row["question"]: row for row in (self._build_row(event.source, record) for record in event.records)}
        if {question: _content(row) for question, row in before.items()} == {
            question: _content(row) for question, row in after.items()
        }:
            return "unchanged"
        for question in before.keys() | after.keys():
            old, new = before.get(question), after.get(question)
            if old is not None and new is not None and _content(old) == _content(new):
                new["number"] = old["number"]  # an unchanged record keeps its place in the order of arrival
            elif old is not None or new is None or new["worker"] is None:
                self.change.altered.update((question, row["task"]) for row in (old, new) if row is not None)
            else:
                self.change.added.append((question, new["task"], new["worker"], new["label"]))
        self.records_by_source[event.source] = after
        self.sources_to_insert[event.source] = None
        if before:
            self.sources_to_delete.add(event.source)
        return "changed" if before else "new"

    def _build_row(self, source: str, record: VoteRecord) -> dict[str, Any]:
        vocabulary = self._find_vocabulary(record.question)
        return {
            "source": source, "question": vocabulary.code, "task": vocabulary.tasks.add(record.task),
            "worker": None if record.worker is None else vocabulary.workers.add(record.worker),
            "label": vocabulary.classes.add(record.label), "time": record.time, "number": self.store.next_number(),
        }  # fmt: skip

    def _find_vocabulary(self, question: str) -> QuestionVocabulary:
        vocabulary = self.store.vocabularies.get(question)
        if vocabulary is None:
            vocabulary = QuestionVocabulary(len(self.store.vocabularies), question)
            self.store.vocabularies[question] = vocabulary
        return vocabulary

    def _register_tasks(self, event: RegisterTasks) -> Outcome:
        registry = self._find_vocabulary(event.question).tasks
        n_before = len(registry)
        for task in event.tasks:
            registry.add(task)
        return "new" if len(registry) > n_before else "unchanged"

    def _delete_tasks(self, event: DeleteTasks) -> Outcome:
        self._flush()
        outcome: Outcome = "unchanged"
        for name, vocabulary in self.store.vocabularies.items():
            codes = [vocabulary.tasks.codes[task] for task in event.tasks if task in vocabulary.tasks.codes]
            if not name.startswith(event.question_prefix) or not codes:
                continue
            for part in _split_keys(codes):
                is_deleted = (RECORDS.c.question == vocabulary.code) & RECORDS.c.task.in_(part)
                rows = self.connection.execute(sql.select(RECORDS.c.source, RECORDS.c.task).where(is_deleted)).all()
                self.connection.execute(RECORDS.delete().where(is_deleted))
                for source, task in rows:
                    outcome = "changed"
                    self.change.altered.add((vocabulary.code, task))
                    self.records_by_source.get(source, {}).pop(vocabulary.code, None)
        return outcome

    def _flush(self) -> None:
        """Write the records of all events so far."""
        for part in _split_keys(sorted(self.sources_to_delete)):
            self.connection.execute(RECORDS.delete().where(RECORDS.c.source.in_(part)))
        rows = [row for source in self.sources_to_insert for row in self.records_by_source[source].values()]
        if rows:
            self.connection.execute(RECORDS.insert(), rows)
        self.sources_to_delete.clear()
        self.sources_to_insert.clear()

    def _write(self, lengths: Mapping[str, tuple[int, ...]]) -> None:
        """Write the records, and the names that did not exist when the transaction began."""
        self._flush()
        vocabularies = self.store.vocabularies
        questions = [
            {"code": vocabulary.code, "name": name} for name, vocabulary in vocabularies.items() if name not in lengths
        ]
        if questions:
            self.connection.execute(QUESTIONS.insert(), questions)
        names = [
            {"question": vocabulary.code, "kind": kind, "code": code, "name": vocabulary.kinds[kind].names[code]}
            for name, vocabulary in vocabularies.items()
            for kind in (TASK_KIND, WORKER_KIND, CLASS_KIND)
            for code in range(lengths.get(name, (0, 0, 0))[kind], len(vocabulary.kinds[kind]))
        ]
        if names:
            self.connection.execute(NAMES.insert(), names)


def _check_sqlite_file(path: Path, url: str) -> None:
    """Refuse a file that is no database before anything is created beside it; only the owner may read a new one."""
    if path.is_dir():
        raise InputError(f"{url} is a folder; name a file, for example {Path(url) / 'votes.db'}")
    if not path.parent.is_dir():
        raise InputError(f"{url} cannot be written: the folder {path.parent} does not exist; create it first")
    try:
        if not path.exists():
            path.touch(mode=0o600)
        elif path.stat().st_nlink > 1:
            raise InputError(f"{url} has several hard links, with which SQLite may lose votes; use a copy of it")
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except OSError as error:
        raise InputError(f"{url} cannot be written: {error.strerror}") from None
    if header and header != _SQLITE_HEADER:
        raise InputError(
            f"{url} is not a database and was not changed; name a new file. To import the votes in it: "
            f"wisecrowd serve votes.db --from {url}"
        )


def _split_keys(keys: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(keys), KEYS_PER_STATEMENT):
        yield keys[start : start + KEYS_PER_STATEMENT]


def _content(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the columns of a record in which it can differ from a previous one."""
    return row["task"], row["worker"], row["label"], row["time"]


def _first_line(error: sql.exc.SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
