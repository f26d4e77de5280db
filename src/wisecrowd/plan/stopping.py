"""Stopping rule: tasks that need no more votes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.types import CrowdLike
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import UsageError
from wisecrowd.plan.starting_point import assess_votes, require_votes

#: Confidence at which a task is finished. Without gold, a calibrated confidence of 0.95 needs ten or more votes that agree.
DEFAULT_TARGET = 0.9
#: Smallest number of votes on a finished task. A single vote has no second opinion, whatever the confidence.
MIN_VOTES = 2


def find_finished_tasks(
    crowd: CrowdLike, target: float = DEFAULT_TARGET, *, model: ConfusionEM | str | None = None
) -> pd.Series:
    """Find tasks that need no more votes.

    A task is finished if it has at least two votes and its label has the confidence ``target`` or more.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    target : float, default=0.9
        Confidence at which a task is finished.
    model : ConfusionEM or str, default=None
        Fitted model, or the name of a method. By default the method of ``wisecrowd aggregate`` infers the labels.

    Returns
    -------
    Series of bool
        Whether each task is finished.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> easy = simulate_crowd(n_tasks=50, workers=["expert"] * 5, votes_per_task=4).crowd
    >>> float(find_finished_tasks(easy, 0.9).mean()) > 0.8
    True
    """
    votes = require_votes(crowd)
    check_target(target)
    finished = is_finished(votes.votes_per_task, assess_votes(votes, model).labels.confidence, target)
    return pd.Series(finished, index=votes.tasks.rename("task"), name="may_stop")


def is_finished(n_votes: NDArray[np.int64], confidence: NDArray[np.float64], target: float) -> NDArray[np.bool_]:
    """Return whether tasks are finished, given their votes and the confidence of their labels.

    Parameters
    ----------
    n_votes : ndarray of shape (n_tasks,)
        Number of votes.
    confidence : ndarray of shape (n_tasks,)
        Confidence of the labels.
    target : float
        Confidence at which a task is finished.

    Returns
    -------
    ndarray of bool of shape (n_tasks,)

    Examples
    --------
    >>> is_finished(np.array([1, 2, 2]), np.array([1.0, 0.99, 0.5]), 0.95).tolist()
    [False, True, False]
    """
    return np.asarray((n_votes >= MIN_VOTES) & (confidence >= target))


def check_target(target: float) -> None:
    """Raise an error if a target confidence is not in (0, 1].

    Parameters
    ----------
    target : float
        Confidence at which a task is finished.

    Raises
    ------
    UsageError
    """
    if not 0 < target <= 1:
        raise UsageError(f"target must be a probability above 0 and at most 1, such as 0.9; got {target}")
