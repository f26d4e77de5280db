"""Agreement of pairs of workers in the report."""

from __future__ import annotations

from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.report import agreement as module
from wisecrowd.report.agreement import build_section
from wisecrowd.report.workers import select_workers


@pytest.fixture(scope="module")
def diagnosis() -> Any:
    kinds = ["noisy(0.8)"] * 25 + ["spammer"]
    return wc.diagnose_crowd(wc.simulate_crowd(200, workers=kinds, votes_per_task=8, random_state=0).crowd)


def test_cells_equal_a_recount(diagnosis: Any) -> None:
    section = build_section(diagnosis, select_workers(diagnosis))
    assert section is not None
    assert len(section["names"]) == module.MAX_WORKERS
    assert section["names"][0] == "w25"  # flagged workers come first
    votes = diagnosis.crowd.to_frame().pivot(index="task", columns="worker", values="label")
    first, second = section["names"][:2]
    both = votes[[first, second]].dropna()
    cell = section["heat"]["cells"][0][1]
    assert cell["share"] == pytest.approx((both[first] == both[second]).mean())
    assert cell["title"].startswith("90 % interval ")
    assert cell["title"].endswith(f"{len(both)} common tasks")
    assert "title" not in section["heat"]["cells"][0][0]


def test_few_common_tasks_have_no_matrix(diagnosis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = select_workers(diagnosis)
    monkeypatch.setattr(module, "MIN_COMMON_TASKS", 500)
    assert build_section(diagnosis, shown) is None
    two = wc.diagnose_crowd(wc.simulate_crowd(20, n_workers=2, votes_per_task=2, random_state=0).crowd)
    assert build_section(two, select_workers(two)) is None


def test_the_page_shows_the_matrix(diagnosis: Any) -> None:
    html = report.build(diagnosis.crowd, compare=False).html
    assert '<section id="agreement"' in html
    assert 'aria-label="Agreement of workers"' in html
