"""Cells of a benchmark, and their rows."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import Any

import pytest

from wisecrowd.bench import cells as module
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.cells import DatasetCache, describe_environment, list_cells, make_row, run_cell
from wisecrowd.bench.data import SimulatedDataset, StoredDataset
from wisecrowd.bench.entries import Aggregate
from wisecrowd.errors import DataWarning, InputError, MissingExtra, NotConverged

SMALL, LARGE = SimulatedDataset({"n_tasks": 10, "n_workers": 4}), SimulatedDataset({"n_tasks": 30, "n_workers": 4})


def constant(dataset: Any, seed: int) -> dict[str, float]:  # noqa: ARG001
    return {"accuracy": 0.5, "undefined": float("nan")}


def make(entries: dict[str, Any] | None = None, data: dict[str, Any] | None = None, **more: Any) -> Benchmark:
    return Benchmark(title="", entries=entries or {"half": constant}, data=data or {"small": SMALL}, **more)


def run(entry: Any) -> dict[str, Any]:
    (cell,) = list_cells(make({"entry": entry}))[0]
    return run_cell(cell, DatasetCache())


class TestList:
    def test_large_data_come_first(self) -> None:
        cells, absent = list_cells(make(data={"small": SMALL, "large": LARGE}, seeds=2))
        assert absent == {}
        assert cells[0].data == "large"
        assert {cell.key for cell in cells} == {("half", data, seed) for data in ("small", "large") for seed in (0, 1)}
        assert str(cells[0]) == "half on large"
        assert str(next(cell for cell in cells if cell.seed)).endswith(", seed 1")

    def test_data_that_are_not_here_are_left_out_with_a_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("WISECROWD_DATA", raising=False)
        cells, absent = list_cells(make(data={"small": SMALL, "absent": StoredDataset("no-such-dataset", "keep")}))
        assert {cell.data for cell in cells} == {"small"}
        assert list(absent) == ["absent"]
        assert absent["absent"]

    def test_a_digest_follows_entry_data_seed_and_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def digest(entry: Any = constant, data: Any = SMALL) -> str:
            return list_cells(make({"x": entry}, {"d": data}))[0][0].digest

        first = digest(Aggregate("majority-vote"))
        assert first == digest(Aggregate("majority-vote"))
        assert first != digest(Aggregate("dawid-skene"))
        assert first != digest(Aggregate("majority-vote"), LARGE)
        seeds = {cell.digest for cell in list_cells(make(seeds=3))[0]}
        assert len(seeds) == 3
        monkeypatch.setattr(module, "SHARED_VERSION", "another")
        assert first != digest(Aggregate("majority-vote"))

    def test_an_entry_that_does_not_exist_is_listed_and_declined(self) -> None:
        assert run(Aggregate("no-such-method"))["status"] == "declined"


class TestCache:
    def test_the_last_dataset_is_kept(self) -> None:
        cache = DatasetCache()
        first = cache.load(SMALL, 0)
        assert cache.load(SMALL, 0) is first
        assert cache.load(SMALL, 1) is not first

    def test_a_seed_does_not_matter_where_data_are_fixed(self) -> None:
        loads = []

        class Fixed(SimulatedDataset):
            is_random = False

            def load(self, seed: int) -> Any:
                loads.append(seed)
                return super().load(seed)

        cache, source = DatasetCache(), Fixed({"n_tasks": 10, "n_workers": 4})
        assert cache.load(source, 0) is cache.load(source, 5)
        assert loads == [0]


class TestRun:
    def test_figures_are_stored_and_undefined_ones_are_null(self) -> None:
        row = run(constant)
        assert row["status"] == "ok"
        assert row["figures"] == {"accuracy": 0.5, "undefined": None}
        assert json.dumps(row, allow_nan=False)

    def test_an_aggregate_is_scored(self) -> None:
        row = run(Aggregate("dawid-skene"))
        assert 0 < row["figures"]["accuracy"] <= 1
        assert row["converged"] is True
        assert row["iterations"] >= 1

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (InputError("no"), "declined"),
            (MissingExtra("learn", "this"), "not installed"),
            (RuntimeError("a bug"), "failed"),
        ],
    )
    def test_errors_have_a_state_and_a_reason(self, error: Exception, status: str) -> None:
        def entry(dataset: Any, seed: int) -> Any:  # noqa: ARG001
            raise error

        row = run(entry)
        assert row["status"] == status
        assert str(error) in row["reason"]
        assert ("traceback" in row) == (status == "failed")

    def test_warnings_are_kept_and_an_early_end_is_marked(self) -> None:
        def entry(dataset: Any, seed: int) -> dict[str, float]:  # noqa: ARG001
            warnings.warn("stopped early", NotConverged, stacklevel=1)
            warnings.warn("odd votes", DataWarning, stacklevel=1)
            warnings.warn("odd votes", DataWarning, stacklevel=1)
            return {"accuracy": 1.0}

        row = run(entry)
        assert row["converged"] is False
        assert row["warnings"] == "odd votes"


def test_a_row_names_versions_machine_and_time() -> None:
    (cell,) = list_cells(make())[0]
    row = make_row(replace(cell, seed=3), status="ok", seconds=1.23456)
    assert (row["entry"], row["data"], row["seed"], row["seconds"]) == ("half", "small", 3, 1.2346)
    assert {"wisecrowd", "python", "numpy", "machine"} <= row.keys()
    assert row["machine"] == describe_environment()["machine"]
    assert row["finished"].endswith("+00:00")
