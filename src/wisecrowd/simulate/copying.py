"""Copiers go where their sources have been, and say what they said."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate.assignment import assign, check_enough_workers


def choose_sources(copies: NDArray[np.bool_], random_state: Any = 0) -> NDArray[np.int32]:
    """For each copier a worker to copy, drawn among those who do not copy; −1 for everybody else.

    >>> choose_sources(np.array([False, True, False])).tolist()
    [-1, 2, -1]
    """
    if copies.all():
        raise UsageError("copiers need somebody to copy; add at least one worker of another kind")
    source = np.full(len(copies), -1, dtype=np.int32)
    source[copies] = np.random.default_rng(random_state).choice(np.flatnonzero(~copies), size=int(copies.sum()))
    return source


def assign_with_copiers(
    votes_per_task: ArrayLike, activity: ArrayLike, source: ArrayLike, random_state: Any = 0
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw the workers of every task like `assign`, with copiers only where their source is; gives rows, sorted.

    Those who do not copy are assigned first. A copier then follows his source (``source[worker]``, −1 for who does not
    copy) to each of the source's tasks with the probability activity / source's activity, at most one, and takes the
    place of somebody whom no copier of the task needs; where there is no such place, he stays away. So each task keeps
    its number of labels, and a copier is never seen where his source is not.

    >>> task, worker = assign_with_copiers([2, 2], activity=[1, 1, 1], source=[-1, -1, 0])
    >>> list(zip(task.tolist(), worker.tolist()))
    [(0, 0), (0, 2), (1, 0), (1, 2)]
    """
    counts, origin = np.asarray(votes_per_task, dtype=np.int64), np.asarray(source, dtype=np.int64)
    weight = np.asarray(activity, dtype=np.float64)
    weight = np.where((origin < 0) | (weight[origin] > 0), weight, 0.0)  # nobody follows a source who never works
    check_enough_workers(counts, weight)
    assigning, following = np.random.default_rng(random_state).spawn(2)

    independent = np.where(origin < 0, weight, 0.0)
    # With more labels than independent workers, all of these are on the task, and copiers must fill the rest.
    free = np.maximum(counts - np.count_nonzero(independent), 0)
    task, worker = assign(counts - free, independent, assigning)
    row, who = _followers(worker, np.where(weight > 0, origin, -1))
    if who.size == 0:
        return task, worker
    row, who = _admit(following, row, who, task[row], weight[who] / weight[origin[who]], counts, free)

    needed = np.zeros(len(task), dtype=bool)
    needed[row] = True
    surplus = np.bincount(task[row], minlength=len(counts)) - free
    leaves = _some_of_each(following, task, ~needed, surplus)
    n_workers = len(weight)
    cell = np.concatenate([np.delete(task, leaves), task[row]]).astype(np.int64) * n_workers
    cell += np.concatenate([np.delete(worker, leaves), who])
    cell.sort()
    return (cell // n_workers).astype(np.int32), (cell % n_workers).astype(np.int32)


def repeat_sources(
    task: NDArray[np.int32],
    worker: NDArray[np.int32],
    label: NDArray[np.int32],
    source: NDArray[np.int32],
    fidelity: NDArray[np.float64],
    random_state: Any = 0,
) -> NDArray[np.int32]:
    """Labels of sorted rows after each copier has repeated his source's label with probability ``fidelity[worker]``.

    >>> task, worker = np.array([0, 0]), np.array([0, 1])
    >>> repeat_sources(task, worker, np.array([3, 5]), np.array([-1, 0]), np.array([0.0, 1.0])).tolist()
    [3, 3]
    """
    rows = np.flatnonzero(source[worker] >= 0)
    rows = rows[np.random.default_rng(random_state).random(len(rows)) < fidelity[worker[rows]]]
    if rows.size == 0:
        return label
    cell = task.astype(np.int64) * len(source) + worker
    wanted = task[rows].astype(np.int64) * len(source) + source[worker[rows]]
    found = np.minimum(np.searchsorted(cell, wanted), len(cell) - 1)
    there = cell[found] == wanted  # rows made elsewhere may have a copier alone: he then votes for himself
    label = label.copy()
    label[rows[there]] = label[found[there]]
    return label


def _followers(worker: NDArray[np.int32], origin: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every (row of a source, copier of that source)."""
    copier = np.flatnonzero(origin >= 0)
    copier = copier[np.argsort(origin[copier], kind="stable")]
    followers = np.bincount(origin[copier], minlength=len(origin))
    first = np.cumsum(followers) - followers
    rows = np.flatnonzero(followers[worker])
    number = followers[worker[rows]]
    nth = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    return np.repeat(rows, number), copier[np.repeat(first[worker[rows]], number) + nth]


def _admit(
    rng: np.random.Generator,
    row: NDArray[np.int64],
    who: NDArray[np.int64],
    task: NDArray[np.int32],
    eagerness: NDArray[np.float64],
    counts: NDArray[np.int64],
    free: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The followers that find a place, in a random order of arrival at each task, the eager before the others."""
    eager = rng.random(len(who)) < eagerness
    order = np.lexsort((rng.random(len(who)), ~eager, task))
    order = order[eager[order] | (free[task[order]] > 0)]
    row, who, task, eager = row[order], who[order], task[order], eager[order]
    first_of_source = np.zeros(len(row), dtype=np.int64)
    first_of_source[np.unique(row, return_index=True)[1]] = 1
    arrived = _running_total(np.ones_like(first_of_source), task)
    # Each takes a place, and the first to follow a source makes the source's place untouchable.
    taken = arrived + _running_total(first_of_source, task)
    finds_place = (arrived <= free[task]) | (eager & (taken <= counts[task]))
    return row[finds_place], who[finds_place]


def _running_total(values: NDArray[np.int64], group: NDArray[np.int32]) -> NDArray[np.int64]:
    """Cumulative sums that start again with each group; groups are contiguous."""
    total = np.cumsum(values)
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    before = total[begins] - values[begins]
    return np.asarray(total - np.repeat(before, np.diff(begins, append=len(group))))


def _some_of_each(
    rng: np.random.Generator, group: NDArray[np.int32], allowed: NDArray[np.bool_], number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Positions of ``number[g]`` allowed members of each group g, drawn at random."""
    rows = np.flatnonzero(allowed & (number[group] > 0))
    # One key of both; the half keeps rounding from ever lifting a member into the next group.
    rows = rows[np.argsort(group[rows] + rng.random(len(rows)) / 2)]
    rank = _running_total(np.ones(len(rows), dtype=np.int64), group[rows])
    return np.asarray(rows[rank <= number[group[rows]]])
