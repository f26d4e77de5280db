"""Pixels with equal votes: all pixels of a task that the same workers marked are one weighted unit.

Between two neighbouring ends of runs of all masks of a task, all pixels have the same votes. Such *segments* with the same
votes form a *pattern*. Models without neighbourhoods give all pixels of a pattern the same probability, so sums over pixels
are sums over patterns, and no image is ever unpacked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from wisecrowd.data.mask_runs import MaskRuns, concatenate_masks
from wisecrowd.data.masks import MaskCrowd

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Words = NDArray[np.uint64]

#: Bits of a word: workers of a task whose votes one number holds.
WORD_BITS = 64
#: Largest size of a table of all possible patterns, relative to the number of segments; else patterns are sorted.
MAX_TABLE_RATIO = 8


@dataclass(frozen=True)
class VotePatterns:
    """Patterns of votes on the pixels of every task.

    Parameters
    ----------
    task : ndarray of shape (n_patterns,)
        Task of every pattern, ascending.
    n_pixels : ndarray of shape (n_patterns,)
        Number of pixels with the pattern.
    n_marks : ndarray of shape (n_patterns,)
        Number of workers who marked these pixels.
    marks : csr_array of shape (n_patterns, n_votes)
        1 where the mask of a worker has the pixels of a pattern.
    segment_pattern : ndarray of shape (n_segments,)
        Pattern of every segment.
    segment_start, segment_end : ndarray of shape (n_segments,)
        First pixel of a segment within its task, and the pixel after its last.
    vote_task : ndarray of shape (n_votes,)
        Task of every mask.
    n_tasks : int
        Number of tasks.
    """

    task: Codes
    n_pixels: Array
    n_marks: Codes
    marks: sparse.csr_array
    segment_pattern: Codes
    segment_start: Codes
    segment_end: Codes
    vote_task: NDArray[np.int32]
    n_tasks: int

    @cached_property
    def marks_by_vote(self) -> sparse.csr_array:
        """Transpose of ``marks``."""
        return self.marks.T.tocsr()

    def sum_over_tasks(self, values: Array) -> Array:
        """Return the sums of values of patterns by task.

        Parameters
        ----------
        values : ndarray of shape (n_patterns,)
            Values.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        return np.bincount(self.task, values, self.n_tasks).astype(np.float64, copy=False)

    def sum_votes(self, marked: Array, unmarked: Array) -> Array:
        """Return the sum, over the masks of a task, of one value if a mask has the pixels and of another if not.

        Parameters
        ----------
        marked, unmarked : ndarray of shape (n_votes,)
            Values of every mask.

        Returns
        -------
        ndarray of shape (n_patterns,)
        """
        base = np.bincount(self.vote_task, unmarked, self.n_tasks)[self.task]
        return np.asarray(base + self.marks @ (marked - unmarked))

    def select_masks(self, is_chosen: NDArray[np.bool_], height: Codes, width: Codes) -> MaskRuns:
        """Return the masks that chosen patterns form.

        Parameters
        ----------
        is_chosen : ndarray of bool of shape (n_patterns,)
            Whether the pixels of a pattern belong to the mask of their task.
        height, width : ndarray of shape (n_tasks,)
            Sizes of the images.

        Returns
        -------
        MaskRuns
            One mask per task.
        """
        segments = np.flatnonzero(is_chosen[self.segment_pattern])
        task = self.task[self.segment_pattern[segments]]
        return MaskRuns.from_runs(task, self.segment_start[segments], self.segment_end[segments], height, width)


def find_vote_patterns(crowd: MaskCrowd) -> VotePatterns:
    """Return the patterns of votes on the pixels of every task.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.

    Returns
    -------
    VotePatterns

    Examples
    --------
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> patterns = find_vote_patterns(crowd)
    >>> patterns.n_pixels.tolist(), patterns.marks.toarray().astype(int).tolist()
    ([1.0, 1.0, 1.0], [[0, 0], [1, 0], [1, 1]])
    """
    votes_per_task = crowd.votes_per_task
    n_pixels = np.where(votes_per_task > 0, crowd.height * crowd.width, 0)
    base = np.concatenate([[0], np.cumsum(n_pixels)])
    rank = np.arange(crowd.n_votes) - crowd.task_offset[crowd.task]
    n_words = max((int(votes_per_task.max(initial=0)) + WORD_BITS - 1) // WORD_BITS, 1)
    vote = crowd.masks.mask
    position = base[crowd.task[vote]]
    start, end = crowd.masks.start + position, crowd.masks.end + position
    begins, words = _find_segments(start, end, rank[vote], base, n_words)
    n_segments = np.diff(np.searchsorted(begins, base))  # every task begins with a segment
    task = np.repeat(np.arange(crowd.n_tasks), n_segments)
    length = np.diff(np.append(begins, base[-1]))
    pattern, first = _number_patterns(task, words, crowd.n_tasks, int(votes_per_task.max(initial=0)))
    pattern_task, pattern_words = task[first], words[:, first]
    rows, votes = [], []
    for number in range(int(votes_per_task.max(initial=0))):
        bit = pattern_words[number // WORD_BITS] >> np.uint64(number % WORD_BITS)
        marked = np.flatnonzero(bit & np.uint64(1))
        rows.append(marked)
        votes.append(crowd.task_offset[pattern_task[marked]] + number)
    row, column = (np.concatenate(parts or [np.empty(0, np.int64)]) for parts in (rows, votes))
    shape = (len(first), crowd.n_votes)
    marks = sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)
    return VotePatterns(
        pattern_task,
        np.bincount(pattern, length, len(first)).astype(np.float64, copy=False),
        np.bincount(row, minlength=len(first)),
        marks,
        pattern,
        begins - base[task],
        begins + length - base[task],
        crowd.task,
        crowd.n_tasks,
    )


def _find_segments(start: Codes, end: Codes, rank: Codes, base: Codes, n_words: int) -> tuple[Codes, Words]:
    """Return the first pixels of all segments, and the votes on each as bits of words."""
    parts = []
    for word in range(n_words):
        is_in = slice(None) if n_words == 1 else (rank // WORD_BITS == word)
        bit = rank[is_in] % WORD_BITS
        # Position and bit in one number, so that one sort orders both. Ends of tasks are there twice: they change no bit.
        ends = np.repeat(base, 2) * WORD_BITS
        events = np.sort(np.concatenate([start[is_in] * WORD_BITS + bit, end[is_in] * WORD_BITS + bit, ends]))
        flips = np.uint64(1) << (events % WORD_BITS).astype(np.uint64)
        state = np.bitwise_xor.accumulate(flips)
        position = events // WORD_BITS
        is_last = np.append(np.diff(position) > 0, True)
        parts.append((position[is_last], state[is_last]))
    if n_words == 1:
        begins, words = parts[0][0], parts[0][1][None]
    else:
        begins = np.unique(np.concatenate([position for position, _ in parts]))
        words = np.stack([state[np.searchsorted(position, begins, side="right") - 1] for position, state in parts])
    is_inside = begins < base[-1]
    return begins[is_inside], words[:, is_inside]


def _number_patterns(task: Codes, words: Words, n_tasks: int, n_bits: int) -> tuple[Codes, Codes]:
    """Return the pattern of every segment, numbered by task and votes, and one segment of each pattern."""
    n = len(task)
    if n_bits < 32 and n_tasks << n_bits <= MAX_TABLE_RATIO * max(n, 1):
        key = (task << n_bits) + words[0].astype(np.int64)
        example = np.full(n_tasks << n_bits, -1, dtype=np.int64)
        example[key[::-1]] = np.arange(n)[::-1]
        is_there = example >= 0
        return (np.cumsum(is_there) - 1)[key], example[is_there]
    order = np.lexsort((*words, task))
    differs = np.diff(task[order]) != 0
    for word in words:
        differs |= np.diff(word[order]) != 0
    is_new = np.append(True, differs)[:n]
    pattern = np.empty(n, dtype=np.int64)
    pattern[order] = np.cumsum(is_new) - 1
    return pattern, order[is_new]


def count_shared_pixels(one: MaskRuns, other: MaskRuns) -> Array:
    """Count the pixels that pairs of masks share.

    Parameters
    ----------
    one, other : MaskRuns
        Masks; the masks of a pair have the same size.

    Returns
    -------
    ndarray of shape (n_masks,)

    Examples
    --------
    >>> count_shared_pixels(MaskRuns.from_arrays([[[1, 1, 0]]]), MaskRuns.from_arrays([[[0, 1, 1]]])).tolist()
    [1.0]
    """
    n = len(one)
    both = MaskCrowd(
        np.tile(np.arange(n), 2), np.repeat([0, 1], n), concatenate_masks([one, other]),
        tasks=pd.RangeIndex(n), workers=pd.RangeIndex(2),
    )  # fmt: skip
    patterns = find_vote_patterns(both)
    return patterns.sum_over_tasks(np.where(patterns.n_marks == 2, patterns.n_pixels, 0.0))
