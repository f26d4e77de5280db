"""Shrinkage of workers' confusion matrices toward the matrix of the whole crowd."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.pairs import Pairs
from wisecrowd.em.priors import estimate_crowd_prior, shrink_to_crowd


def shrink_label_probs(
    tally: NDArray[Any],
    pairs: Pairs,
    fitted_tally: NDArray[Any],
    fitted_pairs: Pairs,
    strength: float,
    *,
    smoothing: float = 0.1,
    diagonal: float = 1.0,
) -> NDArray[Any]:
    """Return P(label given class) of some workers, shrunk toward the matrix of the crowd that was fitted.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts of the workers of interest.
    pairs : Pairs
        Worker and label of every row of ``tally``.
    fitted_tally : ndarray of shape (n_fitted_pairs, n_classes)
        Expected counts of all workers in the fit. The matrix of the crowd is their sum.
    fitted_pairs : Pairs
        Worker and label of every row of ``fitted_tally``.
    strength : float
        Number of votes that the matrix of the crowd is worth, for every true class.
    smoothing, diagonal : float, default 0.1 and 1.0
        Pseudo-votes in every cell, and on the diagonal, of the matrix of the crowd.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([0]), np.empty(0, dtype=np.int32), 1)
    >>> tally = np.array([[3.0, 1.0]])
    >>> shrink_label_probs(tally, pairs, tally, pairs, strength=0.0).tolist()
    [[1.0, 1.0]]
    """
    prior = estimate_crowd_prior(fitted_tally, fitted_pairs, smoothing, diagonal, strength)
    return shrink_to_crowd(tally, pairs, *prior)


def count_shrinkage_votes(
    posterior: NDArray[np.float64], crowd_confusion: NDArray[np.float64], strength: float
) -> tuple[float, float]:
    """Return the pseudo-votes that shrinkage adds to the accuracy of a worker: right ones, and all.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of the tasks, whose mean weighs the classes.
    crowd_confusion : ndarray of shape (n_classes, n_classes)
        Confusion matrix of the crowd, by true class and label.
    strength : float
        Number of votes that the matrix of the crowd is worth.

    Returns
    -------
    right : float
        Pseudo-votes for the true class.
    total : float
        All pseudo-votes.

    Examples
    --------
    >>> count_shrinkage_votes(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1], [0.3, 0.7]]), strength=10.0)
    (8.0, 10.0)
    """
    accuracy = posterior.mean(axis=0) @ np.diagonal(crowd_confusion)
    return strength * float(accuracy), strength
