"""The results in the repository are complete, explained, and shown as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.bench import find_benchmark, list_benchmarks
from wisecrowd.bench.cells import FAILED
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
    if session.benchmark.incomplete:
        assert session.benchmark.incomplete in session.benchmark.remarks
        pytest.skip(session.benchmark.incomplete)
    answered = {(row["entry"], row["data"]) for row in rows}
    known = {data for _, data in answered}
    missing = {(entry, data) for entry, data, _ in session.benchmark.cells if data in known} - answered
    assert not missing
    assert session.benchmark.data_at_hand or known == set(session.benchmark.data)


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
