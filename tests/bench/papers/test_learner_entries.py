"""Entries of the benchmark of all learners."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wisecrowd.bench.papers import _learner_entries
from wisecrowd.bench.papers._learner_entries import (
    FIGURES,
    SECONDS,
    TASK_FIGURES,
    TASKS,
    TEST,
    TEST_NLL,
    FeatureDataset,
    FitAggregator,
    FitLearner,
)
from wisecrowd.io.dataset_folder import write_dataset
from wisecrowd.io.datasets import Dataset

pytest.importorskip("torch")


def test_all_figures_are_those_of_the_learner(small: Dataset) -> None:
    entry = FitLearner("two-stage", {"aggregator": "majority-vote"})
    figures = entry(small, 0)
    assert set(figures) == set(FIGURES)
    assert small.features is not None
    assert small.truth is not None
    assert small.splits is not None
    model: Any = entry.kind(random_state=0, aggregator="majority-vote").fit(small.features, small.crowd)
    test = small.splits.index[small.splits == "test"]
    assert figures[TEST] == pytest.approx((model.predict(small.features.loc[test]) == small.truth.loc[test]).mean())
    assert figures[TASKS] == pytest.approx((model.labels_ == small.truth.loc[small.crowd.tasks]).mean())
    code = model.classes_.get_indexer(small.truth.loc[test])
    right_probs = model.predict_proba(small.features.loc[test])[np.arange(len(code)), code]
    assert figures[TEST_NLL] == pytest.approx(-np.log(right_probs).mean(), rel=1e-3)


def test_aggregators_and_data_without_splits_have_figures_of_the_training_tasks(small: Dataset) -> None:
    assert set(FitAggregator("majority-vote")(small, 0)) == set(TASK_FIGURES)
    assert set(FitLearner("two-stage")(replace(small, splits=None), 0)) == set(TASK_FIGURES)


def test_networks_have_fewer_epochs_on_large_crowds(small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FitLearner("crowd-layer")._find_budget(small) == {}
    monkeypatch.setattr(_learner_entries, "LARGE_CROWD", 1)
    assert FitLearner("crowd-layer")._find_budget(small) == {"epochs": 10}
    assert FitLearner("dlem")._find_budget(small) == {"max_iter": 10}
    assert FitLearner("raykar")._find_budget(small) == {}


def test_another_file_of_features(small: Dataset, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert small.features is not None
    write_dataset(tmp_path / "pets", small.crowd, truth=small.truth, features=small.features)
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path))
    plain, other = FeatureDataset("pets", "distinct"), FeatureDataset("pets", "distinct", features_file="other.npz")
    before = plain.identity()
    np.savez(
        tmp_path / "pets" / "other.npz", task=small.features.index.to_numpy(dtype=str), X=small.features.to_numpy() + 1
    )
    features = other.load(0).features
    assert features is not None
    np.testing.assert_allclose(features.loc[small.features.index.astype(str)], small.features.to_numpy() + 1)
    assert plain.identity() == before != other.identity()


def test_entries_travel_and_are_told_apart() -> None:
    first, second = FitLearner("two-stage"), FitLearner("two-stage", {"hard": True})
    assert pickle.loads(pickle.dumps(first)).identity() == first.identity()
    assert first.identity() != second.identity()
    assert FitAggregator("dawid-skene").identity() != FitAggregator("fast-ds").identity()
    assert SECONDS in TASK_FIGURES
