from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wisecrowd.bench.cells import Cell
from wisecrowd.bench.confirmation import choose_sample, find_confirmed, has_equal_figures, measure_spread
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.session import Session

SECONDS = {"small": 1.0, "middle": 2.0, "large": 3.0}


def cells(entries: str = "ab", data: tuple[str, ...] = ("small", "middle", "large"), n_seeds: int = 2) -> list[Cell]:
    return [
        Cell(entry, name, seed, lambda dataset, seed: {}, SimulatedDataset({}), digest="new", size=1)
        for entry in entries
        for name in data
        for seed in range(n_seeds)
    ]


def test_a_sample_has_every_entry_and_every_dataset_once() -> None:
    sample = choose_sample(cells(), lambda cell: SECONDS[cell.data], n_per_entry=1)
    assert [cell.key for cell in sample] == [
        ("a", "small", 0),
        ("b", "small", 0),
        ("a", "middle", 0),
        ("a", "large", 0),
    ]
    sample = choose_sample(cells(), lambda cell: SECONDS[cell.data], n_per_entry=5)
    assert len(sample) == 6


@pytest.mark.parametrize(
    ("stored", "new", "is_equal"),
    [
        ({"status": "ok", "figures": {"a": 0.5}}, {"status": "ok", "figures": {"a": 0.5 + 1e-9}}, True),
        ({"status": "ok", "figures": {"a": 0.5}}, {"status": "ok", "figures": {"a": 0.5001}}, False),
        ({"status": "ok", "figures": {"a": 0.5}}, {"status": "ok", "figures": {"a": 0.5, "b": 1.0}}, False),
        ({"status": "ok", "figures": {"a": 0.5}}, {"status": "ok", "figures": {"a": 0.5, "b": None}}, True),
        ({"status": "ok", "figures": {"MB": 0.5}}, {"status": "ok", "figures": {"MB": 9.0}}, True),
        ({"status": "ok", "figures": {"a": 0.5}}, {"status": "declined"}, False),
        ({"status": "declined"}, {"status": "declined"}, True),
    ],
)
def test_figures_are_compared_except_for_costs(stored: Any, new: Any, is_equal: bool) -> None:
    assert has_equal_figures(stored, new) is is_equal


def test_the_spread_over_seeds_is_allowed_and_no_more() -> None:
    rows = [{"status": "ok", "figures": {"a": value, "MB": 1.0}} for value in (0.80, 0.82, 0.84)]
    spread = measure_spread(rows)
    assert spread == {"a": pytest.approx(0.02)}
    for value, is_equal in ((0.87, False), (0.85, True), (0.75, True), (0.73, False)):
        assert has_equal_figures(rows[0], {"status": "ok", "figures": {"a": value, "MB": 3.0}}, spread) is is_equal


def test_a_difference_confirms_neither_its_entry_nor_its_dataset() -> None:
    equal = {("a", "small", 0): True, ("a", "middle", 0): True, ("b", "small", 0): True, ("b", "large", 0): False}
    confirmed = {cell.key for cell in find_confirmed(cells(), equal)}
    assert confirmed == {("a", "small", 1), ("a", "middle", 1)}  # large and b differ somewhere


def test_what_the_sample_does_not_contain_stays_outdated() -> None:
    equal = {("a", "small", 0): True}
    assert {cell.key for cell in find_confirmed(cells(), equal)} == {("a", "small", 1)}


def _outdate(session: Session) -> None:
    with session._results.open_journal():
        for row in session.rows:
            session._results.add(row | {"digest": "of other code"})


@pytest.mark.slow
def test_a_session_keeps_what_its_sample_confirms(odd: ModuleType, tmp_path: Path) -> None:
    benchmark = replace(odd.benchmark(), name="odd")
    list(Session(benchmark, tmp_path, only=["one", "MV"]).run(jobs=1))
    before = {(row["entry"], row["data"], row["seed"]): row["figures"] for row in Session(benchmark, tmp_path).rows}
    _outdate(Session(benchmark, tmp_path))
    session = Session(benchmark, tmp_path, only=["one", "MV"])
    assert len(session.outdated) == 8
    sample = session.choose_sample(1)
    assert all(is_equal for _, _, is_equal in session.confirm(sample, jobs=1))
    after = Session(benchmark, tmp_path, only=["one", "MV"])
    assert after.todo == []
    assert {(row["entry"], row["data"], row["seed"]): row["figures"] for row in after.rows} == before
    assert sum("confirmed" in row for row in after.rows) == 8 - len(sample)
    assert f"{8 - len(sample)} of them confirmed after a change of code" in after.describe_run()


@pytest.mark.slow
def test_a_session_keeps_results_outdated_whose_sample_differs(odd: ModuleType, tmp_path: Path) -> None:
    benchmark = replace(odd.benchmark(), name="odd")
    list(Session(benchmark, tmp_path, only=["one", "MV"]).run(jobs=1))
    _outdate(Session(benchmark, tmp_path))
    changed = replace(benchmark, entries=dict(benchmark.entries) | {"one": odd.nothing_equal})
    session = Session(changed, tmp_path, only=["one", "MV"])
    answers = list(session.confirm(session.choose_sample(2), jobs=1))
    assert {cell.entry for cell, _, is_equal in answers if not is_equal} == {"one"}
    outdated = Session(changed, tmp_path, only=["one", "MV"]).outdated
    assert sorted(cell.key[:2] for cell in outdated if cell.entry == "one") == [("one", "large"), ("one", "small")]
