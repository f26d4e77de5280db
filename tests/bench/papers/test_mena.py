from __future__ import annotations

import pickle

import numpy as np
import pytest

from wisecrowd.bench.papers._mena import (
    G_JS,
    I_JS,
    TEST,
    GaussianGroups,
    MenaLearner,
    compute_divergences,
    compute_true_confusion,
)
from wisecrowd.bench.papers.mena2020 import ENTRIES, REAL, SIMULATED, published
from wisecrowd.bench.papers.mena2020_scaling import MEMORY, PASS, Scaling
from wisecrowd.io.datasets import Dataset


@pytest.fixture(scope="module")
def small() -> Dataset:
    return GaussianGroups(30, n_tasks=300).load(seed=1)


def test_both_tables_are_whole() -> None:
    found = published()
    assert len(found) == 6 * len(SIMULATED) + 7 * len(REAL) - 3  # the ideal has no matrices
    assert found["DL-EM", "T = 10,000", TEST] == 0.6701
    assert found["DL-DS", "LabelMe, global", TEST] == 0.1408
    assert {entry for entry, _, _ in found} <= set(ENTRIES)


def test_divergences_against_plain_loops(small: Dataset) -> None:
    assert small.crowd.worker is not None
    single, everybody = compute_true_confusion(small.crowd, small.truth)
    z = small.truth.loc[small.crowd.tasks].str[1:].astype(int).to_numpy()  # type: ignore[union-attr]
    mine = small.crowd.worker == 3
    for true in range(3):
        said = small.crowd.label[mine & (z[small.crowd.task] == true)]
        np.testing.assert_allclose(single[3, true], np.bincount(said, minlength=3) / len(said))
    assert everybody.shape == (3, 3)
    model = MenaLearner("cmm", network=False).fitted(small, 0)
    pooled, by_worker = (
        compute_divergences(small, model, per_worker=False),
        compute_divergences(small, model, per_worker=True),
    )
    assert pooled[I_JS] == by_worker[I_JS]
    assert 0 < pooled[G_JS] < 0.2


def test_entries_travel_and_are_told_apart() -> None:
    entry = MenaLearner("cmm", {"n_groups": 2}, network=False)
    again = pickle.loads(pickle.dumps(entry))
    assert again.identity() == entry.identity()
    assert MenaLearner("cmm", {"n_groups": 3}, network=False).identity() != entry.identity()


def test_scaling_measures_something(small: Dataset) -> None:
    found = Scaling(MenaLearner("cmm", network=False), whole=True)(small, 0)
    assert found[MEMORY] > 0.01
    assert found[PASS] < 5000
    assert found[TEST] > 0.85
