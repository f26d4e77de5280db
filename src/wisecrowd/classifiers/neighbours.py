"""Tasks and their neighbours: what methods that spread answers from task to task have in common.

Features come to a common range, every task meets the k tasks that are most like it, and answers travel along the
edges. No step holds more than tasks x k numbers at a time, apart from the features themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.em.priors import blocks
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils import progress

#: What is added to the diagonal of a Gram matrix, in units of its mean: neighbours that lie in a plane, or are more than
#: there are features, leave the weights undecided, and this decides for even ones.
RIDGE = 1e-3
#: How far outside the range of the tasks that set it a task may lie, in units of the range. Beyond, far is far.
FARTHEST = 100.0
#: With more features than this, a tree looks at almost every task before it knows the nearest.
TREE_FEATURES = 15
#: Candidates beyond those wanted, for single precision may err in the order of the last.
SPARE = 3
#: A squared distance that no task has; infinity would not do, for zero times infinity is no number.
NEVER = np.float32(1e38)
#: A weight or a slope that is negative by less than this share of the largest weight, or of one, is zero.
TOLERANCE = 1e-10
#: Pivots at most. A handful does, and the rule ends without rounding; with it, weights that are not negative have to do.
PIVOTS = 1000


def range_scaled(X: NDArray[Any], among: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Every feature on the range 0 to 1, a row for each task; features that are the same for all are left out.

    The range is that of the tasks ``among``, all of them unless said otherwise.

    >>> range_scaled(np.array([[1.0, 7.0, 10.0], [2.0, 7.0, 30.0], [1.5, 7.0, 10.0]])).tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.5, 0.0]]
    """
    rows = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    inside = rows if among is None else rows[among]
    # Halves, because the range of numbers that are as large as numbers get is larger than that.
    low = inside.min(axis=0) / 2
    span = inside.max(axis=0) / 2 - low
    varies = span > 0
    if not varies.any():
        if len(inside) > 1:
            raise InputError(
                f"all {rows.shape[1]:,} features are the same for every task that has an answer, so that no task is "
                "more like another; give features that tell tasks apart, or take a method that looks at votes alone"
            )
        return np.zeros((len(rows), 1))
    with np.errstate(over="ignore"):
        scaled = (rows[:, varies] / 2 - low[varies]) / span[varies]
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)


def nearest(
    X: NDArray[np.float64], k: int, among: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The k tasks that are nearest to each task, nearest first, and how far they are: two arrays, tasks x k.

    Neighbours are sought ``among`` some tasks, all unless said otherwise, and a task is no neighbour of its own, but for
    the only one there is. Where there are fewer than k others, it is all of them.

    >>> place, distance = nearest(np.array([[0.0], [1.0], [3.0]]), k=1)
    >>> place.ravel().tolist(), distance.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 2.0])
    """
    if k < 1:
        raise UsageError(f"k, the number of neighbours, must be 1 or more; got {k}")
    everybody = np.arange(len(X))
    inside = everybody if among is None else np.flatnonzero(among)
    if len(inside) == 1:
        return np.full((len(X), 1), inside[0]), np.linalg.norm(X - X[inside], axis=1, keepdims=True)
    k = min(k, len(inside) - 1)
    own = np.full(len(X), -1)
    own[inside] = np.arange(len(inside))
    place, distance = (_by_tree if X.shape[1] <= TREE_FEATURES else _by_products)(X, X[inside], own, k)
    return inside[place], distance


def _by_tree(
    X: NDArray[np.float64], others: NDArray[np.float64], own: NDArray[np.intp], k: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The nearest of ``others`` to each row, where trees find them quickly; row i is others[own[i]] itself."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=k).fit(others)
    place, distance = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k))
    inside, outside = np.flatnonzero(own >= 0), np.flatnonzero(own < 0)
    for rows, asked in ((inside, None), (outside, X[outside])):  # asked of nobody, it leaves each of its own out
        if len(rows):
            distance[rows], place[rows] = found.kneighbors(asked)
    return place, distance


def _by_products(
    X: NDArray[np.float64], others: NDArray[np.float64], own: NDArray[np.intp], k: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The nearest of ``others`` to each row, by all distances, some rows at a time; row i is others[own[i]] itself.

    Single precision and one matrix product find a few candidates more than are wanted, double precision decides between
    them. The nearest s of n lie in the s groups whose own nearest are nearest, so that only those are searched.
    """
    spared = min(k + SPARE, len(others))
    depth = max(1, round((len(others) / spared) ** 0.5))  # members of a group
    groups = -(-len(others) // depth)
    centre = others.mean(axis=0)
    # |y|² − 2 x·y as one product; places that only fill the last group up are farther than any task.
    against = np.zeros((X.shape[1] + 1, depth * groups), dtype=np.float32)
    against[:-1, : len(others)] = -2 * (others - centre).T
    against[-1] = NEVER
    against[-1, : len(others)] = ((others - centre) ** 2).sum(axis=1)
    place, distance = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k))
    for rows in blocks(len(X), against.shape[1]):
        x = X[rows]
        far = np.column_stack([x - centre, np.ones(len(x))]).astype(np.float32) @ against
        mine = np.flatnonzero(own[rows] >= 0)
        far[mine, own[rows][mine]] = NEVER
        group = _least(far.reshape(len(x), depth, groups).min(axis=1), spared)
        member = (group[:, None, :] + groups * np.arange(depth)[:, None]).reshape(len(x), -1)
        values = np.take_along_axis(far, member, axis=1)
        chosen = _least(values, spared)
        candidate = np.sort(np.take_along_axis(member, chosen, axis=1), axis=1)
        never = np.take_along_axis(far, candidate, axis=1) >= NEVER / 2
        away = others[np.where(never, 0, candidate)] - x[:, None]
        exact = np.where(never, np.inf, np.einsum("ncd,ncd->nc", away, away))
        order = exact.argsort(axis=1, kind="stable")[:, :k]  # the first of several at the same distance
        place[rows] = np.take_along_axis(candidate, order, axis=1)
        distance[rows] = np.sqrt(np.take_along_axis(exact, order, axis=1))
    return place, distance


def _least(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Where the smallest so many of each row are, in no order."""
    return np.argpartition(values, count - 1, axis=1)[:, :count]


def reconstruction_weights(X: NDArray[np.float64], k: int, among: NDArray[np.bool_] | None = None) -> csr_array:
    """How each task is put together from its neighbours, a sparse matrix of tasks x tasks whose rows sum to one.

        w_i = argmin |x_i − Σ_j w_ij x_j|²,   w_ij ≥ 0,  Σ_j w_ij = 1,  over the k nearest neighbours j of i,

    the weights of locally linear embedding, but none of them negative. A ridge of ``RIDGE`` times the mean of the
    diagonal of the neighbours' Gram matrix makes them unique. Scale the features first: `range_scaled`.

    >>> reconstruction_weights(np.array([[0.0], [1.0], [3.0]]), k=2).toarray().round(2).tolist()
    [[0.0, 1.0, 0.0], [0.67, 0.0, 0.33], [0.0, 1.0, 0.0]]
    """
    place, _ = nearest(X, k, among)
    n_tasks, k = place.shape
    weight = np.empty((n_tasks, k))
    for rows in blocks(n_tasks, k * (X.shape[1] + k)):
        away = X[place[rows]] - X[rows, None]  # (tasks, k, features)
        weight[rows] = convex_weights(away @ away.transpose(0, 2, 1))
    return edges(place, weight)


def edges(place: NDArray[np.intp], weight: NDArray[np.float64]) -> csr_array:
    """A sparse matrix of tasks x tasks from the neighbours of each task and what they weigh.

    >>> edges(np.array([[1], [0]]), np.array([[0.5], [2.0]])).toarray().tolist()
    [[0.0, 0.5], [2.0, 0.0]]
    """
    n_tasks, k = place.shape
    made = csr_array((weight.ravel(), place.ravel(), np.arange(n_tasks + 1) * k), shape=(n_tasks, n_tasks))
    made.sort_indices()
    made.eliminate_zeros()
    return made


def convex_weights(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """The minimum of w'Gw over w ≥ 0, Σ w = 1, for every matrix G of a stack; with the ridge, the only one.

    That is v / Σ v where v ≥ 0 minimises ½ v'Gv − Σ v, whose solution has Gv ≥ 1 everywhere and Gv = 1 where v > 0. The
    set of those places is found by block principal pivoting: solve for a guess, then move every place that is on the
    wrong side, and only the last one if that has not helped for a while, which is bound to end.

    >>> convex_weights(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 9.0]]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    n, k, _ = gram.shape
    mean = np.trace(gram, axis1=1, axis2=2)[:, None, None] / k
    identity = np.eye(k)
    even = (RIDGE + (mean == 0)) * identity  # all neighbours lie on the task itself: any weights do
    matrix = np.divide(gram, mean, out=np.zeros_like(gram), where=mean > 0) + even
    used = np.ones((n, k), dtype=bool)
    weight = np.empty((n, k))
    fewest, patience = np.full(n, k + 1), np.full(n, 3)
    left = np.arange(n)
    for _ in range(PIVOTS):
        if not len(left):
            break
        mine = used[left]
        both = mine[:, :, None] & mine[:, None, :]
        found = np.linalg.solve(np.where(both, matrix[left], identity), mine[:, :, None].astype(np.float64))
        slope = (matrix[left] @ found)[:, :, 0] - 1
        value = weight[left] = found[:, :, 0]
        least = -TOLERANCE * np.abs(value).max(axis=1, keepdims=True)
        wrong = np.where(mine, value < least, slope < -TOLERANCE)
        count = wrong.sum(axis=1)
        better = count < fewest[left]
        patience[left] = np.where(better, 3, patience[left] - 1)
        fewest[left] = np.minimum(count, fewest[left])
        last = np.arange(k) == (k - 1 - wrong[:, ::-1].argmax(axis=1))[:, None]
        used[left] ^= wrong & (last | (patience[left] >= 0)[:, None])
        left = left[count > 0]
    weight = np.maximum(weight, 0)
    return weight / weight.sum(axis=1, keepdims=True)


def propagate(
    graph: csr_array,
    first: NDArray[np.float64],
    keep: NDArray[np.float64],
    *,
    max_iter: int,
    tol: float,
    title: str,
) -> tuple[NDArray[np.float64], int, bool]:
    """P ← diag(keep) P₀ + diag(1 − keep) W P from P₀ on; gives P, the number of passes, and whether it settled.

    It has settled when no entry changes by more than ``tol``; then P = (I − diag(1 − keep) W)⁻¹ diag(keep) P₀. A task of
    known truth keeps all of it (1), a task without an answer of its own nothing (0).

    >>> swap = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> propagate(swap, np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 0.0]), max_iter=5, tol=0.0, title="")
    (array([[1., 0.],
           [1., 0.]]), 2, True)
    """
    if max_iter < 1:
        raise UsageError(f"max_iter must be 1 or more; got {max_iter}")
    if not tol >= 0:
        raise UsageError(f"tol must be 0 or more; got {tol}")
    given = keep[:, None] * first
    pull = 1 - keep[:, None]
    answer, settled, passes = first, False, 0
    while passes < max_iter and not settled:
        before = answer
        answer = graph @ before
        answer *= pull
        answer += given
        passes += 1
        change = np.abs(answer - before).max(initial=0)
        settled = bool(change <= tol)
        progress.report(title, passes, max_iter, f"largest change {change:.2g}")
    return answer, passes, settled
