"""Every completer in one table: its figures are those of the judge and of aggregators."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from wisecrowd import (
    LDPLC,
    DawidSkene,
    DSFill,
    MajorityVote,
    accuracy_after_completion,
    methods,
    score_completer,
    simulate_crowd,
)
from wisecrowd.bench import find_benchmark
from wisecrowd.bench.benchmark import FIGURES as SHOWN
from wisecrowd.bench.papers.all_completers import FIGURES, FitCompleter, NoCompletion, SimpleForecast
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    made = simulate_crowd(n_tasks=80, n_workers=8, votes_per_task=4)
    colour = made.truth.map({"c0": "red", "c1": "red", "c2": "blue", "c3": "blue"})
    size = np.random.default_rng(0).normal(size=80)
    features = pd.DataFrame({"size": size, "colour": colour}, index=made.truth.index)
    return Dataset(name="made", crowd=made.crowd, truth=made.truth, features=features)


def test_a_completer_by_features_some_of_which_are_categories(dataset: Dataset) -> None:
    found = FitCompleter("ldplc")(dataset, 3)
    assert set(found) == set(FIGURES)
    assert dataset.features is not None
    X = pd.get_dummies(dataset.features, dtype=float)
    assert X.shape == (80, 3)
    judged = score_completer(LDPLC(random_state=3), dataset.crowd, X, random_state=3)
    assert found["hidden log-loss"] == judged.table["log_loss"].iloc[0]
    assert found["hidden accuracy"] == judged.table["accuracy"].iloc[0]
    assert found["coverage"] == judged.coverage
    fitted = MajorityVote().fit(LDPLC(random_state=3).complete(dataset.crowd, X))
    assert found["MV after"] == metrics.accuracy(dataset.truth, fitted)
    assert found["MV ECE"] == metrics.calibration_error(dataset.truth, fitted)
    dense = DawidSkene().fit(LDPLC(random_state=3, fill_weight=1).complete(dataset.crowd, X))
    assert found["DS ECE, weight 1"] == metrics.calibration_error(dataset.truth, dense)


def test_what_stands_beside_them(dataset: Dataset) -> None:
    plain = NoCompletion()(dataset, 0)
    before = accuracy_after_completion("gmv", dataset.crowd, None, dataset.truth).xs("before", level="votes")
    assert plain["DS after"] == before["accuracy"]["dawid-skene"]
    assert plain["MV ECE"] == before["calibration_error"]["majority-vote"]
    table = score_completer(DSFill(), dataset.crowd, random_state=2).table
    assert (
        SimpleForecast("labels of the worker")(dataset, 2)["hidden log-loss"]
        == table["log_loss"]["labels of the worker"]
    )


def test_the_table_has_every_completer() -> None:
    table = find_benchmark("all-completers")
    assert {name for name in table.entries if not name.startswith("(")} == set(methods("complete"))
    assert all(not SHOWN[figure].more_is_better for figure in FIGURES if "ECE" in figure or "loss" in figure)
    for entry in table.entries.values():
        json.dumps(pickle.loads(pickle.dumps(entry)).identity())


def test_what_it_declines(dataset: Dataset) -> None:
    bare = Dataset(name="bare", crowd=dataset.crowd, truth=dataset.truth)
    with pytest.raises(InputError, match="no truth or no features"):
        FitCompleter("ldplc")(bare, 0)
    with pytest.raises(InputError, match="no truth"):
        NoCompletion()(Dataset(name="bare", crowd=dataset.crowd), 0)
    with pytest.raises(UsageError, match="is not a completer"):
        FitCompleter("majority-vote").identity()
