"""Databases of earlier versions, which those versions wrote, and backups."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
import sqlalchemy as sql

from wisecrowd.errors import InputError, UsageError
from wisecrowd.service.database import SCHEMA_VERSION, connect
from wisecrowd.service.events import Upsert, VoteRecord, build_source
from wisecrowd.service.integrity import check_database
from wisecrowd.service.migrations import back_up_database, convert_source, migrate_database
from wisecrowd.service.store import Store
from wisecrowd.service.webhooks import parse_webhook

RECORDED = Path(__file__).parents[1] / "recorded"
#: SQL of databases that the versions with these schemas wrote: votes, changed votes, gold, registered tasks and webhooks.
SCHEMAS = (1, 2, 3)


def write_old(path: Path, schema: int) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript((RECORDED / "service" / f"schema-{schema}.sql").read_text(encoding="utf-8"))
    return path


def load_old_into_postgres(url: str, schema: int) -> None:
    """Load the same tables into PostgreSQL, whose SQL differs in the name of one type."""
    script = (RECORDED / "service" / f"schema-{schema}.sql").read_text(encoding="utf-8")
    script = re.sub(r"CREATE INDEX (\w+) ON", r"CREATE INDEX \1 ON", script).replace("BEGIN TRANSACTION;", "")
    script = (
        script.replace("COMMIT;", "")
        .replace("replace('ä\\nb','\\n',char(10))", "E'ä\\nb'")
        .replace(" FLOAT", " FLOAT8")
    )
    engine = connect(url)
    with engine.begin() as connection:
        for statement in filter(str.strip, script.split(";\n")):
            connection.exec_driver_sql(statement.replace("%", "%%").replace('INSERT INTO "', 'INSERT INTO "'))
    engine.dispose()


def read_votes(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Return the records of every question by name, in order of arrival."""
    found = {}
    for name, vocabulary in store.vocabularies.items():
        rows = store.list_records(vocabulary.code, 0, 1_000)
        found[name] = [
            (vocabulary.tasks.names[task], None if worker is None else vocabulary.workers.names[worker],
             vocabulary.classes.names[label], time)
            for _, _, task, worker, label, time in rows
        ]  # fmt: skip
    return found


def check_content(url: str) -> None:
    """Check that all votes are there, and that sending them again changes nothing."""
    store = Store(url)
    try:
        votes = read_votes(store)
        own = votes["votes"]
        assert ("t1", "ann", "good", None) in own
        assert ("t1", "bob", "good", None) in own, "the changed vote"
        assert ("t2", "bob", "good", 1_700_000_003.5) in own
        assert ("t4", None, "good", None) in own, "gold"
        assert store.vocabularies["votes"].tasks.names == ["t1", "t2", "t3", "t4", "t5"]
        assert ("t2", "ann", "ä\nb", None) in votes["grüße"]
        assert {name for name in votes if name.startswith("1:")} == {"1:mood", "1:topics", "1:stars"}
        again = [VoteRecord("votes", "t1", "ann", "good"), VoteRecord("votes", "t4", None, "good")]
        events: list[Any] = [Upsert(build_source(record), (record,)) for record in again]
        record = VoteRecord("grüße", "t2", "ann", "ä\nb")
        events.append(Upsert(build_source(record, "v-2"), (record,)))
        for name in ("annotation_created", "annotation_created_by_another", "annotation_created_ground_truth"):
            body = json.loads((RECORDED / "label_studio" / "webhooks" / f"{name}.json").read_text(encoding="utf-8"))
            events += parse_webhook(body)
        assert set(store.apply(events).outcomes) == {"unchanged"}
        assert store.apply([Upsert("id:new", (VoteRecord("votes", "t9", "ann", "bad"),))]).outcomes == ["new"]
    finally:
        store.close()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_old_databases_are_refused_with_the_command_that_converts_them(tmp_path: Path, schema: int) -> None:
    path = write_old(tmp_path / "votes.db", schema)
    before = path.read_bytes()
    with pytest.raises(
        InputError, match=rf"schema {schema} instead of {SCHEMA_VERSION}\); convert it with: wisecrowd database"
    ):
        Store(str(path))
    with pytest.raises(InputError, match="wisecrowd database migrate"):
        check_database(str(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("schema", SCHEMAS)
def test_old_databases_are_converted(tmp_path: Path, schema: int) -> None:
    path = write_old(tmp_path / "votes.db", schema)
    result = migrate_database(str(path))
    assert result.version == schema
    problems, n_questions, n_records = check_database(str(path))
    assert problems == []
    assert (n_questions, n_records) == (result.n_questions, result.n_records)
    check_content(str(path))
    assert result.backup is not None
    with contextlib.closing(sqlite3.connect(result.backup)) as connection:
        assert connection.execute("SELECT version FROM about").fetchall() == [(schema,)]
    with pytest.raises(UsageError, match="has the current schema"):
        migrate_database(str(path))
    tables = {name for (name,) in sqlite3.connect(path).execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"about", "questions", "names", "records"}


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.slow
def test_old_databases_of_postgresql_are_converted(postgres_url: str, schema: int) -> None:
    load_old_into_postgres(postgres_url, schema)
    with pytest.raises(InputError, match="convert it with"):
        Store(postgres_url)
    assert migrate_database(postgres_url).backup is None
    check_content(postgres_url)


def test_all_schemas_lead_to_the_same_votes(tmp_path: Path) -> None:
    contents = []
    for schema in SCHEMAS[1:]:  # schema 1 let a vote with the same id move between questions
        path = write_old(tmp_path / f"{schema}.db", schema)
        migrate_database(str(path))
        store = Store(str(path))
        contents.append(read_votes(store))
        store.close()
    assert contents[0] == contents[1]


def test_a_failure_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_old(tmp_path / "votes.db", 3)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE records SET time = 5.0 WHERE number = 1")
        connection.commit()
    with pytest.raises(InputError, match="record 1 is not as it was written"):
        migrate_database(str(path))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM about").fetchall() == [(3,)]
        assert connection.execute("SELECT count(*) FROM records").fetchone()[0] > 5
    with pytest.raises(UsageError, match="from an earlier attempt"):
        migrate_database(str(path))
    path = write_old(tmp_path / "other.db", 2)
    monkeypatch.setattr("wisecrowd.service.migrations.convert_source", lambda *_: "same")
    with pytest.raises(InputError, match="is as it was"):
        migrate_database(str(path))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM about").fetchall() == [(2,)]


def test_databases_in_use_and_of_others_are_refused(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "votes.db"))
    with pytest.raises(InputError, match="another wisecrowd serve"):
        migrate_database(str(tmp_path / "votes.db"))
    store.close()
    with pytest.raises(InputError, match="there is no file"):
        migrate_database(str(tmp_path / "nowhere.db"))
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE x (y)")
    with pytest.raises(InputError, match="is not a database of wisecrowd serve"):
        migrate_database(str(tmp_path / "other.db"))
    path = write_old(tmp_path / "later.db", 3)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE about SET version = 99")
        connection.commit()
    with pytest.raises(InputError, match="install the newest version"):
        migrate_database(str(path))
    with pytest.raises(InputError, match="a later version of wisecrowd"):
        Store(str(path))


def test_sources() -> None:
    assert convert_source('id:["q", "v"]', "q", 2) == 'id:["q", "v"]'
    assert convert_source("label-studio:7", "3:mood", 2) == 'label-studio:["", "3", "7"]'
    assert convert_source('of:["q", "t", "w"]', "q", 1) == 'of:["q", "t", "w"]'


# ---------------------------------------------------------------------- backups


def put(n: int) -> Upsert:
    return Upsert(f"id:{n}", (VoteRecord("mood", f"t{n // 3}", f"w{n % 3}", "good"),))


def test_backup_of_a_running_service_has_every_acknowledged_vote(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "votes.db"))
    acknowledged, stop = [0], threading.Event()

    def write() -> None:
        while not stop.is_set():
            store.apply([put(acknowledged[0])])
            acknowledged[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for copy in range(5):
            before = acknowledged[0]
            n_questions, n_records = back_up_database(tmp_path / "votes.db", tmp_path / f"{copy}.db")
            assert before <= n_records <= acknowledged[0] + 1
            assert n_questions <= 1
    finally:
        stop.set()
        writer.join()
        store.close()
    assert not list(tmp_path.glob("?.db-*")), "a backup is one file"


def test_restored_backup_takes_votes_again_and_counts_none_twice(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "votes.db"))
    store.apply([put(n) for n in range(5)])
    back_up_database(tmp_path / "votes.db", tmp_path / "backup.db")
    store.apply([put(n) for n in range(5, 9)])
    store.close()
    for name in ("votes.db", "votes.db-wal", "votes.db-shm", "votes.db.sequence"):
        (tmp_path / name).unlink(missing_ok=True)  # the disk is lost
    back_up_database(tmp_path / "backup.db", tmp_path / "restored.db")
    store = Store(str(tmp_path / "restored.db"))
    assert store.apply([put(n) for n in range(9)]).outcomes == ["unchanged"] * 5 + ["new"] * 4
    store.close()
    assert check_database(str(tmp_path / "restored.db")) == ([], 1, 9)
    assert check_database(str(tmp_path / "backup.db")) == ([], 1, 5)


def test_backup_over_lost_transactions_is_noticed(tmp_path: Path) -> None:
    """A backup in the place of a newer database must not hide that votes are missing."""
    store = Store(str(tmp_path / "votes.db"))
    store.apply([put(1)])
    back_up_database(tmp_path / "votes.db", tmp_path / "backup.db")
    store.apply([put(2)])
    store.close()
    (tmp_path / "backup.db").replace(tmp_path / "votes.db")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"votes.db{suffix}").unlink(missing_ok=True)
    with pytest.raises(InputError, match="were acknowledged"):
        Store(str(tmp_path / "votes.db"))


def test_damaged_databases_are_not_backed_up(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "votes.db"))
    store.apply([put(n) for n in range(5)])
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "votes.db")) as connection:
        connection.execute("UPDATE records SET time = 5.0 WHERE number = 3")
        connection.commit()
    with pytest.raises(InputError, match="not as they were written"):
        back_up_database(tmp_path / "votes.db", tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()
    with pytest.raises(UsageError, match="exists"):
        back_up_database(tmp_path / "votes.db", tmp_path / "votes.db")
    with pytest.raises(InputError, match="there is no file"):
        back_up_database(tmp_path / "nowhere.db", tmp_path / "backup.db")


@pytest.mark.slow
def test_pg_dump_and_pg_restore(postgres: Any, postgres_url: str) -> None:
    """The commands of the documentation."""
    store = Store(postgres_url)
    store.apply([put(n) for n in range(5)])
    dump = f"{postgres.folder}/votes.dump"
    postgres.run("pg_dump", "-h", postgres.folder, "-U", "me", "-Fc", "-f", dump, "postgres")  # while the service runs
    store.apply([put(n) for n in range(5, 9)])
    store.close()
    postgres.run("createdb", "-h", postgres.folder, "-U", "me", "restored")
    try:
        postgres.run("pg_restore", "-h", postgres.folder, "-U", "me", "-d", "restored", dump)
        restored = Store(postgres_url.replace("/postgres?", "/restored?"))
        assert restored.apply([put(n) for n in range(9)]).outcomes == ["unchanged"] * 5 + ["new"] * 4
        restored.close()
        assert check_database(postgres_url.replace("/postgres?", "/restored?")) == ([], 1, 9)
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            postgres.run("dropdb", "-h", postgres.folder, "-U", "me", "restored")
    engine = connect(postgres_url)
    with engine.connect() as connection:
        assert connection.scalar(sql.text("SELECT count(*) FROM records")) == 9
    engine.dispose()
