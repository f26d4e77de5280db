"""The E-step with a prior for every task, against brute force."""

from __future__ import annotations

import itertools

import numpy as np

from wisecrowd import Crowd
from wisecrowd.em.classifier_prior import compute_vote_log_probs, e_step, estimate_sharpness, sharpen


def test_e_step_equals_brute_force() -> None:
    rng = np.random.default_rng(0)
    crowd = Crowd.from_triples([(task, worker, int(rng.integers(3))) for task in range(3) for worker in range(2)])
    expected, said = rng.dirichlet(np.ones(3), size=3), rng.random((len(crowd.pairs), 3))
    total = 0.0
    marginal = np.zeros((3, 3))
    for truth in itertools.product(range(3), repeat=3):
        joint = np.prod([expected[task, k] for task, k in enumerate(truth)])
        joint *= np.prod(
            [said[pair, truth[task]] for task, pair in zip(crowd.task, crowd.pairs.vote_pairs, strict=True)]
        )
        total += joint
        for task, k in enumerate(truth):
            marginal[task, k] += joint
    posterior, value = e_step(crowd.layout, expected, said, None)
    assert np.isclose(value, np.log(total))
    assert np.allclose(posterior, marginal / total)


def test_sharpening() -> None:
    share = np.array([[0.7, 0.2, 0.1]])
    assert np.allclose(sharpen(share, 2.0), share**2 / (share**2).sum())
    assert sharpen(share, 1.0) is share
    crowd = Crowd.from_triples([(task, worker, (task + worker) % 3) for task in range(9) for worker in range(2)])
    timid = np.full((crowd.n_tasks, 3), 1 / 3)
    flat = compute_vote_log_probs(crowd.layout, np.full((len(crowd.pairs), 3), 0.5))
    assert estimate_sharpness(timid, flat) > 0  # any will do
