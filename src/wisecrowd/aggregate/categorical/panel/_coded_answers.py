"""Answers of judges as codes: the bins of a score, or the labels, of every judge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

#: Maximum number of bins of the scores of one judge.
MAX_BINS = 16
#: Smallest share of a judge's scores in one bin. Rarer values are merged with their neighbours.
MIN_BIN_SHARE = 0.03


class Levels(NamedTuple):
    """Possible answers of all judges, sorted by judge.

    A level is a bin of the scores of one judge, ``low <= score < low of the next level``, or a label of one judge.

    Parameters
    ----------
    judge : ndarray of shape (n_levels,)
        Judge of each level.
    low : ndarray of shape (n_levels,)
        Lower end of a bin (−inf for the first of a judge), or the code of a label.
    is_ordered : bool
        Whether the levels of a judge are bins of a score.
    """

    judge: NDArray[np.int64]
    low: Array
    is_ordered: bool

    @property
    def n_judges(self) -> int:
        """Number of judges."""
        return int(self.judge[-1]) + 1 if len(self.judge) else 0

    def find(self, judge: NDArray[Any], value: NDArray[Any]) -> NDArray[np.int64]:
        """Return the level of each answer, −1 for labels that a judge has never given.

        Parameters
        ----------
        judge : ndarray of shape (n,)
            Judges.
        value : ndarray of shape (n,)
            Scores, or codes of labels.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> levels = Levels(np.array([0, 0, 1]), np.array([-np.inf, 5.0, -np.inf]), True)
        >>> levels.find(np.array([0, 0, 1]), np.array([2.0, 5.0, 9.0])).tolist()
        [0, 1, 2]
        """
        # Both columns as one rank: levels and answers are sorted together by judge and value, levels first.
        n_levels = len(self.judge)
        order = np.lexsort(
            (
                np.concatenate([np.zeros(n_levels), np.ones(len(judge))]),
                np.concatenate([self.low, np.asarray(value, dtype=np.float64)]),
                np.concatenate([self.judge, judge]),
            )
        )
        last_level = np.cumsum(order < n_levels) - 1
        level = np.empty(len(judge), dtype=np.int64)
        is_answer = order >= n_levels
        level[order[is_answer] - n_levels] = last_level[is_answer]
        if not self.is_ordered:
            matches = (level >= 0) & (self.judge[level] == judge) & (self.low[level] == value)
            level[~matches] = -1
        return level


class CodedAnswers(NamedTuple):
    """Sparse answers of judges.

    Parameters
    ----------
    levels : Levels
        Possible answers.
    table : csr_array of shape (n_tasks, n_levels)
        Weight of each answer that was given.
    """

    levels: Levels
    table: sparse.csr_array

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.table.shape[0])

    @property
    def counts(self) -> Array:
        """Total weight of each level."""
        return np.asarray(self.table.sum(axis=0)).ravel()


def encode_answers(
    task: NDArray[Any],
    judge: NDArray[Any],
    value: NDArray[Any],
    *,
    n_tasks: int,
    n_judges: int,
    is_ordered: bool,
    weight: Array | None = None,
) -> CodedAnswers:
    """Encode answers of judges.

    Scores are divided into bins, separately for each judge. Every value is a bin of its own unless it is rarer than
    `MIN_BIN_SHARE`.

    Parameters
    ----------
    task, judge : ndarray of shape (n,)
        Codes of tasks and judges.
    value : ndarray of shape (n,)
        Scores, or codes of labels.
    n_tasks, n_judges : int
        Sizes.
    is_ordered : bool
        Whether values are scores.
    weight : ndarray of shape (n,), optional
        Weight of each answer.

    Returns
    -------
    CodedAnswers

    Examples
    --------
    >>> task, score = np.arange(4), np.array([0.0, 0.0, 5.0, 9.0])
    >>> answers = encode_answers(task, np.zeros(4, dtype=int), score, n_tasks=4, n_judges=1, is_ordered=True)
    >>> answers.levels.low.tolist()
    [-inf, 5.0, 9.0]
    """
    levels = _find_bins(judge, value, n_judges) if is_ordered else _find_labels(judge, value)
    level = levels.find(judge, value)
    entries = np.ones(len(task)) if weight is None else weight
    table = sparse.csr_array((entries, (task, level)), shape=(n_tasks, len(levels.judge)))
    table.sum_duplicates()
    return CodedAnswers(levels, table)


def recode_answers(
    levels: Levels,
    task: NDArray[Any],
    judge: NDArray[Any],
    value: NDArray[Any],
    n_tasks: int,
    weight: Array | None = None,
) -> CodedAnswers:
    """Encode new answers by levels of a fit; answers of unknown judges (−1) and unknown labels are dropped.

    Parameters
    ----------
    levels : Levels
        Levels of the fit.
    task, judge : ndarray of shape (n,)
        Codes of tasks and judges.
    value : ndarray of shape (n,)
        Scores, or codes of labels.
    n_tasks : int
        Number of tasks.
    weight : ndarray of shape (n,), optional
        Weight of each answer.

    Returns
    -------
    CodedAnswers

    Examples
    --------
    >>> levels = Levels(np.array([0, 0]), np.array([-np.inf, 5.0]), True)
    >>> recode_answers(levels, np.array([0, 1]), np.array([0, -1]), np.array([7.0, 7.0]), 2).table.toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    rows = np.flatnonzero(judge >= 0)
    level = levels.find(judge[rows], value[rows])
    rows, level = rows[level >= 0], level[level >= 0]
    entries = np.ones(len(rows)) if weight is None else weight[rows]
    table = sparse.csr_array((entries, (task[rows], level)), shape=(n_tasks, len(levels.judge)))
    return CodedAnswers(levels, table)


def _find_bins(judge: NDArray[Any], score: NDArray[Any], n_judges: int) -> Levels:
    """Return the bins of the scores of each judge."""
    order = np.lexsort((score, judge))
    judge_code, value = np.asarray(judge)[order], np.asarray(score, dtype=np.float64)[order]
    starts = np.flatnonzero(np.append(True, (np.diff(judge_code) != 0) | (np.diff(value) != 0)))
    value_judge, distinct = judge_code[starts], value[starts]
    count = np.diff(np.append(starts, len(value)))
    total = np.bincount(value_judge, count, n_judges)
    # Number of the judge's scores below each value.
    before = np.cumsum(count) - count
    before = before - before[np.searchsorted(value_judge, value_judge)]
    unit = max(MIN_BIN_SHARE, 1 / MAX_BINS)
    low, judges = [], []
    for code in range(n_judges):  # a judge has few bins, and few judges score
        mine = slice(*np.searchsorted(value_judge, [code, code + 1]))
        low.append(_merge_rare(distinct[mine], before[mine], total[code], unit))
        judges.append(np.full(len(low[-1]), code, dtype=np.int64))
    return Levels(np.concatenate(judges), np.concatenate(low), True)


def _merge_rare(value: Array, before: Array, total: float, unit: float) -> Array:
    """Return the lower ends of bins of one judge."""
    if not len(value):
        return np.array([-np.inf])
    share = MIN_BIN_SHARE if len(value) <= MAX_BINS else unit
    ends, last = [-np.inf], 0.0
    for position in range(1, len(value)):
        if before[position] - last >= share * total and total - before[position] >= share * total:
            ends.append(float(value[position]))
            last = before[position]
    return np.array(ends)


def _find_labels(judge: NDArray[Any], label: NDArray[Any]) -> Levels:
    """Return the labels that each judge has given."""
    distinct = np.unique(np.stack([judge, label], axis=1), axis=0)
    return Levels(distinct[:, 0].astype(np.int64), distinct[:, 1].astype(np.float64), False)
