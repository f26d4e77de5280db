"""Iterative weighted majority voting."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import IWMV, Crowd, OneCoin, Wawa
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.evaluate.metrics import accuracy, worker_correlation
from wisecrowd.simulate import simulate_crowd


def test_weights_are_those_of_the_paper_at_the_fixed_point() -> None:
    made = simulate_crowd(400, 20, 3, votes_per_task=5, random_state=1)
    fitted = IWMV().fit(made.crowd)
    assert fitted.converged_
    chosen = fitted.posterior_.argmax(axis=1)
    right = np.bincount(made.crowd.worker, made.crowd.label == chosen[made.crowd.task])
    agreement = right / made.crowd.votes_per_worker
    np.testing.assert_allclose(fitted.weight_, 3 * agreement - 1, atol=1e-9)


def test_an_adversary_votes_for_the_opposite() -> None:
    # Three good workers outvote the bad one on the first tasks; on the last only the bad one voted.
    votes = [(task, worker, (task + (worker == "bad")) % 2) for task in range(9) for worker in ("a", "b", "c", "bad")]
    fitted = IWMV().fit(Crowd.from_triples([*votes, (9, "bad", 0)]))
    assert fitted.weight_[fitted.worker_index_.get_loc("bad")] < 0
    assert fitted.labels_[9] == 1


def test_a_worker_at_chance_level_has_no_say() -> None:
    votes = [(task, worker, task % 2) for task in range(8) for worker in ("a", "b", "c")]
    guesses = [(task, "guess", (task // 2) % 2) for task in range(8)]
    assert IWMV().fit(Crowd.from_triples(votes + guesses)).workers_.loc["guess", "weight"] == pytest.approx(0)


def test_the_posterior_is_the_linearised_one_coin_posterior() -> None:
    made = simulate_crowd(200, 10, 4, votes_per_task=4, workers={"noisy": 10}, random_state=3)
    fitted = IWMV().fit(made.crowd)
    task = 17
    mine = made.crowd.task == task
    score = np.bincount(made.crowd.label[mine], fitted.weight_[made.crowd.worker[mine]], 4)
    odds = np.exp(4 / 3 * score)
    np.testing.assert_allclose(fitted.posterior_[task], odds / odds.sum(), rtol=1e-9)


def test_one_class_is_no_obstacle() -> None:
    assert IWMV().fit(Crowd.from_triples([(0, 0, "a"), (1, 1, "a")])).posterior_.tolist() == [[1.0], [1.0]]


def test_it_gets_near_the_model_behind_it_as_data_grow() -> None:
    gaps, correlations = [], []
    for tasks in (60, 240, 1000):
        made = simulate_crowd(tasks, 20, 2, votes_per_task=7, workers={"noisy(0.55, 0.95)": 20}, random_state=5)
        fitted = IWMV().fit(made.crowd)
        gaps.append(accuracy(made.truth, OneCoin().fit(made.crowd)) - accuracy(made.truth, fitted))
        correlations.append(worker_correlation(made.accuracy, fitted.workers_["weight"]))
    assert gaps[-1] < 0.01
    assert correlations[0] < correlations[1] < correlations[2]
    assert correlations[2] > 0.95


def test_it_discounts_guessers_as_wawa_does_not() -> None:
    made = simulate_crowd(2000, 40, 2, votes_per_task=7, workers={"expert": 6, "spammer": 34}, random_state=6)
    assert accuracy(made.truth, IWMV().fit(made.crowd)) > accuracy(made.truth, Wawa().fit(made.crowd)) + 0.1


def test_it_says_so_when_it_did_not_settle() -> None:
    made = simulate_crowd(400, 20, 3, votes_per_task=3, random_state=1)
    with pytest.warns(NotConverged, match="raise max_iter"):
        fitted = IWMV(max_iter=1).fit(made.crowd)
    assert not fitted.converged_
    with pytest.raises(UsageError, match="max_iter"):
        IWMV(max_iter=0).fit(made.crowd)
