"""The E-step with a prior for every task, against brute force."""

from __future__ import annotations

import itertools

import numpy as np

from wisecrowd import Crowd
from wisecrowd.em.classifier_prior import e_step


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
