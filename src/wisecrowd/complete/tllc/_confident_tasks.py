"""Tasks with high agreement, on which the first network is trained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Difference by which a confidence may fall below its threshold: the mean of equal shares is subject to rounding.
ROUNDING_ERROR = 1e-9


class ConfidentTasks(NamedTuple):
    """Tasks selected for their agreement, and the quantities that decide.

    Examples
    --------
    >>> ConfidentTasks._fields
    ('majority', 'confidence', 'threshold', 'selected')
    """

    majority: NDArray[np.intp]
    """Class with most votes on every task; −1 without votes."""
    confidence: NDArray[np.float64]
    """Share of the votes for that class; 0 without votes."""
    threshold: NDArray[np.float64]
    """Mean confidence over the tasks of every class; NaN for a class without tasks."""
    selected: NDArray[np.bool_]
    """Whether a task is selected."""


def select_confident_tasks(
    votes: NDArray[np.float64], tie_breakers: NDArray[np.float64], *, select_all: bool = False
) -> ConfidentTasks:
    """Select the tasks whose confidence is at least the mean of their class.

        ẑ_i = argmax_k n_ik,   P(k | L_i) = n_ik / n_i,   μ_k = mean of P(k | L_i) over ẑ_i = k
        X_S = { x_i : P(ẑ_i | L_i) ≥ μ_ẑ_i }

    Parameters
    ----------
    votes : ndarray of shape (n_tasks, n_classes)
        Number of votes n_ik.
    tie_breakers : ndarray of shape (n_tasks, n_classes)
        Numbers in [0, 1) that decide between classes with equally many votes.
    select_all : bool, default False
        Select all tasks with votes.

    Returns
    -------
    ConfidentTasks

    Examples
    --------
    >>> votes = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 4.0], [0.0, 0.0]])
    >>> select_confident_tasks(votes, np.zeros((4, 2))).selected.tolist()
    [True, False, True, False]
    """
    total = votes.sum(axis=1)
    share = votes / np.where(total > 0, total, 1.0)[:, None]
    confidence = share.max(axis=1)
    is_best = share == confidence[:, None]
    majority = np.where(is_best, 1.0 + tie_breakers, 0.0).argmax(axis=1)
    has_votes = total > 0
    n_classes = votes.shape[1]
    count = np.bincount(majority[has_votes], minlength=n_classes)
    mean = np.bincount(majority[has_votes], confidence[has_votes], minlength=n_classes) / np.maximum(count, 1)
    threshold = np.where(count > 0, mean, np.nan)
    selected = has_votes & (select_all | (confidence >= mean[majority] - ROUNDING_ERROR))
    return ConfidentTasks(np.where(has_votes, majority, -1), np.where(has_votes, confidence, 0.0), threshold, selected)
