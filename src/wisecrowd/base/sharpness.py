"""Sharpness of class probabilities: one exponent that calibrates them by votes.

With exponent s, f^s normalised is more confident than f for s > 1 and less for s < 1; 1/s is known as temperature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.kernels import MIN_PROB

#: Range in which `estimate_sharpness` searches.
SHARPNESS_RANGE = (0.2, 10.0)


def sharpen(class_probs: NDArray[np.float64], sharpness: float) -> NDArray[np.float64]:
    """Return f^s, normalised: more confident than f for a sharpness above 1, less for one below.

    Parameters
    ----------
    class_probs : ndarray of shape (n_tasks, n_classes)
        Class probabilities f.
    sharpness : float
        Exponent s.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> sharpen(np.array([[0.8, 0.2]]), 0.0).tolist()
    [[0.5, 0.5]]
    """
    from scipy.special import softmax

    if sharpness == 1:
        return class_probs
    return np.asarray(softmax(sharpness * safe_log(class_probs), axis=1))


def estimate_sharpness(
    class_probs: NDArray[np.float64], vote_log_probs: NDArray[np.float64], scale: float = np.inf
) -> float:
    """Estimate the sharpness under which the votes are most probable.

    A ridge makes a classifier under-confident and noise in its targets makes it over-confident. One exponent,
    fitted to the votes, calibrates predictions for tasks that the classifier was not fitted to.

    Parameters
    ----------
    class_probs : ndarray of shape (n_tasks, n_classes)
        Out-of-fold class probabilities.
    vote_log_probs : ndarray of shape (n_tasks, n_classes)
        log P(votes on a task given class).
    scale : float, default=inf
        Standard deviation of log s in a normal prior around zero; infinite for no prior.

    Returns
    -------
    float
        Between the limits of `SHARPNESS_RANGE`.

    Examples
    --------
    >>> class_probs = np.where(np.arange(20)[:, None] % 2 == np.arange(2), 0.6, 0.4)  # right, but under-confident
    >>> vote_log_probs = np.log(np.where(class_probs > 0.5, 0.9, 0.1))
    >>> estimate_sharpness(class_probs, vote_log_probs) > 2
    True
    """
    from scipy.optimize import minimize_scalar

    logs = safe_log(class_probs)

    def negative_log_likelihood(log_sharpness: float) -> float:
        prior = np.exp(log_sharpness) * logs
        joint = np.logaddexp.reduce(prior + vote_log_probs, axis=1) - np.logaddexp.reduce(prior, axis=1)
        return 0.5 * (log_sharpness / scale) ** 2 - float(joint.sum())

    bounds = tuple(np.log(SHARPNESS_RANGE))
    best = minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 0.01})
    return float(np.exp(best.x))


def safe_log(probability: NDArray[Any]) -> NDArray[np.float64]:
    """Return the logarithm of probabilities, finite where they are zero.

    Parameters
    ----------
    probability : ndarray
        Probabilities of any shape.

    Returns
    -------
    ndarray
        Of the same shape.

    Examples
    --------
    >>> safe_log(np.array([1.0, 0.0])) > -1000
    array([ True,  True])
    """
    return np.asarray(np.log(np.maximum(probability, MIN_PROB)))
