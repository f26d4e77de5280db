"""Estimates of workers' confusion matrices from tallies, with the priors that regularise them.

A tally holds, for every (worker, label) pair that occurs, the expected number of the worker's votes for the label by true
class. Pairs that do not occur have no row. Every formula here accounts for that, so no table is larger than the set of pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.method import check_matrices
from wisecrowd.data.pairs import Pairs
from wisecrowd.utils.slices import slice_rows

#: Range in pseudo-votes of the strength of an estimated crowd prior. Uncertain posteriors hide how workers differ, and the
#: evidence then overstates how similar they are. Without the upper limit all workers could become equal, which is majority
#: vote.
STRENGTH_RANGE = (0.1, 20.0)
#: Cells of the tally from which the strength of a prior is estimated. A larger tally is represented by a sample of its workers:
#: thousands of rows determine one number, and the estimate needs twenty passes with three special functions per cell.
MAX_STRENGTH_CELLS = 2**19
#: Smallest number of workers in such a sample, because the strength describes how workers differ.
MIN_STRENGTH_WORKERS = 300


class CrowdPrior(NamedTuple):
    """Prior of workers' confusion matrices: the matrix of the crowd, and its strength.

    Attributes
    ----------
    confusion : ndarray of shape (n_classes, n_classes)
        Confusion matrix of the crowd, [true, given].
    strength : float
        Number of pseudo-votes per true class.

    Examples
    --------
    >>> CrowdPrior(np.eye(2), 3.0).strength
    3.0
    """

    confusion: NDArray[np.float64]
    strength: float


def estimate_smoothed_probs(tally: NDArray[Any], pairs: Pairs, smoothing: float, diagonal: float) -> NDArray[Any]:
    """Estimate P(label given class) by counting, with pseudo-votes.

    π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·) with pseudo-votes s_kl = smoothing + diagonal·[k = l].

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    smoothing : float
        Pseudo-votes in every cell.
    diagonal : float
        Further pseudo-votes on the diagonal.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)
        Uniform for a class of which a worker has neither votes nor pseudo-votes.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> estimate_smoothed_probs(np.array([[3.0, 1.0], [1.0, 3.0]]), pairs, smoothing=0.0, diagonal=0.0).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    n_classes = tally.shape[1]
    evidence = pairs.sum_by_worker(tally) + (n_classes * smoothing + diagonal)  # n_r[k, ·] + s_k·
    label_probs = tally + tally.dtype.type(smoothing)
    label_probs[np.arange(len(pairs)), pairs.label] += diagonal
    for rows in slice_rows(*label_probs.shape):
        total = evidence[pairs.worker[rows]]
        np.divide(label_probs[rows], total, out=label_probs[rows], where=total > 0)
        label_probs[rows][total == 0] = 1 / n_classes
    return label_probs


def estimate_class_accuracy_probs(
    tally: NDArray[Any], pairs: Pairs, right_pseudo_votes: float, pseudo_votes: float
) -> NDArray[Any]:  # fmt: skip
    """Estimate P(label given class) with one accuracy per worker and class, and errors uniform over the other classes.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    right_pseudo_votes, pseudo_votes : float
        Pseudo-votes for the true class, and for all classes.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> estimate_class_accuracy_probs(np.array([[3.0, 1.0], [1.0, 3.0]]), pairs, 0.0, 0.0).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    accuracy = estimate_class_accuracy(tally, pairs, right_pseudo_votes, pseudo_votes).astype(tally.dtype)
    label_probs: NDArray[Any] = ((1 - accuracy) / max(tally.shape[1] - 1, 1))[pairs.worker]
    label_probs[np.arange(len(pairs)), pairs.label] = accuracy[pairs.worker, pairs.label]
    return label_probs


def estimate_class_accuracy(
    tally: NDArray[Any], pairs: Pairs, right_pseudo_votes: float, pseudo_votes: float
) -> NDArray[np.float64]:  # fmt: skip
    """Estimate the accuracy of every worker for each true class.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    right_pseudo_votes, pseudo_votes : float
        Pseudo-votes for the true class, and for all classes.

    Returns
    -------
    ndarray of shape (n_workers, n_classes)
        1 / n_classes without votes and pseudo-votes.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> estimate_class_accuracy(np.array([[3.0, 1.0], [1.0, 3.0]]), pairs, 0.0, 0.0).tolist()
    [[0.75, 0.75]]
    """
    n_classes = tally.shape[1]
    right = np.full((pairs.n_workers, n_classes), right_pseudo_votes)
    right[pairs.worker, pairs.label] += tally[np.arange(len(pairs)), pairs.label]
    total = pairs.sum_by_worker(tally).astype(np.float64) + pseudo_votes
    return np.divide(right, total, out=np.full_like(right, 1 / n_classes), where=total > 0)


def compute_smoothing_log_prior(tally: NDArray[Any], pairs: Pairs, smoothing: float, diagonal: float) -> float:
    """Compute the log density of the prior of `estimate_smoothed_probs`, up to a constant.

    The density is Σ_r Σ_kl s_kl log π_r[k, l]. A cell without votes contributes only through the total of its row.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    smoothing, diagonal : float
        Pseudo-votes in every cell, and further ones on the diagonal.

    Returns
    -------
    float

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([0]), np.empty(0, dtype=np.int32), 1)
    >>> compute_smoothing_log_prior(np.array([[3.0, 1.0]]), pairs, smoothing=0.0, diagonal=0.0)
    0.0
    """
    n_classes = tally.shape[1]
    off, on = smoothing, smoothing + diagonal
    row = n_classes * smoothing + diagonal
    on_diagonal = tally[np.arange(len(pairs)), pairs.label].astype(np.float64)
    total = 0.0
    if off > 0:
        # log(1 + x) is several times faster than log1p(x), and its rounding error does not matter in this sum.
        total += off * sum(np.log(tally[rows] / off + 1).sum(dtype=np.float64) for rows in slice_rows(*tally.shape))
        total -= off * np.log(on_diagonal / off + 1).sum()
    if on > 0:
        total += on * np.log1p(on_diagonal / on).sum()
        total -= row * np.log(pairs.sum_by_worker(tally) + row).sum(dtype=np.float64)
    return float(total)


def estimate_accuracy(tally: NDArray[Any], pairs: Pairs, right: float, total: float) -> NDArray[np.float64]:
    """Estimate the accuracy of every worker, with pseudo-votes.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    right, total : float
        Pseudo-votes for the true class, and for all classes.

    Returns
    -------
    ndarray of shape (n_workers,)
        1 / n_classes for a worker with neither votes nor pseudo-votes.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> estimate_accuracy(np.array([[3.0, 1.0], [0.0, 4.0]]), pairs, right=0.0, total=0.0).tolist()
    [0.875]
    """
    right_votes = pairs.sum_by_worker(tally[np.arange(len(pairs)), pairs.label].astype(np.float64)) + right
    all_votes = pairs.sum_by_worker(tally.sum(axis=1, dtype=np.float64)) + total
    return np.divide(right_votes, all_votes, out=np.full_like(right_votes, 1 / tally.shape[1]), where=all_votes > 0)


def spread_errors(accuracy: NDArray[Any], pairs: Pairs, n_classes: int) -> NDArray[Any]:
    """Return P(label given class) of workers whose errors are uniform over the other classes (one-coin model).

    Parameters
    ----------
    accuracy : ndarray of shape (n_workers,)
        Probability of the true class.
    pairs : Pairs
        Worker and label of every row of the result.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([1]), np.empty(0, dtype=np.int32), 1)
    >>> spread_errors(np.array([0.75]), pairs, 2).tolist()
    [[0.25, 0.75]]
    """
    by_pair = accuracy[pairs.worker]
    label_probs = np.repeat(((1 - by_pair) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    label_probs[np.arange(len(pairs)), pairs.label] = by_pair
    return label_probs


def compute_beta_log_density(accuracy: NDArray[np.float64], right: float, total: float) -> float:
    """Compute the log density of accuracies under a Beta prior with pseudo-votes, up to a constant.

    Parameters
    ----------
    accuracy : ndarray
        Accuracies of any shape.
    right, total : float
        Pseudo-votes for the true class, and for all classes.

    Returns
    -------
    float

    Examples
    --------
    >>> round(compute_beta_log_density(np.array([0.5]), right=1.0, total=2.0), 4)
    -1.3863
    """
    from scipy.special import xlog1py, xlogy  # slow to import, and needed by few methods

    return float((xlogy(right, accuracy) + xlog1py(total - right, -accuracy)).sum())


def estimate_crowd_confusion(
    tally: NDArray[Any], pairs: Pairs, smoothing: float = 0.1, diagonal: float = 1.0
) -> NDArray[np.float64]:
    """Estimate the confusion matrix of the whole crowd, taken as one worker.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    smoothing, diagonal : float, default 0.1 and 1.0
        Pseudo-votes in every cell, and further ones on the diagonal.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Confusion matrix [true, given].

    Raises
    ------
    InputError
        If there are too many classes for the matrix.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 1]), np.array([0, 1]), np.empty(0, dtype=np.int32), 2)
    >>> estimate_crowd_confusion(np.array([[3.0, 1.0], [1.0, 1.0]]), pairs, smoothing=0.0, diagonal=0.0).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    n_classes = tally.shape[1]
    check_matrices(1, n_classes, "shrinkage toward the crowd")
    total = np.full((n_classes, n_classes), smoothing) + diagonal * np.eye(n_classes)  # [given, true] until the end
    np.add.at(total, pairs.label, tally)
    return np.ascontiguousarray((total / total.sum(axis=0)).T)


def shrink_to_crowd(tally: NDArray[Any], pairs: Pairs, confusion: NDArray[np.float64], strength: float) -> NDArray[Any]:
    """Estimate P(label given class) of every worker, shrunk toward the confusion matrix B of the crowd.

    π_r[k, l] = (n_r[k, l] + c B[k, l]) / (n_r[k, ·] + c)

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    confusion : ndarray of shape (n_classes, n_classes)
        Confusion matrix of the crowd, [true, given].
    strength : float
        Number c of pseudo-votes per true class.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([0]), np.empty(0, dtype=np.int32), 1)
    >>> shrink_to_crowd(np.array([[1.0, 0.0]]), pairs, np.eye(2), strength=1.0).tolist()
    [[1.0, 0.0]]
    """
    evidence = pairs.sum_by_worker(tally) + strength
    return (tally + strength * confusion.T[pairs.label]) / evidence[pairs.worker]


def estimate_prior_strength(tally: NDArray[Any], pairs: Pairs, confusion: NDArray[np.float64]) -> float:
    """Estimate the number of pseudo-votes of the crowd's matrix by marginal likelihood.

    The rows of a worker's matrix are drawn from Dirichlet(c B[k]), so the votes have the probability
    Π_rk Γ(c)/Γ(n_rk + c) Π_l Γ(n_r[k, l] + c B[k, l])/Γ(c B[k, l]). Pairs that do not occur contribute a factor of one.
    A tally of more than `MAX_STRENGTH_CELLS` cells is represented by a sample of workers.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    confusion : ndarray of shape (n_classes, n_classes)
        Confusion matrix B of the crowd, [true, given].

    Returns
    -------
    float
        Strength c within `STRENGTH_RANGE`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> votes = np.array([rng.multinomial(50, rng.dirichlet([8, 2])) for _ in range(400)], dtype=float)
    >>> tally = np.zeros((800, 2))
    >>> tally[:, 0] = votes.ravel()  # class 0 is always true; these were drawn with strength 10
    >>> pairs = Pairs(np.repeat(np.arange(400), 2), np.tile([0, 1], 400), np.empty(0, dtype=np.int32), 400)
    >>> bool(7 < estimate_prior_strength(tally, pairs, estimate_crowd_confusion(tally, pairs)) < 14)
    True
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    tally, pairs = _sample_workers(tally, pairs)
    total = pairs.sum_by_worker(tally)
    share = confusion.T[pairs.label]
    # The factors without votes are the same for all pairs of a label.
    labels, n_pairs = np.unique(pairs.label, return_counts=True)

    def compute_loss(log_strength: float) -> float:
        c = np.exp(log_strength)
        rows = (gammaln(c) - gammaln(total + c)).sum()
        return -float(rows + gammaln(tally + c * share).sum() - n_pairs @ gammaln(c * confusion.T[labels]).sum(axis=1))

    low, high = np.log(STRENGTH_RANGE)
    result = minimize_scalar(compute_loss, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(result.x))


def _sample_workers(tally: NDArray[Any], pairs: Pairs) -> tuple[NDArray[Any], Pairs]:
    """Return the rows of every n-th worker by number of pairs, so that about `MAX_STRENGTH_CELLS` cells are left."""
    n_pairs = np.bincount(pairs.worker, minlength=pairs.n_workers)
    n_active = int(np.count_nonzero(n_pairs))
    step = min(-(-tally.size // MAX_STRENGTH_CELLS), n_active // MIN_STRENGTH_WORKERS)
    if step < 2:
        return tally, pairs
    # Ties are broken by votes and labels, so that the sample does not depend on the names of workers.
    n_votes = pairs.sum_by_worker(tally.sum(axis=1)).round(6)
    label_sum = np.bincount(pairs.worker, pairs.label, minlength=pairs.n_workers)
    order = np.lexsort((label_sum, n_votes, -n_pairs))[:n_active]
    sample = np.sort(order[step // 2 :: step])
    position = np.full(pairs.n_workers, -1, dtype=np.int32)
    position[sample] = np.arange(len(sample))
    rows = np.flatnonzero(position[pairs.worker] >= 0)
    sampled = Pairs(position[pairs.worker[rows]], pairs.label[rows], np.empty(0, dtype=np.int32), len(sample))
    return tally[rows], sampled


def estimate_crowd_prior(
    tally: NDArray[Any], pairs: Pairs, smoothing: float = 0.1, diagonal: float = 1.0, strength: float | None = None
) -> CrowdPrior:
    """Estimate the prior of workers' confusion matrices from the whole crowd.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected number of votes by pair (worker and label) and true class.
    pairs : Pairs
        Worker and label of every row of the tally.
    smoothing : float, default=0.1
        Pseudo-votes that are added to every cell of the crowd's confusion matrix.
    diagonal : float, default=1.0
        Further pseudo-votes that are added to the diagonal of this matrix (right labels).
    strength : float, optional
        Strength of the prior, as a number of pseudo-votes per true class. By default, it is estimated by marginal likelihood.

    Returns
    -------
    CrowdPrior
        Confusion matrix of the crowd, and the strength with which workers' matrices are shrunk to it.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 1]), np.array([0, 1]), np.empty(0, dtype=np.int32), 2)
    >>> tally = np.array([[3.0, 1.0], [1.0, 1.0]])
    >>> prior = estimate_crowd_prior(tally, pairs, smoothing=0.0, diagonal=0.0, strength=4.0)
    >>> shrink_to_crowd(tally, pairs, *prior).round(3).tolist()
    [[0.857, 0.6], [0.4, 0.6]]
    """
    confusion = estimate_crowd_confusion(tally, pairs, smoothing, diagonal)
    return CrowdPrior(confusion, estimate_prior_strength(tally, pairs, confusion) if strength is None else strength)
