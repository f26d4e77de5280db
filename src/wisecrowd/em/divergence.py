"""Divergence between confusion matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import InputError


def confusion_divergence(first: ArrayLike, second: ArrayLike, *, clip: float = 1e-7) -> NDArray[np.float64]:
    """Compute the Jensen–Shannon divergence of confusion matrices, averaged over rows.

    The mean over workers is the I-JS of Mena and Ñanculef; the value for the matrices of two crowds is their G-JS.

    Parameters
    ----------
    first, second : array-like of shape (..., n_classes, n_classes)
        Confusion matrices [true, given], or stacks of them.
    clip : float, default 1e-7
        Smallest probability, which keeps logarithms finite.

    Returns
    -------
    ndarray of shape (...)
        Divergence of each matrix in units of log 2, from 0 (equal) to 1.

    Raises
    ------
    InputError
        If the matrices have different sizes.

    Examples
    --------
    >>> float(confusion_divergence(np.eye(8), np.full((8, 8), 1 / 8)).round(3))
    0.717
    """
    p, q = (np.clip(np.asarray(matrix, dtype=np.float64), clip, 1) for matrix in (first, second))
    if p.ndim < 2 or p.shape[-2:] != q.shape[-2:]:
        raise InputError(f"confusion_divergence compares matrices of one size; got shapes {p.shape} and {q.shape}")
    middle = (p + q) / 2
    rows = (p * np.log(p / middle) + q * np.log(q / middle)).sum(axis=-1) / 2
    return np.asarray(np.clip(rows.mean(axis=-1) / np.log(2), 0, 1))
