"""Entries that misbehave, in a module that other processes can import."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ENTRIES = '''
"""Odd entries on a small simulated crowd."""

import os
import pathlib
import signal
import time

from wisecrowd.bench.benchmark import Benchmark, parse_published_table
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import Aggregate
from wisecrowd.errors import InputError, MissingExtra

HERE = pathlib.Path(__file__).parent


def figures(dataset, seed):
    with (HERE / "calls").open("a") as file:
        file.write(f"{dataset.crowd.n_tasks} {seed}\\n")
    return {"accuracy": 0.25 + seed / 4, "nothing": float("nan")}


def nothing_equal(dataset, seed):
    return {"accuracy": 0.99}


def refuse(dataset, seed):
    raise InputError("not with these data")


def lack(dataset, seed):
    raise MissingExtra("learn", "this")


def nonsense(dataset, seed):
    return "labels, perhaps"


def fail(dataset, seed):
    raise RuntimeError("a bug")


def die(dataset, seed):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(dataset, seed):
    time.sleep(600)


def slow(dataset, seed):
    time.sleep(0.5)
    return figures(dataset, seed)


def benchmark():
    return Benchmark(
        title="Odd entries",
        entries={"one": figures, "two": slow, "MV": Aggregate("majority-vote")},
        data={"small": SimulatedDataset({"n_tasks": 20}), "large": SimulatedDataset({"n_tasks": 40})},
        published=parse_published_table("small large\\none 0.2 .\\nMV . 0.9"),
        seeds=2,
    )
'''


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module ``odd_entries``, whose folder is ``tmp_path``."""
    (tmp_path / "odd_entries.py").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("odd_entries")
    del sys.modules["odd_entries"]
