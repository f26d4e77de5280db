"""Distances between the texts of a task, and the medoid: the text that is nearest to all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data.edit_distance import compute_edit_distances
from wisecrowd.data.texts import TextCrowd, TokenCodes

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


class TextPairs(NamedTuple):
    """Pairs of texts on the same task.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs,)
        Positions of texts.
    distance : ndarray of shape (n_pairs,)
        Their distance, such as the edit distance over the length of the longer text.
    """

    first: Codes
    second: Codes
    distance: Array

    def sum_distances(self, weight: Array) -> Array:
        """Return the weighted sum of the distances from each text to the others of its task.

        Parameters
        ----------
        weight : ndarray of shape (n_texts,)
            Weights of the texts.

        Returns
        -------
        ndarray of shape (n_texts,)
        """
        n = len(weight)
        sums = np.bincount(self.first, self.distance * weight[self.second], n)
        return np.asarray(sums + np.bincount(self.second, self.distance * weight[self.first], n), dtype=np.float64)


def pair_texts(crowd: TextCrowd) -> tuple[Codes, Codes]:
    """Return the positions of all pairs of texts on the same task.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.

    Returns
    -------
    first, second : ndarray of shape (n_pairs,)
    """
    # Text n meets all later texts of its task.
    n_later = crowd.task_offset[crowd.task + 1] - np.arange(crowd.n_votes) - 1
    first = np.repeat(np.arange(crowd.n_votes), n_later)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(n_later) - n_later, n_later)
    return first, second


def compare_texts(crowd: TextCrowd, tokens: TokenCodes) -> TextPairs:
    """Return the distances between all texts of each task.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    tokens : TokenCodes
        Their tokens.

    Returns
    -------
    TextPairs
    """
    first, second = pair_texts(crowd)
    longer = np.maximum(tokens.length[first], tokens.length[second])
    distance = compute_edit_distances(tokens, first, tokens, second) / np.maximum(longer, 1)
    return TextPairs(first, second, distance)


def find_medoids(crowd: TextCrowd, cost: Array, tokens: TokenCodes) -> Codes:
    """Return the text with the lowest cost of every task.

    Equal costs are decided for the text that most workers gave, which has the same cost, then for the shorter text and its tokens,
    so that names of workers do not matter.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    cost : ndarray of shape (n_texts,)
        Costs.
    tokens : TokenCodes
        Tokens of the texts.

    Returns
    -------
    ndarray of shape (n_tasks,)
        Position of a text, or -1 for a task without texts.
    """
    order = np.lexsort((rank_texts(crowd), tokens.length, np.round(cost, 12), crowd.task))
    medoid = np.full(crowd.n_tasks, -1, dtype=np.int64)
    is_first = np.append(True, np.diff(crowd.task[order]) != 0)
    medoid[crowd.task[order][is_first]] = order[is_first]
    return medoid


def group_equal_texts(tokens: TokenCodes) -> Codes:
    """Return a number for every text that is the same for texts with equal tokens.

    Parameters
    ----------
    tokens : TokenCodes
        Tokens of the texts.

    Returns
    -------
    ndarray of shape (n_texts,)
    """
    # The codes of a text are one value of a column of bytes.
    code = np.ascontiguousarray(tokens.code, dtype=np.int64)
    offset = np.ascontiguousarray(tokens.offset * code.itemsize, dtype=np.int64)
    column = pa.Array.from_buffers(pa.large_binary(), len(offset) - 1, [None, pa.py_buffer(offset), pa.py_buffer(code)])
    return np.asarray(column.dictionary_encode().indices.to_numpy(), dtype=np.int64)


def rank_texts(crowd: TextCrowd) -> Codes:
    """Return the rank of every text in alphabetical order, which does not depend on workers.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.

    Returns
    -------
    ndarray of shape (n_texts,)
    """
    encoded = pa.array(crowd.text, type=pa.large_string()).dictionary_encode()
    rank = np.empty(len(encoded.dictionary), dtype=np.int64)
    rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank))
    return np.asarray(rank[encoded.indices.to_numpy()])
