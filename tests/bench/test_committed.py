"""The results in the repository are complete, explained, and shown as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.bench import find_benchmark, list_benchmarks
from wisecrowd.bench.cells import FAILED
from wisecrowd.bench.render import describe_seeds
from wisecrowd.bench.session import Session
from wisecrowd.bench.table import BenchmarkScores

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"

#: Differences from a paper above this need a note.
SMALL = 0.01


@pytest.fixture(scope="module", params=list_benchmarks())
def session(request: pytest.FixtureRequest) -> Session:
    if not (RESULTS / f"{request.param}.parquet").exists():
        pytest.skip(
            f"no results of {request.param} are kept; wisecrowd bench run {request.param} -o benchmarks/results"
        )
    return Session(find_benchmark(request.param), RESULTS)


def test_every_benchmark_has_been_run_without_failures(session: Session) -> None:
    rows = session.rows
    assert rows
    assert [row["reason"] for row in rows if row["status"] == FAILED] == []
    assert session.surplus == []


def test_the_page_names_what_was_not_run(session: Session) -> None:
    if session.benchmark.data_at_hand:
        pytest.skip("this table is of the data on the machine")
    run = {(row["entry"], row["data"], row["seed"]) for row in session.rows}
    missing = [cell for cell in session.benchmark.cells if cell not in run]
    page = (RESULTS / f"{session.benchmark.name}.md").read_text(encoding="utf-8")
    assert describe_seeds(session.benchmark, session.rows) in page
    assert bool(missing) == (" of " in page.split("Seeds: ")[-1].splitlines()[0] or "Not run: " in page)


def test_every_difference_from_a_paper_is_explained(session: Session) -> None:
    benchmark = session.benchmark
    scores = BenchmarkScores(benchmark, session.rows)
    unexplained = [
        (entry, data, figure)
        for entry, data, figure in benchmark.published
        if abs(scores.get_cell(entry, data, figure).difference or 0) > SMALL
        and not {entry, data, (entry, data)} & set(benchmark.notes)
    ]
    assert not unexplained


def test_the_page_is_the_table(session: Session) -> None:
    if session.benchmark.data_at_hand and not session.benchmark.data:
        pytest.skip("WISECROWD_DATA is not set, and this table is of the data that it names")
    page = (RESULTS / f"{session.benchmark.name}.md").read_text(encoding="utf-8")
    assert page == session.markdown()
