"""Shrinkage of workers toward the crowd of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.em.priors import estimate_crowd_confusion
from wisecrowd.em.shrinkage import count_shrinkage_votes, shrink_label_probs

CROWD = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in ("ann", "bob")])
TALLY = np.random.default_rng(0).uniform(0, 4, (len(CROWD.pairs), 2))


def test_workers_of_another_crowd_are_shrunk_toward_the_fitted_one() -> None:
    other = Crowd.from_triples([("t1", "new", 0)], classes=[0, 1])
    no_votes = np.zeros((len(other.pairs), 2))
    probs = shrink_label_probs(no_votes, other.pairs, TALLY, CROWD.pairs, strength=3.0)
    np.testing.assert_allclose(probs, estimate_crowd_confusion(TALLY, CROWD.pairs)[:, other.pairs.label].T)


def test_without_strength_a_worker_is_counted_alone() -> None:
    probs = shrink_label_probs(TALLY, CROWD.pairs, TALLY, CROWD.pairs, strength=0.0)
    own = TALLY / CROWD.pairs.sum_by_worker(TALLY)[CROWD.pairs.worker]
    np.testing.assert_allclose(probs, own)


def test_pseudo_votes_have_the_accuracy_of_the_crowd() -> None:
    confusion = np.array([[0.9, 0.1], [0.4, 0.6]])
    posterior = np.array([[1.0, 0.0], [1.0, 0.0], [0.2, 0.8]])
    right, total = count_shrinkage_votes(posterior, confusion, 5.0)
    assert total == 5
    assert right / total == pytest.approx((2.2 * 0.9 + 0.8 * 0.6) / 3)
