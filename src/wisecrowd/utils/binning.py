"""Bins of predicted probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import UsageError, check_choice


def check_bins(n_bins: int, bins: str) -> None:
    """Raise when the number or the kind of bins is invalid.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    bins : {"width", "mass"}
        Kind of bins; see `assign_bins`.

    Raises
    ------
    UsageError
        If ``n_bins`` is below one or ``bins`` is unknown.

    Examples
    --------
    >>> check_bins(10, "mass")
    """
    check_choice("bins", bins, ("width", "mass"))
    if n_bins < 1:
        raise UsageError(f"n_bins must be one or more; got {n_bins}")


def assign_bins(confidence: NDArray[np.float64], n_bins: int, bins: str) -> NDArray[np.intp]:
    """Assign each confidence to a bin.

    Parameters
    ----------
    confidence : ndarray of shape (n_tasks,)
        Probabilities.
    n_bins : int
        Number of bins.
    bins : {"width", "mass"}
        "width" for bins of equal width, "mass" for bins with about equally many values.

    Returns
    -------
    ndarray of shape (n_tasks,)
        Number of the bin, from zero. Equal confidences share a bin.

    Examples
    --------
    >>> assign_bins(np.array([0.2, 0.9, 0.9]), 2, "width").tolist()
    [0, 1, 1]
    """
    shares = np.linspace(0, 1, n_bins + 1)[1:-1]
    # By mass, edges are confidences that occur, so that tasks of equal confidence share a bin.
    edges = shares if bins == "width" else np.quantile(confidence, shares, method="inverted_cdf")
    return np.searchsorted(edges, confidence, side="left")
