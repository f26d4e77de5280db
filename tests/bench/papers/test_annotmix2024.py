from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from wisecrowd import simulate_crowd
from wisecrowd.bench import find_benchmark
from wisecrowd.bench.entries import get_identity
from wisecrowd.bench.papers import annotmix2024
from wisecrowd.bench.papers._learner_entries import TEST, FitLearner
from wisecrowd.bench.papers.annotmix2024 import ENTRIES, PUBLISHED, DenseLayers, OnTargets
from wisecrowd.errors import InputError
from wisecrowd.io.datasets import Dataset

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    made = simulate_crowd(n_tasks=120, n_workers=8, n_classes=3, votes_per_task=3, random_state=1)
    assert made.crowd.classes is not None
    rng = np.random.default_rng(0)
    new = pd.Index([f"new{n}" for n in range(60)])
    truth = pd.concat([made.truth, pd.Series(rng.choice(np.asarray(made.crowd.classes), 60), index=new)])
    place = made.crowd.classes.get_indexer(pd.Index(truth))
    X = pd.DataFrame(2.5 * np.eye(3)[place] + rng.normal(size=(180, 3)), index=truth.index)
    splits = pd.Series(np.repeat(["train", "test"], [120, 60]), index=truth.index)
    return Dataset(name="made", crowd=made.crowd, truth=truth, features=X, splits=splits)


def test_every_entry_travels_and_says_what_it_is_the_same_in_every_process() -> None:
    for entry in ENTRIES.values():
        again = pickle.loads(pickle.dumps(entry))
        shown = json.dumps(get_identity(entry))
        assert json.dumps(get_identity(again)) == shown
        assert " at 0x" not in shown


def test_every_published_figure_has_its_entry() -> None:
    found = find_benchmark("annotmix2024")
    assert set(PUBLISHED) <= set(found.entries)
    assert set(found.notes) <= {*found.entries, *found.data}
    assert len(found.cells) == len(ENTRIES) * found.seeds


def test_the_network_is_theirs() -> None:
    made = DenseLayers()((124,), 10)
    assert [type(part).__name__ for part in made] == ["Linear", "BatchNorm1d", "ReLU", "Dropout"] * 2 + ["Linear"]
    assert [tuple(part.weight.shape) for part in made if hasattr(part, "in_features")] == [
        (256, 124),
        (128, 256),
        (10, 128),
    ]


def test_targets_are_learnt_with_and_without_mixup(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(annotmix2024.TRAINING, "epochs", 8)
    drawn: list[float] = []
    draw_mixup = annotmix2024.draw_mixup
    monkeypatch.setattr(
        annotmix2024, "draw_mixup", lambda n, alpha, like: (drawn.append(alpha), draw_mixup(n, alpha, like))[1]
    )
    scores = {entry: entry(dataset, 0)[TEST] for entry in (OnTargets(None), OnTargets("majority-vote", alpha=1.0))}
    assert min(scores.values()) > 0.75
    assert set(drawn) == {0.0, 1.0}
    assert OnTargets(None)(dataset, 0) == OnTargets(None)(dataset, 0)


def test_a_dataset_without_test_tasks_is_refused(dataset: Dataset) -> None:
    with pytest.raises(InputError, match="truth, features and splits"):
        OnTargets(None)(Dataset(name="made", crowd=dataset.crowd, truth=dataset.truth), 0)


def test_every_learner_takes_the_common_setting(dataset: Dataset) -> None:
    for entry in ENTRIES.values():
        if isinstance(entry, FitLearner):
            short = FitLearner(entry.method, {**entry.settings, "epochs": 1})
            assert 0 <= short(dataset, 0)[TEST] <= 1
