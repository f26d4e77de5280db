"""Rows of a crowd: validation, sorting, duplicates and random groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import InputError, UsageError

#: Treatment of several votes of one worker on one task.
Duplicates: TypeAlias = Literal["error", "first", "last", "distinct", "keep"]
#: Bits of a sort key: those of a 64-bit integer without its sign.
MAX_KEY_BITS = 63
#: Range of weights. All methods give finite results with weights at both ends, and up to a thousand times beyond.
MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e12
#: The range in words, for messages.
WEIGHT_RANGE = f"between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}"
#: Function that describes the rows (by position) that repeat an earlier one.
DescribeDuplicates: TypeAlias = "Callable[[VoteRows, NDArray[np.int64]], str]"


class VoteRows(NamedTuple):
    """Columns of a crowd as codes.

    Parameters
    ----------
    task : ndarray of shape (n_votes,)
        Task codes.
    worker : ndarray of shape (n_votes,) or None
        Worker codes; None when votes have no worker ids.
    label : ndarray of shape (n_votes,)
        Class codes, or numbers.
    weight, observed, time : ndarray of shape (n_votes,) or None
        Further columns; None when every vote has the default.
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32] | None
    label: NDArray[Any]
    weight: NDArray[np.float64] | None
    observed: NDArray[np.bool_] | None
    time: NDArray[np.float64] | None = None

    def take(self, order: NDArray[Any]) -> VoteRows:
        """Select rows by position.

        Parameters
        ----------
        order : ndarray of int
            Positions in their new order.

        Returns
        -------
        VoteRows
            The selected rows.
        """
        return VoteRows(*(None if array is None else array[order] for array in self))  # type: ignore[arg-type]  # equal length

    def sort(self, n_tasks: int, n_workers: int, duplicates: Duplicates, describe: DescribeDuplicates) -> VoteRows:
        """Sort the rows by task and worker and treat duplicates.

        Parameters
        ----------
        n_tasks, n_workers : int
            Sizes of the vocabularies.
        duplicates : {"error", "first", "last", "distinct", "keep"}
            Treatment of several votes of one worker on one task.
        describe : callable
            Returns the error message for duplicate rows.

        Returns
        -------
        VoteRows
            The sorted rows.

        Raises
        ------
        InputError
            If the columns differ in length, or rows repeat while ``duplicates="error"``.
        """
        lengths = {len(array) for array in self if array is not None}
        if len(lengths) > 1:
            described = ", ".join(
                f"{name} {len(array):,}" for name, array in zip(self._fields, self, strict=True) if array is not None
            )
            raise InputError(
                f"the columns of a crowd must have one value per vote, but their lengths differ: {described}"
            )
        rows = self if self._is_sorted() else self._sort_by_task_and_worker(n_tasks, n_workers)
        if rows.worker is None:
            return rows.take(np.lexsort((rows.label, rows.task))) if len(rows.task) else rows
        is_repeat = _find_repeats(rows.task, rows.worker)
        if not is_repeat.any():
            return rows
        if duplicates == "error":
            raise InputError(describe(rows, np.flatnonzero(is_repeat) + 1))
        if duplicates == "first":
            return rows.take(np.flatnonzero(np.append(True, ~is_repeat)))
        if duplicates == "last":
            return rows.take(np.flatnonzero(np.append(~is_repeat, True)))
        # Sorted by all columns, so that the result does not depend on the order of the input rows.
        keys = (rows.label, rows.worker, rows.task)
        order = np.lexsort([key for key in (rows.time, rows.observed, rows.weight, *keys) if key is not None])
        rows = rows.take(order)
        if duplicates == "distinct":
            rows = rows.take(np.flatnonzero(np.append(True, ~_find_repeats(*(key[order] for key in keys)))))
        return rows

    def _is_sorted(self) -> bool:
        step = np.diff(self.task)
        if (step < 0).any():
            return False
        return self.worker is None or not (np.diff(self.worker)[step == 0] < 0).any()

    def _sort_by_task_and_worker(self, n_tasks: int, n_workers: int) -> VoteRows:
        n_votes = len(self.task)
        worker_bits, row_bits = n_workers.bit_length(), n_votes.bit_length()
        if n_tasks.bit_length() + worker_bits + row_bits > MAX_KEY_BITS:
            keys = (self.task,) if self.worker is None else (self.worker, self.task)
            return self.take(np.lexsort(keys))
        # Task, worker and row packed into one integer sort many times faster than two columns do, and the row in the
        # lowest bits makes the order stable.
        key = self.task.astype(np.int64)
        if self.worker is not None:
            key = (key << worker_bits) | self.worker
        key = (key << row_bits) | np.arange(n_votes)
        key.sort()
        return self.take(key & ((1 << row_bits) - 1))


def _find_repeats(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each row but the first whether it equals the row before."""
    return np.logical_and.reduce([column[1:] == column[:-1] for column in columns])


def argsort_codes(codes: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Return the stable permutation that sorts integer codes, in linear time.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Codes from 0 to ``n`` - 1.
    n : int
        Number of codes.

    Returns
    -------
    ndarray of shape (n_rows,)
        Positions in ascending order of the codes.

    Examples
    --------
    >>> argsort_codes(np.array([2, 0, 2, 1], dtype=np.int32), 3).tolist()
    [1, 3, 0, 2]
    """
    from scipy import sparse

    rows = np.arange(len(codes))
    return sparse.csr_array((np.ones(len(codes), dtype=bool), (codes, rows)), shape=(n, len(codes))).indices


def shuffle_within_groups(
    codes: NDArray[Any], n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort rows by code, with the rows of one code in random order.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Codes from 0 to ``n`` - 1.
    n : int
        Number of codes.
    rng : Generator
        Random numbers.

    Returns
    -------
    order : ndarray of shape (n_rows,)
        Positions of the rows.
    rank : ndarray of shape (n_rows,)
        Rank of each of them among the rows of its code.

    Examples
    --------
    >>> order, rank = shuffle_within_groups(np.array([1, 0, 1], dtype=np.int32), 2, np.random.default_rng(0))
    >>> order[0].item(), rank.tolist()
    (1, [0, 0, 1])
    """
    shuffled = rng.permutation(len(codes))
    order = shuffled[argsort_codes(codes[shuffled], n)]
    counts = np.bincount(codes, minlength=n)
    return order, np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)


def assign_folds(codes: NDArray[Any], n: int, n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Assign rows to folds so that the rows of one code are spread over as many folds as possible.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Codes from 0 to ``n`` - 1.
    n : int
        Number of codes.
    n_folds : int
        Number of folds.
    rng : Generator
        Random numbers.

    Returns
    -------
    ndarray of shape (n_rows,)
        Fold of each row.

    Examples
    --------
    >>> sorted(assign_folds(np.zeros(3, dtype=np.int32), 1, 3, np.random.default_rng(0)).tolist())
    [0, 1, 2]
    """
    order, rank = shuffle_within_groups(codes, n, rng)
    first_fold = rng.integers(n_folds, size=n)
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = (rank + first_fold[codes[order]]) % n_folds
    return fold


def as_codes(values: ArrayLike | None, n: int, kind: str) -> NDArray[np.int32]:
    """Validate and copy integer codes.

    Parameters
    ----------
    values : array-like of int
        Codes.
    n : int
        Size of the vocabulary.
    kind : str
        Kind of the codes, for messages: "task", "worker" or "label".

    Returns
    -------
    ndarray of int32
        Copy of the codes; a view would let the caller change the crowd.

    Raises
    ------
    UsageError
        If the codes are missing or no one-dimensional integer array.
    InputError
        If a code is outside the vocabulary.

    Examples
    --------
    >>> as_codes([0, 2], 3, "task").tolist()
    [0, 2]
    """
    if values is None:
        raise UsageError(f"{kind} codes are missing although there is a {kind} vocabulary; pass both or neither")
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise UsageError(
            f"{kind} codes must be a one-dimensional integer array; got {array.dtype} of shape {array.shape}"
        )
    if not are_codes(array, n):
        raise InputError(f"{kind} codes must lie in 0…{n - 1}; got {array.min()}…{array.max()}")
    return np.array(array, dtype=np.int32)


def are_codes(values: NDArray[Any], n: int) -> bool:
    """Return whether integers are codes of a vocabulary, in one pass.

    Parameters
    ----------
    values : ndarray of int
        Integers.
    n : int
        Size of the vocabulary.

    Returns
    -------
    bool
        Whether all lie in 0…n - 1.

    Examples
    --------
    >>> are_codes(np.array([0, 2]), 3), are_codes(np.array([-1, 2]), 3)
    (True, False)
    """
    if values.dtype.kind == "i":  # as unsigned integers, negative codes are larger than all others
        values = values.view(values.dtype.str.replace("i", "u"))
    return values.size == 0 or int(values.max()) < n


def as_observed_mask(values: ArrayLike | None) -> NDArray[np.bool_] | None:
    """Copy the mask of observed votes.

    Parameters
    ----------
    values : array-like of bool or None
        False for votes that a completer filled in.

    Returns
    -------
    ndarray of bool or None
        None when all votes are observed, so that equal crowds have equal contents.

    Examples
    --------
    >>> as_observed_mask([True, True]) is None
    True
    """
    mask = None if values is None else np.array(values, dtype=bool)
    return None if mask is None or mask.all() else mask


def as_weights(values: ArrayLike | None) -> NDArray[np.float64] | None:
    """Validate and copy the weights of votes.

    Parameters
    ----------
    values : array-like of float or None
        Weights.

    Returns
    -------
    ndarray of float64 or None
        None when every vote counts once, so that equal crowds have equal contents.

    Raises
    ------
    InputError
        If a weight is outside the range from `MIN_WEIGHT` to `MAX_WEIGHT`.

    Examples
    --------
    >>> as_weights([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    if values is None:
        return None
    weight = np.array(values, dtype=np.float64)
    if weight.ndim != 1:
        raise UsageError(f"weights must be a one-dimensional array; got shape {weight.shape}")
    problem = find_invalid_weight(weight)
    if problem is not None:
        raise InputError(f"{problem}; drop votes that should not count")
    return None if (weight == 1).all() else weight


def find_invalid_weight(weight: NDArray[np.float64]) -> str | None:
    """Return why some weights are invalid, or None if all are valid.

    Parameters
    ----------
    weight : ndarray of shape (n_votes,)
        Weights.

    Returns
    -------
    str or None
        Part of a sentence.

    Examples
    --------
    >>> find_invalid_weight(np.array([1.0, 0.0]))
    'weights must lie between 1e-12 and 1e+12; got 0.0'
    """
    is_valid = are_weights(weight)
    return None if is_valid.all() else f"weights must lie {WEIGHT_RANGE}; got {weight[~is_valid][0]}"


def are_weights(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which numbers are valid weights.

    Parameters
    ----------
    values : ndarray of float
        Numbers.

    Returns
    -------
    ndarray of bool
        True where a number lies in the range of weights.

    Examples
    --------
    >>> are_weights(np.array([1.0, 0.0, 1e300, np.nan])).tolist()
    [True, False, False, False]
    """
    return (values >= MIN_WEIGHT) & (values <= MAX_WEIGHT)


class GrowingColumn:
    """Column that grows in place while chunks are appended, so that chunks need not be kept.

    Parameters
    ----------
    default : object
        Value of the rows of a chunk that has no such column.

    Examples
    --------
    >>> column = GrowingColumn(1.0)
    >>> column.append(None, 2)
    >>> column.append(np.array([0.5]), 1)
    >>> column.to_array().tolist()
    [1.0, 1.0, 0.5]
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
        """Return all values, or None when every chunk has the default."""
        if self.values is not None:
            self.values.resize(self.n_rows, refcheck=False)
        return self.values


def draw_heldout(n_votes: int, fraction: float, random_state: int) -> NDArray[np.bool_]:
    """Draw the votes to hold out at random.

    Parameters
    ----------
    n_votes : int
        Number of votes.
    fraction : float
        Fraction of the votes to hold out.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n_votes,)
        True for held-out votes.

    Raises
    ------
    UsageError
        If the fraction does not lie between 0 and 1.

    Examples
    --------
    >>> int(draw_heldout(10, 0.2, 0).sum())
    2
    """
    if not 0 < fraction < 1:
        raise UsageError(f"fraction must lie between 0 and 1; got {fraction}")
    is_heldout = np.zeros(n_votes, dtype=bool)
    count = round(fraction * n_votes)
    is_heldout[np.random.default_rng(random_state).permutation(n_votes)[:count]] = True
    return is_heldout
