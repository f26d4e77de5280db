"""The page "What reproduces": complete, with a verdict and a reason in every row."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from wisecrowd.bench import find_benchmark

ROOT = Path(__file__).parents[2]
#: Numbers of tables and figures of the papers.
EXPECTED = {
    "Mena": (range(1, 5), range(1, 4)),
    "Xu": (range(1, 4), range(1, 6)),
    "Zhang et al.": (range(1, 6), range(1, 5)),
    "Han": (range(1, 3), range(1, 6)),
}


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduction", ROOT / "benchmarks" / "reproduction.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EXPECTED)
def test_every_table_and_figure_is_listed(program: ModuleType, name: str) -> None:
    (paper,) = [paper for paper in program.PAPERS if paper.title.startswith(name)]
    tables, figures = EXPECTED[name]
    for kind, numbers in (("Table", tables), ("Figure", figures)):
        for number in numbers:
            assert any(re.match(rf"{kind} {number}\b", item.title) for item in paper.items), (kind, number)


def test_every_row_has_a_verdict_and_a_known_reason(program: ModuleType) -> None:
    verdicts = {program.YES, program.SHAPE, program.PARTLY, program.NO, program.NOT_RUN, program.NOTHING}
    for paper in program.PAPERS:
        for item in paper.items:
            assert item.verdict in verdicts
            assert item.why.endswith(".")
            assert "unknown" not in item.why


def test_figures_are_those_of_benchmarks(program: ModuleType) -> None:
    for paper in program.PAPERS:
        for item in paper.items:
            for reference in re.findall(r"\{([^{}]*)\}", item.ours + item.why):
                name, entry, data, figure = reference.split("|")
                benchmark = find_benchmark(name)
                assert entry in benchmark.entries, reference
                assert figure in benchmark.data[data].figures, reference


def test_the_page_has_all_rows(program: ModuleType) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| |", "| ---"))]
    items = [item for paper in program.PAPERS for item in paper.items]
    assert len(rows) == len(items)
    for row, item in zip(rows, items, strict=True):
        assert row.startswith(f"| {item.title} | {item.paper} | ")
        why = re.sub(r"\{([^{}]*)\}", lambda match: program.format_stored(match[1])[0], item.why)
        assert row.endswith(f" | {item.verdict} | {why} |")
