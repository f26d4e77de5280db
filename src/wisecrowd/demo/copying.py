"""Who repeats another worker's answers instead of giving their own, told by the votes and a fitted confusion model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError

#: Standard errors above chance from which agreement is suspicious. Luck alone hardly brings a pair beyond four, but the
#: matrices are estimates.
SUSPICIOUS = 5.0
#: Agreement on fewer tasks than this proves nothing.
FEWEST_SHARED = 20


class Copy(NamedTuple):
    """One worker who repeats another: tasks they share, same answers, and how many chance would make the same.

    ``certain`` tells whether the source has votes where the copier has none, or either may be the copier.

    >>> Copy("w07", "w25", shared=129, same=124, expected=78.2, certain=True).in_words()
    'repeats w25: 124 of 129 common answers are the same, 78 by chance'
    """

    copier: Any
    source: Any
    shared: int
    same: int
    expected: float
    certain: bool

    def in_words(self) -> str:
        """The end of a sentence that starts with the copier.

        >>> Copy("w1", "w2", 30, 29, 14.2, certain=False).in_words()
        'repeats w2, or w2 repeats w1: 29 of 30 common answers are the same, 14 by chance'
        """
        doubt = "" if self.certain else f", or {self.source} repeats {self.copier}"
        figures = f"{self.same} of {self.shared} common answers are the same, {self.expected:.0f} by chance"
        return f"repeats {self.source}{doubt}: {figures}"


def find_copies(crowd: Crowd, fitted: Aggregator) -> list[Copy]:
    """Pairs of workers who agree far more often than two who work alone, the clearest first; each copier once.

    Two who work alone agree as often as their confusion matrices say, given what the others make of the task. Of a pair
    that agrees more than that, the copier is the one with fewer votes: he has been only where the other has been. With
    equally many votes either may be. In a crowd of few workers a pair can carry the model with it, which then sees
    nothing wrong.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(400, workers=["noisy"] * 8 + ["expert"] * 3 + ["copier"], votes_per_task=5)
    >>> [found] = find_copies(made.crowd, DawidSkene().fit(made.crowd))
    >>> sorted([found.copier, found.source]), made.copies.to_dict()
    (['w07', 'w11'], {'w11': 'w07'})
    """
    if crowd.workers is None or crowd.worker is None:
        raise UsageError("who copies whom cannot be seen without worker ids")
    pairs = agreement_of_pairs(crowd, fitted)
    suspects = pairs[(pairs["excess"] >= SUSPICIOUS) & (pairs["shared"] >= FEWEST_SHARED)]
    work = crowd.votes_per_worker
    found: dict[int, Copy] = {}
    for row in suspects.sort_values("excess", ascending=False).to_dict("records"):
        copier, source = sorted((int(row["first"]), int(row["second"])), key=lambda worker: work[worker])
        if copier not in found:
            found[copier] = Copy(
                crowd.workers[copier],
                crowd.workers[source],
                row["shared"],
                row["same"],
                row["expected"],
                certain=bool(work[source] > work[copier]),
            )
    return list(found.values())


def agreement_of_pairs(crowd: Crowd, fitted: Aggregator) -> pd.DataFrame:
    """A row for every two workers with a common task: tasks shared, same answers, those expected, standard errors above.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in ("ann", "bob", "cy")])
    >>> agreement_of_pairs(crowd, DawidSkene().fit(crowd))[["first", "second", "shared", "same"]].values.tolist()
    [[0, 1, 6, 6], [0, 2, 6, 6], [1, 2, 6, 6]]
    """
    if crowd.worker is None:
        raise UsageError("agreement of workers cannot be seen without worker ids")
    one, other = _votes_on_one_task(crowd)
    worker, label, confusion = crowd.worker, crowd.label, fitted.confusion_
    evidence = confusion[worker, :, label]
    # The pair must not bear witness for itself: its two votes are taken out of what is believed of the task.
    others = fitted.posterior_[crowd.task[one]] / np.maximum(evidence[one] * evidence[other], 1e-300)
    others /= others.sum(axis=1, keepdims=True)
    alike = np.einsum("nkl,nkl->nk", confusion[worker[one]], confusion[worker[other]])
    chance = (others * alike).sum(axis=1)

    pair, which = np.unique(worker[one].astype(np.int64) * crowd.n_workers + worker[other], return_inverse=True)
    same = np.bincount(which, weights=label[one] == label[other])
    expected = np.bincount(which, weights=chance)
    # Never below one vote, so that a pair of whom agreement is certain is not suspected for a rounding error.
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
    """Rows of all pairs of votes that meet on a task, the earlier row first."""
    row = np.arange(crowd.n_votes)
    later = crowd.offset[1:][crowd.task] - row - 1
    one = np.repeat(row, later)
    step = np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return one, one + 1 + step
