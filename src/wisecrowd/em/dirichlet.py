"""Dirichlet distributions over the rows of workers' confusion matrices.

The row of a worker for true class k has the prior Dir(β_k) and the posterior Dir(β_k + n_r[k, ·]). The cells of labels that a
worker never gave enter only through the total of the row, so every sum runs over the (worker, label) pairs that occur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, xlogy

from wisecrowd.data.pairs import Pairs
from wisecrowd.utils.slices import slice_rows


@dataclass(frozen=True, eq=False)
class DirichletRows:
    """Dirichlet priors of all rows of a confusion matrix, the same for every worker.

    Tallies have one column per row of the confusion matrix.

    Parameters
    ----------
    row_class : ndarray of shape (n_rows,)
        Class of each row; −1 for a row without a class, which has no diagonal.
    n_classes : int
        Number of labels.
    off : float, default 0
        Pseudo-votes β in each cell.
    diagonal : float, default 0
        Further pseudo-votes where the label is the class of the row.
    table : ndarray of shape (n_rows, n_classes), optional
        Pseudo-votes of all cells, in place of ``off`` and ``diagonal``.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> rows = DirichletRows(np.array([0, 1]), n_classes=2, off=1.0, diagonal=1.0)
    >>> rows.mean(np.array([[7.0, 0.0], [0.0, 1.0]]), pairs)
    array([[0.9 , 0.25],
           [0.1 , 0.75]])
    """

    row_class: NDArray[np.intp]
    n_classes: int
    off: float = 0.0
    diagonal: float = 0.0
    table: NDArray[np.float64] | None = None

    def pseudo_votes(
        self, pairs: Pairs, selection: slice, transform: Callable[[Any], Any] = np.asarray
    ) -> NDArray[Any]:
        """Return β, or a function of β, for some pairs.

        Parameters
        ----------
        pairs : Pairs
            Worker and label of every pair.
        selection : slice
            Pairs to return.
        transform : callable, default numpy.asarray
            Function of β. Since β has few distinct values, it is cheap to apply here.

        Returns
        -------
        ndarray of shape (n_selected, n_rows)
        """
        label = pairs.label[selection]
        if self.table is not None:
            return transform(self.table).T[label]
        return np.where(label[:, None] == self.row_class, transform(self.off + self.diagonal), transform(self.off))

    @property
    def total(self) -> NDArray[np.float64]:
        """Sum of β over labels, (n_rows,)."""
        if self.table is not None:
            return self.table.sum(axis=1)
        return np.where(self.row_class >= 0, self.n_classes * self.off + self.diagonal, self.n_classes * self.off)

    def mean(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return the posterior mean of the probability of each pair, which is also the mode under Dir(β + 1).

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_rows)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_rows)
            Uniform where there are neither votes nor pseudo-votes.
        """
        evidence, label_probs = pairs.sum_by_worker(tally) + self.total, np.empty_like(tally)
        for rows in slice_rows(*tally.shape):
            total = evidence[pairs.worker[rows]]
            label_probs[rows] = 1 / self.n_classes
            votes = tally[rows] + self.pseudo_votes(pairs, rows)
            np.divide(votes, total, out=label_probs[rows], where=total > 0, casting="same_kind")
        return label_probs

    def geometric_mean(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return exp E log π of each pair, exp(ψ(β + n) − ψ(Σ)), which the variational E-step uses.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_rows)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_rows)
            Sums over labels are less than one.
        """
        evidence, label_probs = digamma(pairs.sum_by_worker(tally) + self.total), np.empty_like(tally)
        for rows in slice_rows(*tally.shape):
            logs = digamma(tally[rows] + self.pseudo_votes(pairs, rows))
            np.exp(logs - evidence[pairs.worker[rows]], out=label_probs[rows], casting="same_kind")
        return label_probs

    def log_density(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Return the log density of Dir(β + 1) at `mean`, Σ β log π up to a constant, summed over all rows of all workers.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_rows)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        float
        """
        total = -float(xlogy(self.total, pairs.sum_by_worker(tally) + self.total).sum(dtype=np.float64))
        for rows in slice_rows(*tally.shape):
            before = self.pseudo_votes(pairs, rows)
            after = np.divide(tally[rows], before, out=np.zeros(before.shape), where=before > 0)
            total += float((before * np.log1p(after)).sum())
        return total

    def divergence(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Return KL(Dir(β + n) ‖ Dir(β)), summed over all rows of all workers.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_rows)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        float
        """
        total = -_sum_divergence_terms(self.total, pairs.sum_by_worker(tally), gammaln(self.total))
        for rows in slice_rows(*tally.shape):
            total += _sum_divergence_terms(
                self.pseudo_votes(pairs, rows), tally[rows], self.pseudo_votes(pairs, rows, gammaln)
            )
        return total


def compute_geometric_mean(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute exp E log of Dir(votes) along the last axis.

    Parameters
    ----------
    votes : ndarray of shape (..., n)
        Parameters of the Dirichlet distribution.

    Returns
    -------
    ndarray of shape (..., n)

    Examples
    --------
    >>> compute_geometric_mean(np.array([1.0, 1.0])).round(3)
    array([0.368, 0.368])
    """
    return np.exp(digamma(votes) - digamma(votes.sum(axis=-1, keepdims=True)))


def compute_divergence(before: NDArray[np.float64], counts: NDArray[Any]) -> float:
    """Compute KL(Dir(before + counts) ‖ Dir(before)), summed over the leading axes.

    Parameters
    ----------
    before : ndarray of shape (..., n)
        Parameters of the prior.
    counts : ndarray of shape (..., n)
        Counts that the posterior adds.

    Returns
    -------
    float

    Examples
    --------
    >>> round(compute_divergence(np.ones(2), np.array([1.0, 0.0])), 4)  # from uniform to density 2x
    0.1931
    """
    sums = before.sum(axis=-1), counts.sum(axis=-1)
    return _sum_divergence_terms(before, counts, gammaln(before)) - _sum_divergence_terms(*sums, gammaln(sums[0]))


def _sum_divergence_terms(before: NDArray[Any], counts: NDArray[Any], log_gamma_before: NDArray[Any]) -> float:
    """Return the sum of the terms that cells add to a divergence and row totals subtract from it."""
    after = before + counts
    return float((counts * digamma(after) - gammaln(after) + log_gamma_before).sum(dtype=np.float64))
