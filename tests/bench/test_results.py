from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd.bench.cells import Cell
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.results import Results
from wisecrowd.errors import InputError, UsageError


def row(entry: str = "MV", seed: int = 0, **more: Any) -> dict[str, Any]:
    plain = {"entry": entry, "data": "birds", "seed": seed, "status": "ok", "seconds": 0.5, "digest": "d1"}
    return plain | {"figures": {"accuracy": 0.75}, "iterations": 3, "converged": True} | more


def declined(**more: Any) -> dict[str, Any]:
    plain = row(status="declined", reason="too many", **more)
    return {key: value for key, value in plain.items() if key not in ("figures", "iterations", "converged")}


def cell(digest: str = "d1") -> Cell:
    return Cell("MV", "birds", 0, len, SimulatedDataset({}), digest, 1)


def stored(folder: Path, *rows: dict[str, Any]) -> Results:
    results = Results(folder, "small")
    with results.open_journal():
        for one in rows:
            results.add(one)
    return Results(folder, "small")


def test_rows_come_back_as_they_went(tmp_path: Path) -> None:
    rows = [row(), row(seed=1, figures={"mae": 2.0}), declined(entry="DS")]
    found = stored(tmp_path, *rows).rows
    assert [found[one["entry"], one["data"], one["seed"]] for one in rows] == rows
    assert len(found) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["small.parquet"]
    table = pd.read_parquet(tmp_path / "small.parquet")
    assert table["figure.accuracy"].dropna().tolist() == [0.75]


def test_a_later_row_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    stored(tmp_path, row())
    again = stored(tmp_path, row(figures={"accuracy": 0.5}))
    assert [one["figures"]["accuracy"] for one in again.rows.values()] == [0.5]


def test_what_a_killed_run_had_written_is_there(tmp_path: Path) -> None:
    stored(tmp_path, row())
    journal = (
        '{"entry": "DS", "data": "birds", "seed": 0, "status": "ok", "seconds": 1, "digest": "d"}\n{"entry": "X", "da'
    )
    (tmp_path / "small.jsonl").write_text(journal)
    assert {key[0] for key in Results(tmp_path, "small").rows} == {"MV", "DS"}
    assert {key[0] for key in stored(tmp_path, row(entry="GLAD")).rows} == {"MV", "DS", "GLAD"}


def test_a_row_is_on_the_disk_before_the_next_is_begun(tmp_path: Path) -> None:
    results = Results(tmp_path, "small")
    with results.open_journal():
        results.add(row())
        assert len(Results(tmp_path, "small").rows) == 1


def test_what_is_settled(tmp_path: Path) -> None:
    assert stored(tmp_path / "ok", row()).is_settled(cell(), None)
    assert stored(tmp_path / "declined", declined()).is_settled(cell(), None)
    assert not stored(tmp_path / "changed", row()).is_settled(cell(digest="d2"), None)
    assert not stored(tmp_path / "failed", declined() | {"status": "failed"}).is_settled(cell(), None)
    slow = stored(tmp_path / "slow", declined() | {"status": "too slow", "seconds": 60.0})
    assert slow.is_settled(cell(), 60)
    assert not slow.is_settled(cell(), 90)
    assert not slow.is_settled(cell(), None)


def test_two_runs_do_not_write_at_once(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with Results(tmp_path, "small").open_journal(), pytest.raises(UsageError, match="another run"), \
            Results(tmp_path, "small").open_journal():  # fmt: skip
        pass


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.parquet").write_text("hello")
    with pytest.raises(InputError, match="holds no benchmark results"):
        Results(tmp_path, "small")
