from __future__ import annotations

import pytest

from wisecrowd.base.citations import get_entry as bibtex
from wisecrowd.bench import find_benchmark, list_benchmarks
from wisecrowd.bench.benchmark import Benchmark, parse_published_table
from wisecrowd.bench.data import SimulatedDataset, StoredDataset
from wisecrowd.bench.entries import Aggregate, UnavailableMethod
from wisecrowd.errors import UsageError


def test_a_published_table_is_read_as_it_is_printed() -> None:
    found = parse_published_table("""
             a     b:mae
        X  0.5         .
        Y    .        12
    """)
    assert found == {("X", "a", "accuracy"): 0.5, ("Y", "b", "mae"): 12.0}


def test_a_gap_without_a_dot_is_found() -> None:
    with pytest.raises(UsageError, match="'Y' has 1 values for 2 columns"):
        parse_published_table("a b\nX 1 2\nY 1")


def test_what_uses_no_seed_runs_once() -> None:
    made = Benchmark(
        title="seeds",
        entries={"random": Aggregate("majority-vote"), "plain": UnavailableMethod("never random"), "any": len},
        data={"stored": StoredDataset("x", "keep"), "simulated": SimulatedDataset({})},
        seeds=2,
    )
    runs = [(entry, data) for entry, data, _ in made.cells]
    assert runs.count(("random", "stored")) == runs.count(("any", "stored")) == 2
    assert runs.count(("plain", "stored")) == 1
    assert runs.count(("plain", "simulated")) == 2  # other data with every seed


def test_published_only_leaves_out_what_the_paper_leaves_out() -> None:
    made = Benchmark(
        title="gaps",
        entries={"X": UnavailableMethod("x"), "Y": UnavailableMethod("y")},
        data={"a": StoredDataset("a", "keep"), "b": StoredDataset("b", "keep", ("mae", "rmse"))},
        published=parse_published_table("a b:rmse\nX 1 .\nY . 1"),
        published_only=True,
    )
    assert made.cells == [("X", "a", 0), ("Y", "b", 0)]


@pytest.mark.parametrize("name", list_benchmarks())
def test_every_benchmark_speaks_of_what_it_has(name: str) -> None:
    made = find_benchmark(name)
    assert made.name == name
    for entry, data, figure in made.published:
        assert entry in made.entries
        assert figure in made.data[data].figures
    for key in () if made.data_at_hand else made.notes:  # data at hand depend on the machine
        titles = key if isinstance(key, tuple) else (key,)
        assert all(title in made.entries or title in made.data for title in titles), key
    assert made.incomparable <= set(made.data)
    assert all(bibtex(key) for key in made.references)


@pytest.mark.parametrize("name", list_benchmarks())
def test_every_method_with_its_settings_exists(name: str) -> None:
    for title, entry in find_benchmark(name).entries.items():
        if isinstance(entry, Aggregate):
            assert entry.identity(), title


def test_a_misspelt_name_gets_advice() -> None:
    with pytest.raises(UsageError, match="Did you mean 'crowdkit'"):
        find_benchmark("crowd-kit")


def test_cells_without_a_published_value_run_if_they_are_named() -> None:
    sources = {"one": SimulatedDataset({"n_tasks": 10}), "two": SimulatedDataset({"n_tasks": 20})}
    made = Benchmark(
        title="", entries={"MV": Aggregate("majority-vote"), "DS": Aggregate("dawid-skene")}, data=sources,
        published={("MV", "one", "accuracy"): 0.5}, published_only=True, unpublished=frozenset({("DS", "two")}),
    )  # fmt: skip
    assert [cell[:2] for cell in made.cells] == [("MV", "one"), ("DS", "two")]
