"""Rows of a crowd: checked, sorted by (task, worker), duplicates settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import InputError, UsageError

Duplicates: TypeAlias = Literal["error", "first", "last", "distinct", "keep"]
#: What an integer has room for, its sign aside.
MOST_BITS = 63
#: Words for the rows (by position) that repeat an earlier one.
Describe: TypeAlias = "Callable[[VoteRows, NDArray[np.int64]], str]"


class VoteRows(NamedTuple):
    """The columns of a crowd, as codes."""

    task: NDArray[np.int32]
    worker: NDArray[np.int32] | None
    label: NDArray[Any]
    weight: NDArray[np.float64] | None
    observed: NDArray[np.bool_] | None
    time: NDArray[np.float64] | None = None

    def take(self, order: NDArray[Any]) -> VoteRows:
        """Some rows, in some order."""
        return VoteRows(*(None if array is None else array[order] for array in self))  # type: ignore[arg-type]  # lengths match

    def sort(self, n_tasks: int, n_workers: int, duplicates: Duplicates, describe: Describe) -> VoteRows:
        """The rows in order, one per (task, worker) unless more are wanted."""
        lengths = {len(array) for array in self if array is not None}
        if len(lengths) > 1:
            raise InputError(f"all columns of a crowd must have equal length; got lengths {sorted(lengths)}")
        rows = self if self._is_sorted() else self._sorted_by_task_and_worker(n_tasks, n_workers)
        if rows.worker is None:
            return rows.take(np.lexsort((rows.label, rows.task))) if len(rows.task) else rows
        same = _repeats(rows.task, rows.worker)
        if not same.any():
            return rows
        if duplicates == "error":
            raise InputError(describe(rows, np.flatnonzero(same) + 1))
        if duplicates == "first":
            return rows.take(np.flatnonzero(np.append(True, ~same)))
        if duplicates == "last":
            return rows.take(np.flatnonzero(np.append(~same, True)))
        # Rows that are kept together must not betray the order in which they came.
        keys = (rows.label, rows.worker, rows.task)
        order = np.lexsort([key for key in (rows.time, rows.observed, rows.weight, *keys) if key is not None])
        rows = rows.take(order)
        if duplicates == "distinct":
            rows = rows.take(np.flatnonzero(np.append(True, ~_repeats(*(key[order] for key in keys)))))
        return rows

    def _is_sorted(self) -> bool:
        step = np.diff(self.task)
        if (step < 0).any():
            return False
        return self.worker is None or not (np.diff(self.worker)[step == 0] < 0).any()

    def _sorted_by_task_and_worker(self, n_tasks: int, n_workers: int) -> VoteRows:
        n_votes = len(self.task)
        worker_bits, row_bits = n_workers.bit_length(), n_votes.bit_length()
        if n_tasks.bit_length() + worker_bits + row_bits > MOST_BITS:
            keys = (self.task,) if self.worker is None else (self.worker, self.task)
            return self.take(np.lexsort(keys))
        # Task, worker and row in one integer: to sort these, with the processor's vector instructions, is many times
        # faster than to sort by two columns, and the row in the lowest bits makes the order stable.
        key = self.task.astype(np.int64)
        if self.worker is not None:
            key = (key << worker_bits) | self.worker
        key = (key << row_bits) | np.arange(n_votes)
        key.sort()
        return self.take(key & ((1 << row_bits) - 1))


def _repeats(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows but the first equal the row before them."""
    return np.logical_and.reduce([column[1:] == column[:-1] for column in columns])


def argsort_codes(codes: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """The stable permutation that sorts codes below ``n``, in linear time.

    >>> argsort_codes(np.array([2, 0, 2, 1], dtype=np.int32), 3).tolist()
    [1, 3, 0, 2]
    """
    from scipy import sparse

    rows = np.arange(len(codes))
    return sparse.csr_array((np.ones(len(codes), dtype=bool), (codes, rows)), shape=(n, len(codes))).indices


def shuffle_within_groups(
    codes: NDArray[Any], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in the order of their codes below ``n``, those of one code at random, and the place of each within its code.

    >>> order, rank = shuffle_within_groups(np.array([1, 0, 1], dtype=np.int32), 2, np.random.default_rng(0))
    >>> order[0].item(), rank.tolist()
    (1, [0, 0, 1])
    """
    drawn = rng.permutation(len(codes))
    order = drawn[argsort_codes(codes[drawn], n)]
    counts = np.bincount(codes, minlength=n)
    return order, np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)


def assign_folds(codes: NDArray[Any], n: int, folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The fold of each row: rows of one code below ``n`` go to different folds, as far as there are so many.

    >>> sorted(assign_folds(np.zeros(3, dtype=np.int32), 1, 3, np.random.default_rng(0)).tolist())
    [0, 1, 2]
    """
    order, rank = shuffle_within_groups(codes, n, rng)
    first = rng.integers(folds, size=n)
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = (rank + first[codes[order]]) % folds
    return fold


def as_codes(values: ArrayLike | None, n: int, what: str) -> NDArray[np.int32]:
    if values is None:
        raise UsageError(f"{what} codes are missing although a {what} vocabulary is given")
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UsageError(
            f"{what} codes must be a one-dimensional integer array; got {array.dtype} of shape {array.shape}"
        )
    if array.size and not (array.min() >= 0 and array.max() < n):
        raise InputError(f"{what} codes must lie in 0…{n - 1}; got {array.min()}…{array.max()}")
    # A view would let the caller's own array change, or become read-only, behind their back.
    return np.array(array, dtype=np.int32)


def as_observed_mask(values: ArrayLike | None) -> NDArray[np.bool_] | None:
    """Marks of observed votes; None when all are, so that equal crowds look alike."""
    marks = None if values is None else np.array(values, dtype=bool)
    return None if marks is None or marks.all() else marks


def as_weights(values: ArrayLike | None) -> NDArray[np.float64] | None:
    if values is None:
        return None
    weight = np.array(values, dtype=np.float64)
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        raise InputError("weights must be finite and positive; drop votes that should not count")
    return None if (weight == 1).all() else weight


class GrowingColumn:
    """Column that grows in place while chunks are appended, so that no chunk is kept until the end.

    Parameters
    ----------
    default : object
        Value of the rows of a chunk that has no such column.
    """

    def __init__(self, default: Any) -> None:
        self.default, self.n_rows = default, 0
        self.values: NDArray[Any] | None = None

    def append(self, chunk: NDArray[Any] | None, n_rows: int) -> None:
        """Append the values of a chunk.

        Parameters
        ----------
        chunk : ndarray of shape (n_rows,) or None
            Values; None when all of them are the default.
        n_rows : int
            Number of rows of the chunk.
        """
        if chunk is not None and self.values is None:
            self.values = np.full(self.n_rows, 0 if self.default is None else self.default, dtype=chunk.dtype)
        if self.values is not None:
            if self.n_rows + n_rows > len(self.values):
                self.values.resize((self.n_rows + n_rows) * 9 // 8, refcheck=False)
            self.values[self.n_rows : self.n_rows + n_rows] = self.default if chunk is None else chunk
        self.n_rows += n_rows

    def to_array(self) -> NDArray[Any] | None:
        """Return all values, or None when every chunk had the default."""
        if self.values is not None:
            self.values.resize(self.n_rows, refcheck=False)
        return self.values
