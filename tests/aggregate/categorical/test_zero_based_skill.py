"""Zero-based skill: Wawa repeated, in steps that grow smaller."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, Wawa, ZeroBasedSkill
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.evaluate.metrics import worker_correlation
from wisecrowd.simulate import simulate_crowd


def test_one_full_step_is_wawa() -> None:
    made = simulate_crowd(200, 20, 3, votes_per_task=4, random_state=1)
    with pytest.warns(NotConverged):
        fitted = ZeroBasedSkill(max_iter=1).fit(made.crowd)
    np.testing.assert_allclose(fitted.weight_, Wawa().fit(made.crowd).weight_)
    np.testing.assert_allclose(fitted.posterior_, Wawa().fit(made.crowd).posterior_)


def test_skills_end_where_they_agree_with_their_own_vote() -> None:
    made = simulate_crowd(300, 20, 3, votes_per_task=5, random_state=2)
    fitted = ZeroBasedSkill().fit(made.crowd)
    assert fitted.converged_
    chosen = fitted.posterior_.argmax(axis=1)
    right = np.bincount(made.crowd.worker, made.crowd.label == chosen[made.crowd.task])
    np.testing.assert_allclose(fitted.weight_, right / made.crowd.votes_per_worker, atol=1e-4)


def test_the_schedule_of_steps() -> None:
    # ann and bob always agree, so the agreement is 1 throughout and the gap shrinks by (1 − step) each round.
    crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in ("ann", "bob")])
    with pytest.warns(NotConverged):
        fitted = ZeroBasedSkill(learning_rate=0.5, halve_every=2, max_iter=5).fit(crowd)
    steps = 0.5 / 2 ** np.array([0, 1, 1, 2, 2])  # halved in every second round, before the step
    np.testing.assert_allclose(1 - fitted.weight_, (0.5 - 1e-5) * np.prod(1 - steps))


def test_skills_find_the_good_workers_better_with_more_tasks() -> None:
    found = []
    for tasks in (30, 200, 1500):
        made = simulate_crowd(tasks, 20, 3, votes_per_task=6, workers={"noisy(0.4, 0.95)": 20}, random_state=3)
        found.append(worker_correlation(made.accuracy, ZeroBasedSkill().fit(made.crowd).workers_["weight"]))
    assert found[0] < found[1] < found[2]
    assert found[2] > 0.97


@pytest.mark.parametrize("bad", [{"max_iter": 0}, {"halve_every": 0}, {"learning_rate": 0.0}, {"learning_rate": 1.5}])
def test_bad_parameters_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(bad))):
        ZeroBasedSkill(**bad).fit(Crowd.from_triples([(0, 0, "a")]))
