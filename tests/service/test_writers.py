"""Exclusive writers, and the service on PostgreSQL. The tests start a server on a socket in a temporary folder."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
import sqlalchemy as sql

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.service.coordinator import Coordinator, WriteFailed
from wisecrowd.service.events import DeleteTasks, RegisterTasks, Upsert, VoteRecord
from wisecrowd.service.integrity import check_database
from wisecrowd.service.store import Store
from wisecrowd.service.writers import DatabaseDisconnected, PostgresWriter


@pytest.fixture
def server(postgres: Any) -> Any:
    """Return a running server."""
    return postgres


@pytest.fixture
def url(postgres_url: str) -> str:
    """Return the URL of an empty database."""
    return postgres_url


@pytest.fixture(autouse=True)
def services_share_a_process() -> None:
    """Start a child process for every service: a shared one would remember the records of the same URL."""


def put(n: int, label: str = "good") -> Upsert:
    return Upsert(f"id:{n}", (VoteRecord("mood", f"t{n // 3}", f"w{n % 3}", label),))


@pytest.mark.slow
def test_votes_are_stored_changed_and_deleted(url: str) -> None:
    store = Store(url)
    hostile = "a\tb\n'\"; DROP TABLE records; -- 😀 \u202e"
    first = Upsert("id:1", (VoteRecord(hostile, "t1", "ann", hostile, 12.5), VoteRecord("other", "t1", None, "x")))
    assert store.apply([first, RegisterTasks(hostile, ("t1", "t2"))]).outcomes == ["new", "new"]
    assert store.apply([first]).outcomes == ["unchanged"]
    assert store.apply([Upsert("id:1", (VoteRecord(hostile, "t1", "ann", "no"),))]).outcomes == ["changed"]
    with pytest.raises(InputError, match="another wisecrowd serve"):
        Store(url)
    store.close()
    again = Store(url)
    assert again.vocabularies[hostile].tasks.names == ["t1", "t2"]
    assert again.votes_on(0, [0, 1]) == {0: {0: 1}, 1: {}}
    assert again.apply([DeleteTasks("", ("t1",))]).outcomes == ["changed"]
    assert again.votes_on(0, [0]) == {0: {}}
    again.close()


@pytest.mark.slow
def test_fit_equals_a_batch_fit(url: str, simulated: Any, votes: Any) -> None:
    coordinator = Coordinator(Store(url), wc.DawidSkene())
    events = [
        Upsert(f"id:{n}", (VoteRecord("fit", vote["task"], vote["worker"], vote["label"]),))
        for n, vote in enumerate(votes)
    ]
    coordinator.apply(events).result()
    question = coordinator.question("fit")
    assert coordinator.refit(question)
    with coordinator.lock:
        labels = {
            question.describe_task(task)["task"]: question.describe_task(task)["label"]
            for task in range(question.n_tasks)
        }
    assert labels == wc.DawidSkene().fit(simulated.crowd).labels_.to_dict()
    coordinator.close()


@pytest.mark.slow
def test_lock_is_taken_again_after_a_lost_connection(server: Any, url: str) -> None:
    store = Store(url)
    store.apply([put(0)])
    server.end_connections()
    with pytest.raises(DatabaseDisconnected):
        store.apply([put(1)])
    store.ensure_connected()
    assert store.apply([put(1)]).outcomes == ["new"]
    with pytest.raises(InputError, match="another wisecrowd serve writes"):
        Store(url, wait_seconds=0)
    store.close()
    assert check_database(url) == ([], 1, 2)


def test_service_that_lost_its_lock_does_not_write(server: Any, url: str) -> None:
    with contextlib.closing(Store(url)) as first:
        first.apply([put(0)])
        server.end_connections()
        with pytest.raises(DatabaseDisconnected):
            first.apply([put(1)])
        with contextlib.closing(Store(url, wait_seconds=0)) as second:
            with pytest.raises(InputError, match="another wisecrowd serve writes"):
                first.ensure_connected()
            second.apply([Upsert("id:9", (VoteRecord("other", "t9", "w9", "bad"),))])
        with pytest.raises(InputError, match="has written to"):
            first.ensure_connected()
        with pytest.raises(DatabaseDisconnected):
            first.apply([put(1)])


def test_connection_that_the_server_ends_counts_as_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver may report the reason before it sees that the connection is closed."""
    psycopg = pytest.importorskip("psycopg")
    with contextlib.closing(Store(url)) as store:

        def fail(*_: Any) -> None:
            raise sql.exc.OperationalError("INSERT", {}, psycopg.errors.AdminShutdown("terminating connection"))

        with monkeypatch.context() as context:
            context.setattr(Store, "_raise_sequence", fail)
            with pytest.raises(DatabaseDisconnected, match="terminating connection"):
                store.apply([put(0)])
        store.ensure_connected()
        assert store.apply([put(0)]).outcomes == ["new"]


def test_foreign_transaction_is_noticed(url: str) -> None:
    store = Store(url)
    store.apply([put(0)])
    with store.engine.begin() as connection:
        connection.execute(sql.text("UPDATE about SET sequence = sequence + 1"))
    with pytest.raises(InputError, match="has written to"):
        store.apply([put(1)])
    store.close()


@pytest.mark.slow
def test_votes_are_stored_after_a_restart_of_the_database(server: Any, url: str) -> None:
    coordinator = Coordinator(Store(url), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(30)]).result()
    server.stop()
    with pytest.raises(WriteFailed, match="did not accept the request"):
        coordinator.apply([put(30)]).result()
    with coordinator.lock:
        assert coordinator.question("mood").live.n_votes == 30  # reads go on
    server.start()
    assert coordinator.apply([put(30), put(31)]).result().outcomes == ["new", "new"]
    server.end_connections()
    assert coordinator.apply([put(32)]).result().outcomes == ["new"]  # the same request, not the next one
    assert coordinator.refit(coordinator.question("mood"))
    with coordinator.lock:
        assert coordinator.question("mood").live.n_votes == 33
    coordinator.close()


@pytest.mark.slow
def test_commit_whose_answer_is_lost_counts_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator(Store(url), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(3)]).result()
    begin = PostgresWriter.begin
    losses = iter([True])

    @contextlib.contextmanager
    def begin_and_lose(writer: PostgresWriter) -> Iterator[Any]:
        with begin(writer) as connection:
            yield connection
        if next(losses, False):
            writer.close()
            raise DatabaseDisconnected("the answer to the commit was lost")

    monkeypatch.setattr(PostgresWriter, "begin", begin_and_lose)
    new = [put(7), Upsert("id:8", (VoteRecord("topic", "t1", "ann", "x"),))]
    assert coordinator.apply(new).result().outcomes == ["unchanged", "unchanged"]
    assert coordinator.apply([put(9)]).result().outcomes == ["new"]
    assert coordinator.refit(coordinator.question("mood"))
    assert coordinator.refit(coordinator.question("topic"))
    with coordinator.lock:
        assert coordinator.question("mood").live.n_votes == 5
        assert coordinator.question("topic").describe_task(0)["label"] == "x"
    coordinator.close()
    assert check_database(url) == ([], 2, 6)


def test_database_that_is_starting_is_waited_for(server: Any, url: str) -> None:
    server.stop()
    messages: list[str] = []
    has_waited = threading.Event()

    def on_wait(message: str) -> None:
        messages.append(message)
        has_waited.set()

    stores: list[Store] = []
    thread = threading.Thread(target=lambda: stores.append(Store(url, on_wait=on_wait)))
    thread.start()
    try:
        assert has_waited.wait(20)
    finally:
        server.start()
    thread.join()
    assert len(messages) == 1
    assert "Waiting for postgresql+psycopg://me@/postgres" in messages[0]
    stores[0].close()


def test_unreachable_and_unknown_databases(server: Any, url: str) -> None:
    with pytest.raises(InputError, match="cannot be used"):
        Store(f"postgresql://me@/postgres?host={server.folder}/nowhere", wait_seconds=0.1)
    messages: list[str] = []
    with pytest.raises(InputError, match=r'database "nope" does not exist'):  # at once: waiting would not help
        Store(url.replace("/postgres?", "/nope?"), wait_seconds=60, on_wait=messages.append)
    assert messages == []
