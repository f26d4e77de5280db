"""Pairs of workers who share tasks, and twins among them, who say the same of nearly all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import ONE_BUTTON, favourites, groups_of
from wisecrowd.em.confusion import ConfusionEM

#: Who says the same of nearly all of many tasks, a twin, is judged by those who do not; at most so many pairs are.
MANY_TASKS, NEARLY_ALL, MOST_TWINS = 50, 0.9, 1000
#: By what share of their meetings strangers agree more than twins' being right explains, and by how many standard errors.
FURTHER, SURELY = 0.05, 4.0


class Pairs(NamedTuple):
    """Pairs of workers, by position, with the tasks that they share and those of which they say the same.

    >>> len(Pairs(np.array([0]), np.array([1]), np.array([10.0]), np.array([9.0])))
    1
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    common: NDArray[np.float64]
    same: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    def chosen(self, rows: NDArray[Any]) -> Pairs:
        """Some of them."""
        return Pairs(*(part[rows] for part in self[:4]))


def pairs_of(crowd: Crowd, fitted: ConfusionEM, min_common: int) -> Pairs:
    """All pairs who share enough tasks and are not of one group: its members are no copies of each other.

    >>> from wisecrowd import DawidSkene
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "abc"])
    >>> pairs_of(crowd, DawidSkene().fit(crowd), 4).same.tolist()
    [4.0, 4.0, 4.0]
    """
    from scipy import sparse

    workers, n_workers = crowd.worker_codes, crowd.n_workers
    one = np.ones(crowd.n_votes)
    cell = crowd.task.astype(np.int64) * crowd.n_classes + crowd.label
    seen = sparse.csr_array((one, (workers, crowd.task)), shape=(n_workers, crowd.n_tasks))
    chose = sparse.csr_array((one, (workers, cell)), shape=(n_workers, crowd.n_tasks * crowd.n_classes))
    met = sparse.triu(seen @ seen.T, k=1).tocoo()
    unit = units_of(fitted, crowd)
    enough = (met.data >= min_common) & (unit[met.row] != unit[met.col])
    first, second, common = met.row[enough].astype(np.int64), met.col[enough].astype(np.int64), met.data[enough]
    return Pairs(first, second, common, np.asarray((chose @ chose.T).tocsr()[first, second]).ravel())


def press_one_button(crowd: Crowd, pairs: Pairs) -> NDArray[np.bool_]:
    """Two who always press the same button answer alike, and need not know of each other.

    >>> crowd = Crowd.from_triples([(task, worker, 0) for task in range(4) for worker in "ab"])
    >>> press_one_button(crowd, Pairs(np.array([0]), np.array([1]), np.array([4.0]), np.array([4.0]))).tolist()
    [True]
    """
    top, share = favourites(crowd)
    return np.asarray(
        (top[pairs.first] == top[pairs.second]) & (np.minimum(share[pairs.first], share[pairs.second]) >= ONE_BUTTON)
    )


def twins_of(crowd: Crowd, pairs: Pairs) -> Pairs:
    """Pairs who say the same of nearly all of many tasks.

    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(60) for worker in "ab"])
    >>> len(twins_of(crowd, Pairs(np.array([0]), np.array([1]), np.array([60.0]), np.array([60.0]))))
    1
    """
    alike = (pairs.common >= MANY_TASKS) & (pairs.same >= NEARLY_ALL * pairs.common)
    chosen = np.flatnonzero(alike & ~press_one_button(crowd, pairs))
    order = np.lexsort((-pairs.common[chosen], -pairs.same[chosen] / pairs.common[chosen]))
    return pairs.chosen(chosen[order[:MOST_TWINS]])


def gainsaid(twins: Crowd, strangers: Crowd) -> bool:
    """Whether strangers agree with each other far more than they would if what twins say were the truth.

    Good workers answer alike, too, because they are right. Then what two others say where twins say k is independent, by what
    each of them says there as a rule. Both crowds have the same tasks, workers and classes.

    >>> says = [("rita", 0.9), ("sam", 0.9), ("tom", 0.9)]
    >>> rng = np.random.default_rng(0)
    >>> votes = [(task, who, task % 2 if rng.random() < p else 1 - task % 2) for task in range(200) for who, p in says]
    >>> wrong = [(task, who, (task + (task < 80)) % 2) for task in range(200) for who in "ab"]
    >>> crowd = Crowd.from_triples(votes + wrong)
    >>> twin = crowd.worker_codes < 2
    >>> gainsaid(crowd.take(twin), crowd.take(~twin))
    True
    """
    rows = np.flatnonzero(twins.votes_per_task[strangers.task] > 0)
    task, label, n_classes = strangers.task[rows].astype(np.int64), strangers.label[rows], strangers.n_classes
    # What each of them says where the twins say something: (worker, said by twins), and how often which label.
    habit = strangers.worker_codes[rows] * np.int64(n_classes) + twins.votes.argmax(axis=1)[task]
    _, habit = np.unique(habit, return_inverse=True)
    total = np.bincount(habit)

    def in_pairs(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Products of the values of every two votes on a task, added up by task."""
        sums = (np.bincount(task, part, strangers.n_tasks) for part in (values, values**2))
        return np.asarray((next(sums) ** 2 - next(sums)) / 2)

    same, expected = np.zeros(strangers.n_tasks), np.zeros(strangers.n_tasks)
    for each in range(n_classes):
        said = (label == each).astype(np.float64)
        same += in_pairs(said)
        expected += in_pairs((np.bincount(habit, said) / total)[habit])
    excess, n_pairs = same - expected, in_pairs(np.ones(len(task))).sum()
    spread = float(np.sqrt((excess**2).sum()))
    return bool(excess.sum() >= max(FURTHER * n_pairs, SURELY * spread) > 0)


def more_than_two(found: pd.DataFrame) -> pd.Index:
    """Who is second of a pair and copies more than one: of several who answer alike, all but the first.

    >>> more_than_two(pd.DataFrame({"first": ["a", "a", "b", "x"], "second": ["b", "c", "c", "y"]})).tolist()
    ['b', 'c']
    """
    partners = pd.concat([found["first"], found["second"]]).value_counts()
    seconds = pd.Index(found["second"].unique())
    return seconds[partners.reindex(seconds).to_numpy() > 1]


def units_of(fitted: ConfusionEM, crowd: Crowd) -> NDArray[np.int64]:
    """Who counts as one: the same number for all of a group, and one of their own for all others.

    >>> from wisecrowd import DawidSkene
    >>> crowd = Crowd.from_triples([("t1", "a", 0), ("t1", "b", 1)])
    >>> units_of(DawidSkene().fit(crowd), crowd).tolist()
    [0, 1]
    """
    alone = np.arange(crowd.n_workers, dtype=np.int64)
    group = groups_of(fitted)
    return alone if group is None else np.where(group >= 0, crowd.n_workers + group, alone)
