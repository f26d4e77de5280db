"""Who labels what: each task draws distinct workers, in proportion to their activity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate.activity import MIN_SHARE, resolve_activity

#: Cells of a temporary array: large enough to amortise Python, small enough for a processor's cache.
BLOCK_SIZE = 2**18


def resolve_votes_per_task(
    votes_per_task: int | tuple[int, int] | ArrayLike, n_tasks: int, random_state: Any = 0
) -> NDArray[np.int64]:
    """How many labels each task gets: one number for all, a tuple (low, high) to draw from, or an array.

    >>> resolve_votes_per_task(3, 4).tolist(), resolve_votes_per_task([1, 0, 2], 3).tolist()
    ([3, 3, 3, 3], [1, 0, 2])
    >>> resolve_votes_per_task((2, 5), 8).tolist()
    [5, 4, 4, 3, 3, 2, 2, 2]
    """
    given = np.asarray(votes_per_task)
    if given.dtype.kind not in "iu" or (given.size and given.min() < 0):
        raise UsageError(f"votes_per_task counts labels: whole numbers from 0; got {votes_per_task!r}")
    if isinstance(votes_per_task, tuple):
        if len(votes_per_task) != 2 or votes_per_task[0] > votes_per_task[1]:
            raise UsageError(f"votes_per_task as a tuple means (low, high); got {votes_per_task}")
        low, high = votes_per_task
        return np.random.default_rng(random_state).integers(low, high, size=n_tasks, endpoint=True)
    if given.ndim == 0:
        return np.full(n_tasks, given, dtype=np.int64)
    if given.shape != (n_tasks,):
        raise UsageError(
            f"votes_per_task must be a number, a tuple (low, high), or one number for each of the {n_tasks:,} tasks; "
            f"got shape {given.shape}"
        )
    return given.astype(np.int64)


def assign(
    votes_per_task: ArrayLike, activity: ArrayLike, random_state: Any = 0
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw the workers of every task; gives rows (task, worker), sorted.

    A task draws its workers one after the other, each in proportion to activity among those it has not drawn yet
    (successive sampling, which is also what Gumbel top-k draws). So a task never has the same worker twice, and an active
    worker's votes stay below his share of the activity once he is on nearly every task. Exact, with no rejected draws:
    memory is that of the rows, time that of the rows times the labels per task.

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
    able = np.flatnonzero(share).astype(np.int32)
    first = np.cumsum(counts) - counts
    worker = np.empty(int(counts.sum()), dtype=np.int32)
    for k in np.unique(counts[counts > 0]).tolist():  # tasks of one size form a rectangle
        for tasks in _blocks(np.flatnonzero(counts == k), max(1, BLOCK_SIZE // k)):
            rows = first[tasks][:, None] + np.arange(k)
            worker[rows] = able[_distinct(rng, len(tasks), k, share[able])]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts), worker


def check_enough_workers(votes_per_task: NDArray[np.int64], activity: NDArray[np.float64]) -> None:
    """Raise when a task wants more labels than there are workers to give one each.

    >>> check_enough_workers(np.array([3, 4]), np.array([1.0, 1.0, 0.0]))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: 4 labels per task need as many different workers; only 2 work. Add workers, or ask for ...
    """
    most, able = int(votes_per_task.max(initial=0)), int(np.count_nonzero(activity))
    if most > able:
        raise UsageError(
            f"{most} labels per task need as many different workers; only {able} work. "
            "Add workers, or ask for fewer labels per task"
        )


def _blocks(values: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _distinct(rng: np.random.Generator, n_tasks: int, k: int, share: NDArray[np.float64]) -> NDArray[np.int32]:
    """Workers of ``n_tasks`` tasks, (n_tasks, k), ascending in each row."""
    n_workers = len(share)
    if k == n_workers:
        return np.broadcast_to(np.arange(k, dtype=np.int32), (n_tasks, k))
    # Measured: a race costs every worker a key, turns cost every label a look at the workers drawn before it.
    if n_workers < k * (k + 10) / 5:
        size = max(1, BLOCK_SIZE // n_workers)
        sizes = (min(size, n_tasks - start) for start in range(0, n_tasks, size))
        return np.concatenate([_by_race(rng, block, k, share) for block in sizes])
    return _by_turns(rng, n_tasks, k, share)


def _by_race(rng: np.random.Generator, n_tasks: int, k: int, share: NDArray[np.float64]) -> NDArray[np.int32]:
    """The first k to arrive, when each worker takes an exponential time at the rate of his activity."""
    arrival = rng.standard_exponential((n_tasks, len(share))) / share
    return np.sort(np.argpartition(arrival, k - 1, axis=1)[:, :k].astype(np.int32), axis=1)


def _by_turns(rng: np.random.Generator, n_tasks: int, k: int, share: NDArray[np.float64]) -> NDArray[np.int32]:
    """One worker after the other, each by a point on a line from which the workers drawn before have been cut out.

    Widths on the line are whole numbers, so that no rounding can ever make a point fall into a cut.
    """
    width = np.rint(share / MIN_SHARE).astype(np.int64)
    end = np.cumsum(width)
    start = end - width
    left = np.full(n_tasks, end[-1])
    chosen = np.empty((k, n_tasks), dtype=np.int32)
    for turn in range(k):
        point = rng.integers(left)
        for held in chosen[:turn]:  # in ascending order: stepping over one cut may bring the next into the way
            point += np.where(point >= start[held], width[held], 0)
        drawn = np.searchsorted(end, point, side="right").astype(np.int32)
        left -= width[drawn]
        for place in range(turn):
            chosen[place], drawn = np.minimum(chosen[place], drawn), np.maximum(chosen[place], drawn)
        chosen[turn] = drawn
    return chosen.T
