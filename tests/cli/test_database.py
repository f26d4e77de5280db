"""``wisecrowd database``."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = Store(str(tmp_path / "votes.db"))
    store.apply([Upsert(f"id:{n}", (VoteRecord("mood", f"t{n}", "ann", "good"),)) for n in range(10)])
    store.close()
    return tmp_path / "votes.db"


def test_check_and_recover(run: Any, path: Path) -> None:
    result = run("database", "check", path)
    assert result.exit_code == 0
    assert "10 votes on 1 question" in result.stdout
    assert "No problems found." in result.stdout
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET time = 5.0 WHERE number = 3")
    result = run("database", "check", path)
    assert result.exit_code == 1
    assert "1 records are not as they were written" in result.stdout
    result = run("database", "recover", path, "new.db")
    assert result.exit_code == 0
    assert "9 votes on 1 question to new.db" in result.stdout
    assert "1 record or more" in result.stdout
    assert run("database", "check", "new.db").exit_code == 0


def test_bad_usage(run: Any, path: Path) -> None:
    result = run("database", "check", "nowhere.db")
    assert result.exit_code == 1
    assert "there is no file nowhere.db" in result.stderr
    result = run("database", "recover", path, path)
    assert result.exit_code == 2
    assert "exists; choose another name" in result.stderr
    result = run("database", "check", "postgresql://me:se@cret@host/db")
    assert result.exit_code == 2
    assert "percent-encoded" in result.stderr
    assert "cret" not in result.stderr


def test_backup_and_restore(run: Any, path: Path) -> None:
    result = run("database", "backup", path, "backup.db")
    assert result.exit_code == 0
    assert "10 votes on 1 question to backup.db" in result.stdout
    assert run("database", "backup", "backup.db", "restored.db").exit_code == 0
    assert "10 votes on 1 question" in run("database", "check", "restored.db").stdout
    again = run("database", "backup", path, "backup.db")
    assert again.exit_code == 2
    assert "choose another name for the backup" in again.stderr


def test_migrate(run: Any, path: Path, tmp_path: Path) -> None:
    result = run("database", "migrate", path)
    assert result.exit_code == 2
    assert "has the current schema" in result.stderr
    script = Path(__file__).parents[1] / "recorded" / "service" / "schema-1.sql"
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(script.read_text(encoding="utf-8"))
    assert "wisecrowd database migrate old.db" in " ".join(run("serve", "old.db", "--port", "0").stderr.split())
    result = run("database", "migrate", "old.db")
    assert result.exit_code == 0, result.output
    assert "from schema 1 to 4" in result.stdout
    assert "old.db.schema-1" in " ".join(result.stdout.split())
    assert run("database", "check", "old.db").exit_code == 0
