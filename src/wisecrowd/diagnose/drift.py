"""Workers who change: better or worse than they were, from some time on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.timestamps import to_timestamps
from wisecrowd.evaluate.intervals import accuracy_log_likelihood

if TYPE_CHECKING:
    from wisecrowd.diagnose.workers import WorkerDiagnosis

#: Spans into which a worker's votes are cut, each of about as many; a change can only come between two.
N_SPANS = 10
#: With fewer votes than this nobody is suspected.
MIN_VOTES = 2 * N_SPANS
#: A change in accuracy smaller than this is nobody's concern, however sure.
MIN_ACCURACY_CHANGE = 0.1
#: Before anything is known: one in ten changes, by ten workers' worth.
_PRIOR_SHARE, _PRIOR_WORKERS = 0.1, 10.0
_GRID = 25


def detect_drift(workers: WorkerDiagnosis) -> pd.DataFrame:
    """By worker: ``p_drift``, accuracy ``before`` and ``after`` the likeliest change, and ``since`` when.

    The votes of a worker, in order of time, either have one accuracy throughout or one before some moment and another after it.
    A vote that the others' posterior gives the probability u of being right has the likelihood a u + (1 − a)(1 − u)/(K − 1);
    accuracies a are integrated over what is known of all workers, and moments over the worker's tenths. ``p_drift`` is the
    posterior probability that there was a change of a tenth or more, where the share of workers who change is estimated from all.
    Votes without a time are left out, and a worker with fewer than twenty others is nobody's suspect (NaN).

    Where tasks become harder for everybody, everybody seems to change. `WorkerDiagnosis` flags the workers, and it is for people
    to see whether they changed or the work did.

    >>> from wisecrowd import simulate_crowd
    >>> from wisecrowd.diagnose import WorkerDiagnosis
    >>> kinds = ["noisy(0.8)"] * 9 + ["drifter(0.9, 0.4)"]
    >>> columns_of_busy = detect_drift(WorkerDiagnosis(simulate_crowd(n_tasks=400, workers=kinds, votes_per_task=5).crowd))
    >>> columns_of_busy.index[columns_of_busy["p_drift"] > 0.5].tolist(), str(columns_of_busy.loc["w9", "since"])[:7]
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
    """The span of each vote, where votes are in order of worker and time: worker ``r`` has those from r·`N_SPANS` on.

    >>> assign_spans(np.array([2, 20]))[:6].tolist()
    [0, 5, 10, 10, 11, 11]
    """
    worker = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(worker)) - np.repeat(np.cumsum(counts) - counts, counts)
    return worker * N_SPANS + rank * N_SPANS // counts[worker]


def _compare_halves(
    workers: WorkerDiagnosis, order: NDArray[np.intp], busy: NDArray[np.intp], counts: NDArray[np.intp]
) -> tuple[NDArray[np.float64], ...]:
    """p, before, after and since of workers with enough votes, whose rows are in order of worker and time."""
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
    """How accuracies are distributed over workers, (grid,): by EM from a flat start that counts as one worker for each cell."""
    n_cells = evidence.shape[1]
    density = np.full(n_cells, 1 / n_cells)
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    for _ in range(20):
        member = likelihood * density
        member /= member.sum(axis=1, keepdims=True)
        density = (member.sum(axis=0) + 1) / (len(evidence) + n_cells)
    return density


def _integrate(evidence: NDArray[np.float64], density: NDArray[np.float64]) -> NDArray[np.float64]:
    """log ∫ likelihood, over what is known."""
    return np.asarray(np.logaddexp.reduce(evidence + np.log(density), axis=1))


def _posterior_mean(
    evidence: NDArray[np.float64], prior: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float64]:
    posterior = np.exp(evidence - evidence.max(axis=1, keepdims=True)) * prior
    return np.asarray(posterior @ grid / posterior.sum(axis=1))


def _estimate_change_probs(log_bayes_factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities from log Bayes factors, with the share of those who change found by EM."""
    from scipy.special import expit, logit

    share = _PRIOR_SHARE
    probability = np.empty_like(log_bayes_factors)
    for _ in range(50):
        probability = expit(log_bayes_factors + logit(share))
        share = (probability.sum() + _PRIOR_SHARE * _PRIOR_WORKERS) / (len(log_bayes_factors) + _PRIOR_WORKERS)
    return probability
