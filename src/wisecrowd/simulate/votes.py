"""Workers speak: labels drawn from confusion matrices."""

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
from wisecrowd.simulate.copying import assign_with_copiers, repeat_sources

#: When votes with times begin, 2024-01-01, and for how long they go on, thirty days: in seconds.
_BEGIN, _PERIOD = 1_704_067_200, 30 * 86_400


def draw_labels(confusion: ArrayLike, worker: ArrayLike, seen: ArrayLike, random_state: Any = 0) -> NDArray[np.int32]:
    """One label per row from ``confusion[worker[n], seen[n]]``, whose rows are (worker, true, said).

    >>> draw_labels(np.eye(3)[None], worker=[0, 0, 0], seen=[2, 0, 1]).tolist()
    [2, 0, 1]
    """
    table = np.asarray(confusion, dtype=np.float64)
    n_classes = table.shape[-1]
    row = np.asarray(worker, dtype=np.int64) * table.shape[-2] + np.asarray(seen)
    reached = np.cumsum(table.reshape(-1, n_classes), axis=1)
    reached /= reached[:, -1:].copy()  # the last class that can be said ends exactly at one
    reached = reached.ravel()
    rng = np.random.default_rng(random_state)
    label = np.zeros(len(row), dtype=np.int32)
    for start in range(0, len(row), BLOCK_SIZE):
        part = slice(start, start + BLOCK_SIZE)
        label[part] = _first_above(reached, row[part] * n_classes, rng.random(len(row[part])), n_classes)
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
    later: ArrayLike | None = None,
    tasks: Sequence[Any] | pd.Index | None = None,
    workers: Sequence[Any] | pd.Index | None = None,
    classes: Sequence[Any] | pd.Index | None = None,
    random_state: Any = 0,
) -> Crowd:
    """Votes of given workers on tasks of given truth (class codes).

    ``confusion`` is (workers, true, said). ``votes_per_task`` is a number, a tuple (low, high) or one number per task.
    ``activity`` is a shape by name (``zipf(1.2)``) or one number per worker. On a task of ``difficulty`` d a worker sees
    the truth with probability 1 − d and otherwise answers as if it were any class: those who never look are
    not affected. ``source[worker]`` is whom a worker copies (−1: nobody) with the probability ``fidelity``.
    With ``later`` matrices votes have times, spread over thirty days, and in the second half of them workers vote by these.

    >>> simulate_votes([0, 1, 1], [[[0.9, 0.1], [0.2, 0.8]]] * 5, votes_per_task=4)
    Crowd(12 votes: 3 tasks x 5 workers, 2 classes, 4.0 votes/task)
    """
    table = _confusion(confusion)
    n_workers, n_classes = table.shape[:2]
    z = _truth_codes(truth, n_classes)
    n_tasks = len(z)
    d = spec.broadcast_fractions("difficulty", difficulty, n_tasks, "task")
    copied = np.full(n_workers, -1, dtype=np.int32) if source is None else _sources(source, n_workers)
    sizing, working, assigning, looking, speaking, copying, passing = np.random.default_rng(random_state).spawn(7)

    counts = resolve_votes_per_task(votes_per_task, n_tasks, sizing)
    task, worker = assign_with_copiers(counts, resolve_activity(activity, n_workers, working), copied, assigning)
    seen = z[task]
    if d.any():
        guesses = looking.random(len(task)) < d[task]
        seen = np.where(guesses, looking.integers(n_classes, size=len(task), dtype=np.int32), seen)
    speaker, time = worker, None
    if later is not None:
        time = np.floor(passing.random(len(task)) * _PERIOD) + _BEGIN
        speaker = worker + n_workers * (time >= _BEGIN + _PERIOD / 2)
        table = np.concatenate([table, _confusion(later)])
    label = draw_labels(table, speaker, seen, speaking)
    label = repeat_sources(
        task, worker, label, copied, spec.broadcast_fractions("fidelity", fidelity, n_workers, "worker"), copying
    )
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
    """Names that sort as their numbers do.

    >>> make_ids("w", 11).tolist()[-2:]
    ['w09', 'w10']
    """
    digits = pc.utf8_lpad(pc.cast(pa.array(np.arange(n)), pa.string()), len(str(max(n - 1, 0))), "0")
    return pd.Index(pc.binary_join_element_wise(prefix, digits, "").to_pandas())


def _first_above(
    reached: NDArray[np.float64], start: NDArray[np.int64], point: NDArray[np.float64], n_classes: int
) -> NDArray[np.int64]:
    """Per row, how many of the first K − 1 cumulative shares from ``start`` do not exceed the point, by bisection."""
    found = np.zeros(len(start), dtype=np.int64)
    step = 1 << ((n_classes - 1).bit_length() - 1)
    while step:
        probe = found + (step - 1)
        inside = np.minimum(probe, n_classes - 2)
        found += step * ((probe == inside) & (reached[start + inside] <= point))
        step >>= 1
    return found


def _confusion(confusion: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(confusion, dtype=np.float64)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[2] < 2 or len(array) == 0:
        raise UsageError(
            f"confusion must be (workers, classes, classes), with two classes or more; got shape {array.shape}"
        )
    return spec.check_distributions(array, "confusion", array.shape)


def _truth_codes(truth: ArrayLike, n_classes: int) -> NDArray[np.int32]:
    codes = np.asarray(truth)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise UsageError(f"truth must be a list of class codes; got {codes.dtype} of shape {codes.shape}")
    if codes.size and not (codes.min() >= 0 and codes.max() < n_classes):
        raise UsageError(f"truth must hold class codes from 0 to {n_classes - 1}; got {codes.min()} to {codes.max()}")
    return codes.astype(np.int32)


def _sources(source: ArrayLike, n_workers: int) -> NDArray[np.int32]:
    codes = np.asarray(source)
    fits = codes.shape == (n_workers,) and codes.dtype.kind == "i" and codes.min() >= -1 and codes.max() < n_workers
    if not fits or (codes[codes[codes >= 0]] >= 0).any():
        raise UsageError(
            f"source must name for each of the {n_workers} workers whom he copies, by position, or -1; "
            "a worker who copies cannot be copied himself"
        )
    return codes.astype(np.int32)
