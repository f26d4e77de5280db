"""Set-up (2) of Mena and Ñanculef: votes of four groups on features of images."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from wisecrowd.bench.papers._mena import TEST
from wisecrowd.bench.papers.mena2020_images import ENTRIES, ImageGroups, ImageLearner
from wisecrowd.io.datasets import Dataset

pytest.importorskip("torch")


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten classes of 60 images, of which the last 100 are for testing."""
    rng = np.random.default_rng(0)
    truth = pd.Series(np.arange(600) % 10, index=[f"image{n}" for n in range(600)])
    features = pd.DataFrame(3 * np.eye(10)[truth] + rng.normal(size=(600, 10)), index=truth.index)
    splits = pd.Series(np.repeat(["train", "test"], [500, 100]), index=truth.index)
    stored = Dataset(name="cifar10n", crowd=None, truth=truth, features=features, splits=splits)  # type: ignore[arg-type]
    monkeypatch.setattr("wisecrowd.bench.data.load_dataset", lambda *_, **__: stored)


@pytest.mark.usefixtures("images")
def test_votes_are_those_of_the_groups_and_features_follow_the_tasks() -> None:
    source = ImageGroups("cifar10n", "distinct", (TEST,), n_workers=30, n_tasks=300)
    one, other = source.load(0), source.load(1)
    assert one.crowd.n_tasks == 300
    assert one.crowd != other.crowd
    assert one.features is not None
    assert one.splits is not None
    assert one.truth is not None
    assert one.splits.value_counts().to_dict() == {"train": 300, "test": 100}
    assert one.features.index.equals(one.truth.index)
    # The feature of the true class is the largest on average, so truth and features belong together.
    codes = one.truth.str.removeprefix("c").astype(int).to_numpy()
    assert (one.features.to_numpy().argmax(axis=1) == codes).mean() > 0.8
    right = one.truth.loc[one.crowd.tasks].to_numpy()[one.crowd.task] == np.asarray(one.crowd.classes)[one.crowd.label]
    assert 0.4 < right.mean() < 0.8


@pytest.mark.usefixtures("images")
def test_entries_learn_from_the_votes() -> None:
    dataset = ImageGroups("cifar10n", "distinct", (TEST,), n_workers=20, n_tasks=400).load(0)
    entry = pickle.loads(pickle.dumps(ENTRIES["hardMV"]))
    assert isinstance(entry, ImageLearner)
    assert entry(dataset, 0)[TEST] > 0.4
    assert ENTRIES["CMM"].identity() != ENTRIES["DL-EM"].identity()  # type: ignore[attr-defined]
