"""Tables of benchmarks as text and as Markdown pages."""

from __future__ import annotations

from typing import Any

import pytest

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.data import SimulatedDataset, StoredDataset
from wisecrowd.bench.entries import Aggregate, UnavailableMethod
from wisecrowd.bench.render import PAGE_WIDTH, describe_run, describe_seeds, render_markdown, render_text


def row(entry: str, data: str = "birds", **more: Any) -> dict[str, Any]:
    plain = {"entry": entry, "data": data, "seed": 0, "status": "ok", "seconds": 0.5, "figures": {"accuracy": 0.5}}
    return plain | {"finished": "2025-01-02T10:00:00", "machine": "a computer", "wisecrowd": "1"} | more


def make(n_entries: int = 2, **more: Any) -> Benchmark:
    entries = {f"a method called {number}": UnavailableMethod("") for number in range(n_entries)}
    data = {"birds": StoredDataset("b", "keep"), "dogs": StoredDataset("d", "keep")}
    return Benchmark(**{"title": "A table", "name": "small", "entries": entries, "data": data} | more)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    benchmark = make(12, rows="data", notes={"birds": "a long note " * 20})
    lines = render_text(benchmark, [row(title) for title in benchmark.entries], width=width).splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(lines)
    assert all(title in shown for title in benchmark.entries)


def test_markdown_is_a_page_with_everything() -> None:
    benchmark = make(
        published={("a method called 0", "birds", "accuracy"): 0.45},
        remarks=("Read this first.",),
        references=("dawid1979maximum",),
        findings=lambda rows: (f"There are {len(rows)} rows.",),
    )
    refused = row("a method called 1", status="declined", reason="only two classes")
    lines = render_markdown(benchmark, [row("a method called 0"), refused]).splitlines()
    assert lines[0] == "# A table"
    assert "Read this first." in lines
    assert "Published figures: Dawid and Skene 1979." in lines
    assert "wisecrowd bench run small" in lines
    assert "| method | birds<br>paper | ours | diff. | seconds |" in lines
    assert "| a method called 0 | .450 | .500 | +.050 | 0.50 |" in lines
    assert "1. only two classes" in lines
    assert "There are 2 rows." in lines
    assert lines[-1].startswith("1 answers (1 declined) in 1.00 seconds of computing; run 2025-01-02; with wisecrowd 1")


def test_wide_tables_of_a_page_are_split() -> None:
    benchmark = make(12, rows="data")
    page = render_markdown(benchmark, [row(title) for title in benchmark.entries])
    tables = [line for line in page.splitlines() if line.startswith("| data |")]
    assert len(tables) > 1
    assert all(len(line.replace("|", "").strip()) <= PAGE_WIDTH for line in tables)


def test_nothing_yet() -> None:
    assert "Nothing has been run yet." in render_markdown(make(), [])
    assert describe_run([]) == "Nothing has been run yet."


def test_a_run_is_described_in_one_sentence() -> None:
    rows = [
        row("a", converged=False, python="3.11", numpy="2.0"),
        row("b", converged=True, finished="2025-03-01", machine="another", numpy="2.1"),
        row("c", status="failed", seconds=9.0),
        row("d", status="too slow", seconds=90.0),
    ]
    assert describe_run(rows) == (
        "2 answers (1 failed, 1 too slow) in 100 seconds of computing; 1 of them ended at their limit of iterations; "
        "run 2025-01-02 to 2025-03-01; with wisecrowd 1, python 3.11, numpy 2.0/2.1; on a computer and another."
    )


def test_seeds_and_cells_that_were_not_run_are_named() -> None:
    sources = {name: SimulatedDataset({"n_tasks": 10, "n_workers": size}) for name, size in (("one", 3), ("two", 4))}
    entries = {"MV": Aggregate("majority-vote"), "DS": Aggregate("dawid-skene"), "GLAD": Aggregate("glad")}
    made = Benchmark(title="", entries=entries, data=sources, seeds=2)

    def rows(*cells: tuple[str, str, int]) -> list[dict[str, object]]:
        return [{"entry": entry, "data": data, "seed": seed} for entry, data, seed in cells]

    assert describe_seeds(made, []) == ""
    assert describe_seeds(made, rows(*made.cells)) == "Seeds: 2 per cell."
    some = [("MV", "one", 0), ("MV", "one", 1), ("MV", "two", 0), ("DS", "one", 0), ("DS", "two", 0)]
    described = describe_seeds(made, rows(*some))
    assert described == "Seeds: 2 per cell. DS; MV on two 1 of 2. Not run: GLAD."
