"""Simulated comparisons follow their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.pairwise._davidson import outcome_probs
from wisecrowd.errors import UsageError
from wisecrowd.simulate.comparisons import simulate_comparisons


def test_outcomes_have_the_probabilities_of_the_model() -> None:
    made = simulate_comparisons(n_items=2, n_workers=1, votes_per_worker=40_000, tie_utility=0.3, random_state=0)
    comparisons, score = made.comparisons, made.scores.to_numpy()
    difference = score[comparisons.left] - score[comparisons.right]
    expected = np.stack(outcome_probs(difference, 0.3), axis=1).mean(axis=0)
    assert np.allclose(np.bincount(comparisons.outcome) / comparisons.n_votes, expected, atol=0.01)


def test_without_ties_and_with_tasks() -> None:
    made = simulate_comparisons(n_tasks=4, tie_utility=None, task_spread=0.5, random_state=1)
    assert (made.comparisons.outcome < 2).all()
    assert made.comparisons.n_tasks == 4
    assert made.scores.mean() == pytest.approx(0)


def test_a_seed_repeats_the_simulation() -> None:
    assert simulate_comparisons(random_state=3).comparisons == simulate_comparisons(random_state=3).comparisons
    assert simulate_comparisons(random_state=3).comparisons != simulate_comparisons(random_state=4).comparisons


def test_too_few_items_are_refused() -> None:
    with pytest.raises(UsageError, match="needs two items"):
        simulate_comparisons(n_items=1)
