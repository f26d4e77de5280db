"""Stopping rule: tasks that need no more votes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import UsageError
from wisecrowd.plan.belief import assess_crowd, require_votes

#: A task is done with no fewer votes than this, however sure the model is.
MIN_VOTES = 2


def find_finished_tasks(crowd: Any, target: float = 0.95, *, model: ConfusionEM | str | None = None) -> pd.Series:
    """For each task, whether it needs no more votes: two or more are there, and its label is as probable as wanted.

    >>> from wisecrowd import simulate_crowd
    >>> easy = simulate_crowd(n_tasks=50, workers=["expert"] * 5, votes_per_task=4).crowd
    >>> float(find_finished_tasks(easy, 0.9).mean()) > 0.8
    True
    """
    votes = require_votes(crowd)
    check_target(target)
    finished = is_finished(votes.votes_per_task, assess_crowd(votes, model)[1], target)
    return pd.Series(finished, index=votes.tasks.rename("task"), name="may_stop")


def is_finished(n_votes: NDArray[np.int64], belief: NDArray[np.float64], target: float) -> NDArray[np.bool_]:
    """Which tasks need no more votes, by how many they have and what may be believed of them.

    >>> is_finished(np.array([1, 2, 2]), np.array([[1.0, 0.0], [0.99, 0.01], [0.5, 0.5]]), 0.95).tolist()
    [False, True, False]
    """
    return np.asarray((n_votes >= MIN_VOTES) & (belief.max(axis=1) >= target))


def check_target(target: float) -> None:
    if not 0 < target <= 1:
        raise UsageError(f"target is the probability at which a task is done, for example 0.95; got {target}")
