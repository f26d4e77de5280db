"""Simulated label sets follow their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate.label_sets import simulate_label_sets


def test_rates_are_those_asked_for() -> None:
    made = simulate_label_sets(n_tasks=3000, n_workers=10, worker_spread=0, random_state=0)
    crowd, truth = made.crowd, made.truth.to_numpy()
    marked = np.zeros((crowd.n_votes, crowd.n_labels), dtype=bool)
    marked[crowd.mark, crowd.label] = True
    applies = truth[crowd.task]
    assert marked[applies].mean() == pytest.approx(0.7, abs=0.01)
    assert marked[~applies].mean() == pytest.approx(0.1, abs=0.01)
    assert truth.sum(axis=1).mean() == pytest.approx(2, abs=0.4)


def test_groups_make_labels_depend_on_each_other() -> None:
    def dependence(n_groups: int) -> float:
        truth = simulate_label_sets(n_tasks=2000, n_groups=n_groups, random_state=1).truth.to_numpy(dtype=float)
        return float(np.abs(np.corrcoef(truth.T) - np.eye(8)).max())

    assert dependence(1) < 0.1
    assert dependence(4) > 0.5


def test_too_many_votes_per_task_are_refused() -> None:
    with pytest.raises(UsageError, match="between 1 and 3 different workers"):
        simulate_label_sets(n_workers=3, votes_per_task=4)
