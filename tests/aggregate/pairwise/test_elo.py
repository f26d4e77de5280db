"""Elo ratings against the textbook loop."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import BradleyTerry, Elo
from wisecrowd.aggregate.pairwise import elo
from wisecrowd.errors import UsageError
from wisecrowd.simulate.comparisons import simulate_comparisons


def test_one_order_is_the_textbook_loop() -> None:
    comparisons = simulate_comparisons(n_items=5, n_workers=3, votes_per_worker=20, random_state=0).comparisons
    ratings = np.full(5, 1000.0)
    for vote in np.random.default_rng(7).permutation(comparisons.n_votes):
        left, right = comparisons.left[vote], comparisons.right[vote]
        expected = 1 / (1 + 10 ** ((ratings[right] - ratings[left]) / 400))
        change = 16 * ((1.0, 0.0, 0.5)[comparisons.outcome[vote]] - expected)
        ratings[left] += change
        ratings[right] -= change
    assert np.allclose(Elo(k=16, n_orders=1, random_state=7).fit(comparisons).rating_, ratings)


def test_many_comparisons_are_processed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons = simulate_comparisons(n_items=6, n_workers=20, votes_per_worker=200, random_state=0).comparisons
    single = Elo(n_orders=20).fit(comparisons).rating_
    monkeypatch.setattr(elo, "MAX_STEPS", 500)  # eight comparisons per step
    assert np.allclose(Elo(n_orders=20).fit(comparisons).rating_, single, atol=5)


def test_ratings_order_items_like_bradley_terry() -> None:
    comparisons = simulate_comparisons(n_items=8, n_workers=40, votes_per_worker=100, random_state=1).comparisons
    assert np.corrcoef(Elo().fit(comparisons).score_, BradleyTerry().fit(comparisons).score_)[0, 1] > 0.97


def test_impossible_options_are_refused() -> None:
    with pytest.raises(UsageError, match="k must be positive and n_orders 1 or more; got 0 and 100"):
        Elo(k=0).fit([("ann", "a", "b", "a")])
