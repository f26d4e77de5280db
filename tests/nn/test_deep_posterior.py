"""The posterior of class probabilities and votes together."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.nn.deep_posterior import compute_deep_posterior
from wisecrowd.simulate import Simulation


def test_it_is_bayes_rule_with_the_given_label_probabilities(made: Simulation) -> None:
    crowd, rng = made.crowd, np.random.default_rng(0)
    class_probs = rng.dirichlet(np.ones(3), size=crowd.n_tasks)
    pi = rng.dirichlet(np.ones(3), size=(crowd.n_workers, 3))
    found = compute_deep_posterior(
        class_probs.copy(), crowd, None, lambda pairs, _tally, _prior: pi[pairs.worker, :, pairs.label]
    )
    expected = class_probs.copy()
    assert crowd.worker is not None
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        expected[task] *= pi[worker, :, label]
    assert found.probs == pytest.approx(expected / expected.sum(axis=1, keepdims=True))


def test_gold_is_certain_and_certainty_of_the_network_is_bounded(made: Simulation) -> None:
    crowd = made.crowd
    class_probs = np.eye(3)[np.zeros(crowd.n_tasks, dtype=int)]  # certain of the first class
    gold = np.where(np.arange(crowd.n_tasks) < 9, 2, -1).astype(np.int32)
    found = compute_deep_posterior(class_probs, crowd, gold)
    assert (found.probs[:9] == [0, 0, 1]).all()
    assert np.isfinite(found.probs).all()
    assert found.probs[9:, 1:].max() > 0
    assert found.strength > 0
