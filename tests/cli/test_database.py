"""``wisecrowd database``."""

from __future__ import annotations

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
