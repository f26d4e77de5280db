"""Detection of workers whose accuracy changes over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.timestamps import to_timestamps
from wisecrowd.evaluate.intervals import accuracy_log_likelihood

if TYPE_CHECKING:
    from wisecrowd.diagnose.workers import WorkerDiagnosis

#: Number of spans of about equally many votes per worker. A change is located between two spans.
N_SPANS = 10
#: Smallest number of votes with a time for a worker to be tested.
MIN_VOTES = 2 * N_SPANS
#: Smallest change in accuracy that counts as drift.
MIN_ACCURACY_CHANGE = 0.1
#: Prior share of workers who change.
_PRIOR_SHARE = 0.1
#: Weight of the prior share, in workers.
_PRIOR_WORKERS = 10.0
#: Number of accuracies on the integration grid.
_GRID = 25


def detect_drift(workers: WorkerDiagnosis) -> pd.DataFrame:
    """Compute the probability that each worker's accuracy changed, and when.

    The votes of a worker, ordered by time, either have one accuracy, or one accuracy before some moment and another after it. A
    vote that is right with probability u, by the other votes, has the likelihood a u + (1 − a)(1 − u)/(K − 1). Accuracies a are
    integrated over their distribution in the crowd, and moments over ten spans of the worker's votes. The share of workers who
    change is estimated from all workers. If tasks become harder for everybody, all workers seem to change.

    Parameters
    ----------
    workers : WorkerDiagnosis
        Workers of a crowd with times.

    Returns
    -------
    DataFrame
        By worker: ``p_drift``, the probability of a change in accuracy of 0.1 or more; the accuracies ``before`` and ``after``
        the most probable change; and ``since``, its time. NaN for workers with fewer than 20 votes with a time.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> from wisecrowd.diagnose import WorkerDiagnosis
    >>> kinds = ["noisy(0.8)"] * 9 + ["drifter(0.9, 0.4)"]
    >>> drift = detect_drift(WorkerDiagnosis(simulate_crowd(n_tasks=400, workers=kinds, votes_per_task=5).crowd))
    >>> drift.index[drift["p_drift"] > 0.5].tolist(), str(drift.loc["w9", "since"])[:7]
    (['w9'], '2024-01')
    """
    crowd = workers.crowd
    columns = {name: np.full(crowd.n_workers, np.nan) for name in ("p_drift", "before", "after", "since")}
    timed_rows = np.flatnonzero(~np.isnan(crowd.time))
    worker = crowd.worker_codes[timed_rows]
    counts = np.bincount(worker, minlength=crowd.n_workers)
    busy = np.flatnonzero(counts >= MIN_VOTES)
    if len(busy) and crowd.n_classes > 1:
        order = timed_rows[np.lexsort((crowd.time[timed_rows], worker))]
        order = order[counts[crowd.worker_codes[order]] >= MIN_VOTES]
        columns_of_busy = _compare_halves(workers, order, busy, counts[busy])
        for name, values in zip(columns, columns_of_busy, strict=True):
            columns[name][busy] = values
    since = to_timestamps(columns.pop("since")).to_pandas()
    return pd.DataFrame({**columns, "since": since.to_numpy()}, index=workers.worker_ids.rename("worker"))


def assign_spans(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Assign votes that are sorted by worker and time to spans.

    Parameters
    ----------
    counts : ndarray of shape (n_workers,)
        Number of votes of each worker.

    Returns
    -------
    ndarray of shape (n_votes,)
        Span of each vote; those of worker r start at r·`N_SPANS`.

    Examples
    --------
    >>> assign_spans(np.array([2, 20]))[:6].tolist()
    [0, 5, 10, 10, 11, 11]
    """
    worker = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(worker)) - np.repeat(np.cumsum(counts) - counts, counts)
    return worker * N_SPANS + rank * N_SPANS // counts[worker]


def _compare_halves(
    workers: WorkerDiagnosis, order: NDArray[np.intp], busy: NDArray[np.intp], counts: NDArray[np.intp]
) -> tuple[NDArray[np.float64], ...]:
    """Return p_drift, before, after and since of workers with enough votes."""
    crowd, n_workers = workers.crowd, len(busy)
    p_right = workers.peer_posterior[order, crowd.label[order]]
    grid = (np.arange(_GRID) + 0.5) / _GRID
    evidence = accuracy_log_likelihood(p_right, crowd.n_classes, grid, assign_spans(counts), n_workers * N_SPANS)
    until = np.cumsum(evidence.reshape(n_workers, N_SPANS, _GRID), axis=1)
    total = until[:, -1]
    density = _estimate_accuracy_distribution(total)
    log_unchanged = _integrate(total, density)
    log_changed = np.stack(
        [_integrate(until[:, cut], density) + _integrate(total - until[:, cut], density) for cut in range(N_SPANS - 1)],
        axis=1,
    )
    best_cut = log_changed.argmax(axis=1)
    means = (
        _posterior_mean(until[np.arange(n_workers), best_cut], density, grid),
        _posterior_mean(total - until[np.arange(n_workers), best_cut], density, grid),
    )
    odds = np.logaddexp.reduce(log_changed, axis=1) - np.log(N_SPANS - 1) - log_unchanged
    is_large = np.abs(means[1] - means[0]) >= MIN_ACCURACY_CHANGE
    p_change = np.where(is_large, _estimate_change_probs(odds), 0.0)
    first_after = np.cumsum(counts) - counts + -(-(best_cut + 1) * counts // N_SPANS)
    return p_change, *means, crowd.time[order[first_after]]


def _estimate_accuracy_distribution(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate the distribution of accuracies over workers by EM, with one pseudo-worker per grid cell."""
    n_cells = evidence.shape[1]
    density = np.full(n_cells, 1 / n_cells)
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    for _ in range(20):
        member = likelihood * density
        member /= member.sum(axis=1, keepdims=True)
        density = (member.sum(axis=0) + 1) / (len(evidence) + n_cells)
    return density


def _integrate(evidence: NDArray[np.float64], density: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the likelihood integrated over a density."""
    return np.asarray(np.logaddexp.reduce(evidence + np.log(density), axis=1))


def _posterior_mean(
    evidence: NDArray[np.float64], prior: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the posterior mean of the accuracies."""
    posterior = np.exp(evidence - evidence.max(axis=1, keepdims=True)) * prior
    return np.asarray(posterior @ grid / posterior.sum(axis=1))


def _estimate_change_probs(log_bayes_factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert log Bayes factors to probabilities, with the share of changing workers estimated by EM."""
    from scipy.special import expit, logit

    share = _PRIOR_SHARE
    probability = np.empty_like(log_bayes_factors)
    for _ in range(50):
        probability = expit(log_bayes_factors + logit(share))
        share = (probability.sum() + _PRIOR_SHARE * _PRIOR_WORKERS) / (len(log_bayes_factors) + _PRIOR_WORKERS)
    return probability
