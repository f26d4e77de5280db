"""From tallies to workers' confusion matrices: the formulas that models with and without features share.

A tally holds, for every (worker, label) pair that occurs, how much of the worker's saying the label fell on each true
class. Rows of pairs that do not occur are zero, and every formula here knows it, so that no table is ever larger than
what was said.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Pairs

#: Pseudo-votes between which the strength of a pooled prior is sought. Posteriors that are unsure blur how workers differ, so
#: that the evidence overstates how alike they are; without a limit it can end in a crowd of equals, which is a plain vote.
STRENGTHS = (0.1, 20.0)


class Prior(NamedTuple):
    """What workers' matrices are drawn toward, and how strongly.

    >>> Prior(np.eye(2), 3.0).strength
    3.0
    """

    toward: NDArray[np.float64]
    """The matrix of the crowd, (true, said)."""
    strength: float
    """The votes that it is worth, for every true class."""


def blocks(rows: int, columns: int, cells: int = 2**22) -> list[slice]:
    """Slices of rows that hold about ``cells`` cells each, so that a temporary never doubles a large table.

    >>> blocks(5, 2, cells=4)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    height = max(1, cells // max(columns, 1))
    return [slice(start, start + height) for start in range(0, rows, height)]


def smoothed(tally: NDArray[Any], pairs: Pairs, smoothing: float, diagonal: float) -> NDArray[Any]:
    """π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·) with pseudo-votes s_kl = smoothing + diagonal·[k = l].

    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> smoothed(np.array([[3.0, 1.0], [1.0, 3.0]]), pairs, smoothing=0.0, diagonal=0.0).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    n_classes = tally.shape[1]
    evidence = pairs.by_worker(tally) + (n_classes * smoothing + diagonal)  # n_r[k, ·] + s_k·
    label_probs = tally + tally.dtype.type(smoothing)
    label_probs[np.arange(len(pairs)), pairs.label] += diagonal
    for rows in blocks(*label_probs.shape):
        total = evidence[pairs.worker[rows]]
        # Without pseudo-votes, a class that a worker never met leaves the row undefined: say nothing, uniformly.
        np.divide(label_probs[rows], total, out=label_probs[rows], where=total > 0)
        label_probs[rows][total == 0] = 1 / n_classes
    return label_probs


def smoothed_log_prior(tally: NDArray[Any], pairs: Pairs, smoothing: float, diagonal: float) -> float:
    """Σ_r Σ_kl s_kl log π_r[k, l] but for a constant: a cell without votes contributes only to its row's total.

    >>> pairs = Pairs(np.array([0]), np.array([0]), np.empty(0, dtype=np.int32), 1)
    >>> smoothed_log_prior(np.array([[3.0, 1.0]]), pairs, smoothing=0.0, diagonal=0.0)
    0.0
    """
    n_classes = tally.shape[1]
    off, on = smoothing, smoothing + diagonal
    row = n_classes * smoothing + diagonal
    on_diagonal = tally[np.arange(len(pairs)), pairs.label].astype(np.float64)
    total = 0.0
    if off > 0:
        # log(1 + x), not log1p(x): several times faster, and what it loses is lost against the one in any sum.
        total += off * sum(np.log(tally[rows] / off + 1).sum(dtype=np.float64) for rows in blocks(*tally.shape))
        total -= off * np.log(on_diagonal / off + 1).sum()
    if on > 0:
        total += on * np.log1p(on_diagonal / on).sum()
        total -= row * np.log(pairs.by_worker(tally) + row).sum(dtype=np.float64)
    return float(total)


def pooled(tally: NDArray[Any], pairs: Pairs, smoothing: float = 0.1, diagonal: float = 1.0) -> NDArray[np.float64]:
    """The confusion matrix of the crowd as one worker, (true, said).

    >>> pairs = Pairs(np.array([0, 1]), np.array([0, 1]), np.empty(0, dtype=np.int32), 2)
    >>> pooled(np.array([[3.0, 1.0], [1.0, 1.0]]), pairs, smoothing=0.0, diagonal=0.0).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    n_classes = tally.shape[1]
    total = np.full((n_classes, n_classes), smoothing) + diagonal * np.eye(n_classes)  # (said, true) until the end
    np.add.at(total, pairs.label, tally)
    return np.ascontiguousarray((total / total.sum(axis=0)).T)


def shrunk(tally: NDArray[Any], pairs: Pairs, toward: NDArray[np.float64], strength: float) -> NDArray[Any]:
    """π_r[k, l] = (n_r[k, l] + c B[k, l]) / (n_r[k, ·] + c): matrices drawn toward that of the crowd, B.

    >>> pairs = Pairs(np.array([0]), np.array([0]), np.empty(0, dtype=np.int32), 1)
    >>> shrunk(np.array([[1.0, 0.0]]), pairs, np.eye(2), strength=1.0).tolist()
    [[1.0, 0.0]]
    """
    evidence = pairs.by_worker(tally) + strength
    return (tally + strength * toward.T[pairs.label]) / evidence[pairs.worker]


def strength_of(tally: NDArray[Any], pairs: Pairs, toward: NDArray[np.float64]) -> float:
    """How many pseudo-votes the crowd's matrix is worth as a prior on a worker's, by marginal likelihood.

    The rows of a worker's matrix are drawn from Dirichlet(c B[k]), so that what they said has the probability
    Π_rk Γ(c)/Γ(n_rk + c) Π_l Γ(n_r[k, l] + c B[k, l])/Γ(c B[k, l]); pairs that do not occur contribute one.

    >>> rng = np.random.default_rng(0)
    >>> label_probs = np.array([rng.multinomial(50, rng.dirichlet([8, 2])) for _ in range(400)], dtype=float)
    >>> tally = np.zeros((800, 2))
    >>> tally[:, 0] = label_probs.ravel()  # class 0 is always true; the strength with which these were drawn is 10
    >>> pairs = Pairs(np.repeat(np.arange(400), 2), np.tile([0, 1], 400), np.empty(0, dtype=np.int32), 400)
    >>> bool(7 < strength_of(tally, pairs, pooled(tally, pairs)) < 14)
    True
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    total = pairs.by_worker(tally)
    share = toward.T[pairs.label]

    def against(log_strength: float) -> float:
        c = np.exp(log_strength)
        rows = (gammaln(c) - gammaln(total + c)).sum()
        return -float(rows + (gammaln(tally + c * share) - gammaln(c * share)).sum())

    low, high = np.log(STRENGTHS)
    return float(np.exp(minimize_scalar(against, bounds=(low, high), method="bounded", options={"xatol": 1e-3}).x))


def crowd_prior(
    tally: NDArray[Any], pairs: Pairs, smoothing: float = 0.1, diagonal: float = 1.0, strength: float | None = None
) -> Prior:
    """The crowd's matrix as a prior on its workers', by marginal likelihood unless it is said how strong.

    >>> pairs = Pairs(np.array([0, 1]), np.array([0, 1]), np.empty(0, dtype=np.int32), 2)
    >>> tally = np.array([[3.0, 1.0], [1.0, 1.0]])
    >>> shrunk(tally, pairs, *crowd_prior(tally, pairs, smoothing=0.0, diagonal=0.0, strength=4.0)).round(3).tolist()
    [[0.857, 0.6], [0.4, 0.6]]
    """
    toward = pooled(tally, pairs, smoothing, diagonal)
    return Prior(toward, strength_of(tally, pairs, toward) if strength is None else strength)
