"""The Dirichlet formulas beside their definitions, on dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import digamma

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.dirichlet import DirichletRows, compute_divergence, compute_geometric_mean

CLASSES = 3


def sparse_and_dense(seed: int, rows: int = CLASSES) -> tuple[Crowd, NDArray[np.float64], NDArray[np.float64]]:
    """A crowd in which not everybody says everything; a tally over its pairs, and the same as (workers, rows, labels)."""
    rng = np.random.default_rng(seed)
    crowd = Crowd.from_codes(np.arange(8), rng.integers(4, size=8), rng.integers(CLASSES, size=8),
                  tasks=range(8), workers=range(4), classes=range(CLASSES))  # fmt: skip
    tally = rng.exponential(3, size=(len(crowd.pairs), rows))
    dense = np.zeros((4, rows, CLASSES))
    dense[crowd.pairs.worker, :, crowd.pairs.label] = tally
    return crowd, tally, dense


def priors() -> list[tuple[DirichletRows, NDArray[np.float64]]]:
    table = np.array([[2.0, 1.0, 0.5], [0.3, 4.0, 1.0], [1.0, 1.0, 1.0]])
    return [
        (DirichletRows(np.arange(3), 3, 0.5, 2.0), 0.5 + 2 * np.eye(3)),
        (DirichletRows(np.arange(3), 3, table=table), table),
        (DirichletRows(np.array([0, 0, 1]), 3, 1.0, 3.0), np.array([[4.0, 1, 1], [4, 1, 1], [1, 4, 1]])),
        (DirichletRows(np.array([-1, -1, -1]), 3, 0.7), np.full((3, 3), 0.7)),
    ]


@pytest.mark.parametrize("which", range(4))
@given(seed=st.integers(0, 30))
def test_means_and_divergence_are_those_of_the_dense_matrices(which: int, seed: int) -> None:
    rows, before = priors()[which]
    crowd, tally, dense = sparse_and_dense(seed)
    pairs = crowd.pairs
    after = before + dense
    np.testing.assert_allclose(rows.total, before.sum(axis=1))
    wanted = after / after.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(rows.mean(tally, pairs), wanted[pairs.worker, :, pairs.label])
    wanted = np.exp(digamma(after) - digamma(after.sum(axis=2, keepdims=True)))
    np.testing.assert_allclose(rows.geometric_mean(tally, pairs), wanted[pairs.worker, :, pairs.label])
    # The compute_divergence by its definition E log q − E log p, with scipy's entropy for the first part.
    kl = 0.0
    for worker in range(4):
        for row in range(3):
            belief, prior = after[worker, row], before[row]
            logs = digamma(belief) - digamma(belief.sum())
            kl += -stats.dirichlet(belief).entropy() - (stats.dirichlet(prior).logpdf(np.full(3, 1 / 3))
                - ((prior - 1) * np.log(1 / 3)).sum() + ((prior - 1) * logs).sum())  # fmt: skip
    assert rows.divergence(tally, pairs) == pytest.approx(kl, rel=1e-9)


@given(seed=st.integers(0, 30))
def test_the_log_density_is_that_of_the_mode_up_to_a_constant(seed: int) -> None:
    gaps = []
    for rows, before in priors()[:2]:
        for scale in (1.0, 5.0):
            crowd, tally, dense = sparse_and_dense(seed)
            after = before + scale * dense
            mode = after / after.sum(axis=2, keepdims=True)
            gaps.append(rows.log_density(scale * tally, crowd.pairs) - (before * np.log(mode)).sum())
    assert gaps[0] == pytest.approx(gaps[1])
    assert gaps[2] == pytest.approx(gaps[3])


def test_nothing_known_is_uniform_and_single_precision_stays() -> None:
    crowd, tally, _ = sparse_and_dense(0)
    empty = np.zeros_like(tally, dtype=np.float32)
    label_probs = DirichletRows(np.arange(3), 3).mean(empty, crowd.pairs)
    assert label_probs.dtype == np.float32
    np.testing.assert_allclose(label_probs, 1 / 3)
    assert DirichletRows(np.arange(3), 3, 1.0, 1.0).geometric_mean(empty, crowd.pairs).dtype == np.float32


def test_a_belief_that_did_not_change_has_no_divergence_and_certainty_has_its_mean() -> None:
    assert compute_divergence(np.array([2.0, 3.0]), np.zeros((5, 2))) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(compute_geometric_mean(np.array([3e6, 1e6])), [0.75, 0.25], rtol=1e-5)
    assert compute_geometric_mean(np.array([1.0, 1.0, 1.0])).sum() < 1
