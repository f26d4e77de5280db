"""Benchmark of all learners."""

from __future__ import annotations

import pickle

import pytest

from wisecrowd.base.registry import methods
from wisecrowd.bench.papers.all_learners import ENTRIES, TASKS, TEST, FitLearner
from wisecrowd.io.datasets import Dataset

pytest.importorskip("torch")


def test_every_learner_is_in_the_table() -> None:
    assert {entry.method for entry in ENTRIES.values()} == set(methods("learn"))  # type: ignore[attr-defined]


def test_both_accuracies_are_those_of_the_learner(small: Dataset) -> None:
    entry = FitLearner("two-stage", {"aggregator": "majority-vote"})
    figures = entry(small, 0)
    assert set(figures) == {TEST, TASKS}
    assert small.features is not None
    assert small.truth is not None
    assert small.splits is not None
    model = entry.kind(random_state=0, aggregator="majority-vote").fit(small.features, small.crowd)
    test = small.splits.index[small.splits == "test"]
    assert figures[TEST] == pytest.approx((model.predict(small.features.loc[test]) == small.truth.loc[test]).mean())
    assert figures[TASKS] == pytest.approx((model.labels_ == small.truth.loc[small.crowd.tasks]).mean())


def test_entries_travel_and_are_told_apart() -> None:
    first, second = FitLearner("two-stage"), FitLearner("two-stage", {"hard": True})
    assert pickle.loads(pickle.dumps(first)).identity() == first.identity()
    assert first.identity() != second.identity()
