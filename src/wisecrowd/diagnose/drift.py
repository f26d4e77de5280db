"""Workers who change: better or worse than they were, from some time on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.timestamps import as_stamps
from wisecrowd.evaluate import uncertainty

if TYPE_CHECKING:
    from wisecrowd.diagnose.workers import WorkerDiagnosis

#: Spans into which a worker's votes are cut, each of about as many; a change can only come between two.
SPANS = 10
#: With fewer votes than this nobody is suspected.
ENOUGH = 2 * SPANS
#: A change in accuracy smaller than this is nobody's concern, however sure.
CHANGE = 0.1
#: Before anything is known: one in ten changes, by ten workers' worth.
_SHARE, _WORTH = 0.1, 10.0
_GRID = 25


def drift(people: WorkerDiagnosis) -> pd.DataFrame:
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
    >>> found = drift(WorkerDiagnosis(simulate_crowd(n_tasks=400, workers=kinds, votes_per_task=5).crowd))
    >>> found.index[found["p_drift"] > 0.5].tolist(), str(found.loc["w9", "since"])[:7]
    (['w9'], '2024-01')
    """
    crowd = people.crowd
    columns = {name: np.full(crowd.n_workers, np.nan) for name in ("p_drift", "before", "after", "since")}
    timed = np.flatnonzero(~np.isnan(crowd.time))
    worker = crowd.worker_codes[timed]
    counts = np.bincount(worker, minlength=crowd.n_workers)
    who = np.flatnonzero(counts >= ENOUGH)
    if len(who) and crowd.n_classes > 1:
        order = timed[np.lexsort((crowd.time[timed], worker))]
        order = order[counts[crowd.worker_codes[order]] >= ENOUGH]
        found = _of_busy(people, order, who, counts[who])
        for name, values in zip(columns, found, strict=True):
            columns[name][who] = values
    since = as_stamps(columns.pop("since")).to_pandas()
    return pd.DataFrame({**columns, "since": since.to_numpy()}, index=people.names.rename("worker"))


def in_spans(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """The span of each vote, where votes are in order of worker and time: worker ``r`` has those from r·`SPANS` on.

    >>> in_spans(np.array([2, 20]))[:6].tolist()
    [0, 5, 10, 10, 11, 11]
    """
    worker = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(worker)) - np.repeat(np.cumsum(counts) - counts, counts)
    return worker * SPANS + place * SPANS // counts[worker]


def _of_busy(
    people: WorkerDiagnosis, order: NDArray[np.intp], who: NDArray[np.intp], counts: NDArray[np.intp]
) -> tuple[NDArray[np.float64], ...]:
    """p, before, after and since of workers with enough votes, whose rows are in order of worker and time."""
    crowd, n = people.crowd, len(who)
    right = people.others[order, crowd.label[order]]
    grid = (np.arange(_GRID) + 0.5) / _GRID
    evidence = uncertainty.by_accuracy(right, crowd.n_classes, grid, in_spans(counts), n * SPANS)
    until = np.cumsum(evidence.reshape(n, SPANS, _GRID), axis=1)
    whole = until[:, -1]
    known = _of_everybody(whole)
    same = _integrated(whole, known)
    halves = np.stack(
        [_integrated(until[:, cut], known) + _integrated(whole - until[:, cut], known) for cut in range(SPANS - 1)],
        axis=1,
    )
    moment = halves.argmax(axis=1)
    means = _mean(until[np.arange(n), moment], known, grid), _mean(whole - until[np.arange(n), moment], known, grid)
    odds = np.logaddexp.reduce(halves, axis=1) - np.log(SPANS - 1) - same
    large = np.abs(means[1] - means[0]) >= CHANGE
    changed = np.where(large, _shared(odds), 0.0)
    first_after = np.cumsum(counts) - counts + -(-(moment + 1) * counts // SPANS)
    return changed, *means, crowd.time[order[first_after]]


def _of_everybody(whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """How accuracies are distributed over workers, (grid,): by EM from a flat start that counts as one worker for each cell."""
    n_cells = whole.shape[1]
    known = np.full(n_cells, 1 / n_cells)
    likelihood = np.exp(whole - whole.max(axis=1, keepdims=True))
    for _ in range(20):
        member = likelihood * known
        member /= member.sum(axis=1, keepdims=True)
        known = (member.sum(axis=0) + 1) / (len(whole) + n_cells)
    return known


def _integrated(evidence: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """log ∫ likelihood, over what is known."""
    return np.asarray(np.logaddexp.reduce(evidence + np.log(known), axis=1))


def _mean(evidence: NDArray[np.float64], known: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    density = np.exp(evidence - evidence.max(axis=1, keepdims=True)) * known
    return np.asarray(density @ grid / density.sum(axis=1))


def _shared(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities from log Bayes factors, with the share of those who change found by EM."""
    from scipy.special import expit, logit

    share = _SHARE
    probability = np.empty_like(odds)
    for _ in range(50):
        probability = expit(odds + logit(share))
        share = (probability.sum() + _SHARE * _WORTH) / (len(odds) + _WORTH)
    return probability
