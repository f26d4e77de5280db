"""Tasks on whose class most agree: what a network can be taught with before anybody is imitated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Confident(NamedTuple):
    """Which tasks are kept, and why.

    >>> Confident._fields
    ('voted', 'confidence', 'threshold', 'kept')
    """

    voted: NDArray[np.intp]
    """The class of most votes of each task; −1 where there are none."""
    confidence: NDArray[np.float64]
    """Its share of the votes; 0 where there are none."""
    threshold: NDArray[np.float64]
    """The mean share of each class over the tasks that it won; NaN for a class that won none."""
    kept: NDArray[np.bool_]


def confident_tasks(votes: NDArray[np.float64], draws: NDArray[np.float64], *, every: bool = False) -> Confident:
    """Keep the tasks whose confidence is not below the mean of their class, or every one that has votes.

        ẑ_i = argmax_k n_ik,   P(k | L_i) = n_ik / n_i,   μ_k = mean of P(k | L_i) over ẑ_i = k
        X_S = { x_i : P(ẑ_i | L_i) ≥ μ_ẑ_i }

    ``draws``, a number in [0, 1) for each task and class, settle draws between classes.

    >>> votes = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 4.0], [0.0, 0.0]])
    >>> confident_tasks(votes, np.zeros((4, 2))).kept.tolist()
    [True, False, True, False]
    """
    total = votes.sum(axis=1)
    share = votes / np.where(total > 0, total, 1.0)[:, None]
    confidence = share.max(axis=1)
    best = share == confidence[:, None]
    voted = np.where(best, 1.0 + draws, 0.0).argmax(axis=1)
    won = total > 0
    n_classes = votes.shape[1]
    count = np.bincount(voted[won], minlength=n_classes)
    mean = np.bincount(voted[won], confidence[won], minlength=n_classes) / np.maximum(count, 1)
    threshold = np.where(count > 0, mean, np.nan)
    # A class won by equal shares only has them for its mean, up to a rounding.
    kept = won & (every | (confidence >= mean[voted] - 1e-9))
    return Confident(np.where(won, voted, -1), np.where(won, confidence, 0.0), threshold, kept)
