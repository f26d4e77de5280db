"""Entries and data of the Crowd Mixture Model benchmarks."""

from __future__ import annotations

import pickle

import numpy as np

from wisecrowd.bench.papers._mena import (
    G_JS,
    I_JS,
    TEST,
    MenaLearner,
    compute_divergences,
    compute_true_confusion,
)
from wisecrowd.bench.papers.mena2020 import ENTRIES, REAL, SIMULATED, published
from wisecrowd.io.datasets import Dataset


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
