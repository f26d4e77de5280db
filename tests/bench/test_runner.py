from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import pytest

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.cells import list_cells
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import Aggregate
from wisecrowd.bench.runner import run_cells
from wisecrowd.errors import UsageError


def run(entries: dict[str, Any], **options: Any) -> dict[str, dict[str, Any]]:
    made = Benchmark(title="", entries=entries, data={"data": SimulatedDataset({"n_tasks": 30})})
    cells, _ = list_cells(made)
    return {cell.entry: row for cell, row in run_cells(cells, **options)}


@pytest.mark.slow
def test_whatever_happens_to_one_the_others_answer(odd: ModuleType) -> None:
    rows = run(
        {
            "dies": odd.die,
            "refuses": odd.refuse,
            "fails": odd.fail,
            "scores itself": odd.figures,
            "aggregates": Aggregate("majority-vote"),
            "unheard of": Aggregate("no-such-method"),
            "lacks something": odd.lack,
            "gives nonsense": odd.nonsense,
        }
    )
    assert {title: row["status"] for title, row in rows.items()} == {
        "dies": "failed", "refuses": "declined", "fails": "failed", "scores itself": "ok", "aggregates": "ok",
        "unheard of": "declined", "lacks something": "not installed", "gives nonsense": "failed",
    }  # fmt: skip
    assert "killed" in rows["dies"]["reason"]
    assert rows["refuses"]["reason"] == "not with these data"
    assert rows["fails"]["reason"] == "RuntimeError: a bug"
    assert "odd_entries.py" in rows["fails"]["traceback"]
    assert rows["scores itself"]["figures"] == {"accuracy": 0.25, "nothing": None}
    assert 0 < rows["aggregates"]["figures"]["accuracy"] <= 1
    assert rows["aggregates"]["wisecrowd"]
    assert rows["aggregates"]["machine"]


@pytest.mark.slow
def test_what_takes_too_long_is_stopped(odd: ModuleType) -> None:
    started = time.monotonic()
    rows = run({"hangs": odd.hang, "answers": odd.figures}, jobs=2, time_limit=10)
    assert time.monotonic() - started < 60
    assert rows["hangs"]["status"] == "too slow"
    assert rows["hangs"]["reason"] == "stopped after 10 seconds"
    assert rows["answers"]["status"] == "ok"


def test_an_entry_that_cannot_travel_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be sent"):
        run({"nameless": lambda dataset, seed: {"accuracy": 1.0}})


def test_no_jobs_is_refused() -> None:
    with pytest.raises(UsageError, match="jobs must be 1 or more"):
        list(run_cells([], jobs=0))
