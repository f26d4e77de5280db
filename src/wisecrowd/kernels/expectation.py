"""Result of an E-step over votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Smallest probability; a zero counts as this. A zero therefore excludes a class against any evidence below e**708, and a
#: task of which every class is excluded still has a posterior: the class with the fewest zeros leads.
MIN_PROB = np.finfo(np.float64).tiny


class Expectation(NamedTuple):
    """Sums of one pass over the votes.

    Attributes
    ----------
    log_likelihood : float
        Sum over tasks with votes of log Σ_k prior_k Π_n label_probs[pair_n, k]; a gold task contributes the term of its
        class only.
    class_counts : ndarray of shape (n_classes,)
        Sum of the posteriors of the tasks with votes.
    tally : ndarray of shape (n_pairs, n_classes)
        Sum of weight x posterior over the votes of each (worker, label) pair.
    posterior : ndarray of shape (n_tasks, n_classes) or None
        Posterior of every task, if requested. A task without votes has the prior, a gold task its class.

    Examples
    --------
    >>> Expectation._fields
    ('log_likelihood', 'class_counts', 'tally', 'posterior')
    """

    log_likelihood: float
    class_counts: NDArray[np.float64]
    tally: NDArray[Any]
    posterior: NDArray[Any] | None


def log_table(table: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithm of a table of probabilities, at least log(`MIN_PROB`).

    Parameters
    ----------
    table : ndarray
        Probabilities, not negative.

    Returns
    -------
    ndarray
        A new array of the same shape and type.

    Examples
    --------
    >>> log_table(np.array([1.0, 0.0])).round(1).tolist()
    [0.0, -708.4]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return np.maximum(logs, float(np.log(MIN_PROB)), out=logs)
