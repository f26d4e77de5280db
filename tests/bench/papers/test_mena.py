"""Entries and data of the Crowd Mixture Model benchmarks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

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
    assert len(found) == 6 * len(SIMULATED) + 9 * len(REAL) - 3  # the ideal has no matrices
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
    found = compute_divergences(small, np.full_like(single, 1 / 3), everybody)
    assert found[G_JS] == pytest.approx(0, abs=1e-9)
    assert found[I_JS] == pytest.approx(np.mean([_divergence_from_uniform(matrix) for matrix in single]), abs=1e-5)


def _divergence_from_uniform(matrix: np.ndarray) -> float:
    """Return the mean Jensen–Shannon divergence of the rows, in bits."""
    rows = [
        sum(p * np.log2(p / ((p + 1 / 3) / 2)) / 2 for p in row if p > 0)
        + sum(1 / 3 * np.log2(1 / 3 / ((p + 1 / 3) / 2)) / 2 for p in row)
        for row in matrix
    ]
    return float(np.mean(rows))


def test_the_matrix_of_the_votes_stands_for_every_worker(small: Dataset) -> None:
    """The vote is a learner without confusion matrices of workers."""
    crowd = small.crowd
    shares = crowd.vote_counts / crowd.vote_counts.sum(axis=1, keepdims=True)
    hard = np.eye(3)[shares.argmax(axis=1)]
    truth = compute_true_confusion(crowd, small.truth)[1]
    for kind, classes in (("vote shares", shares), ("majority", hard)):
        counts = classes.T @ crowd.vote_counts
        expected = compute_divergences(small, truth[None], counts / counts.sum(axis=1, keepdims=True))[G_JS]
        entry = MenaLearner("two-stage", {"aggregator": "majority-vote"}, network=False, matrices=kind)  # type: ignore[arg-type]
        assert entry(small, 0)[G_JS] == pytest.approx(expected)


def test_entries_travel_and_are_told_apart() -> None:
    entry = MenaLearner("cmm", {"n_groups": 2}, network=False)
    again = pickle.loads(pickle.dumps(entry))
    assert again.identity() == entry.identity()
    assert MenaLearner("cmm", {"n_groups": 3}, network=False).identity() != entry.identity()
