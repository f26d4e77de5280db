"""Ranking of methods by held-out votes."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.evaluate.ranking import rank_log_probs


def test_distances_and_ties() -> None:
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(100), 3)
    best = rng.normal(-1.0, 0.1, 300)
    log_probs = {"worse": best - 0.5, "equal": best + rng.normal(0, 0.01, 300) - 0.0001, "best": best}
    table, tied = rank_log_probs(log_probs, unit, 100, 0)
    assert table.index[-1] == "worse"
    assert table.loc["worse", "behind"] == pytest.approx(0.5, abs=0.01)
    assert tied == ("equal", "best")  # in the order of the candidates
    assert (table["low"] <= table["behind"] + 1e-9).all()
    assert (table["behind"] <= table["high"] + 1e-9).all()


@pytest.mark.slow
def test_intervals_have_the_level_of_all_intervals() -> None:
    """Of 150 experiments in which two methods are equal, about 90 % contain zero."""
    n_covered = 0
    for seed in range(150):
        gap = np.random.default_rng(seed).normal(size=60)
        table, _ = rank_log_probs({"a": gap, "b": np.zeros(60)}, np.arange(60), 60, seed)
        low, high = table.iloc[1][["low", "high"]]
        n_covered += low <= 0 <= high
    assert 0.83 < n_covered / 150 < 0.96


def test_weights_count_votes_several_times() -> None:
    log_probs = {"a": np.array([-1.0, -3.0]), "b": np.array([-3.0, -1.0])}
    table, _ = rank_log_probs(log_probs, np.array([0, 1]), 2, 0, np.array([3.0, 1.0]))
    assert table["log_likelihood"].to_dict() == {"a": -1.5, "b": -2.5}
