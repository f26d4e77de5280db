"""Assignment of workers to tasks: each task draws distinct workers in proportion to their activity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate.activity import MIN_SHARE, resolve_activity
from wisecrowd.simulate.spec import RandomState

#: Cells of a temporary array: large enough to amortise the interpreter, small enough for a processor's cache.
BLOCK_SIZE = 2**18


def resolve_votes_per_task(
    votes_per_task: int | tuple[int, int] | ArrayLike, n_tasks: int, random_state: RandomState = 0
) -> NDArray[np.int64]:
    """Compute the number of votes of each task.

    Parameters
    ----------
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,)
        One number for all tasks, bounds between which to draw, or one number per task.
    n_tasks : int
        Number of tasks.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_tasks,)
        Number of votes of each task.

    Examples
    --------
    >>> resolve_votes_per_task(3, 4).tolist(), resolve_votes_per_task([1, 0, 2], 3).tolist()
    ([3, 3, 3, 3], [1, 0, 2])
    >>> resolve_votes_per_task((2, 5), 8).tolist()
    [5, 4, 4, 3, 3, 2, 2, 2]
    """
    counts = np.asarray(votes_per_task)
    if counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
        raise UsageError(f"votes_per_task must be whole numbers from 0; got {votes_per_task!r}")
    if isinstance(votes_per_task, tuple):
        if len(votes_per_task) != 2 or votes_per_task[0] > votes_per_task[1]:
            raise UsageError(f"votes_per_task as a tuple means (low, high); got {votes_per_task}")
        low, high = votes_per_task
        return np.random.default_rng(random_state).integers(low, high, size=n_tasks, endpoint=True)
    if counts.ndim == 0:
        return np.full(n_tasks, counts, dtype=np.int64)
    if counts.shape != (n_tasks,):
        raise UsageError(
            f"votes_per_task must be a number, a tuple (low, high), or one number for each of the {n_tasks:,} tasks; "
            f"got shape {counts.shape}"
        )
    return counts.astype(np.int64)


def assign(
    votes_per_task: ArrayLike, activity: ArrayLike, random_state: RandomState = 0
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw the workers of every task.

    A task draws its workers one after the other, each in proportion to activity among those it has not drawn yet
    (successive sampling, which is also the distribution of Gumbel top-k). A task never has the same worker twice, so a
    very active worker, who is on nearly every task, has a smaller share of the votes than of the activity. Draws are
    exact and none is rejected. Memory is proportional to the number of votes, and time to that number times the votes
    per task.

    Parameters
    ----------
    votes_per_task : array-like of shape (n_tasks,)
        Number of votes of each task.
    activity : array-like of shape (n_workers,)
        Relative activity of each worker.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    task, worker : ndarray of shape (n_votes,)
        Codes of the task and the worker of each vote, sorted.

    Examples
    --------
    >>> task, worker = assign([2, 1, 3], activity=[5, 1, 1])
    >>> task.tolist()
    [0, 0, 1, 2, 2, 2]
    >>> worker[task == 2].tolist()
    [0, 1, 2]
    """
    counts = np.asarray(votes_per_task, dtype=np.int64)
    weights = np.asarray(activity, dtype=np.float64)
    share = resolve_activity(weights, len(weights))
    check_enough_workers(counts, share)
    rng = np.random.default_rng(random_state)
    active = np.flatnonzero(share).astype(np.int32)
    first = np.cumsum(counts) - counts
    worker = np.empty(int(counts.sum()), dtype=np.int32)
    for k in np.unique(counts[counts > 0]).tolist():  # tasks with equally many votes form a rectangle
        for tasks in _iter_blocks(np.flatnonzero(counts == k), max(1, BLOCK_SIZE // k)):
            rows = first[tasks][:, None] + np.arange(k)
            worker[rows] = active[_draw_distinct(rng, len(tasks), k, share[active])]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts), worker


def check_enough_workers(votes_per_task: NDArray[np.int64], activity: NDArray[np.float64]) -> None:
    """Raise when a task needs more votes than there are active workers.

    Parameters
    ----------
    votes_per_task : ndarray of shape (n_tasks,)
        Number of votes of each task.
    activity : ndarray of shape (n_workers,)
        Activity of each worker.

    Raises
    ------
    UsageError
        With both numbers.

    Examples
    --------
    >>> check_enough_workers(np.array([3, 4]), np.array([1.0, 1.0, 0.0]))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: 4 votes per task need 4 different workers, but only 2 are active. Add workers, or ...
    """
    most, n_active = int(votes_per_task.max(initial=0)), int(np.count_nonzero(activity))
    if most > n_active:
        raise UsageError(
            f"{most} votes per task need {most} different workers, but only {n_active} are active. "
            "Add workers, or ask for fewer votes per task"
        )


def _iter_blocks(values: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _draw_distinct(rng: np.random.Generator, n_tasks: int, k: int, share: NDArray[np.float64]) -> NDArray[np.int32]:
    """Draw ``k`` distinct workers for each of ``n_tasks`` tasks, ascending in each row."""
    n_workers = len(share)
    if k == n_workers:
        return np.broadcast_to(np.arange(k, dtype=np.int32), (n_tasks, k))
    # A race draws a key for every worker; successive draws compare every vote with those drawn before it. The
    # threshold is where the two take equally long.
    if n_workers < k * (k + 10) / 5:
        size = max(1, BLOCK_SIZE // n_workers)
        sizes = (min(size, n_tasks - start) for start in range(0, n_tasks, size))
        return np.concatenate([_draw_by_race(rng, block, k, share) for block in sizes])
    return _draw_successively(rng, n_tasks, k, share)


def _draw_by_race(rng: np.random.Generator, n_tasks: int, k: int, share: NDArray[np.float64]) -> NDArray[np.int32]:
    """Draw the first ``k`` workers to arrive, when arrival times are exponential with rates equal to the activity."""
    arrival = rng.standard_exponential((n_tasks, len(share))) / share
    return np.sort(np.argpartition(arrival, k - 1, axis=1)[:, :k].astype(np.int32), axis=1)


def _draw_successively(rng: np.random.Generator, n_tasks: int, k: int, share: NDArray[np.float64]) -> NDArray[np.int32]:
    """Draw one worker after the other by a point on a line from which the intervals of earlier workers are cut out.

    Widths on the line are integers, so that no rounding can make a point fall into a cut.
    """
    width = np.rint(share / MIN_SHARE).astype(np.int64)
    end = np.cumsum(width)
    start = end - width
    remaining = np.full(n_tasks, end[-1])
    chosen = np.empty((k, n_tasks), dtype=np.int32)
    for turn in range(k):
        point = rng.integers(remaining)
        for earlier in chosen[:turn]:  # in ascending order: stepping over one cut may reach the next
            point += np.where(point >= start[earlier], width[earlier], 0)
        new = np.searchsorted(end, point, side="right").astype(np.int32)
        remaining -= width[new]
        for rank in range(turn):
            chosen[rank], new = np.minimum(chosen[rank], new), np.maximum(chosen[rank], new)
        chosen[turn] = new
    return chosen.T
