"""Simulated ratings."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate.ratings import simulate_ratings


def test_severe_raters_give_lower_classes() -> None:
    made = simulate_ratings(n_tasks=500, n_workers=10, votes_per_task=5, random_state=0)
    means = made.crowd.to_frame().groupby("worker")["label"].mean()
    assert means.corr(made.workers["severity"]) < -0.9


def test_classes_are_about_equally_frequent_and_ordered() -> None:
    made = simulate_ratings(n_tasks=2000, n_classes=4, random_state=0)
    assert made.crowd.is_ordered
    assert made.truth.value_counts(normalize=True).between(0.2, 0.3).all()
    assert made.thresholds.shape == (3,)


def test_numbers_follow_the_scores() -> None:
    made = simulate_ratings(n_tasks=300, n_classes=None, votes_per_task=10, severity_sd=0.1, random_state=0)
    assert made.crowd.is_numeric
    assert made.crowd.to_frame().groupby("task")["label"].mean().corr(made.scores) > 0.9


def test_the_seed_decides() -> None:
    first, second, other = (simulate_ratings(random_state=seed).crowd for seed in (1, 1, 2))
    assert first == second
    assert not np.array_equal(first.label, other.label)


@pytest.mark.parametrize("sizes", [{"votes_per_task": 30}, {"n_tasks": 0}, {"n_classes": 1}])
def test_impossible_sizes_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must be"):
        simulate_ratings(**sizes)  # type: ignore[arg-type]
