"""Durable storage of votes."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

import wisecrowd.service.store as module
from wisecrowd.errors import InputError
from wisecrowd.service.database import read_records
from wisecrowd.service.events import DeleteTasks, RegisterTasks, Upsert, VoteRecord
from wisecrowd.service.store import Store


def vote(task: str, worker: str, label: str, question: str = "mood") -> VoteRecord:
    return VoteRecord(question, task, worker, label)


def read_votes(store: Store, question: str = "mood") -> dict[tuple[str, str], str]:
    """Return the label of each (task, worker), by name."""
    words = store.vocabularies[question]
    stored = store.votes_on(words.code, range(len(words.tasks)))
    return {
        (words.tasks.names[task], words.workers.names[worker]): words.classes.names[label]
        for task, cast in stored.items()
        for worker, label in cast.items()
    }


def test_repeated_event_is_unchanged(database: str) -> None:
    store = Store(database)
    events = [Upsert("id:1", (vote("t1", "ann", "good"),)), Upsert("id:2", (vote("t1", "bob", "bad"),))]
    assert store.apply(events).outcomes == ["new", "new"]
    assert store.apply(events).outcomes == ["unchanged", "unchanged"]
    assert store.apply([events[0], events[0], Upsert("id:3", events[0].records)]).outcomes == [
        "unchanged",
        "unchanged",
        "new",
    ]
    assert read_votes(store) == {("t1", "ann"): "good", ("t1", "bob"): "bad"}
    store.close()


def test_source_can_be_changed_and_deleted(database: str) -> None:
    store = Store(database)
    store.apply([Upsert("a:1", (vote("t1", "ann", "good"), vote("t1", "ann", "food", "topic")))])
    change = store.apply([Upsert("a:1", (vote("t1", "ann", "bad"),))])
    assert change.outcomes == ["changed"]
    assert change.altered == {(0, 0), (1, 0)}
    assert read_votes(store) == {("t1", "ann"): "bad"}
    assert read_votes(store, "topic") == {}
    assert store.apply([Upsert("a:1", ())]).outcomes == ["changed"]
    assert store.apply([Upsert("a:1", ())]).outcomes == ["unchanged"]
    assert read_votes(store) == {}
    store.close()


def test_last_event_of_a_batch_counts(database: str) -> None:
    store = Store(database)
    first, second = (Upsert("id:1", (vote("t1", "ann", label),)) for label in ("good", "bad"))
    assert store.apply([first, second, Upsert("id:1", ()), second]).outcomes == ["new", "changed", "changed", "new"]
    assert read_votes(store) == {("t1", "ann"): "bad"}
    store.close()


def test_deleting_the_last_vote_restores_the_previous_one(database: str) -> None:
    store = Store(database)
    store.apply([Upsert("id:1", (vote("t1", "ann", "good"),))])
    store.apply([Upsert("id:2", (vote("t1", "ann", "bad"),))])
    assert read_votes(store) == {("t1", "ann"): "bad"}
    store.apply([Upsert("id:2", ())])
    assert read_votes(store) == {("t1", "ann"): "good"}
    store.close()


def test_deleting_tasks_deletes_their_votes(database: str) -> None:
    store = Store(database)
    store.apply([
        RegisterTasks("12:mood", ("t1", "t2")),
        Upsert("a:1", (vote("t1", "ann", "good", "12:mood"), vote("t1", "ann", "good", "13:mood"))),
        Upsert("a:2", (vote("t2", "ann", "good", "12:mood"),)),
    ])  # fmt: skip
    assert store.apply([DeleteTasks("12:", ("t1", "nowhere"))]).outcomes == ["changed"]
    assert read_votes(store, "12:mood") == {("t2", "ann"): "good"}
    assert read_votes(store, "13:mood") == {("t1", "ann"): "good"}
    assert store.apply([DeleteTasks("12:", ("t1",))]).outcomes == ["unchanged"]
    store.close()


def test_failed_transaction_stores_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(database)
    store.apply([Upsert("id:1", (vote("t1", "ann", "good"),))])

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(module._Transaction, "_write", broken)
        with pytest.raises(OSError, match="full"):
            store.apply([Upsert("id:2", (vote("t2", "bob", "bad"), vote("t2", "bob", "bad", "other")))])
    assert list(store.vocabularies) == ["mood"]
    assert store.vocabularies["mood"].tasks.names == ["t1"]
    assert store.apply([Upsert("id:2", (vote("t3", "cy", "bad"),))]).outcomes == ["new"]
    store.close()
    again = Store(database)
    assert read_votes(again) == {("t1", "ann"): "good", ("t3", "cy"): "bad"}
    assert again.vocabularies["mood"].tasks.names == ["t1", "t3"]
    again.close()


def test_records_are_there_after_reopening(database: str) -> None:
    store = Store(database)
    hostile = "a\tb\n'\"; DROP TABLE records; -- 😀 \u202e"
    store.apply(
        [
            Upsert(hostile, (VoteRecord(hostile, hostile, hostile, hostile, 12.5),)),
            Upsert("g", (VoteRecord(hostile, "t", None, "x"),)),
        ]
    )
    store.close()
    again = Store(database)
    words = again.vocabularies[hostile]
    assert (words.tasks.names, words.workers.names, words.classes.names) == ([hostile, "t"], [hostile], [hostile, "x"])
    standing = read_records(again.engine, 0)
    assert (standing.votes.task.tolist(), standing.votes.time.tolist(), standing.gold) == ([0], [12.5], {1: 1})
    assert again.all_gold(0) == {1: 1}
    again.close()


def test_records_are_read_again_only_after_a_change(database: str) -> None:
    store = Store(database)
    other = VoteRecord("other", "t", "ann", "x")
    store.apply([Upsert(f"id:{n}", (vote(f"t{n}", "ann", "good"),)) for n in range(5)])
    before = read_records(store.engine, 0)
    assert read_records(store.engine, 0, before) is before
    store.apply(
        [Upsert("id:5", (vote("t5", "ann", "bad"), other)), Upsert("gold", (VoteRecord("mood", "t1", None, "bad"),))]
    )
    more = read_records(store.engine, 0, before)
    assert (more.task.tolist(), more.number.tolist()) == ([0, 1, 2, 3, 4, 5, 1], [1, 2, 3, 4, 5, 6, 8])
    assert more.gold == {1: 1}
    for change in (
        [Upsert("id:2", ())],  # taken back
        [Upsert("id:3", (vote("t3", "ann", "bad"),))],  # says something else
        [Upsert("id:5", (vote("t5", "ann", "bad"),))],  # another question of the same source is gone
        [DeleteTasks("", ("t0",))],
        [Upsert("id:1", ()), Upsert("id:9", (vote("t9", "ann", "good"),))],  # as many as there were
    ):
        store.apply(change)
        more, whole = read_records(store.engine, 0, more), read_records(store.engine, 0)
        for name in ("task", "worker", "label", "number"):
            assert getattr(more, name).tolist() == getattr(whole, name).tolist()
    store.close()


def test_second_writer_is_refused(database: str) -> None:
    store = Store(database)
    with pytest.raises(InputError, match="another wisecrowd serve"):
        Store(database)
    store.close()
    Store(database).close()


def test_other_files_are_not_changed(tmp_path: Path, database: str) -> None:
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(InputError, match="database of another program"):
        Store(database)
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear all,\n" * 200)
    with pytest.raises(InputError, match="is not a database and was not changed"):
        Store(str(letter))
    assert letter.read_text() == "Dear all,\n" * 200
    with pytest.raises(InputError, match="does not exist; create it first"):
        Store(str(tmp_path / "no" / "such" / "folder" / "votes.db"))


def test_other_schema_version_is_refused(database: str) -> None:
    Store(database).close()
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE about SET version = 99")
    with pytest.raises(InputError, match="a later version"):
        Store(database)


def test_full_disk(database: str) -> None:
    store = Store(database)
    store.apply([Upsert("id:1", (vote("t1", "ann", "good"),))])
    with store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        connection.commit()
    many = [Upsert(f"id:{n}", (vote(f"{'t' * 500} {n}", "ann", "good"),)) for n in range(2, 200)]
    with pytest.raises(Exception, match="full"):
        store.apply(many)
    assert read_votes(store) == {("t1", "ann"): "good"}
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        connection.commit()
    assert store.apply(many).outcomes == ["new"] * len(many)
    store.close()


def test_second_writer_is_refused_through_links(tmp_path: Path, database: str) -> None:
    store = Store(database)
    (tmp_path / "link.db").symlink_to(database)
    with pytest.raises(InputError, match="another wisecrowd serve"):
        Store(str(tmp_path / "link.db"))
    store.close()
    os.link(database, tmp_path / "hard.db")
    with pytest.raises(InputError, match="hard links"):
        Store(str(tmp_path / "hard.db"))
    with pytest.raises(InputError, match="is a folder"):
        Store(str(tmp_path))
    assert not list(tmp_path.glob("hard.db.*"))


def test_only_the_owner_can_read_the_database(database: str) -> None:
    Store(database).close()
    assert Path(database).stat().st_mode & 0o077 == 0


def test_number_of_classes_is_limited(database: str) -> None:
    store = Store(database, max_classes=2)
    store.apply([Upsert("id:1", (vote("t1", "ann", "good"),)), Upsert("id:2", (vote("t1", "bob", "bad"),))])
    for record in (vote("t2", "ann", "free text"), VoteRecord("mood", "t2", None, "gold text")):
        with pytest.raises(module.TooManyClasses, match="'mood' has 2 classes, the maximum"):
            store.apply([Upsert("id:3", (record,))])
    assert store.vocabularies["mood"].tasks.names == ["t1"]
    assert store.apply([Upsert("id:3", (vote("t2", "ann", "bad"), vote("t2", "ann", "x", "other")))]).outcomes == [
        "new"
    ]
    store.close()
    with pytest.raises(InputError, match=r"has 2 classes, more than 1; .*--max-classes"):
        Store(database, max_classes=1)
    Store(database, max_classes=2).close()
