"""Similar marks: pairs of boxes, spans or points of a task that overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Pairs that are compared at once; it bounds the memory of the sweep.
PAIRS_PER_CHUNK = 1 << 22
#: Distance from which points have no similarity, in radii.
MAX_RADII = 2.0


class SimilarPairs(NamedTuple):
    """Pairs of marks on the same task that resemble each other.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs,)
        Positions of marks.
    similarity : ndarray of shape (n_pairs,)
        Between 0 and 1.
    """

    first: Codes
    second: Codes
    similarity: Array


def find_similar_pairs(
    task: NDArray[np.integer], low: Array, high: Array, compare: Callable[[Codes, Codes], Array]
) -> SimilarPairs:
    """Return the pairs of marks on a task whose intervals overlap and whose similarity is positive.

    Intervals are swept in the order of their lower ends, so the cost is proportional to the marks and to the pairs that overlap.

    Parameters
    ----------
    task : ndarray of shape (n_marks,)
        Task codes.
    low, high : ndarray of shape (n_marks,)
        Interval of each mark on one axis.
    compare : callable
        Function of two arrays of positions that returns similarities.

    Returns
    -------
    SimilarPairs

    Examples
    --------
    >>> low, high = np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0])
    >>> pairs = find_similar_pairs(np.zeros(3, np.int32), low, high, lambda i, j: np.ones(len(i)))
    >>> pairs.first.tolist(), pairs.second.tolist()
    ([0], [1])
    """
    n = len(task)
    order = np.lexsort((low, task))
    # Lower and upper ends in one sorted sequence; an upper end precedes an equal lower end, because touching is no overlap.
    is_low = np.repeat([False, True], n)
    ends = np.concatenate([high[order], low[order]])
    merged = np.lexsort((is_low, ends, np.tile(task[order], 2)))
    n_begun = np.cumsum(is_low[merged])
    stop = np.empty(n, dtype=np.int64)
    stop[merged[~is_low[merged]]] = n_begun[~is_low[merged]]
    n_following = np.maximum(stop - np.arange(1, n + 1), 0)
    cumulated = np.concatenate([[0], np.cumsum(n_following)])
    parts: list[SimilarPairs] = []
    begin = 0
    while begin < n:
        end = int(np.searchsorted(cumulated, cumulated[begin] + PAIRS_PER_CHUNK, side="right")) - 1
        end = min(max(end, begin + 1), n)
        counts = n_following[begin:end]
        position = np.repeat(np.arange(begin, end), counts)
        distance = np.arange(len(position)) - np.repeat(cumulated[begin:end] - cumulated[begin], counts)
        one, other = order[position], order[position + 1 + distance]
        first, second = np.minimum(one, other), np.maximum(one, other)
        similarity = compare(first, second)
        is_similar = similarity > 0
        parts.append(SimilarPairs(first[is_similar], second[is_similar], similarity[is_similar]))
        begin = end
    if not parts:
        return SimilarPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return SimilarPairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def compute_box_similarity(one: Array, other: Array) -> Array:
    """Return the Dice coefficients of boxes: the shared area over the mean area.

    Parameters
    ----------
    one, other : ndarray of shape (n, 4)
        Boxes: x, y, width and height.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> compute_box_similarity(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 2, 2]])).tolist()
    [0.5]
    """
    end_one, end_other = one[:, :2] + one[:, 2:], other[:, :2] + other[:, 2:]
    sides = np.clip(np.minimum(end_one, end_other) - np.maximum(one[:, :2], other[:, :2]), 0, None)
    return np.asarray(2 * sides.prod(axis=1) / (one[:, 2:].prod(axis=1) + other[:, 2:].prod(axis=1)))


def compute_span_similarity(one: Array, other: Array) -> Array:
    """Return the Dice coefficients of spans: the shared length over the mean length.

    Parameters
    ----------
    one, other : ndarray of shape (n, 2)
        Spans: start and end.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> compute_span_similarity(np.array([[0.0, 2]]), np.array([[1.0, 3]])).tolist()
    [0.5]
    """
    shared = np.clip(np.minimum(one[:, 1], other[:, 1]) - np.maximum(one[:, 0], other[:, 0]), 0, None)
    return np.asarray(2 * shared / (one[:, 1] - one[:, 0] + other[:, 1] - other[:, 0]))


def find_box_pairs(task: NDArray[np.integer], boxes: Array) -> SimilarPairs:
    """Return the pairs of boxes on a task that overlap, with their Dice coefficients.

    Parameters
    ----------
    task : ndarray of shape (n,)
        Task codes.
    boxes : ndarray of shape (n, 4)
        x, y, width and height.

    Returns
    -------
    SimilarPairs

    Examples
    --------
    >>> find_box_pairs(np.zeros(2, int), np.array([[0.0, 0, 2, 2], [1.0, 0, 2, 2]])).similarity.tolist()
    [0.5]
    """
    return find_similar_pairs(
        task,
        boxes[:, 0],
        boxes[:, 0] + boxes[:, 2],
        lambda first, second: compute_box_similarity(boxes[first], boxes[second]),
    )


def find_span_pairs(task: NDArray[np.integer], spans: Array) -> SimilarPairs:
    """Return the pairs of spans on a task that overlap, with their Dice coefficients.

    Parameters
    ----------
    task : ndarray of shape (n,)
        Task codes.
    spans : ndarray of shape (n, 2)
        Start and end.

    Returns
    -------
    SimilarPairs

    Examples
    --------
    >>> find_span_pairs(np.zeros(2, int), np.array([[0.0, 2], [1.0, 3]])).similarity.tolist()
    [0.5]
    """
    return find_similar_pairs(
        task, spans[:, 0], spans[:, 1], lambda first, second: compute_span_similarity(spans[first], spans[second])
    )


def find_point_pairs(task: NDArray[np.integer], points: Array, radius: float) -> SimilarPairs:
    """Return the pairs of points on a task that are near, with a similarity that is 1/2 at the distance ``radius``.

    Parameters
    ----------
    task : ndarray of shape (n,)
        Task codes.
    points : ndarray of shape (n, 2)
        x and y.
    radius : float
        Distance at which the similarity is 1/2; at twice the distance it is 1/16, and 0 beyond.

    Returns
    -------
    SimilarPairs

    Examples
    --------
    >>> find_point_pairs(np.zeros(2, int), np.array([[0.0, 0], [3.0, 4]]), 5.0).similarity.tolist()
    [0.5]
    """

    def compare(first: Codes, second: Codes) -> Array:
        square = ((points[first] - points[second]) ** 2).sum(axis=1) / radius**2
        return np.where(square < MAX_RADII**2, np.exp2(-square), 0.0)

    return find_similar_pairs(task, points[:, 0], points[:, 0] + MAX_RADII * radius, compare)
