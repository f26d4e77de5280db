"""Grid of scores over which models with continuous task scores are integrated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Range of the grid of scores, which are standard normal: scores beyond it have a probability of 7e-6.
GRID_RANGE = 4.5


def make_score_grid(n_nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return equidistant scores and their weights under a standard normal distribution.

    Parameters
    ----------
    n_nodes : int
        Number of scores.

    Returns
    -------
    nodes, weights : ndarray of shape (n_nodes,)

    Examples
    --------
    >>> nodes, weights = make_score_grid(31)
    >>> float((weights * nodes**2).sum().round(3))
    1.0
    """
    nodes = np.linspace(-GRID_RANGE, GRID_RANGE, n_nodes)
    weights = np.exp(-(nodes**2) / 2)
    return nodes, weights / weights.sum()
