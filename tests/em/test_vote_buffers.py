"""Batches of votes and growing tables of a live model."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.vote_buffers import MIN_ROWS, GrowableTable, VoteBatch


def test_a_batch_lists_votes_in_the_order_of_tasks() -> None:
    batch = VoteBatch.from_mappings([{7: 1, 8: 0}, {}, {7: 2}])
    assert batch.count.tolist() == [2, 0, 1]
    assert batch.position.tolist() == [0, 0, 2]
    assert batch.worker.tolist() == [7, 8, 7]
    assert batch.label.tolist() == [1, 0, 2]


def test_an_empty_batch_has_no_votes() -> None:
    batch = VoteBatch.from_mappings([])
    assert batch.count.shape == batch.worker.shape == (0,)
    assert batch.worker.dtype == np.int64


def test_posterior_equals_bayes_rule() -> None:
    rng = np.random.default_rng(0)
    votes = [{0: 1, 1: 0, 2: 1}, {}, {1: 1}]
    prior, confusion = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), (3, 3))
    batch = VoteBatch.from_mappings(votes)
    posterior = batch.compute_posterior(prior, confusion[batch.worker, :, batch.label])
    for row, labels in zip(posterior, votes, strict=True):
        joint = prior * np.prod([confusion[worker, :, label] for worker, label in labels.items()], axis=0)
        np.testing.assert_allclose(row, joint / joint.sum())


def test_posterior_equals_the_kernel() -> None:
    crowd = Crowd.from_codes([0, 0, 2], [0, 1, 1], [0, 1, 0], tasks=range(3), workers=range(2), classes=range(2))
    label_probs = np.random.default_rng(1).uniform(0.1, 0.9, (len(crowd.pairs), 2))
    prior = np.array([0.3, 0.7])
    batch = VoteBatch.from_mappings([{0: 0, 1: 1}, {}, {1: 0}])
    expected = kernels.posterior(crowd.layout, prior, label_probs)
    np.testing.assert_allclose(batch.compute_posterior(prior, label_probs[crowd.pairs.vote_pairs]), expected)


def test_a_class_that_a_vote_excludes_has_probability_zero() -> None:
    batch = VoteBatch.from_mappings([{0: 0}])
    assert batch.compute_posterior(np.array([0.5, 0.5]), np.array([[0.2, 0.0]])).tolist() == [[1, 0]]


class TestGrowableTable:
    @pytest.mark.parametrize("step", [1, 7, MIN_ROWS + 1])
    def test_rows_are_those_appended(self, step: int) -> None:
        expected = np.arange(600.0).reshape(300, 2)
        table = GrowableTable(expected[:3])
        for start in range(3, 300, step):
            table.append(expected[start : start + step])
        np.testing.assert_array_equal(table.rows, expected)

    def test_the_first_rows_are_copied(self) -> None:
        rows = np.zeros((2, 2))
        GrowableTable(rows).rows[:] = 5
        assert (rows == 0).all()

    def test_rows_can_be_written(self) -> None:
        table = GrowableTable(np.zeros((2, 2)))
        table.rows[1] += 3
        table.append(np.ones((1, 2)))
        assert table.rows.tolist() == [[0, 0], [3, 3], [1, 1]]

    def test_an_empty_table_grows(self) -> None:
        table = GrowableTable(np.zeros((0, 2), dtype=np.int32))
        table.append(np.array([[1, 2]]))
        assert table.rows.tolist() == [[1, 2]]
        assert table.rows.dtype == np.int32

    def test_added_columns_are_zero(self) -> None:
        table = GrowableTable(np.ones((2, 1)))
        for n_columns in (2, 1, 5):
            table.add_columns(n_columns)
        table.append(np.full((1, 9), 4.0))
        assert table.rows.tolist() == [[1.0, *[0.0] * 8]] * 2 + [[4.0] * 9]
