"""Graphs of similar tasks, along which labels spread.

Features are scaled to a common range, every task is linked to its k nearest neighbours, and label distributions propagate
along the links. Apart from the features, no step holds more than tasks x k numbers at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.em.loop import FixedPoint, iterate_to_fixed_point
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.slices import slice_rows

#: Ridge on the diagonal of a Gram matrix, relative to its mean diagonal. Neighbours that are linearly dependent leave the
#: weights undetermined; the ridge then prefers even weights.
RIDGE = 1e-3
#: Largest scaled feature, in units of the range: a task far outside the range of the others would dominate all distances.
MAX_SCALED_VALUE = 100.0
#: Number of features above which a tree search visits almost every task.
MAX_TREE_FEATURES = 15
#: Number of candidates beyond k, because single precision may swap tasks at nearly the same distance.
SPARE_CANDIDATES = 3
#: Squared distance of an excluded pair. Infinity would turn into NaN when it is multiplied by zero.
EXCLUDED = np.float32(1e38)
#: Negative weight, relative to the largest, or negative slope that counts as zero.
TOLERANCE = 1e-10
#: Maximum number of pivots. A few suffice; rounding can prevent the rule from ending.
MAX_PIVOTS = 1000
#: Number of pivots without progress before only one index at a time is exchanged.
PIVOT_PATIENCE = 3


def scale_to_range(X: NDArray[Any], reference: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Scale every feature to the range 0 to 1 and drop constant features.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features.
    reference : ndarray of bool, shape (n_tasks,), optional
        Tasks whose values define the range; all tasks by default.

    Returns
    -------
    ndarray of shape (n_tasks, n_varying_features)

    Raises
    ------
    InputError
        If every feature is constant over several reference tasks.

    Examples
    --------
    >>> scale_to_range(np.array([[1.0, 7.0, 10.0], [2.0, 7.0, 30.0], [1.5, 7.0, 10.0]])).tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.5, 0.0]]
    """
    rows = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    inside = rows if reference is None else rows[reference]
    # Values are halved, because the range of very large floats exceeds the largest float.
    low = inside.min(axis=0) / 2
    span = inside.max(axis=0) / 2 - low
    varies = span > 0
    if not varies.any():
        if len(inside) > 1:
            raise InputError(
                f"all {rows.shape[1]:,} features are the same for every task that has an answer, so no task is more similar "
                "than another; give features that differ between tasks, or use a method without features"
            )
        return np.zeros((len(rows), 1))
    with np.errstate(over="ignore"):
        scaled = (rows[:, varies] / 2 - low[varies]) / span[varies]
    return np.clip(scaled, -MAX_SCALED_VALUE, MAX_SCALED_VALUE, out=scaled)


def find_neighbours(
    X: NDArray[np.float64], k: int, candidates: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Find the k nearest neighbours of every task.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, n_features)
        Scaled features.
    k : int
        Number of neighbours. With fewer candidates, all of them are neighbours.
    candidates : ndarray of bool, shape (n_tasks,), optional
        Tasks that may be neighbours; all by default. A task is not its own neighbour, unless it is the only candidate.

    Returns
    -------
    neighbours : ndarray of shape (n_tasks, k)
        Indices of the neighbours, nearest first.
    distance : ndarray of shape (n_tasks, k)
        Euclidean distance to each of them.

    Raises
    ------
    UsageError
        If ``k`` is less than 1.

    Examples
    --------
    >>> neighbours, distance = find_neighbours(np.array([[0.0], [1.0], [3.0]]), k=1)
    >>> neighbours.ravel().tolist(), distance.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 2.0])
    """
    if k < 1:
        raise UsageError(f"k, the number of neighbours, must be 1 or more; got {k}")
    inside = np.arange(len(X)) if candidates is None else np.flatnonzero(candidates)
    if len(inside) == 1:
        return np.full((len(X), 1), inside[0]), np.linalg.norm(X - X[inside], axis=1, keepdims=True)
    k = min(k, len(inside) - 1)
    own = np.full(len(X), -1)
    own[inside] = np.arange(len(inside))
    search = _search_tree if X.shape[1] <= MAX_TREE_FEATURES else _search_products
    index, distance = search(X, X[inside], own, k)
    return inside[index], distance


def _search_tree(
    X: NDArray[np.float64], others: NDArray[np.float64], own: NDArray[np.intp], k: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Find the nearest of ``others`` to every row with a tree; row i is others[own[i]] itself, or own[i] is −1."""
    from sklearn.neighbors import NearestNeighbors

    tree = NearestNeighbors(n_neighbors=k).fit(others)
    index, distance = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k))
    inside, outside = np.flatnonzero(own >= 0), np.flatnonzero(own < 0)
    for rows, query in ((inside, None), (outside, X[outside])):  # without a query, each row is excluded from its own
        if len(rows):
            distance[rows], index[rows] = tree.kneighbors(query)
    return index, distance


def _search_products(
    X: NDArray[np.float64], others: NDArray[np.float64], own: NDArray[np.intp], k: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Find the nearest of ``others`` to every row by all distances, a block of rows at a time.

    Single precision and one matrix product select a few more candidates than needed, and double precision decides between
    them. The nearest s of n lie in the s groups with the smallest minima, so only those groups are searched.
    """
    n_candidates = min(k + SPARE_CANDIDATES, len(others))
    group_size = max(1, round((len(others) / n_candidates) ** 0.5))
    n_groups = -(-len(others) // group_size)
    centre = others.mean(axis=0)
    # |y|² − 2 x·y as one product. Columns that pad the last group are farther than any task.
    against = np.zeros((X.shape[1] + 1, group_size * n_groups), dtype=np.float32)
    against[:-1, : len(others)] = -2 * (others - centre).T
    against[-1] = EXCLUDED
    against[-1, : len(others)] = ((others - centre) ** 2).sum(axis=1)
    index, distance = np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k))
    for rows in slice_rows(len(X), against.shape[1]):
        x = X[rows]
        rough = np.column_stack([x - centre, np.ones(len(x))]).astype(np.float32) @ against
        inside = np.flatnonzero(own[rows] >= 0)
        rough[inside, own[rows][inside]] = EXCLUDED
        group = _select_smallest(rough.reshape(len(x), group_size, n_groups).min(axis=1), n_candidates)
        member = (group[:, None, :] + n_groups * np.arange(group_size)[:, None]).reshape(len(x), -1)
        values = np.take_along_axis(rough, member, axis=1)
        candidate = np.sort(np.take_along_axis(member, _select_smallest(values, n_candidates), axis=1), axis=1)
        excluded = np.take_along_axis(rough, candidate, axis=1) >= EXCLUDED / 2
        offset = others[np.where(excluded, 0, candidate)] - x[:, None]
        exact = np.where(excluded, np.inf, np.einsum("ncd,ncd->nc", offset, offset))
        order = exact.argsort(axis=1, kind="stable")[:, :k]  # the first of several at the same distance
        index[rows] = np.take_along_axis(candidate, order, axis=1)
        distance[rows] = np.sqrt(np.take_along_axis(exact, order, axis=1))
    return index, distance


def _select_smallest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Return the indices of the smallest values of every row, in no order."""
    return np.argpartition(values, count - 1, axis=1)[:, :count]


def compute_reconstruction_weights(
    X: NDArray[np.float64], k: int, candidates: NDArray[np.bool_] | None = None
) -> csr_array:
    """Compute the convex combination of neighbours that is nearest to every task.

        w_i = argmin |x_i − Σ_j w_ij x_j|²,   w_ij ≥ 0,  Σ_j w_ij = 1,  over the k nearest neighbours j of i

    These are the weights of locally linear embedding, restricted to non-negative ones. A ridge of ``RIDGE`` times the mean
    diagonal of the neighbours' Gram matrix makes them unique.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, n_features)
        Features, scaled by `scale_to_range`.
    k : int
        Number of neighbours.
    candidates : ndarray of bool, shape (n_tasks,), optional
        Tasks that may be neighbours; all by default.

    Returns
    -------
    csr_array of shape (n_tasks, n_tasks)
        Rows sum to one.

    Examples
    --------
    >>> compute_reconstruction_weights(np.array([[0.0], [1.0], [3.0]]), k=2).toarray().round(2).tolist()
    [[0.0, 1.0, 0.0], [0.67, 0.0, 0.33], [0.0, 1.0, 0.0]]
    """
    neighbours, _ = find_neighbours(X, k, candidates)
    n_tasks, k = neighbours.shape
    weight = np.empty((n_tasks, k))
    for rows in slice_rows(n_tasks, k * (X.shape[1] + k)):
        offset = X[neighbours[rows]] - X[rows, None]  # (tasks, k, features)
        weight[rows] = solve_convex_weights(offset @ offset.transpose(0, 2, 1))
    return build_graph(neighbours, weight)


def build_graph(neighbours: NDArray[np.intp], weight: NDArray[np.float64]) -> csr_array:
    """Build a sparse matrix of tasks x tasks from the neighbours of every task.

    Parameters
    ----------
    neighbours : ndarray of shape (n_tasks, k)
        Indices of the neighbours.
    weight : ndarray of shape (n_tasks, k)
        Weights of the links.

    Returns
    -------
    csr_array of shape (n_tasks, n_tasks)

    Examples
    --------
    >>> build_graph(np.array([[1], [0]]), np.array([[0.5], [2.0]])).toarray().tolist()
    [[0.0, 0.5], [2.0, 0.0]]
    """
    n_tasks, k = neighbours.shape
    offsets = np.arange(n_tasks + 1) * k
    graph = csr_array((weight.ravel(), neighbours.ravel(), offsets), shape=(n_tasks, n_tasks))
    graph.sort_indices()
    graph.eliminate_zeros()
    return graph


def solve_convex_weights(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minimise w'Gw over w ≥ 0, Σ w = 1, for every matrix G of a stack.

    The solution is v / Σ v where v ≥ 0 minimises ½ v'Gv − Σ v: Gv ≥ 1 everywhere, and Gv = 1 where v > 0. Block principal
    pivoting finds the set of positive entries: solve for a guess, then exchange every index on the wrong side, or only the
    last one if that has made no progress for some pivots, which guarantees an end.

    Parameters
    ----------
    gram : ndarray of shape (n_problems, k, k)
        Gram matrices. A ridge is added to each.

    Returns
    -------
    ndarray of shape (n_problems, k)

    Examples
    --------
    >>> solve_convex_weights(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 9.0]]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    n, k, _ = gram.shape
    mean = np.trace(gram, axis1=1, axis2=2)[:, None, None] / k
    identity = np.eye(k)
    ridge = (RIDGE + (mean == 0)) * identity  # if all neighbours coincide with the task, any weights are optimal
    matrix = np.divide(gram, mean, out=np.zeros_like(gram), where=mean > 0) + ridge
    is_positive = np.ones((n, k), dtype=bool)
    weight = np.empty((n, k))
    fewest_wrong, patience = np.full(n, k + 1), np.full(n, PIVOT_PATIENCE)
    unsolved = np.arange(n)
    # Each problem stops by itself and the state is a set of indices: not a fixed-point iteration with one tolerance.
    for _ in range(MAX_PIVOTS):
        if not len(unsolved):
            break
        guess = is_positive[unsolved]
        both = guess[:, :, None] & guess[:, None, :]
        solution = np.linalg.solve(np.where(both, matrix[unsolved], identity), guess[:, :, None].astype(np.float64))
        slope = (matrix[unsolved] @ solution)[:, :, 0] - 1
        value = weight[unsolved] = solution[:, :, 0]
        least = -TOLERANCE * np.abs(value).max(axis=1, keepdims=True)
        wrong = np.where(guess, value < least, slope < -TOLERANCE)
        n_wrong = wrong.sum(axis=1)
        improved = n_wrong < fewest_wrong[unsolved]
        patience[unsolved] = np.where(improved, PIVOT_PATIENCE, patience[unsolved] - 1)
        fewest_wrong[unsolved] = np.minimum(n_wrong, fewest_wrong[unsolved])
        last = np.arange(k) == (k - 1 - wrong[:, ::-1].argmax(axis=1))[:, None]
        is_positive[unsolved] ^= wrong & (last | (patience[unsolved] >= 0)[:, None])
        unsolved = unsolved[n_wrong > 0]
    weight = np.maximum(weight, 0)
    return weight / weight.sum(axis=1, keepdims=True)


def propagate_labels(
    graph: csr_array,
    start: NDArray[np.float64],
    own_share: NDArray[np.float64],
    *,
    max_iter: int,
    tol: float,
    title: str,
) -> FixedPoint[NDArray[np.float64]]:
    """Iterate P ← diag(s) P₀ + diag(1 − s) W P from P₀ until no entry changes by more than ``tol``.

    The limit is P = (I − diag(1 − s) W)⁻¹ diag(s) P₀.

    Parameters
    ----------
    graph : csr_array of shape (n_tasks, n_tasks)
        Weights W of the neighbours of every task.
    start : ndarray of shape (n_tasks, n_classes)
        Label distributions P₀.
    own_share : ndarray of shape (n_tasks,)
        Share s of its own start that a task keeps: 1 for a gold task, 0 for a task without an answer of its own.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Largest change of a converged iteration.
    title : str
        Name in the progress bar.

    Returns
    -------
    FixedPoint
        Label distributions, number of iterations, and whether they converged.

    Raises
    ------
    UsageError
        If ``max_iter`` or ``tol`` is out of range.

    Examples
    --------
    >>> swap = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> start, own_share = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 0.0])
    >>> result = propagate_labels(swap, start, own_share, max_iter=5, tol=0.0, title="")
    >>> result.state.tolist(), result.n_iter, result.converged
    ([[1.0, 0.0], [1.0, 0.0]], 2, True)
    """
    if max_iter < 1:
        raise UsageError(f"max_iter must be 1 or more; got {max_iter}")
    if not tol >= 0:
        raise UsageError(f"tol must be 0 or more; got {tol}")
    own_part = own_share[:, None] * start
    neighbour_share = 1 - own_share[:, None]

    def step(probs: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        updated = graph @ probs
        updated *= neighbour_share
        updated += own_part
        return updated, float(np.abs(updated - probs).max(initial=0))

    return iterate_to_fixed_point(step, start, max_iter=max_iter, tol=tol, title=title, message="largest change {:.2g}")
