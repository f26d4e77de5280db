"""Simulated votes: labels drawn from confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate import spec
from wisecrowd.simulate.activity import resolve_activity
from wisecrowd.simulate.assignment import BLOCK_SIZE, resolve_votes_per_task
from wisecrowd.simulate.copiers import assign_with_copiers, repeat_sources
from wisecrowd.simulate.spec import RandomState

#: Time of the first vote in seconds since 1970: 2024-01-01, an arbitrary date.
_START_SECONDS = 1_704_067_200
#: Time between the first and the last vote in seconds: thirty days, a usual length of a labelling project.
_PERIOD_SECONDS = 30 * 86_400


def draw_labels(
    confusion: ArrayLike, worker: ArrayLike, apparent_class: ArrayLike, random_state: RandomState = 0
) -> NDArray[np.int32]:
    """Draw one label per vote from the confusion matrices of the workers.

    Parameters
    ----------
    confusion : array-like of shape (n_workers, n_classes, n_classes)
        Probability of each label, by worker and class.
    worker : array-like of shape (n_votes,)
        Worker of each vote.
    apparent_class : array-like of shape (n_votes,)
        Class that each worker perceives; the truth, unless the task is difficult.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_votes,)
        Labels.

    Examples
    --------
    >>> draw_labels(np.eye(3)[None], worker=[0, 0, 0], apparent_class=[2, 0, 1]).tolist()
    [2, 0, 1]
    """
    table = np.asarray(confusion, dtype=np.float64)
    n_classes = table.shape[-1]
    row = np.asarray(worker, dtype=np.int64) * table.shape[-2] + np.asarray(apparent_class)
    cumulative = np.cumsum(table.reshape(-1, n_classes), axis=1)
    cumulative /= cumulative[:, -1:].copy()  # the last class with a positive probability ends exactly at one
    cumulative = cumulative.ravel()
    rng = np.random.default_rng(random_state)
    label = np.zeros(len(row), dtype=np.int32)
    for start in range(0, len(row), BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        label[block] = _search_cumulative(cumulative, row[block] * n_classes, rng.random(len(row[block])), n_classes)
    return label


def simulate_votes(
    truth: ArrayLike,
    confusion: ArrayLike,
    *,
    votes_per_task: int | tuple[int, int] | ArrayLike = 3,
    activity: str | ArrayLike = "uniform",
    difficulty: float | ArrayLike = 0.0,
    source: ArrayLike | None = None,
    fidelity: float | ArrayLike = 1.0,
    later_confusion: ArrayLike | None = None,
    tasks: Sequence[Any] | pd.Index | None = None,
    workers: Sequence[Any] | pd.Index | None = None,
    classes: Sequence[Any] | pd.Index | None = None,
    random_state: RandomState = 0,
) -> Crowd:
    """Simulate the votes of workers with known confusion matrices on tasks with known truth.

    Parameters
    ----------
    truth : array-like of shape (n_tasks,)
        Class code of each task.
    confusion : array-like of shape (n_workers, n_classes, n_classes)
        Probability of each label, by worker and true class.
    votes_per_task : int, tuple (low, high) or array-like of shape (n_tasks,), default=3
        Number of votes of each task.
    activity : str or array-like of shape (n_workers,), default="uniform"
        Name of a distribution (``zipf(1.2)``), or relative activity of each worker.
    difficulty : float or array-like of shape (n_tasks,), default=0.0
        Probability that a worker perceives a random class instead of the truth. Workers whose labels do not depend on
        the truth are not affected.
    source : array-like of shape (n_workers,), default=None
        Source that each worker copies; -1 for independent workers.
    fidelity : float or array-like of shape (n_workers,), default=1.0
        Probability with which a copier repeats the label of the source.
    later_confusion : array-like of shape (n_workers, n_classes, n_classes), default=None
        Confusion matrices in the second half of the time. With them, votes have times, spread over thirty days.
    tasks, workers, classes : sequence or Index, default=None
        Ids; made up by default.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    Crowd
        The votes.

    Examples
    --------
    >>> simulate_votes([0, 1, 1], [[[0.9, 0.1], [0.2, 0.8]]] * 5, votes_per_task=4)
    Crowd(12 votes: 3 tasks x 5 workers, 2 classes, 4.0 votes/task)
    """
    table = _check_confusion(confusion)
    n_workers, n_classes = table.shape[:2]
    true_class = _check_truth(truth, n_classes)
    n_tasks = len(true_class)
    task_difficulty = spec.broadcast_fractions("difficulty", difficulty, n_tasks, "task")
    sources = np.full(n_workers, -1, dtype=np.int32) if source is None else _check_sources(source, n_workers)
    # One random stream per step, so that a change of one step leaves the others as they are.
    sizing, working, assigning, perceiving, voting, copying, timing = np.random.default_rng(random_state).spawn(7)

    counts = resolve_votes_per_task(votes_per_task, n_tasks, sizing)
    task, worker = assign_with_copiers(counts, resolve_activity(activity, n_workers, working), sources, assigning)
    apparent_class = true_class[task]
    if task_difficulty.any():
        is_guess = perceiving.random(len(task)) < task_difficulty[task]
        guess = perceiving.integers(n_classes, size=len(task), dtype=np.int32)
        apparent_class = np.where(is_guess, guess, apparent_class)
    matrix, time = worker, None
    if later_confusion is not None:
        time = np.floor(timing.random(len(task)) * _PERIOD_SECONDS) + _START_SECONDS
        matrix = worker + n_workers * (time >= _START_SECONDS + _PERIOD_SECONDS / 2)
        table = np.concatenate([table, _check_confusion(later_confusion)])
    label = draw_labels(table, matrix, apparent_class, voting)
    fidelities = spec.broadcast_fractions("fidelity", fidelity, n_workers, "worker")
    label = repeat_sources(task, worker, label, sources, fidelities, copying)
    return Crowd.from_codes(
        task,
        worker,
        label,
        tasks=make_ids("t", n_tasks) if tasks is None else tasks,
        workers=make_ids("w", n_workers) if workers is None else workers,
        classes=make_ids("c", n_classes) if classes is None else classes,
        time=time,
    )


def make_ids(prefix: str, n: int) -> pd.Index:
    """Make numbered ids that sort as their numbers do.

    Parameters
    ----------
    prefix : str
        Text before the number.
    n : int
        Number of ids.

    Returns
    -------
    Index
        Ids with zero-padded numbers from zero.

    Examples
    --------
    >>> make_ids("w", 11).tolist()[-2:]
    ['w09', 'w10']
    """
    digits = pc.utf8_lpad(pc.cast(pa.array(np.arange(n)), pa.string()), len(str(max(n - 1, 0))), "0")
    return pd.Index(pc.binary_join_element_wise(prefix, digits, "").to_pandas())


def _search_cumulative(
    cumulative: NDArray[np.float64], start: NDArray[np.int64], point: NDArray[np.float64], n_classes: int
) -> NDArray[np.int64]:
    """Count, by bisection, the first K - 1 cumulative shares from ``start`` that do not exceed the point, per row."""
    count = np.zeros(len(start), dtype=np.int64)
    step = 1 << ((n_classes - 1).bit_length() - 1)
    while step:
        probe = count + (step - 1)
        inside = np.minimum(probe, n_classes - 2)
        count += step * ((probe == inside) & (cumulative[start + inside] <= point))
        step >>= 1
    return count


def _check_confusion(confusion: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(confusion, dtype=np.float64)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[2] < 2 or len(array) == 0:
        raise UsageError(
            f"confusion must be (workers, classes, classes), with two classes or more; got shape {array.shape}"
        )
    return spec.check_distributions(array, "confusion", array.shape)


def _check_truth(truth: ArrayLike, n_classes: int) -> NDArray[np.int32]:
    codes = np.asarray(truth)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise UsageError(f"truth must be a list of class codes; got {codes.dtype} of shape {codes.shape}")
    if codes.size and not (codes.min() >= 0 and codes.max() < n_classes):
        raise UsageError(f"truth must hold class codes from 0 to {n_classes - 1}; got {codes.min()} to {codes.max()}")
    return codes.astype(np.int32)


def _check_sources(source: ArrayLike, n_workers: int) -> NDArray[np.int32]:
    codes = np.asarray(source)
    fits = codes.shape == (n_workers,) and codes.dtype.kind == "i" and codes.min() >= -1 and codes.max() < n_workers
    if not fits or (codes[codes[codes >= 0]] >= 0).any():
        raise UsageError(
            f"source must hold for each of the {n_workers} workers the position of the worker to copy, or -1; "
            "a copier cannot be copied"
        )
    return codes.astype(np.int32)
