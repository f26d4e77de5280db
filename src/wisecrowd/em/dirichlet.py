"""Dirichlet beliefs about what workers say: before the votes (pseudo-votes), and after them.

A worker's row for true class k starts as Dir(β_k) and becomes Dir(β_k + n_r[k, ·]). Of the cells that a worker never
used only the row's total is needed, so that every sum runs over the (worker, label) pairs that occur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, xlogy

from wisecrowd.data.crowd import Pairs
from wisecrowd.em.priors import blocks


@dataclass(frozen=True, eq=False)
class DirichletRows:
    """Pseudo-votes of every row: ``off`` in each cell and ``diagonal`` more where the label is the row's class.

    Tallies are (pairs, rows); ``of_row`` holds the class that each row belongs to. A ``table`` (rows, labels) takes the
    place of the two numbers.

    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> rows = DirichletRows(np.array([0, 1]), n_classes=2, off=1.0, diagonal=1.0)
    >>> rows.mean(np.array([[7.0, 0.0], [0.0, 1.0]]), pairs)
    array([[0.9 , 0.25],
           [0.1 , 0.75]])
    """

    of_row: NDArray[np.intp]
    n_classes: int
    off: float = 0.0
    diagonal: float = 0.0
    table: NDArray[np.float64] | None = None

    def at(self, pairs: Pairs, chosen: slice, of: Callable[[Any], Any] = np.asarray) -> NDArray[Any]:
        """β of some pairs, (pairs, rows), or a function of it, which is cheap: β has few values."""
        label = pairs.label[chosen]
        if self.table is not None:
            return of(self.table).T[label]
        return np.where(label[:, None] == self.of_row, of(self.off + self.diagonal), of(self.off))

    @property
    def total(self) -> NDArray[np.float64]:
        """β added up over labels, (rows,)."""
        if self.table is not None:
            return self.table.sum(axis=1)
        # A row without a class of its own (of_row = −1) has no diagonal.
        return np.where(self.of_row >= 0, self.n_classes * self.off + self.diagonal, self.n_classes * self.off)

    def mean(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """The expected probability of each pair; uniform where nothing is known. Also the mode under Dir(β + 1)."""
        evidence, label_probs = pairs.by_worker(tally) + self.total, np.empty_like(tally)
        for some in blocks(*tally.shape):
            total = evidence[pairs.worker[some]]
            label_probs[some] = 1 / self.n_classes
            np.divide(
                tally[some] + self.at(pairs, some), total, out=label_probs[some], where=total > 0, casting="same_kind"
            )
        return label_probs

    def geometric_mean(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """exp E log π of each pair, exp(ψ(β + n) − ψ(Σ)): what a variational E-step multiplies. It sums to less than 1."""
        evidence, label_probs = digamma(pairs.by_worker(tally) + self.total), np.empty_like(tally)
        for some in blocks(*tally.shape):
            logs = digamma(tally[some] + self.at(pairs, some))
            np.exp(logs - evidence[pairs.worker[some]], out=label_probs[some], casting="same_kind")
        return label_probs

    def log_density(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """Σ β log π at π = `mean`, up to a constant: the logarithm of the density Dir(β + 1) of all rows."""
        total = -float(xlogy(self.total, pairs.by_worker(tally) + self.total).sum(dtype=np.float64))
        for some in blocks(*tally.shape):
            before = self.at(pairs, some)
            after = np.divide(tally[some], before, out=np.zeros(before.shape), where=before > 0)
            total += float((before * np.log1p(after)).sum())
        return total

    def divergence(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """KL(Dir(β + n) ‖ Dir(β)), added up over all rows of all workers."""
        total = -_cells(self.total, pairs.by_worker(tally), gammaln(self.total))
        for some in blocks(*tally.shape):
            total += _cells(self.at(pairs, some), tally[some], self.at(pairs, some, gammaln))
        return total


def geometric_mean(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp E log of Dir(votes), along the last axis.

    >>> geometric_mean(np.array([1.0, 1.0])).round(3)
    array([0.368, 0.368])
    """
    return np.exp(digamma(votes) - digamma(votes.sum(axis=-1, keepdims=True)))


def divergence(before: NDArray[np.float64], counts: NDArray[Any]) -> float:
    """KL(Dir(before + counts) ‖ Dir(before)), added up over the leading axes.

    >>> round(divergence(np.ones(2), np.array([1.0, 0.0])), 4)  # from uniform to density 2x
    0.1931
    """
    sums = before.sum(axis=-1), counts.sum(axis=-1)
    return _cells(before, counts, gammaln(before)) - _cells(*sums, gammaln(sums[0]))


def _cells(before: NDArray[Any], counts: NDArray[Any], log_gamma_before: NDArray[Any]) -> float:
    """What cells contribute to a divergence, and the sums of their rows take away; nothing without counts."""
    after = before + counts
    return float((counts * digamma(after) - gammaln(after) + log_gamma_before).sum(dtype=np.float64))
