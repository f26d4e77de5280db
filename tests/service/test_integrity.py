"""Damaged databases are refused before anything is changed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.database import read_records
from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.integrity import SequenceFile, check_database
from wisecrowd.service.store import Store

Content = dict[int, tuple[str, str, str | None, str]]
N_VOTES = 900
PAGE = 4096


def read_content(store: Store) -> Content:
    """Return all records by their numbers, with names instead of codes."""
    content: Content = {}
    for name, vocabulary in store.vocabularies.items():
        tasks, workers, classes = (registry.names for registry in vocabulary.kinds[:3])
        records = read_records(store.engine, vocabulary.code)
        for task, worker, label, _, number in zip(*(column.tolist() for column in records.columns), strict=True):
            content[number] = (name, tasks[task], None if worker < 0 else workers[worker], classes[label])
    return content


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Content]:
    """Return a folder with a closed database, and with the files of one whose service was killed, and their content."""
    folder = tmp_path_factory.mktemp("original")
    store = Store(str(folder / "closed.db"))
    rng = random.Random(1)
    for start in range(0, N_VOTES, 30):
        votes = [
            VoteRecord("mood", f"task {n // 5}", f"worker {rng.randrange(9)}", f"class {n % 4}") for n in range(30)
        ]
        store.apply([Upsert(f"id:{start + n}", (vote,)) for n, vote in enumerate(votes)])
    store.apply([Upsert("gold", (VoteRecord("mood", "task 1", None, "class 2"), VoteRecord("other", "t", "w", "x")))])
    for suffix in ("", "-wal", ".sequence"):
        shutil.copy(f"{store.url}{suffix}", f"{folder / 'killed.db'}{suffix}")
    content = read_content(store)
    store.close()
    return folder, content


@pytest.fixture
def copy(original: tuple[Path, Content], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies one of the databases."""

    def copy_database(name: str) -> Path:
        for path in original[0].glob(f"{name}.db*"):
            if not path.name.endswith((".lock", "-shm")):
                shutil.copy(path, tmp_path / path.name.replace(name, "votes"))
        return tmp_path / "votes.db"

    return copy_database


def test_undamaged_databases_are_opened(original: tuple[Path, Content], copy: Callable[[str], Path]) -> None:
    for name in ("closed", "killed"):
        path = copy(name)
        assert check_database(str(path)) == ([], 2, N_VOTES + 2)
        store = Store(str(path))
        assert read_content(store) == original[1]
        store.close()


def damage(data: bytearray, rng: random.Random) -> None:
    """Change a file as broken disks, interrupted copies and careless programs do."""
    page = rng.randrange(max(len(data) // PAGE, 1)) * PAGE
    kind = rng.randrange(5)
    if kind == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[page : page + PAGE] = bytes(PAGE)
    elif kind == 2:
        data[page : page + PAGE] = rng.randbytes(PAGE)
    elif kind == 3:
        del data[rng.randrange(len(data)) :]
    else:
        for _ in range(4):
            data[rng.randrange(len(data))] = rng.randrange(256)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["closed.db", "killed.db", "killed.db-wal"])
def test_no_damage_changes_votes_silently(
    original: tuple[Path, Content], copy: Callable[[str], Path], name: str
) -> None:
    """Forty random damages: the content is the same, or the database is refused with advice and stays as it is."""
    rng = random.Random(name)
    n_refused = 0
    for _ in range(40):
        path = copy(name.split(".")[0])
        damaged = Path(f"{path}{name.partition('.db')[2]}")
        data = bytearray(damaged.read_bytes())
        damage(data, rng)
        damaged.write_bytes(data)
        before = {
            suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal") if Path(f"{path}{suffix}").exists()
        }
        message = ""
        try:
            store = Store(str(path))
        except InputError as error:
            message = str(error)
        if message:
            n_refused += 1
            assert "wisecrowd database recover" in message
            assert {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in before} == before
        else:
            assert read_content(store) == original[1]
            store.close()
        for file in path.parent.glob("votes.db*"):
            file.unlink()
    assert n_refused > 5


def test_missing_log_is_noticed(copy: Callable[[str], Path]) -> None:
    path = copy("killed")
    Path(f"{path}-wal").unlink()
    with pytest.raises(InputError, match=r"ends with transaction 0, but 31 were acknowledged"):
        Store(str(path))


def test_damaged_log_is_noticed_without_the_sequence_file(copy: Callable[[str], Path]) -> None:
    path = copy("killed")
    Path(f"{path}.sequence").unlink()
    log = bytearray(Path(f"{path}-wal").read_bytes())
    log[len(log) // 2] ^= 1
    Path(f"{path}-wal").write_bytes(log)
    with pytest.raises(InputError, match=r"log is damaged, and \d+ transactions cannot be read"):
        Store(str(path))


def test_interrupted_last_transaction_is_no_damage(copy: Callable[[str], Path]) -> None:
    path = copy("killed")
    Path(f"{path}.sequence").write_text("30")  # the last one was not acknowledged
    log = bytearray(Path(f"{path}-wal").read_bytes())
    log[-PAGE] ^= 1
    Path(f"{path}-wal").write_bytes(log)
    store = Store(str(path))
    assert len(read_content(store)) == N_VOTES
    store.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE records SET task = 9999 WHERE number = 5", "refer to task numbers from 0 to 9999"),
        ("UPDATE records SET worker = 'x' WHERE number = 5", "refer to worker numbers"),
        ("UPDATE records SET question = 7 WHERE number = 5", "refer to task numbers"),
        ("UPDATE names SET code = 77 WHERE kind = 2 AND code = 1", "class names of question 0 are not numbered"),
        ("DELETE FROM names WHERE kind = 0 AND code = 3", "task names of question 0 are not numbered"),
        (
            "UPDATE names SET name = 'class 9' WHERE kind = 2 AND code = 1",
            "the name 'class 9' is not as it was written",
        ),
        ("UPDATE questions SET name = 'moot' WHERE code = 0", "name of question 0 is not as it was written"),
        ("DELETE FROM questions WHERE code = 0", "not numbered without gaps"),
        ("DELETE FROM about", "the table about has 0 rows"),
    ],
)
def test_inconsistent_rows_are_refused(copy: Callable[[str], Path], statement: str, message: str) -> None:
    path = copy("closed")
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with pytest.raises(InputError, match=message):
        Store(str(path))
    assert message in " ".join(check_database(str(path))[0])


def test_changed_record_is_refused_when_it_is_loaded(copy: Callable[[str], Path]) -> None:
    path = copy("closed")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET label = (label + 1) % 4 WHERE number IN (5, 9)")
    store = Store(str(path))
    with pytest.raises(InputError, match="2 records are not as they were written, the first one has number 5"):
        Coordinator(store, wc.DawidSkene())
    assert "2 records" in check_database(str(path))[0][0]
    Store(str(path)).close()  # the coordinator has released it


def test_start_is_refused_with_advice(copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from wisecrowd.cli import build_app

    monkeypatch.delenv("WISECROWD_TOKEN", raising=False)
    path = copy("closed")
    data = bytearray(path.read_bytes())
    data[5 * PAGE : 8 * PAGE] = bytes(3 * PAGE)
    path.write_bytes(data)
    result = CliRunner().invoke(build_app(["serve"]), ["serve", str(path), "--port", "0"])
    assert result.exit_code == 1
    assert "is damaged" in result.stderr
    assert "wisecrowd database recover" in result.stderr


def test_sequence_file(tmp_path: Path) -> None:
    file = SequenceFile(tmp_path / "votes.db")
    for number in (7, 123_456, 3):
        file.write(number)
        assert file.read() == number
    file.close()
    for text in ("", "x", "9" * 30, "-4"):
        (tmp_path / "votes.db.sequence").write_text(text)
        assert SequenceFile.peek(tmp_path / "votes.db") == 0


def test_new_database_in_the_place_of_a_deleted_one(copy: Callable[[str], Path]) -> None:
    path = copy("closed")
    path.unlink()
    store = Store(str(path))
    assert store.vocabularies == {}
    store.close()


def test_check_of_other_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        check_database(str(tmp_path / "nowhere.db"))
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(InputError, match="not a database of wisecrowd serve"):
        check_database(str(tmp_path / "other.db"))


def test_check_while_the_service_writes(database: str) -> None:
    store = Store(database)
    store.apply([Upsert("id:1", (VoteRecord("mood", "t1", "ann", "good"),))])
    assert check_database(database) == ([], 1, 1)
    assert store.apply([Upsert("id:2", (VoteRecord("mood", "t1", "bob", "good"),))]).outcomes == ["new"]
    store.close()
