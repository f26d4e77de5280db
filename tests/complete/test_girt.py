"""GIRT against its formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import GIRT, Crowd, Rasch, simulate_crowd
from wisecrowd.errors import UsageError


@pytest.mark.parametrize(("guessing", "luck"), [(0.0, 0.0), (0.2, 0.2), ("chance", 1 / 3)])
def test_it_is_the_posterior_of_rasch_by_ability_and_difficulty(guessing: Any, luck: float) -> None:
    crowd = simulate_crowd(n_tasks=30, n_workers=6, n_classes=3, votes_per_task=3).crowd
    fitted = Rasch(guessing=guessing).fit(crowd)
    said = GIRT(guessing=guessing).fit(crowd).predict_worker_proba()
    for task in range(30):
        for worker in range(6):
            x = fitted.workers_["ability"].iloc[worker] - fitted.tasks_["difficulty"].iloc[task]
            right = luck + (1 - luck) / (1 + np.exp(-x))
            for l in range(3):
                wanted = sum(
                    fitted.posterior_[task, k] * (right if l == k else (1 - right) / 2) for k in range(3)
                )  # fmt: skip
                assert said[task, worker, l] == pytest.approx(wanted)


def test_the_abler_worker_is_expected_to_be_right_more_often() -> None:
    made = simulate_crowd(n_tasks=200, n_workers=8, n_classes=4, votes_per_task=5, random_state=3,
                          workers={"expert(0.95)": 0.5, "expert(0.5)": 0.5})  # fmt: skip
    said = GIRT().fit(made.crowd).predict_worker_proba()
    truth = made.crowd.classes.get_indexer(made.truth)
    expected = said[np.arange(200), :, truth].mean(axis=0)
    assert np.corrcoef(expected, made.accuracy)[0, 1] > 0.9


def test_one_class_is_said_by_all() -> None:
    crowd = Crowd.from_triples([(0, "ann", "a"), (1, "bob", "a"), (1, "ann", "a")])
    assert (GIRT().fit(crowd).predict_worker_proba() == 1).all()


def test_who_has_no_votes_and_what_has_none_get_what_is_expected() -> None:
    votes = [(0, "ann", "a"), (0, "bob", "a"), (1, "ann", "b"), (1, "bob", "b")]
    crowd = Crowd.from_triples(votes, tasks=range(3), workers=["ann", "bob", "new"])
    fitted = GIRT().fit(crowd)
    assert fitted.ability_[2] == pytest.approx(1)
    assert fitted.difficulty_[2] == pytest.approx(0)
    assert np.allclose(fitted.predict_worker_proba([2]).sum(axis=2), 1)


@pytest.mark.parametrize("guessing", [1.0, -0.1, "luck", None])
def test_luck_is_a_probability(guessing: Any) -> None:
    with pytest.raises(UsageError, match="guessing must be 'chance', or a probability below 1"):
        GIRT(guessing=guessing).fit(Crowd.from_triples([(0, "ann", "a")]))
