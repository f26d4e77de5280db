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
    joint = np.empty((layout.n_tasks, len(prior)), dtype=label_probs.dtype)
    for columns in _column_slices(layout, len(prior)):
        joint[:, columns] = layout.vote_matrix @ log_table(label_probs[:, columns])
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
    n_classes = posterior.shape[1]
    result = np.empty((layout.n_pairs, n_classes), dtype=posterior.dtype)
    for columns in _column_slices(layout, n_classes):
        result[:, columns] = layout.vote_matrix.T @ posterior[:, columns]
    return result


def _row_maximum(table: NDArray[Any]) -> NDArray[Any]:
    """Return the maximum of every row; column by column when rows are short, which numpy reduces slowly."""
    if table.shape[1] > SHORT_ROW:
        return table.max(axis=1)
    return reduce(np.maximum, table.T[1:], table[:, 0].copy())


def _column_slices(layout: Layout, n_classes: int) -> list[slice]:
    """Return slices of classes that keep temporary tables within `MAX_TEMPORARY_CELLS`."""
    width = max(1, MAX_TEMPORARY_CELLS // max(1, layout.n_pairs, layout.n_tasks))
    return [slice(start, start + width) for start in range(0, n_classes, width)]
