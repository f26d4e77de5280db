"""Pairs of workers with common tasks, and near-duplicates among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import SINGLE_LABEL_SHARE, get_worker_groups, most_frequent_labels
from wisecrowd.em.confusion import ConfusionEM

#: Smallest number of common tasks of near-duplicate workers; fewer agree nearly always by chance.
MIN_DUPLICATE_TASKS = 50
#: Smallest share of common tasks with the same label for near-duplicates.
MIN_DUPLICATE_SHARE = 0.9
#: Largest number of near-duplicate pairs that are examined, for bounded running time.
MAX_DUPLICATE_PAIRS = 1000
#: Smallest excess agreement of independent workers, as a share of their pairs of votes, that contradicts near-duplicates.
MIN_EXCESS_SHARE = 0.05
#: Smallest excess agreement in standard errors.
MIN_STANDARD_ERRORS = 4.0


class WorkerPairs(NamedTuple):
    """Pairs of workers with the numbers of common tasks and of equal labels.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        Positions of the workers.
    n_common : ndarray of shape (n_pairs,)
        Number of tasks that both labelled.
    n_same : ndarray of shape (n_pairs,)
        Number of common tasks with the same label.

    Examples
    --------
    >>> len(WorkerPairs(np.array([0]), np.array([1]), np.array([10.0]), np.array([9.0])))
    1
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    n_common: NDArray[np.float64]
    n_same: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def select(self, rows: NDArray[Any]) -> WorkerPairs:
        """Return some of the pairs.

        Parameters
        ----------
        rows : ndarray of int or bool
            Pairs to keep.

        Returns
        -------
        WorkerPairs
        """
        return WorkerPairs(*(part[rows] for part in self[:4]))


def find_worker_pairs(crowd: Crowd, fitted: ConfusionEM, min_common: int) -> WorkerPairs:
    """Find all pairs of workers with enough common tasks, except members of the same group.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    fitted : ConfusionEM
        Model fitted to ``crowd``, which may have groups.
    min_common : int
        Smallest number of common tasks.

    Returns
    -------
    WorkerPairs

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "abc"])
    >>> find_worker_pairs(crowd, DawidSkene().fit(crowd), 4).n_same.tolist()
    [4.0, 4.0, 4.0]
    """
    from scipy import sparse

    workers, n_workers = crowd.worker_codes, crowd.n_workers
    ones = np.ones(crowd.n_votes)
    cell = crowd.task.astype(np.int64) * crowd.n_classes + crowd.label
    voted = sparse.csr_array((ones, (workers, crowd.task)), shape=(n_workers, crowd.n_tasks))
    chose = sparse.csr_array((ones, (workers, cell)), shape=(n_workers, crowd.n_tasks * crowd.n_classes))
    shared = sparse.triu(voted @ voted.T, k=1).tocoo()
    unit = independent_units(fitted, crowd)
    is_pair = (shared.data >= min_common) & (unit[shared.row] != unit[shared.col])
    first, second, n_common = (
        shared.row[is_pair].astype(np.int64),
        shared.col[is_pair].astype(np.int64),
        shared.data[is_pair],
    )
    return WorkerPairs(first, second, n_common, np.asarray((chose @ chose.T).tocsr()[first, second]).ravel())


def share_single_label(crowd: Crowd, pairs: WorkerPairs) -> NDArray[np.bool_]:
    """Return whether both workers of a pair nearly always give the same single label.

    Such workers agree without copying each other.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    pairs : WorkerPairs
        Pairs to check.

    Returns
    -------
    ndarray of bool of shape (n_pairs,)

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, 0) for task in range(4) for worker in "ab"])
    >>> share_single_label(crowd, WorkerPairs(np.array([0]), np.array([1]), np.array([4.0]), np.array([4.0]))).tolist()
    [True]
    """
    top, share = most_frequent_labels(crowd)
    return np.asarray(
        (top[pairs.first] == top[pairs.second])
        & (np.minimum(share[pairs.first], share[pairs.second]) >= SINGLE_LABEL_SHARE)
    )


def find_near_duplicates(crowd: Crowd, pairs: WorkerPairs) -> WorkerPairs:
    """Find pairs of workers who give the same label to nearly all of many common tasks.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    pairs : WorkerPairs
        Pairs to choose from.

    Returns
    -------
    WorkerPairs

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(60) for worker in "ab"])
    >>> len(find_near_duplicates(crowd, WorkerPairs(np.array([0]), np.array([1]), np.array([60.0]), np.array([60.0]))))
    1
    """
    is_duplicate = (pairs.n_common >= MIN_DUPLICATE_TASKS) & (pairs.n_same >= MIN_DUPLICATE_SHARE * pairs.n_common)
    chosen = np.flatnonzero(is_duplicate & ~share_single_label(crowd, pairs))
    order = np.lexsort((-pairs.n_common[chosen], -pairs.n_same[chosen] / pairs.n_common[chosen]))
    return pairs.select(chosen[order[:MAX_DUPLICATE_PAIRS]])


def is_contradicted(duplicates: Crowd, independent_votes: Crowd) -> bool:
    """Return whether independent workers agree far more than they would if near-duplicates were right.

    Good workers agree too, because they are right. The labels of two independent workers on tasks that near-duplicates label k are
    then independent given how often each of them gives which label there. Both crowds have the same tasks, workers and classes.

    Parameters
    ----------
    duplicates : Crowd
        Votes of the near-duplicates.
    independent_votes : Crowd
        Votes of the other workers.

    Returns
    -------
    bool

    Examples
    --------
    >>> accuracy = [("rita", 0.9), ("sam", 0.9), ("tom", 0.9)]
    >>> rng = np.random.default_rng(0)
    >>> votes = [(task, who, task % 2 if rng.random() < p else 1 - task % 2) for task in range(200) for who, p in accuracy]
    >>> wrong = [(task, who, (task + (task < 80)) % 2) for task in range(200) for who in "ab"]
    >>> crowd = Crowd.from_triples(votes + wrong)
    >>> is_duplicate = crowd.worker_codes < 2
    >>> is_contradicted(crowd.take(is_duplicate), crowd.take(~is_duplicate))
    True
    """
    rows = np.flatnonzero(duplicates.votes_per_task[independent_votes.task] > 0)
    task, label, n_classes = (
        independent_votes.task[rows].astype(np.int64),
        independent_votes.label[rows],
        independent_votes.n_classes,
    )
    # Habits: how often each worker gives each label, by the label of the near-duplicates.
    habit = independent_votes.worker_codes[rows] * np.int64(n_classes) + duplicates.vote_counts.argmax(axis=1)[task]
    _, habit = np.unique(habit, return_inverse=True)
    total = np.bincount(habit)

    def sum_pair_products(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over pairs of votes of the products of their values, by task."""
        sums = (np.bincount(task, part, independent_votes.n_tasks) for part in (values, values**2))
        return np.asarray((next(sums) ** 2 - next(sums)) / 2)

    n_same, expected = np.zeros(independent_votes.n_tasks), np.zeros(independent_votes.n_tasks)
    for code in range(n_classes):
        gave_label = (label == code).astype(np.float64)
        n_same += sum_pair_products(gave_label)
        expected += sum_pair_products((np.bincount(habit, gave_label) / total)[habit])
    excess, n_pairs = n_same - expected, sum_pair_products(np.ones(len(task))).sum()
    standard_error = float(np.sqrt((excess**2).sum()))
    return bool(excess.sum() >= max(MIN_EXCESS_SHARE * n_pairs, MIN_STANDARD_ERRORS * standard_error) > 0)


def find_redundant_copiers(copying: pd.DataFrame) -> pd.Index:
    """Return the second workers of pairs who copy more than one other worker.

    Of several workers with equal labels, these are all but the first.

    Parameters
    ----------
    copying : DataFrame
        Copying pairs with columns first and second.

    Returns
    -------
    Index

    Examples
    --------
    >>> find_redundant_copiers(pd.DataFrame({"first": ["a", "a", "b", "x"], "second": ["b", "c", "c", "y"]})).tolist()
    ['b', 'c']
    """
    n_partners = pd.concat([copying["first"], copying["second"]]).value_counts()
    seconds = pd.Index(copying["second"].unique())
    return seconds[n_partners.reindex(seconds).to_numpy() > 1]


def independent_units(fitted: ConfusionEM, crowd: Crowd) -> NDArray[np.int64]:
    """Return a number for each worker that members of the same group share.

    Parameters
    ----------
    fitted : ConfusionEM
        Fitted model, which may have groups.
    crowd : Crowd
        Votes.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> crowd = Crowd.from_triples([("t1", "a", 0), ("t1", "b", 1)])
    >>> independent_units(DawidSkene().fit(crowd), crowd).tolist()
    [0, 1]
    """
    own_unit = np.arange(crowd.n_workers, dtype=np.int64)
    group = get_worker_groups(fitted)
    return own_unit if group is None else np.where(group >= 0, crowd.n_workers + group, own_unit)
