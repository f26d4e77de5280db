"""Substitutions, deletions and insertions between texts, for many pairs at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.texts import TokenCodes

Codes = NDArray[np.int64]

#: Cost of an edit. A deletion costs one more, so that the remainder is the number of deletions.
EDIT_COST = 1 << 24
#: Cells of the tables that are in memory at once.
CELLS_PER_CHUNK = 1 << 19


class EditCounts(NamedTuple):
    """Edits that turn texts into others: as few as possible, and among these as few deletions.

    Parameters
    ----------
    substitutions, deletions, insertions : ndarray of shape (n_pairs,)
        Numbers of tokens that are replaced, left out and added.
    """

    substitutions: Codes
    deletions: Codes
    insertions: Codes

    @property
    def total(self) -> Codes:
        """Number of edits: the Levenshtein distance."""
        return np.asarray(self.substitutions + self.deletions + self.insertions)


def count_edits(one: TokenCodes, first: Codes, other: TokenCodes, second: Codes) -> EditCounts:
    """Count the edits that turn each text of the first list into that of the second.

    Parameters
    ----------
    one, other : TokenCodes
        Texts over the same vocabulary.
    first, second : ndarray of shape (n_pairs,)
        Positions of texts in ``one`` and in ``other``.

    Returns
    -------
    EditCounts

    Examples
    --------
    >>> from wisecrowd.data.texts import tokenize
    >>> tokens = tokenize(["a b c", "a x"])
    >>> [int(count[0]) for count in count_edits(tokens, np.array([0]), tokens, np.array([1]))]
    [1, 1, 0]
    """
    length_one, length_other = one.length[first], other.length[second]
    cost = np.zeros(len(first), dtype=np.int64)
    order = np.lexsort((length_one, length_other))  # pairs of similar lengths share a table
    begin = 0
    while begin < len(order):
        size = max(CELLS_PER_CHUNK // (int(length_other[order[begin]]) + 2), 1)
        pairs = order[begin : begin + size]
        pairs = pairs[: max(CELLS_PER_CHUNK // (int(length_other[pairs[-1]]) + 2), 1)]
        cost[pairs] = _sum_costs(
            one.pad(first[pairs]), length_one[pairs], other.pad(second[pairs]), length_other[pairs]
        )
        begin += len(pairs)
    distance, deletions = np.divmod(cost, EDIT_COST)
    insertions = deletions - (length_one - length_other)
    return EditCounts(distance - deletions - insertions, deletions, insertions)


def _sum_costs(one: Codes, length_one: Codes, other: Codes, length_other: Codes) -> Codes:
    """Return the lowest costs of padded texts; all pairs advance together, row by row of their tables."""
    n, width = other.shape
    inserted = EDIT_COST * np.arange(width + 1, dtype=np.int64)
    row = np.tile(inserted, (n, 1))
    cost = EDIT_COST * length_other  # of texts without tokens
    for step in range(one.shape[1]):
        best = row + EDIT_COST + 1
        replaced = row[:, :-1] + EDIT_COST * (one[:, step : step + 1] != other)
        np.minimum(best[:, 1:], replaced, out=best[:, 1:])
        row = np.minimum.accumulate(best - inserted, axis=1) + inserted
        ends = np.flatnonzero(length_one == step + 1)
        cost[ends] = row[ends, length_other[ends]]
    return np.asarray(cost)
