"""Tables of the vote database."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.service.database import (
    DamagedDatabase,
    RecordColumns,
    checksum_record,
    connect,
    mask_password,
    read_records,
)
from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.store import Store


@pytest.mark.parametrize(
    "url",
    [
        "nonsense://x", "://", "mysql://me:secret@host/votes", "postgresql+psycopg://me:secret@host:port/votes",
        "postgresql://me:sec@ret@host/votes", "postgresql+psycopg:/host/votes", "postgresql://[::1/votes",
        "postgresql://host:99999/votes", "postgresql+asyncpg://host/votes", "sqlite://", "postgresql://me:secret/x@y:z/votes",
    ],
)  # fmt: skip
def test_invalid_urls_are_refused_with_advice(url: str) -> None:
    with pytest.raises(UsageError, match="percent-encoded") as refusal:
        connect(url)
    assert "secret" not in str(refusal.value)
    assert "ret@" not in str(refusal.value)


def test_urls_of_postgres_need_no_driver() -> None:
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    for url in ("postgres://me@host/votes", "postgresql://me@host/votes", "postgresql+psycopg://me@host/votes"):
        engine = connect(url)
        assert engine.url.drivername == "postgresql+psycopg"
        engine.dispose()


def test_passwords_are_masked() -> None:
    assert "secret" not in mask_password("postgresql+psycopg://me:secret@host/votes")
    assert "secret" not in mask_password("postgresql+psycopg://me:secret@host:port/votes")


def test_checksums_of_rows_and_columns_agree() -> None:
    rng = np.random.default_rng(0)
    rows = [
        (int(task), None if worker < 0 else int(worker), int(label), None if k % 3 else k / 7, k + 1)
        for k, (task, worker, label) in enumerate(zip(*rng.integers(-1, 2**31 - 1, (3, 200)), strict=True))
    ]
    expected = [checksum_record(number, 5, task, worker, label, time) for task, worker, label, time, number in rows]
    assert RecordColumns.from_rows(rows).checksums(5).tolist() == expected


def test_checksum_changes_with_every_bit() -> None:
    row: dict[str, Any] = {"number": 3, "question": 1, "task": 100, "worker": 7, "label": 2, "time": 1.5}
    checksum = checksum_record(**row)
    for name in ("number", "question", "task", "worker", "label"):
        for bit in range(31):
            assert checksum_record(**{**row, name: row[name] ^ (1 << bit)}) != checksum
    assert checksum_record(**{**row, "time": None}) != checksum
    assert checksum_record(**{**row, "worker": None}) != checksum


def test_records_with_impossible_values_are_damaged(database: str) -> None:
    store = Store(database)
    store.apply([Upsert("id:1", (VoteRecord("mood", "t1", "ann", "good"),))])
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE records SET task = 123456789012")
    with pytest.raises(DamagedDatabase, match="no number"):
        read_records(store.engine, 0)
    store.close()
