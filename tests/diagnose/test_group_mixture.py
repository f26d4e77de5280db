"""Mixture of workers against its formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp, softmax

from wisecrowd.diagnose import group_mixture
from wisecrowd.diagnose.group_mixture import (
    STRENGTH_BOUNDS,
    ConfusionTally,
    GroupMixture,
    estimate_confusion,
    fit_group_mixture,
)


def test_evidence_and_worth_are_those_of_their_formulas() -> None:
    rng = np.random.default_rng(0)
    said = rng.poisson(2.0, size=(4, 3, 3)).astype(float)
    tally = ConfusionTally(csr_array(said.reshape(4, 9)), 3)
    matrices, share = rng.dirichlet(np.ones(3), size=(2, 3)), np.array([0.3, 0.7])
    worth = tally.effective_counts(5.0).toarray().reshape(4, 3, 3)
    evidence = GroupMixture(matrices, share).log_evidence(tally.effective_counts(5.0))
    for worker in range(4):
        for true in range(3):
            total = said[worker, true].sum()
            factor = min(6.0 / (total + 5.0), 1.0)
            assert np.allclose(worth[worker, true], said[worker, true] * factor)
        for group in range(2):
            wanted = np.log(share[group]) + (worth[worker] * np.log(matrices[group])).sum()
            assert evidence[worker, group] == pytest.approx(wanted)


def draw_counts(n_each: int = 12) -> np.ndarray:
    """Return votes [worker, true, given] of two groups: one is nearly always right, one confuses classes 0 and 1."""
    rng = np.random.default_rng(1)
    matrices = np.array([[[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
                         [[0.2, 0.7, 0.1], [0.7, 0.2, 0.1], [0.05, 0.05, 0.9]]])  # fmt: skip
    rows = [
        [rng.multinomial(15, rng.dirichlet(20 * row)) for row in matrix] for matrix in matrices for _ in range(n_each)
    ]
    return np.array(rows, dtype=float)


def test_em_never_lowers_its_objective() -> None:
    counts = csr_array(draw_counts().reshape(24, 9))
    toward = np.full((3, 3), 1 / 3)
    start = group_mixture._draw_starts(counts, toward, 3, 1, np.random.default_rng(0))[0]
    trace = [group_mixture._run_em(start, counts, toward, steps).objective for steps in range(1, 15)]
    assert (np.diff(trace) >= -1e-9 * abs(trace[-1])).all()
    assert trace[-1] > trace[0]


def test_planted_groups_are_found() -> None:
    tally = ConfusionTally(csr_array(draw_counts().reshape(24, 9)), 3)
    mixture = fit_group_mixture(tally, np.full((3, 3), 1 / 3), 2, 5, np.random.default_rng(0))
    member = mixture.memberships(tally.effective_counts(mixture.strength)).argmax(axis=1)
    assert len(set(member[:12])) == len(set(member[12:])) == 1
    assert member[0] != member[12]
    np.testing.assert_allclose(mixture.share, 0.5, atol=0.05)
    assert mixture.confusion[member[12], 0, 1] == pytest.approx(0.7, abs=0.1)
    assert STRENGTH_BOUNDS[0] <= mixture.strength <= STRENGTH_BOUNDS[1]


def test_totals_and_rows_of_entries_are_those_of_a_dense_table() -> None:
    counts = draw_counts(3)
    counts[2] = 0
    tally = ConfusionTally(csr_array(counts.reshape(6, 9)), 3)
    np.testing.assert_array_equal(tally.row_totals.reshape(6, 3), counts.sum(axis=2))
    dense = np.zeros((6, 3))
    np.add.at(dense.ravel(), tally.entry_row, tally.counts.data)
    np.testing.assert_array_equal(dense, counts.sum(axis=2))


def test_memberships_are_bayes_rule() -> None:
    counts = draw_counts(2)
    matrices, share = np.random.default_rng(2).dirichlet(np.ones(3), (2, 3)), np.array([0.25, 0.75])
    memberships, likelihood = GroupMixture(matrices, share).memberships_and_likelihood(csr_array(counts.reshape(4, 9)))
    logs = np.einsum("rkl,gkl->rg", counts, np.log(matrices)) + np.log(share)
    np.testing.assert_allclose(memberships, softmax(logs, axis=1))
    assert likelihood == pytest.approx(float(logsumexp(logs, axis=1).sum()))


def test_how_alike_workers_are_is_found() -> None:
    """Rows drawn from Dirichlet(c Π): c is found within a fourth."""
    rng = np.random.default_rng(0)
    matrix = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    rows = [[rng.multinomial(40, rng.dirichlet(12 * row)) for row in matrix] for _ in range(300)]
    tally = ConfusionTally(csr_array(np.array(rows, dtype=float).reshape(300, 9)), 3)
    assert tally.estimate_strength(matrix[None], np.zeros(300, dtype=np.intp)) == pytest.approx(12, rel=0.25)
    found = fit_group_mixture(tally, np.full((3, 3), 1 / 3), 1, 1, rng)
    assert np.allclose(found.confusion[0], matrix, atol=0.03)
    assert np.allclose(estimate_confusion(np.zeros((9, 1)), matrix)[0], matrix)
