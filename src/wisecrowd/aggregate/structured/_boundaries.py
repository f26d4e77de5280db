"""Merge: the place of an object from the places of its marks, with a precision per worker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.polygon_rings import PolygonRings

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Pseudo-marks that draw a worker's precision to that of the crowd.
PRECISION_PRIOR = 5.0
#: Iterations of the estimates of precision; they change little after a few.
PRECISION_STEPS = 20
#: Smallest variance of a worker relative to the size of an object: a tenth of a percent of its side.
MIN_VARIANCE = 1e-6
#: Wrong boundaries of a span that are about equally likely.
WRONG_BOUNDARIES = 4
#: Bounds of the probability that a worker sets the right boundary.
EXACT_BOUNDS = (0.02, 0.98)


class Boundaries(NamedTuple):
    """Merged boundaries of objects.

    Parameters
    ----------
    coordinates : ndarray of shape (n_objects, n_coordinates)
        Place of every object.
    confidence : ndarray of shape (n_objects,)
        Probability that the boundary is exactly right, or 1 for continuous coordinates.
    worker_precision : ndarray of shape (n_workers,)
        Weight of a worker's marks relative to a typical worker's.
    worker_error : ndarray of shape (n_workers,)
        Standard deviation of boundaries relative to the size of objects, or the probability of a wrong boundary.
    rings : PolygonRings or None
        Outlines of objects that are polygons.
    """

    coordinates: Array
    confidence: Array
    worker_precision: Array
    worker_error: Array
    rings: PolygonRings | None = None


def compute_medians(values: Array, mark_object: Codes, n_objects: int) -> Array:
    """Return the median of every column of the marks of each object.

    Parameters
    ----------
    values : ndarray of shape (n_marks, n_columns)
        Values of marks.
    mark_object : ndarray of shape (n_marks,)
        Object of every mark; every object has at least one.
    n_objects : int
        Number of objects.

    Returns
    -------
    ndarray of shape (n_objects, n_columns)

    Examples
    --------
    >>> compute_medians(np.array([[1.0], [5.0], [3.0], [8.0]]), np.array([0, 0, 0, 1]), 2).ravel().tolist()
    [3.0, 8.0]
    """
    count = np.bincount(mark_object, minlength=n_objects)
    begin = np.cumsum(count) - count
    medians = np.empty((n_objects, values.shape[1]))
    for number, column in enumerate(values.T):
        ordered = column[np.lexsort((column, mark_object))]
        medians[:, number] = (ordered[begin + (count - 1) // 2] + ordered[begin + count // 2]) / 2
    return medians


def merge_by_precision(
    values: Array, scale: Array, mark_object: Codes, mark_worker: NDArray[np.int32], real: Array, n_workers: int
) -> Boundaries:
    """Return precision-weighted means of continuous coordinates.

    A coordinate of a mark is that of the object plus normal noise, whose variance is v_r times the square of the object's
    size. The variances include that of the estimated place; without it, one worker would appear to be exact and own every object.

    Parameters
    ----------
    values : ndarray of shape (n_marks, n_coordinates)
        Coordinates of marks.
    scale : ndarray of shape (n_objects, n_coordinates)
        Size of every object along each coordinate.
    mark_object, mark_worker : ndarray of shape (n_marks,)
        Object and worker of every mark.
    real : ndarray of shape (n_objects,)
        Probability that an object is real.
    n_workers : int
        Number of workers.

    Returns
    -------
    Boundaries

    Examples
    --------
    >>> values, scale = np.array([[1.0], [3.0]]), np.ones((1, 1))
    >>> merge_by_precision(values, scale, np.array([0, 0]), np.array([0, 1]), np.ones(1), 2).coordinates.item()
    2.0
    """
    n_objects = len(scale)
    n_marks = np.bincount(mark_object, minlength=n_objects)
    evidence = np.where(n_marks > 1, real, 0.0)[mark_object]  # a single mark says nothing about precision
    chances = np.bincount(mark_worker, evidence, n_workers)
    variance = np.ones(n_workers)
    relative = values / scale[mark_object]
    for _ in range(PRECISION_STEPS):
        weight = 1 / variance[mark_worker]
        total = np.bincount(mark_object, weight, n_objects)
        center = np.stack(
            [np.bincount(mark_object, weight * column, n_objects) / total for column in relative.T], axis=1
        )
        squares = ((relative - center[mark_object]) ** 2).mean(axis=1) + 1 / total[mark_object]
        errors = np.bincount(mark_worker, evidence * squares, n_workers)
        typical = errors.sum() / chances.sum() if chances.sum() > 0 else 1.0
        variance = np.maximum((errors + PRECISION_PRIOR * typical) / (chances + PRECISION_PRIOR), MIN_VARIANCE)
    weight = 1 / variance[mark_worker]
    total = np.bincount(mark_object, weight, n_objects)
    merged = np.stack([np.bincount(mark_object, weight * column, n_objects) / total for column in values.T], axis=1)
    precision = np.median(variance) / variance
    return Boundaries(merged, np.ones(n_objects), precision, np.sqrt(variance))


def merge_by_vote(
    values: Array, mark_object: Codes, mark_worker: NDArray[np.int32], real: Array, n_workers: int
) -> Boundaries:
    """Return the most probable of the boundaries that workers gave, for coordinates that must not be averaged.

    Worker r gives the right boundary with probability e_r, or one of a few wrong ones. The right boundary may be one that nobody
    gave. Equal probabilities are decided for the shorter, then the earlier boundary.

    Parameters
    ----------
    values : ndarray of shape (n_marks, 2)
        Start and end of marks.
    mark_object, mark_worker : ndarray of shape (n_marks,)
        Object and worker of every mark.
    real : ndarray of shape (n_objects,)
        Probability that an object is real.
    n_workers : int
        Number of workers.

    Returns
    -------
    Boundaries

    Examples
    --------
    >>> values = np.array([[0.0, 2.0], [0.0, 3.0], [0.0, 2.0]])
    >>> merge_by_vote(values, np.zeros(3, int), np.arange(3), np.ones(1), 3).coordinates.tolist()
    [[0.0, 2.0]]
    """
    n_objects = len(real)
    start, end = values.T
    order = np.lexsort((start, end - start, mark_object))
    columns = np.column_stack([mark_object, start, end])[order]
    is_new = np.append(True, (np.diff(columns, axis=0) != 0).any(axis=1)) if len(order) else np.zeros(0, bool)
    option = np.empty(len(order), dtype=np.int64)
    option[order] = np.cumsum(is_new) - 1  # options of an object are ordered by length and start
    first_mark = order[is_new]
    option_object = mark_object[first_mark]
    n_options = np.bincount(option_object, minlength=n_objects)
    n_marks = np.bincount(mark_object, minlength=n_objects)
    evidence = np.where(n_marks > 1, real, 0.0)[mark_object]
    chances = np.bincount(mark_worker, evidence, n_workers)
    exact = np.full(n_workers, 0.8)
    unseen_options = np.log(np.maximum(WRONG_BOUNDARIES + 1 - n_options, 1))
    probs = np.ones(len(first_mark))
    for _ in range(PRECISION_STEPS):
        log_odds = np.log(exact / (1 - exact) * WRONG_BOUNDARIES)[mark_worker]
        score = np.bincount(option, log_odds, len(first_mark))
        highest = unseen_options.copy()
        np.maximum.at(highest, option_object, score)
        probs = np.exp(score - highest[option_object])
        total = np.bincount(option_object, probs, n_objects) + np.exp(unseen_options - highest)
        probs = probs / total[option_object]
        hits = np.bincount(mark_worker, evidence * probs[option], n_workers)
        typical = hits.sum() / chances.sum() if chances.sum() > 0 else 0.8
        exact = np.clip((hits + PRECISION_PRIOR * typical) / (chances + PRECISION_PRIOR), *EXACT_BOUNDS)
    best = np.lexsort((np.arange(len(probs)), -np.round(probs, 12), option_object))
    chosen = best[np.append(True, np.diff(option_object[best]) != 0)] if len(best) else best
    weight = np.maximum(np.log(exact / (1 - exact) * WRONG_BOUNDARIES), 0.1)
    return Boundaries(values[first_mark[chosen]], probs[chosen], weight / np.median(weight), 1 - exact)
