"""Simulated copiers, who vote on the tasks of a source and repeat its labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate.assignment import assign, check_enough_workers
from wisecrowd.simulate.spec import RandomState


def choose_sources(copies: NDArray[np.bool_], random_state: RandomState = 0) -> NDArray[np.int32]:
    """Draw a source for each copier among the workers who do not copy.

    Parameters
    ----------
    copies : ndarray of shape (n_workers,)
        True for copiers.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_workers,)
        Source of each copier; -1 for the other workers.

    Raises
    ------
    UsageError
        If all workers copy.

    Examples
    --------
    >>> choose_sources(np.array([False, True, False])).tolist()
    [-1, 2, -1]
    """
    if copies.all():
        raise UsageError("copiers need a worker to copy; add at least one worker of another kind")
    source = np.full(len(copies), -1, dtype=np.int32)
    source[copies] = np.random.default_rng(random_state).choice(np.flatnonzero(~copies), size=int(copies.sum()))
    return source


def assign_with_copiers(
    votes_per_task: ArrayLike, activity: ArrayLike, source: ArrayLike, random_state: RandomState = 0
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw the workers of every task as `assign` does, with copiers only on tasks of their source.

    Independent workers are assigned first. A copier then follows the source to each of its tasks with probability
    min(1, activity / source's activity), and replaces a worker who is not copied on the task. If there is no such worker,
    the copier does not vote on the task. Each task keeps its number of votes.

    Parameters
    ----------
    votes_per_task : array-like of shape (n_tasks,)
        Number of votes of each task.
    activity : array-like of shape (n_workers,)
        Relative activity of each worker.
    source : array-like of shape (n_workers,)
        Source of each worker; -1 for independent workers.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    task, worker : ndarray of shape (n_votes,)
        Codes of the task and the worker of each vote, sorted.

    Examples
    --------
    >>> task, worker = assign_with_copiers([2, 2], activity=[1, 1, 1], source=[-1, -1, 0])
    >>> list(zip(task.tolist(), worker.tolist()))
    [(0, 0), (0, 2), (1, 0), (1, 2)]
    """
    counts, origin = np.asarray(votes_per_task, dtype=np.int64), np.asarray(source, dtype=np.int64)
    weight = np.asarray(activity, dtype=np.float64)
    weight = np.where((origin < 0) | (weight[origin] > 0), weight, 0.0)  # an inactive source has no followers
    check_enough_workers(counts, weight)
    assigning, following = np.random.default_rng(random_state).spawn(2)

    independent = np.where(origin < 0, weight, 0.0)
    # With more votes than independent workers, all of these are on the task, and copiers must fill the rest.
    free = np.maximum(counts - np.count_nonzero(independent), 0)
    task, worker = assign(counts - free, independent, assigning)
    row, copier = _list_followers(worker, np.where(weight > 0, origin, -1))
    if copier.size == 0:
        return task, worker
    row, copier = _admit_followers(
        following, row, copier, task[row], weight[copier] / weight[origin[copier]], counts, free
    )

    is_copied = np.zeros(len(task), dtype=bool)
    is_copied[row] = True
    surplus = np.bincount(task[row], minlength=len(counts)) - free
    leaving = _draw_from_groups(following, task, ~is_copied, surplus)
    n_workers = len(weight)
    cell = np.concatenate([np.delete(task, leaving), task[row]]).astype(np.int64) * n_workers
    cell += np.concatenate([np.delete(worker, leaving), copier])
    cell.sort()
    return (cell // n_workers).astype(np.int32), (cell % n_workers).astype(np.int32)


def repeat_sources(
    task: NDArray[np.int32],
    worker: NDArray[np.int32],
    label: NDArray[np.int32],
    source: NDArray[np.int32],
    fidelity: NDArray[np.float64],
    random_state: RandomState = 0,
) -> NDArray[np.int32]:
    """Replace labels of copiers by those of their sources.

    Parameters
    ----------
    task, worker, label : ndarray of shape (n_votes,)
        Votes, sorted by task and worker.
    source : ndarray of shape (n_workers,)
        Source of each worker; -1 for independent workers.
    fidelity : ndarray of shape (n_workers,)
        Probability with which each copier repeats the label of the source.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_votes,)
        Labels. A copier on a task without the source keeps the own label.

    Examples
    --------
    >>> task, worker = np.array([0, 0]), np.array([0, 1])
    >>> repeat_sources(task, worker, np.array([3, 5]), np.array([-1, 0]), np.array([0.0, 1.0])).tolist()
    [3, 3]
    """
    rows = np.flatnonzero(source[worker] >= 0)
    rows = rows[np.random.default_rng(random_state).random(len(rows)) < fidelity[worker[rows]]]
    if rows.size == 0:
        return label
    cell = task.astype(np.int64) * len(source) + worker
    source_cell = task[rows].astype(np.int64) * len(source) + source[worker[rows]]
    position = np.minimum(np.searchsorted(cell, source_cell), len(cell) - 1)
    is_present = cell[position] == source_cell
    label = label.copy()
    label[rows[is_present]] = label[position[is_present]]
    return label


def _list_followers(
    worker: NDArray[np.int32], origin: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List every combination of a vote of a source and a copier of that source."""
    copier = np.flatnonzero(origin >= 0)
    copier = copier[np.argsort(origin[copier], kind="stable")]
    n_followers = np.bincount(origin[copier], minlength=len(origin))
    first = np.cumsum(n_followers) - n_followers
    rows = np.flatnonzero(n_followers[worker])
    counts = n_followers[worker[rows]]
    nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(rows, counts), copier[np.repeat(first[worker[rows]], counts) + nth]


def _admit_followers(
    rng: np.random.Generator,
    row: NDArray[np.int64],
    copier: NDArray[np.int64],
    task: NDArray[np.int32],
    probability: NDArray[np.float64],
    counts: NDArray[np.int64],
    free: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Select the followers that a task has room for, in a random order per task, willing ones before the others."""
    is_willing = rng.random(len(copier)) < probability
    order = np.lexsort((rng.random(len(copier)), ~is_willing, task))
    order = order[is_willing[order] | (free[task[order]] > 0)]
    row, copier, task, is_willing = row[order], copier[order], task[order], is_willing[order]
    is_first_of_source = np.zeros(len(row), dtype=np.int64)
    is_first_of_source[np.unique(row, return_index=True)[1]] = 1
    n_arrived = _sum_within_groups(np.ones_like(is_first_of_source), task)
    # Each follower needs a vote of the task, and the first follower of a source also reserves the source's vote.
    n_reserved = n_arrived + _sum_within_groups(is_first_of_source, task)
    has_room = (n_arrived <= free[task]) | (is_willing & (n_reserved <= counts[task]))
    return row[has_room], copier[has_room]


def _sum_within_groups(values: NDArray[np.int64], group: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return cumulative sums that start again with each group; groups are contiguous."""
    total = np.cumsum(values)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    before = total[starts] - values[starts]
    return np.asarray(total - np.repeat(before, np.diff(starts, append=len(group))))


def _draw_from_groups(
    rng: np.random.Generator, group: NDArray[np.int32], allowed: NDArray[np.bool_], count: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw positions of ``count[g]`` allowed members of each group g."""
    rows = np.flatnonzero(allowed & (count[group] > 0))
    # Group and random number in one key; halving the random number keeps rounding from lifting it into the next group.
    rows = rows[np.argsort(group[rows] + rng.random(len(rows)) / 2)]
    rank = _sum_within_groups(np.ones(len(rows), dtype=np.int64), group[rows])
    return np.asarray(rows[rank <= count[group[rows]]])
