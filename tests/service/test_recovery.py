"""Recovery of damaged databases."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path

import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.integrity import check_database
from wisecrowd.service.recovery import recover_database
from wisecrowd.service.store import Store

PAGE = 4096
N_VOTES = 1_000


def read_votes(path: Path) -> dict[str, tuple[str, str, str | None, str, float | None]]:
    """Return all records by their sources."""
    store = Store(str(path))
    votes = {}
    for name, vocabulary in store.vocabularies.items():
        tasks, workers, classes = (registry.names for registry in vocabulary.kinds[:3])
        for _, source, task, worker, label, time in store.list_records(vocabulary.code, 0, 10**6):
            worker_name = None if worker is None else workers[worker]
            votes[source] = (name, tasks[task], worker_name, classes[label], time)
    store.close()
    return votes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "votes.db"
    store = Store(str(path))
    rng = random.Random(0)
    for n in range(0, N_VOTES, 100):
        votes = [
            VoteRecord("mood", f"t{k // 4}", f"w{k % 4}", f"c{rng.randrange(3)}", k / 8) for k in range(n, n + 100)
        ]
        store.apply([Upsert(f"id:{n + k}", (vote,)) for k, vote in enumerate(votes)])
    store.apply([Upsert("gold", (VoteRecord("topic", "t0", None, "x"),), "created in May")])
    store.close()
    return path


def test_undamaged_database_is_copied(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    result = recover_database(path, tmp_path / "new.db")
    assert (result.n_questions, result.n_records, result.n_lost) == (2, N_VOTES + 1, 0)
    assert path.read_bytes() == before
    assert read_votes(tmp_path / "new.db") == read_votes(path)
    assert check_database(str(tmp_path / "new.db"))[0] == []
    with contextlib.closing(Store(str(tmp_path / "new.db"))) as store:
        assert store.vocabularies["topic"].origins.names == ["created in May"]


@pytest.mark.slow
def test_other_pages_survive(path: Path, tmp_path: Path) -> None:
    """Every page in turn is overwritten; what is recovered is right, and most of it is recovered."""
    expected = read_votes(path)
    original = path.read_bytes()
    shares = []
    for page in range(1, len(original) // PAGE):
        data = bytearray(original)
        data[page * PAGE : (page + 1) * PAGE] = random.Random(page).randbytes(PAGE)
        path.write_bytes(data)
        target = tmp_path / f"new {page}.db"
        with contextlib.suppress(InputError):  # nothing can be read without the list of tables
            recover_database(path, target)
            recovered = read_votes(target)
            # The name of a question may be lost without its votes.
            assert all(vote[1:] == expected[source][1:] for source, vote in recovered.items())
            shares.append(len(recovered) / len(expected))
    assert sorted(shares)[len(shares) // 2] > 0.9
    assert len(shares) > 0.8 * (len(original) // PAGE - 1)


def test_changed_rows_are_left_out(path: Path, tmp_path: Path) -> None:
    expected = read_votes(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET label = (label + 1) % 3 WHERE number BETWEEN 11 AND 20")
        connection.execute("UPDATE names SET name = 'forged' WHERE kind = 0 AND code = 100")
        connection.execute("UPDATE questions SET name = 'forged' WHERE code = 1")
    result = recover_database(path, tmp_path / "new.db")
    assert (result.n_records, result.n_lost) == (N_VOTES + 1 - 14, 14)
    recovered = read_votes(tmp_path / "new.db")
    assert recovered.pop("gold") == ("question 1", "t0", None, "x", None)
    del expected["gold"]
    assert recovered.items() < expected.items()
    store = Store(str(tmp_path / "new.db"))
    lost = next(source for source in expected if source not in recovered)
    question, task, worker, label, time = expected[lost]
    assert store.apply([Upsert(lost, (VoteRecord(question, task, worker, label, time),))]).outcomes == ["new"]
    store.close()


@pytest.mark.slow
def test_refused_recoveries(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists; choose another name"):
        recover_database(path, path)
    with pytest.raises(InputError, match="there is no file"):
        recover_database(tmp_path / "nowhere.db", tmp_path / "new.db")
    (tmp_path / "noise.db").write_bytes(random.Random(0).randbytes(3 * PAGE))
    with pytest.raises(InputError, match="nothing can be read"):
        recover_database(tmp_path / "noise.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
