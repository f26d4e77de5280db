"""Workers who copy another worker, found by votes and a fitted confusion model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError

#: Standard errors above expected agreement from which a pair is suspicious; above four, because the matrices are estimates.
SUSPICIOUS_EXCESS = 5.0
#: Common tasks that a pair needs.
MIN_SHARED_TASKS = 20


class Copy(NamedTuple):
    """Worker who copies another: common tasks, equal votes, and expected number of equal votes.

    Attributes
    ----------
    copier, source : object
        Worker ids.
    shared : int
        Number of tasks that both labelled.
    same : int
        Number of these tasks with the same label.
    expected : float
        Expected number of equal labels of independent workers.
    certain : bool
        True if the source has more votes; otherwise either may be the copier.

    Examples
    --------
    >>> Copy("w07", "w25", shared=129, same=124, expected=78.2, certain=True).describe()
    'repeats w25: 124 of 129 common answers are the same, 78 by chance'
    """

    copier: Any
    source: Any
    shared: int
    same: int
    expected: float
    certain: bool

    def describe(self) -> str:
        """Return the end of a sentence that starts with the copier.

        Examples
        --------
        >>> Copy("w1", "w2", 30, 29, 14.2, certain=False).describe()
        'repeats w2, or w2 repeats w1: 29 of 30 common answers are the same, 14 by chance'
        """
        doubt = "" if self.certain else f", or {self.source} repeats {self.copier}"
        figures = f"{self.same} of {self.shared} common answers are the same, {self.expected:.0f} by chance"
        return f"repeats {self.source}{doubt}: {figures}"


def find_copiers(crowd: Crowd, fitted: Aggregator) -> list[Copy]:
    """Return pairs of workers who agree far more often than independent workers, the clearest first.

    Independent workers agree as often as their confusion matrices predict, given the posterior of the task by the other
    votes. In a pair that agrees more often, the worker with fewer votes is the copier. In a small crowd a pair can dominate
    the fitted model, which then hides the copying.

    Parameters
    ----------
    crowd : Crowd
        Votes with worker ids.
    fitted : Aggregator
        Method with confusion matrices, fitted to the crowd.

    Returns
    -------
    list of Copy

    Raises
    ------
    UsageError
        If the votes have no worker ids.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(400, workers=["noisy"] * 8 + ["expert"] * 3 + ["copier"], votes_per_task=5)
    >>> [copy] = find_copiers(simulation.crowd, DawidSkene().fit(simulation.crowd))
    >>> sorted([copy.copier, copy.source]), simulation.copies.to_dict()
    (['w07', 'w11'], {'w11': 'w07'})
    """
    if crowd.workers is None or crowd.worker is None:
        raise UsageError("copying can only be detected with worker ids, and these votes have none")
    pairs = compute_pair_agreement(crowd, fitted)
    suspects = pairs[(pairs["excess"] >= SUSPICIOUS_EXCESS) & (pairs["shared"] >= MIN_SHARED_TASKS)]
    work = crowd.votes_per_worker
    copies: dict[int, Copy] = {}
    for row in suspects.sort_values("excess", ascending=False).to_dict("records"):
        copier, source = sorted((int(row["first"]), int(row["second"])), key=lambda worker: work[worker])
        if copier not in copies:
            copies[copier] = Copy(
                crowd.workers[copier],
                crowd.workers[source],
                row["shared"],
                row["same"],
                row["expected"],
                certain=bool(work[source] > work[copier]),
            )
    return list(copies.values())


def compute_pair_agreement(crowd: Crowd, fitted: Aggregator) -> pd.DataFrame:
    """Return common tasks, equal votes, expected equal votes and excess in standard errors of every pair of workers.

    Parameters
    ----------
    crowd : Crowd
        Votes with worker ids.
    fitted : Aggregator
        Method with confusion matrices, fitted to the crowd.

    Returns
    -------
    DataFrame
        One row per pair: first and second (worker codes), shared, same, expected and excess.

    Raises
    ------
    UsageError
        If the votes have no worker ids.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in ("ann", "bob", "cy")])
    >>> compute_pair_agreement(crowd, DawidSkene().fit(crowd))[["first", "second", "shared", "same"]].values.tolist()
    [[0, 1, 6, 6], [0, 2, 6, 6], [1, 2, 6, 6]]
    """
    if crowd.worker is None:
        raise UsageError("agreement of workers needs worker ids, and these votes have none")
    one, other = _votes_on_one_task(crowd)
    worker, label, confusion = crowd.worker, crowd.label, fitted.confusion_
    evidence = confusion[worker, :, label]
    # The two votes of the pair are removed from the posterior of the task.
    others = fitted.posterior_[crowd.task[one]] / np.maximum(evidence[one] * evidence[other], 1e-300)
    others /= others.sum(axis=1, keepdims=True)
    alike = np.einsum("nkl,nkl->nk", confusion[worker[one]], confusion[worker[other]])
    chance = (others * alike).sum(axis=1)

    pair, which = np.unique(worker[one].astype(np.int64) * crowd.n_workers + worker[other], return_inverse=True)
    same = np.bincount(which, weights=label[one] == label[other])
    expected = np.bincount(which, weights=chance)
    # At least one vote, so that rounding errors do not flag a pair whose agreement is certain.
    spread = np.sqrt(np.maximum(np.bincount(which, weights=chance * (1 - chance)), 1.0))
    first, second = np.divmod(pair, crowd.n_workers)
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
            "shared": np.bincount(which),
            "same": same.astype(np.int64),
            "expected": expected,
            "excess": (same - expected) / spread,
        }
    )


def _votes_on_one_task(crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of all pairs of votes on a common task, the earlier row first."""
    row = np.arange(crowd.n_votes)
    later = crowd.offset[1:][crowd.task] - row - 1
    one = np.repeat(row, later)
    step = np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return one, one + 1 + step
