"""Stopping rule for tasks."""

from __future__ import annotations

from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.plan.acquisition import plan_votes
from wisecrowd.plan.stopping import find_finished_tasks

SOME = simulate_crowd(
    n_tasks=150, workers=["noisy(0.85)"] * 8 + ["spammer"] * 2, n_classes=3, votes_per_task=4, random_state=1
)
FITTED = DawidSkene().fit(SOME.crowd)


def test_a_task_may_stop_with_two_votes_and_confidence() -> None:
    stops = find_finished_tasks(SOME.crowd, 0.8)
    found = plan_votes(SOME.crowd, 1, target=0.8)
    assert stops.index.equals(SOME.crowd.tasks)
    assert set(stops.index[stops]) == set(found.finished_tasks.index)
    assert 0 < stops.sum() < len(stops)
    one = simulate_crowd(n_tasks=30, workers=["expert"] * 5, votes_per_task=(1, 3), random_state=0).crowd
    assert not find_finished_tasks(one, 0.5)[one.votes_per_task < 2].any()
