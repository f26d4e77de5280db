"""Mixture model of workers: each belongs to one of a few groups with similar confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

#: Pseudo-votes of the crowd's confusion matrix in each row of a group's matrix.
PSEUDO_VOTES = 1.0
#: Bounds of the prior strength c of a group's matrix, in votes. Uncertain posteriors blur the differences between workers; without
#: an upper bound, the workers of a group could become identical and every difference a group of its own.
STRENGTH_BOUNDS = (1.0, 50.0)
#: EM steps after which random starts are compared.
SHORT_STEPS = 5
#: Number of starts that are continued.
FINALISTS = 3
#: Largest number of EM steps of a continued start.
MAX_STEPS = 200
#: Relative gain in the objective below which EM stops.
TOLERANCE = 1e-7
#: Number of times that the prior strength and the groups are estimated in turn.
STRENGTH_ROUNDS = 3

FloatArray = NDArray[np.float64]
#: Cells of a table of counts up to which a dense array is faster than a sparse one.
MAX_DENSE_CELLS = 2**16


class GroupMixture(NamedTuple):
    """Confusion matrices and shares of groups of workers.

    Attributes
    ----------
    confusion : ndarray of shape (n_groups, n_classes, n_classes)
        Confusion matrix of each group.
    share : ndarray of shape (n_groups,)
        Share of the workers.
    objective : float
        Objective of the matrices before the last step.
    strength : float
        Prior strength c of a group's matrix for its workers, in votes per true class.

    Examples
    --------
    >>> GroupMixture(np.eye(2)[None] * 0.8 + 0.1, np.ones(1)).memberships(csr_array([[3.0, 0.0, 0.0, 2.0]])).tolist()
    [[1.0]]
    """

    confusion: FloatArray
    share: FloatArray
    objective: float = -np.inf
    strength: float = STRENGTH_BOUNDS[1]

    def log_evidence(self, counts: csr_array) -> FloatArray:
        """Compute the log-probability of each worker's votes in each group, including the group's share.

        Parameters
        ----------
        counts : csr_array of shape (n_workers, n_classes²)
            Votes by worker, true class and label.

        Returns
        -------
        ndarray of shape (n_workers, n_groups)
        """
        return np.asarray(counts @ np.log(self.confusion.reshape(len(self.share), -1)).T + np.log(self.share))

    def memberships(self, counts: csr_array) -> FloatArray:
        """Compute the probability of each group for each worker.

        Parameters
        ----------
        counts : csr_array of shape (n_workers, n_classes²)
            Votes by worker, true class and label.

        Returns
        -------
        ndarray of shape (n_workers, n_groups)
        """
        return self.memberships_and_likelihood(counts)[0]

    def memberships_and_likelihood(self, counts: csr_array) -> tuple[FloatArray, float]:
        """Compute the memberships and the log-likelihood of all votes.

        Parameters
        ----------
        counts : csr_array of shape (n_workers, n_classes²)
            Votes by worker, true class and label.

        Returns
        -------
        memberships : ndarray of shape (n_workers, n_groups)
            Probability of each group.
        log_likelihood : float
            Log-likelihood of all votes.
        """
        log_evidence = self.log_evidence(counts)
        max_evidence = log_evidence.max(axis=1, keepdims=True)
        memberships = np.exp(log_evidence - max_evidence)
        total = memberships.sum(axis=1, keepdims=True)
        return memberships / total, float((np.log(total) + max_evidence).sum())


@dataclass(frozen=True, eq=False)
class ConfusionTally:
    """Sparse counts of votes by worker, true class and label.

    Attributes
    ----------
    counts : csr_array of shape (n_workers, n_classes²)
        Counts; the column is true class times n_classes plus label.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> ConfusionTally(csr_array([[3.0, 0.0, 1.0, 2.0]]), n_classes=2).row_totals.tolist()
    [3.0, 3.0]
    """

    counts: csr_array
    n_classes: int

    @cached_property
    def entry_worker(self) -> NDArray[np.intp]:
        """Worker of each stored entry."""
        return np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))

    @cached_property
    def row_totals(self) -> FloatArray:
        """Number of votes by worker and true class, flattened."""
        size = self.counts.shape[0] * self.n_classes
        return np.bincount(self.entry_row, self.counts.data, minlength=size).astype(np.float64)

    @cached_property
    def entry_row(self) -> NDArray[np.intp]:
        """Position in `row_totals` of each stored entry."""
        return self.entry_worker * self.n_classes + self.counts.indices // self.n_classes

    def effective_counts(self, strength: float) -> csr_array:
        """Return the counts ñ, in which many votes of one worker count less than votes of different workers.

        Parameters
        ----------
        strength : float
            Prior strength c of a group's matrix.

        Returns
        -------
        csr_array of shape (n_workers, n_classes²)
        """
        data = self.counts.data * np.minimum((1 + strength) / (self.row_totals[self.entry_row] + strength), 1.0)
        return csr_array((data, self.counts.indices, self.counts.indptr), shape=self.counts.shape)

    def estimate_strength(self, confusion: FloatArray, group: NDArray[np.intp]) -> float:
        """Estimate the prior strength c by maximum likelihood, given the groups.

        Parameters
        ----------
        confusion : ndarray of shape (n_groups, n_classes, n_classes)
            Confusion matrix of each group.
        group : ndarray of shape (n_workers,)
            Group of each worker.

        Returns
        -------
        float
        """
        from scipy.optimize import minimize_scalar
        from scipy.special import gammaln

        share = confusion.reshape(len(confusion), -1)[group[self.entry_worker], self.counts.indices]

        def negative_log_likelihood(log_strength: float) -> float:
            c = np.exp(log_strength)
            cells = gammaln(self.counts.data + c * share) - gammaln(c * share)
            return -float((gammaln(c) - gammaln(self.row_totals + c)).sum() + cells.sum())

        bounds = tuple(np.log(STRENGTH_BOUNDS))
        return float(
            np.exp(minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-2}).x)
        )


def fit_group_mixture(
    tally: ConfusionTally, crowd_confusion: FloatArray, n_groups: int, n_init: int, rng: np.random.Generator
) -> GroupMixture:
    """Fit the mixture by EM from several starts, and estimate the prior strength in turn.

    Parameters
    ----------
    tally : ConfusionTally
        Votes by worker, true class and label.
    crowd_confusion : ndarray of shape (n_classes, n_classes)
        Confusion matrix of the crowd, the prior mean of the groups.
    n_groups : int
        Number of groups.
    n_init : int
        Number of random starts.
    rng : Generator
        Random numbers for the starts.

    Returns
    -------
    GroupMixture

    Examples
    --------
    >>> counts = csr_array([[9.0, 1.0, 1.0, 9.0]] * 5 + [[1.0, 9.0, 9.0, 1.0]] * 5)
    >>> tally, rng = ConfusionTally(counts, 2), np.random.default_rng(0)
    >>> mixture = fit_group_mixture(tally, np.full((2, 2), 0.5), n_groups=2, n_init=5, rng=rng)
    >>> sorted(mixture.confusion[:, 0, 0].round(1).tolist())
    [0.1, 0.9]
    """
    single_group = np.zeros(tally.counts.shape[0], dtype=np.intp)
    strength = tally.estimate_strength(crowd_confusion[None], single_group)
    mixture = _fit_from_starts(tally.effective_counts(strength), crowd_confusion, n_groups, n_init, rng)
    for _ in range(STRENGTH_ROUNDS - 1):
        strength = tally.estimate_strength(
            mixture.confusion, mixture.memberships(tally.effective_counts(strength)).argmax(axis=1)
        )
        mixture = _run_em(
            mixture._replace(objective=-np.inf), tally.effective_counts(strength), crowd_confusion, MAX_STEPS
        )
    return mixture._replace(strength=strength)


def estimate_confusion(sums: FloatArray, crowd_confusion: FloatArray) -> FloatArray:
    """Estimate confusion matrices from weighted counts and pseudo-votes of the crowd.

    Parameters
    ----------
    sums : ndarray of shape (n_classes², n_groups)
        Counts by true class, label and group.
    crowd_confusion : ndarray of shape (n_classes, n_classes)
        Confusion matrix of the crowd.

    Returns
    -------
    ndarray of shape (n_groups, n_classes, n_classes)

    Examples
    --------
    >>> estimate_confusion(np.array([[3.0], [1.0], [0.0], [0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[[0.8, 0.2], [0.0, 1.0]]]
    """
    counts = sums.T.reshape(-1, *crowd_confusion.shape) + PSEUDO_VOTES * crowd_confusion
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


def _fit_from_starts(
    counts: csr_array, crowd_confusion: FloatArray, n_groups: int, n_init: int, rng: np.random.Generator
) -> GroupMixture:
    """Run EM from several starts and return the best result."""
    if n_groups == 1:
        return _run_em(GroupMixture(crowd_confusion[None], np.ones(1)), counts, crowd_confusion, 1)
    starts = [
        _run_em(start, counts, crowd_confusion, SHORT_STEPS)
        for start in _draw_starts(counts, crowd_confusion, n_groups, n_init, rng)
    ]
    starts.sort(key=lambda groups: -groups.objective)
    ends = [_run_em(start, counts, crowd_confusion, MAX_STEPS) for start in starts[:FINALISTS]]
    return max(ends, key=lambda groups: groups.objective)


def _run_em(mixture: GroupMixture, counts: csr_array, crowd_confusion: FloatArray, steps: int) -> GroupMixture:
    """Run EM until convergence, or for a number of steps."""
    table = counts.toarray() if counts.shape[0] * counts.shape[1] <= MAX_DENSE_CELLS else counts
    by_cell = table.T
    for _ in range(steps):
        memberships, likelihood = mixture.memberships_and_likelihood(table)
        prior = PSEUDO_VOTES * (crowd_confusion * np.log(mixture.confusion)).sum() + np.log(mixture.share).sum()
        objective = likelihood + float(prior)
        share = (memberships.sum(axis=0) + 1) / (len(memberships) + len(mixture.share))
        is_converged = objective - mixture.objective <= TOLERANCE * abs(objective)
        mixture = GroupMixture(estimate_confusion(by_cell @ memberships, crowd_confusion), share, objective)
        if is_converged:
            break
    return mixture


def _draw_starts(
    counts: csr_array, crowd_confusion: FloatArray, n_groups: int, n_init: int, rng: np.random.Generator
) -> list[GroupMixture]:
    """Draw matrices of single workers, preferring workers that the earlier ones explain badly, as in k-means++."""
    votes = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    own = _own_likelihood(counts, crowd_confusion)
    starts = []
    for _ in range(n_init):
        draw_weight, best = votes, np.full(len(votes), -np.inf)
        confusion: list[FloatArray] = []
        for _ in range(n_groups):
            total = draw_weight.sum()
            worker = rng.choice(len(votes), p=draw_weight / total if total > 0 else None)
            confusion.append(estimate_confusion(_dense_row(counts, worker)[:, None], crowd_confusion)[0])
            best = np.maximum(best, counts @ np.log(confusion[-1].ravel()))
            draw_weight = np.maximum(own - best, 0.0)
        starts.append(GroupMixture(np.stack(confusion), np.full(n_groups, 1 / n_groups)))
    return starts


def _dense_row(counts: csr_array, row: int) -> FloatArray:
    """Return a row as an array; indexing the matrix takes ten times as long."""
    entries = slice(counts.indptr[row], counts.indptr[row + 1])
    return np.bincount(counts.indices[entries], counts.data[entries], minlength=counts.shape[1]).astype(np.float64)


def _own_likelihood(counts: csr_array, crowd_confusion: FloatArray) -> FloatArray:
    """Return the log-likelihood of each worker's votes under a matrix of their own."""
    tally = ConfusionTally(counts, len(crowd_confusion))
    share = (counts.data + PSEUDO_VOTES * crowd_confusion.ravel()[counts.indices]) / (
        tally.row_totals[tally.entry_row] + PSEUDO_VOTES
    )
    return np.bincount(tally.entry_worker, counts.data * np.log(share), minlength=counts.shape[0]).astype(np.float64)
