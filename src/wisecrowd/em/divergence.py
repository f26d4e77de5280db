"""Distance between confusion matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import InputError


def confusion_divergence(first: ArrayLike, second: ArrayLike, *, clip: float = 1e-7) -> NDArray[np.float64]:
    """Jensen-Shannon divergence of confusion matrices, from 0 (equal) to 1: the mean over rows, in units of log 2.

    Takes single matrices (true, said) or stacks of them, and gives one number per matrix; the mean over workers is the
    I-JS of Mena and Ñanculef, and the number for the crowd's own matrix their G-JS.

    >>> float(confusion_divergence(np.eye(8), np.full((8, 8), 1 / 8)).round(3))
    0.717
    """
    p, q = (np.clip(np.asarray(one, dtype=np.float64), clip, 1) for one in (first, second))
    if p.ndim < 2 or p.shape[-2:] != q.shape[-2:]:
        raise InputError(f"two (stacks of) matrices of one size were wanted; got shapes {p.shape} and {q.shape}")
    middle = (p + q) / 2
    rows = (p * np.log(p / middle) + q * np.log(q / middle)).sum(axis=-1) / 2
    return np.asarray(np.clip(rows.mean(axis=-1) / np.log(2), 0, 1))
