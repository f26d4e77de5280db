"""Benchmark of all learners."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd.base.registry import methods
from wisecrowd.bench.papers._learner_entries import (
    TASKS,
    TASKS_NLL,
    TEST,
    FitAggregator,
    FitLearner,
)
from wisecrowd.bench.papers.all_learners import ENTRIES, benchmark, compute_mean_ranks, describe_ranks

pytest.importorskip("torch")


def test_every_learner_is_in_the_table() -> None:
    learners = {entry.method for entry in ENTRIES.values() if isinstance(entry, FitLearner)}
    assert learners == set(methods("learn"))
    aggregators = {entry.method for entry in ENTRIES.values() if isinstance(entry, FitAggregator)}
    assert {"majority-vote", "dawid-skene", "model-average", "fast-ds"} <= aggregators


def test_large_data_have_one_seed() -> None:
    seeds = {seed for _, data, seed in benchmark().cells if data == "CIFAR-10N"}
    assert seeds == {0}
    assert {seed for entry, data, seed in benchmark().cells if (entry, data) == ("concord", "Music")} == {0, 1, 2}


def test_mean_ranks_are_over_common_data() -> None:
    values = {
        ("a", "x"): (0.9, 0.5),
        ("b", "x"): (0.8, 0.7),
        ("c", "x"): (0.7, None),
        ("a", "y"): (0.6, 0.9),
        ("b", "y"): (0.7, 0.8),
    }
    rows = [
        {"entry": entry, "data": data, "seed": 0, "figures": {TASKS: tasks} | ({} if test is None else {TEST: test})}
        for (entry, data), (tasks, test) in values.items()
    ]
    assert compute_mean_ranks(rows, [TASKS]).to_dict() == {"a": 1, "b": 2, "c": 3}  # y lacks c
    both = compute_mean_ranks(rows, [TEST, TASKS])
    assert both.to_dict() == {"a": 1.5, "b": 1.5}
    assert both.attrs["columns"] == 4
    assert (
        describe_ranks(rows)[0]
        == "Mean rank by accuracy on training tasks, 3 entries on 1 column: a 1.0, b 2.0, c 3.0."
    )
    low = [
        {"entry": name, "data": "x", "seed": 0, "figures": {TASKS_NLL: nll}} for name, nll in (("a", 0.3), ("b", 0.2))
    ]
    assert compute_mean_ranks(low, [TASKS_NLL]).index.tolist() == ["b", "a"]
    assert compute_mean_ranks([], [TASKS]).empty
    assert isinstance(compute_mean_ranks(rows, [TASKS]), pd.Series)
