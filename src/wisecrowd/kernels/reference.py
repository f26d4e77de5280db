"""Reference implementation of the kernels: products with a sparse matrix of votes."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.layout import Layout
from wisecrowd.kernels.expectation import Expectation, log_table

#: Cells of a temporary table (32 MB of float64); tables with many classes are processed a few columns at a time.
MAX_TEMPORARY_CELLS = 1 << 22
#: Above this number of columns, numpy's maximum along rows is faster than one column after the other.
SHORT_ROW = 32
#: Votes x classes up to which sums are taken by `numpy.bincount`; beyond, scipy.sparse pays for its import.
SMALL_CELLS = 200_000


def expect(
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None,
    *,
    return_posterior: bool,
) -> Expectation:
    """Compute evidence, posteriors and their sums.

    Parameters
    ----------
    layout : Layout
        Votes in the order of tasks.
    prior : ndarray of shape (n_classes,)
        Class probabilities; they sum to one.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair | class), float32 or float64.
    gold : ndarray of shape (n_tasks,) or None
        Class codes of gold tasks, -1 where the truth is unknown.
    return_posterior : bool
        Include the posterior of every task in the result.

    Returns
    -------
    Expectation

    Examples
    --------
    >>> layout = Layout(np.array([0, 1]), np.array([0], dtype=np.int32), None, 1)
    >>> expect(layout, np.array([0.5, 0.5]), np.array([[0.75, 0.25]]), None, return_posterior=True).posterior.round(6).tolist()
    [[0.75, 0.25]]
    """
    # Sums by einsum: faster than numpy's reductions on short rows, and without the threads of a matrix product.
    joint = (
        _sum_by_task(layout, log_table(label_probs))
        if _is_small(layout, label_probs)
        else _multiply(layout, label_probs)
    )
    joint += log_table(prior).astype(label_probs.dtype)

    peak = _row_maximum(joint)
    gold_task = np.flatnonzero(gold >= 0) if gold is not None else np.empty(0, dtype=np.intp)
    gold_class = gold[gold_task] if gold is not None else gold_task
    gold_joint = joint[gold_task, gold_class]

    posterior = np.exp(np.subtract(joint, peak[:, None], out=joint), out=joint)
    total = np.einsum("ik->i", posterior)
    posterior /= total[:, None]
    posterior[gold_task] = 0
    posterior[gold_task, gold_class] = 1

    evidence = peak.astype(np.float64) + np.log(total)
    evidence[gold_task] = gold_joint
    return Expectation(
        log_likelihood=float(evidence[layout.has_votes].sum()),
        class_counts=np.einsum("i,ik->k", layout.has_votes, posterior, dtype=np.float64),
        tally=tally(layout, posterior),
        posterior=posterior if return_posterior else None,
    )


def tally(layout: Layout, posterior: NDArray[Any]) -> NDArray[Any]:
    """Sum weight x posterior over the votes of every (worker, label) pair.

    Parameters
    ----------
    layout : Layout
        Votes in the order of tasks.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of every task.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> layout = Layout(np.array([0, 2]), np.array([0, 1], dtype=np.int32), None, 2)
    >>> tally(layout, np.array([[0.75, 0.25]])).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    if _is_small(layout, posterior):
        return _sum_by_pair(layout, posterior)
    n_classes = posterior.shape[1]
    result = np.empty((layout.n_pairs, n_classes), dtype=posterior.dtype)
    for columns in _column_slices(layout, n_classes):
        result[:, columns] = layout.vote_matrix.T @ posterior[:, columns]
    return result


def _multiply(layout: Layout, label_probs: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of log-probabilities over the votes of every task, by products with the sparse matrix of votes."""
    sums = np.empty((layout.n_tasks, label_probs.shape[1]), dtype=label_probs.dtype)
    for columns in _column_slices(layout, label_probs.shape[1]):
        sums[:, columns] = layout.vote_matrix @ log_table(label_probs[:, columns])
    return sums


def _is_small(layout: Layout, table: NDArray[Any]) -> bool:
    """Return whether sums by `numpy.bincount` cost less than the import of scipy.sparse."""
    return table.dtype == np.float64 and layout.n_votes * table.shape[1] <= SMALL_CELLS


def _sum_by_task(layout: Layout, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum rows of a (pairs, classes) table over the votes of every task, in the order of the votes."""
    return _bincount_columns(layout, layout.vote_task, table[_vote_pairs(layout)], layout.n_tasks)


def _sum_by_pair(layout: Layout, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum rows of a (tasks, classes) table over the votes of every pair, in the order of the votes."""
    return _bincount_columns(layout, _vote_pairs(layout), posterior[layout.vote_task], layout.n_pairs)


def _vote_pairs(layout: Layout) -> NDArray[np.int32]:
    return layout.pair[layout.offset[0] : layout.offset[-1]]


def _bincount_columns(
    layout: Layout, group: NDArray[Any], vote_values: NDArray[np.float64], n_groups: int
) -> NDArray[np.float64]:
    """Sum the values of votes within groups, column by column, with the weights of the votes."""
    if layout.weight is not None:
        vote_values = vote_values * layout.weight[layout.offset[0] : layout.offset[-1], None]
    columns = [np.bincount(group, column, minlength=n_groups) for column in np.ascontiguousarray(vote_values.T)]
    return np.stack(columns, axis=1).astype(np.float64, copy=False)  # bincount of no votes gives integers


def _row_maximum(table: NDArray[Any]) -> NDArray[Any]:
    """Return the maximum of every row; column by column when rows are short, which numpy reduces slowly."""
    if table.shape[1] > SHORT_ROW:
        return table.max(axis=1)
    return reduce(np.maximum, table.T[1:], table[:, 0].copy())


def _column_slices(layout: Layout, n_classes: int) -> list[slice]:
    """Return slices of classes that keep temporary tables within `MAX_TEMPORARY_CELLS`."""
    width = max(1, MAX_TEMPORARY_CELLS // max(1, layout.n_pairs, layout.n_tasks))
    return [slice(start, start + width) for start in range(0, n_classes, width)]
