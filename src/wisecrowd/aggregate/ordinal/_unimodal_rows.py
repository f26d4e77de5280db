"""Confusion matrices whose rows rise up to the true class and fall after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.pairs import Pairs
from wisecrowd.utils.slices import slice_rows

Array = NDArray[np.float64]


def fit_unimodal_rows(counts: Array) -> Array:
    """Return the most likely confusion matrices with unimodal rows, given counts.

    Row k maximises Σ_l n_kl log π_kl subject to π_k0 ≤ … ≤ π_kk ≥ … ≥ π_k,K−1. The solution is the isotonic regression of the
    relative frequencies: π_kk is the largest mean over an interval of labels that contains k, and each side is its own isotonic
    regression, cut at π_kk.

    Parameters
    ----------
    counts : ndarray of shape (n, n_classes, n_classes)
        Counts by matrix, true class and label.

    Returns
    -------
    ndarray of shape (n, n_classes, n_classes)
        Probabilities; uniform for a row without counts.

    Examples
    --------
    >>> fit_unimodal_rows(np.array([[[6.0, 1.0, 3.0], [1.0, 1.0, 0.0], [0.0, 2.0, 2.0]]])).tolist()
    [[[0.6, 0.2, 0.2], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]]
    """
    total = counts.sum(axis=2, keepdims=True)
    n_classes = counts.shape[2]
    share = np.divide(counts, total, out=np.full(counts.shape, 1 / n_classes), where=total > 0)
    probs = np.empty_like(share)
    for true in range(n_classes):
        row = share[:, true]
        left, right = _increase(row[:, :true]), _increase(row[:, :true:-1])[:, ::-1]
        top = _interval_means(row)[:, : true + 1, true:].max(axis=(1, 2))[:, None]
        probs[:, true] = np.concatenate([np.minimum(left, top), top, np.minimum(right, top)], axis=1)
    return probs


def _interval_means(rows: Array) -> Array:
    """Return the means of all intervals of the columns, [row, first, last]; +∞ where last is before first."""
    n_columns = rows.shape[1]
    total = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    first, last = np.arange(n_columns)[:, None], np.arange(n_columns)[None, :]
    length = last - first + 1
    means = (total[:, None, 1:] - total[:, :-1, None]) / np.where(length > 0, length, 1)
    return np.asarray(np.where(length > 0, means, np.inf), dtype=np.float64)


def _increase(rows: Array) -> Array:
    """Return the isotonic regression of every row: max over first ≤ i of min over last ≥ i of the mean of first … last."""
    if rows.shape[1] < 2:
        return rows
    lowest = np.minimum.accumulate(_interval_means(rows)[:, :, ::-1], axis=2)[:, :, ::-1]
    starts_later = np.tri(rows.shape[1], k=-1, dtype=bool)
    return np.asarray(np.where(starts_later, -np.inf, lowest).max(axis=1), dtype=np.float64)


def make_pseudo_votes(n_classes: int, smoothing: float, diagonal: float, decay: float) -> Array:
    """Return the pseudo-votes of a confusion matrix, which fall with the distance from the true class.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    smoothing : float
        Pseudo-votes in every cell.
    diagonal : float
        Further pseudo-votes on the diagonal.
    decay : float
        Factor by which the further pseudo-votes fall with each class of distance from the diagonal.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)

    Examples
    --------
    >>> make_pseudo_votes(3, smoothing=0.0, diagonal=1.0, decay=0.5)[0].tolist()
    [1.0, 0.5, 0.25]
    """
    distance = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes)))
    return np.asarray(smoothing + diagonal * float(decay) ** distance, dtype=np.float64)


def estimate_unimodal_probs(tally: NDArray[Any], pairs: Pairs, pseudo_votes: Array) -> tuple[NDArray[Any], float]:
    """Estimate P(label given class) with unimodal rows, and the log density of the prior.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    pseudo_votes : ndarray of shape (n_classes, n_classes)
        Pseudo-votes by true class and label.

    Returns
    -------
    label_probs : ndarray of shape (n_pairs, n_classes)
    log_prior : float
        Σ_r Σ_kl s_kl log π_r[k, l] for pseudo-votes s.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> estimate_unimodal_probs(np.array([[3.0, 1.0], [1.0, 3.0]]), pairs, np.zeros((2, 2)))
    (array([[0.75, 0.25],
           [0.25, 0.75]]), 0.0)
    """
    n_classes = tally.shape[1]
    label_probs, log_prior = np.empty_like(tally), 0.0
    bounds = np.searchsorted(pairs.worker, np.arange(pairs.n_workers + 1))
    for workers in slice_rows(pairs.n_workers, n_classes**3):
        first, last, _ = workers.indices(pairs.n_workers)
        rows = slice(bounds[first], bounds[last])
        worker, label = pairs.worker[rows] - first, pairs.label[rows]
        counts = np.zeros((last - first, n_classes, n_classes))
        counts[worker, :, label] = tally[rows]
        probs = fit_unimodal_rows(counts + pseudo_votes)
        label_probs[rows] = probs[worker, :, label]
        has_pseudo_votes = pseudo_votes > 0
        log_prior += float((pseudo_votes[has_pseudo_votes] * np.log(probs[:, has_pseudo_votes])).sum())
    return label_probs, log_prior
