"""Durable storage of votes: SQLite by default, PostgreSQL by URL.

One service writes to a database; any number of programs may read it.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from wisecrowd.errors import InputError
from wisecrowd.service.database import (
    ABOUT,
    METADATA,
    NAME_KINDS,
    NAMES,
    QUESTION_KIND,
    QUESTIONS,
    RECORDS,
    SCHEMA_VERSION,
    DamagedDatabase,
    QuestionVocabulary,
    check_schema,
    checksum_name,
    checksum_record,
    connect,
    connect_read_only,
    mask_password,
    read_vocabularies,
)
from wisecrowd.service.events import DeleteTasks, Event, RegisterTasks, Upsert, VoteRecord
from wisecrowd.service.integrity import (
    SequenceFile,
    describe_lost_transactions,
    find_damage,
    find_lost_frames,
    is_corruption,
)
from wisecrowd.service.writers import OnWait, SqliteWriter, create_writer, explain_damage

Outcome = Literal["new", "changed", "unchanged"]
#: Number of keys in one SQL statement; SQLite limits the number of bound parameters.
KEYS_PER_STATEMENT = 500
#: Default maximum number of classes of a question. Tables of a question have a column for each class.
MAX_CLASSES = 1_000
#: Seconds for which a PostgreSQL database that is starting is waited for.
WAIT_SECONDS = 30.0


class RefusedEvent(InputError):
    """An event is valid by itself but contradicts the database. Nothing of its request was stored.

    Examples
    --------
    >>> issubclass(RefusedEvent, InputError)
    True
    """


class TooManyClasses(RefusedEvent):
    """A vote or a gold label has a new class, but its question has the maximum number of classes.

    Examples
    --------
    >>> issubclass(TooManyClasses, RefusedEvent)
    True
    """


class OtherServer(RefusedEvent):
    """A project has the number of another project, so it is on another Label Studio server.

    Examples
    --------
    >>> issubclass(OtherServer, RefusedEvent)
    True
    """


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
    is_uncertain : bool
        Whether some of the events may have been stored before, so that ``added`` and ``altered`` are incomplete.

    Examples
    --------
    >>> StoreChange(["new"]).altered
    set()
    """

    outcomes: list[Outcome] = field(default_factory=list)
    added: list[tuple[int, int, int, int]] = field(default_factory=list)
    altered: set[tuple[int, int]] = field(default_factory=set)
    is_uncertain: bool = False


class Store:
    """A database that this process alone writes to.

    Parameters
    ----------
    url : str
        File name of a SQLite database, or URL of a PostgreSQL database.
    wait_seconds : float, default=30.0
        Time for which a PostgreSQL database that cannot be reached is waited for.
    on_wait : callable, default=None
        Called with a message when the database cannot be reached at once.
    max_classes : int, default=1_000
        Maximum number of classes of a question.

    Attributes
    ----------
    vocabularies : dict of str to QuestionVocabulary
        Names of each question, by the name of the question.

    Raises
    ------
    InputError
        If the database cannot be opened, is damaged, belongs to another program, or another service writes to it.

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

    def __init__(
        self,
        url: str,
        *,
        wait_seconds: float = WAIT_SECONDS,
        on_wait: OnWait | None = None,
        max_classes: int = MAX_CLASSES,
    ) -> None:
        self.url, self.max_classes = url, max_classes
        self.engine = connect(url)
        self.vocabularies: dict[str, QuestionVocabulary] = {}
        self._last_number = 0
        self._sequence = 0
        self._writer_id = secrets.token_hex(8)
        self._is_repeating = False  # the transaction before a lost connection was stored after all
        self._sequence_file: SequenceFile | None = None
        self._writer = None
        try:
            self._writer = create_writer(self.engine, url, wait_seconds=wait_seconds, on_wait=on_wait)
            if isinstance(self._writer, SqliteWriter):
                self._sequence_file = SequenceFile(self._writer.path)
                with connect_read_only(self._writer.path).connect() as connection:  # before anything is changed
                    self._inspect(connection)
            self._prepare_tables()
        except (sql.exc.SQLAlchemyError, UnicodeDecodeError) as error:
            self.close()
            if is_corruption(error):
                raise InputError(explain_damage(url, _first_line(error))) from None
            raise InputError(f"the database {mask_password(url)} cannot be used: {_first_line(error)}") from None
        except DamagedDatabase as error:
            self.close()
            raise InputError(explain_damage(url, str(error))) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the database."""
        if self._writer is not None:
            self._writer.close()
        if self._sequence_file is not None:
            self._sequence_file.close()
            self._sequence_file = None
        self.engine.dispose()

    # ------------------------------------------------------------------ writing

    def ensure_connected(self) -> None:
        """Connect again if the connection is lost, and check that no other service has written meanwhile.

        Raises
        ------
        InputError
            If another service writes to the database, or has written to it.
        sqlalchemy.exc.OperationalError
            If the database cannot be reached.
        """
        assert self._writer is not None
        if not self._writer.ensure_connected():
            return
        try:
            with self._writer.begin() as connection:
                sequence, writer = connection.execute(sql.select(ABOUT.c.sequence, ABOUT.c.writer)).one()
                if (sequence, writer) == (self._sequence + 1, self._writer_id):
                    self._adopt_names(read_vocabularies(connection))
                    self._last_number = self._read_last_number(connection)
                    self._sequence, self._is_repeating = sequence, True
                elif sequence != self._sequence:
                    raise InputError(_explain_foreign_writer(self.url))
        except BaseException:
            self._writer.close()
            raise

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

        Raises
        ------
        DatabaseDisconnected
            If the connection is lost. Call `ensure_connected` and apply the events again, which counts them once.
        """
        assert self._writer is not None
        lengths = {name: tuple(map(len, vocabulary.kinds)) for name, vocabulary in self.vocabularies.items()}
        last_number, sequence = self._last_number, self._sequence
        try:
            with self._writer.begin() as connection:
                transaction = _Transaction(self, connection)
                change = transaction.apply(events)
                if transaction.has_written:
                    self._raise_sequence(connection)
        except BaseException:
            self._restore_names(lengths)
            self._last_number, self._sequence = last_number, sequence
            raise
        if self._sequence_file is not None:
            self._sequence_file.write(self._sequence)
        change.is_uncertain, self._is_repeating = self._is_repeating, False
        return change

    def _raise_sequence(self, connection: Connection) -> None:
        """Count a transaction; fail if another service has made one since this one read the database."""
        is_expected = ABOUT.c.sequence == self._sequence
        self._sequence += 1
        values = {"sequence": self._sequence, "writer": self._writer_id}
        if connection.execute(ABOUT.update().where(is_expected).values(values)).rowcount != 1:
            raise InputError(_explain_foreign_writer(self.url))

    def _adopt_names(self, stored: Mapping[str, QuestionVocabulary]) -> None:
        """Add the stored names that are missing here, in their order."""
        for name, vocabulary in stored.items():
            mine = self.vocabularies.setdefault(name, QuestionVocabulary(vocabulary.code, name))
            for registry, stored_registry in zip(mine.kinds, vocabulary.kinds, strict=True):
                for stored_name in stored_registry.names[len(registry) :]:
                    registry.add(stored_name)

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

    def _inspect(self, connection: Connection) -> None:
        """Refuse a database of another program or version, and one that is damaged or has lost transactions."""
        tables = set(sql.inspect(connection).get_table_names())
        problems: list[str] = []
        if ABOUT.name in tables:
            check_schema(connection, self.url)
        missing = set(METADATA.tables) - tables
        if not missing:
            problems = find_damage(connection)
        elif len(missing) < len(METADATA.tables):
            problems = [f"these tables are missing: {', '.join(sorted(missing))}"]
        elif tables and self._sequence_file is not None:
            raise InputError(f"{self.url} is a database of another program; name a file that does not exist yet")
        if isinstance(self._writer, SqliteWriter) and self._sequence_file is not None and not problems:
            last = 0 if missing else int(connection.scalar(sql.select(ABOUT.c.sequence)) or 0)
            problems = describe_lost_transactions(last, self._sequence_file.read()) or find_lost_frames(
                self._writer.path
            )
        if problems:
            raise InputError(explain_damage(self.url, problems[0]))

    def _prepare_tables(self) -> None:
        assert self._writer is not None
        with self._writer.begin() as connection:
            if self._sequence_file is None:
                self._inspect(connection)
            else:  # all tables or none; the driver would commit after each of them
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            METADATA.create_all(connection)
            if connection.scalar(sql.select(ABOUT.c.sequence)) is None:
                connection.execute(ABOUT.insert(), {"version": SCHEMA_VERSION, "sequence": 0, "writer": ""})
            self.vocabularies = read_vocabularies(connection)
            self._last_number = self._read_last_number(connection)
            self._sequence = int(connection.scalar(sql.select(ABOUT.c.sequence)) or 0)
        for name, vocabulary in self.vocabularies.items():
            if len(vocabulary.classes) > self.max_classes:
                raise InputError(
                    f"the question {name!r} has {len(vocabulary.classes):,} classes, more than {self.max_classes:,}; if there "
                    "is enough memory, raise the limit with --max-classes"
                )

    def _read_last_number(self, connection: Connection) -> int:
        return int(connection.scalar(sql.select(sql.func.max(RECORDS.c.number))) or 0)

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
        self.has_written = False

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
        for vocabulary in self._find_codes(before) if event.origin is not None else ():
            _check_origin(vocabulary, event.origin)
        after = {row["question"]: row for row in (self._build_row(event, record) for record in event.records)}
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

    def _build_row(self, event: Upsert, record: VoteRecord) -> dict[str, Any]:
        vocabulary = self._find_vocabulary(record.question, event.origin)
        if len(vocabulary.classes) >= self.store.max_classes and record.label not in vocabulary.classes.codes:
            raise TooManyClasses(
                f"the question {record.question[:100]!r} has {self.store.max_classes:,} classes, the maximum, and "
                f"{record.label[:100]!r} would be a new one; are labels free text? The limit is set with --max-classes"
            )
        return {
            "source": event.source, "question": vocabulary.code, "task": vocabulary.tasks.add(record.task),
            "worker": None if record.worker is None else vocabulary.workers.add(record.worker),
            "label": vocabulary.classes.add(record.label), "time": record.time, "number": self.store.next_number(),
        }  # fmt: skip

    def _find_vocabulary(self, question: str, origin: str | None) -> QuestionVocabulary:
        vocabulary = self.store.vocabularies.get(question)
        if vocabulary is None:
            vocabulary = QuestionVocabulary(len(self.store.vocabularies), question)
            self.store.vocabularies[question] = vocabulary
        if origin is not None:
            _check_origin(vocabulary, origin)
            vocabulary.origins.add(origin)
        return vocabulary

    def _find_codes(self, codes: Collection[int]) -> Iterator[QuestionVocabulary]:
        return (vocabulary for vocabulary in self.store.vocabularies.values() if vocabulary.code in codes)

    def _register_tasks(self, event: RegisterTasks) -> Outcome:
        registry = self._find_vocabulary(event.question, event.origin).tasks
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
            _check_origin(vocabulary, event.origin)
            for part in _split_keys(codes):
                is_deleted = (RECORDS.c.question == vocabulary.code) & RECORDS.c.task.in_(part)
                rows = self.connection.execute(sql.select(RECORDS.c.source, RECORDS.c.task).where(is_deleted)).all()
                self.connection.execute(RECORDS.delete().where(is_deleted))
                self.has_written = self.has_written or bool(rows)
                for source, task in rows:
                    outcome = "changed"
                    self.change.altered.add((vocabulary.code, task))
                    self.records_by_source.get(source, {}).pop(vocabulary.code, None)
        return outcome

    def _flush(self) -> None:
        """Write the records of all events so far."""
        self.has_written = self.has_written or bool(self.sources_to_insert)
        for part in _split_keys(sorted(self.sources_to_delete)):
            self.connection.execute(RECORDS.delete().where(RECORDS.c.source.in_(part)))
        rows = [row for source in self.sources_to_insert for row in self.records_by_source[source].values()]
        for row in rows:
            row["checksum"] = checksum_record(
                row["number"], row["question"], row["task"], row["worker"], row["label"], row["time"]
            )
        if rows:
            self.connection.execute(RECORDS.insert(), rows)
        self.sources_to_delete.clear()
        self.sources_to_insert.clear()

    def _write(self, lengths: Mapping[str, tuple[int, ...]]) -> None:
        """Write the records, and the names that did not exist when the transaction began."""
        self._flush()
        vocabularies = self.store.vocabularies
        questions = [
            {"code": code, "name": name, "checksum": checksum_name(code, QUESTION_KIND, code, name)}
            for name, code in (
                (name, vocabulary.code) for name, vocabulary in vocabularies.items() if name not in lengths
            )
        ]
        if questions:
            self.connection.execute(QUESTIONS.insert(), questions)
        names = [
            {
                "question": vocabulary.code, "kind": kind, "code": code, "name": new_name,
                "checksum": checksum_name(vocabulary.code, kind, code, new_name),
            }
            for name, vocabulary in vocabularies.items()
            for kind in NAME_KINDS
            for code, new_name in _names_from(vocabulary.kinds[kind].names, lengths[name][kind] if name in lengths else 0)
        ]  # fmt: skip
        if names:
            self.connection.execute(NAMES.insert(), names)
        self.has_written = self.has_written or bool(questions or names)


def _check_origin(vocabulary: QuestionVocabulary, origin: str | None) -> None:
    if origin is None or not vocabulary.origins.names or origin in vocabulary.origins.codes:
        return
    raise OtherServer(
        f"the question {vocabulary.name[:100]!r} belongs to the project created at {vocabulary.origins.names[0][:40]}, and this "
        f"one was created at {origin[:40]}, so it is on another server; give that server a name: ?server=NAME in the address "
        "of its webhooks, --name NAME for wisecrowd label-studio pull"
    )


def _explain_foreign_writer(url: str) -> str:
    return (
        f"another wisecrowd serve has written to {mask_password(url)}; start this service again, without the other one"
    )


def _names_from(names: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
    """Yield the names from a number on, each with its number."""
    return ((code, names[code]) for code in range(start, len(names)))


def _split_keys(keys: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(keys), KEYS_PER_STATEMENT):
        yield keys[start : start + KEYS_PER_STATEMENT]


def _content(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the columns of a record in which it can differ from a previous one."""
    return row["task"], row["worker"], row["label"], row["time"]


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
