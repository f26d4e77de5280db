"""Edit distances of many pairs of texts at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.texts import TokenCodes

Codes = NDArray[np.int64]
#: Cells of the tables that are in memory at once; they fit into the cache of a processor.
CELLS_PER_CHUNK = 1 << 17
#: Bits of a word: the longest text whose row of the table one number holds.
WORD_BITS = 64


def compute_edit_distances(one: TokenCodes, first: Codes, other: TokenCodes, second: Codes) -> Codes:
    """Return the Levenshtein distances of pairs of texts.

    All pairs of a chunk advance together, row by row of their tables. Within a row, insertions are a running minimum.

    Parameters
    ----------
    one, other : TokenCodes
        Texts over the same vocabulary.
    first, second : ndarray of shape (n_pairs,)
        Positions of texts in ``one`` and in ``other``.

    Returns
    -------
    ndarray of shape (n_pairs,)

    Examples
    --------
    >>> from wisecrowd.data.texts import tokenize
    >>> tokens = tokenize(["a b c", "a c"])
    >>> compute_edit_distances(tokens, np.array([0]), tokens, np.array([1])).tolist()
    [1]
    """
    length_one, length_other = one.length[first], other.length[second]
    distance = np.zeros(len(first), dtype=np.int64)
    order = np.lexsort((length_one, length_other))  # pairs of similar lengths share a table
    begin = 0
    while begin < len(order):
        # Lengths grow along the order, so the last pair of a chunk has the widest row.
        size = max(CELLS_PER_CHUNK // (int(length_other[order[begin]]) + 2), 1)
        pairs = order[begin : begin + size]
        size = max(CELLS_PER_CHUNK // (int(length_other[pairs[-1]]) + 2), 1)
        pairs = pairs[:size]
        distance[pairs] = _compute_chunk(
            one.pad(first[pairs]), length_one[pairs], other.pad(second[pairs]), length_other[pairs]
        )
        begin += len(pairs)
    return distance


def _compute_chunk(one: Codes, length_one: Codes, other: Codes, length_other: Codes) -> Codes:
    """Return the distances of padded texts."""
    if other.shape[1] <= WORD_BITS:
        return _compute_in_bits(one, length_one, other, length_other)
    n, width = other.shape
    column = np.arange(width + 1, dtype=np.int32)
    row = np.tile(column, (n, 1))
    distance = length_other.copy()  # of texts without tokens
    for step in range(one.shape[1]):
        best = np.empty_like(row)
        best[:, 0] = step + 1
        np.minimum(row[:, 1:] + 1, row[:, :-1] + (one[:, step : step + 1] != other), out=best[:, 1:])
        row = np.minimum.accumulate(best - column, axis=1) + column
        ends = np.flatnonzero(length_one == step + 1)
        distance[ends] = row[ends, length_other[ends]]
    return distance


def _compute_in_bits(one: Codes, length_one: Codes, other: Codes, length_other: Codes) -> Codes:
    """Return the distances of texts of up to 64 tokens.

    Neighbours in a row of the table differ by -1, 0 or 1, so two words of bits hold a row (Myers, Journal of the ACM 46(3), 1999).
    """
    n = len(other)
    one_bit, last = np.uint64(1), np.maximum(length_other - 1, 0).astype(np.uint64)
    rises, falls = np.full(n, ~np.uint64(0)), np.zeros(n, dtype=np.uint64)
    score = length_other.copy()
    distance = np.where(length_other == 0, length_one, length_other)  # of texts without tokens
    codes = other.astype(np.int32)
    packed = np.zeros((n, WORD_BITS // 8), dtype=np.uint8)
    for step in range(one.shape[1]):
        bits = np.packbits(one[:, step : step + 1].astype(np.int32) == codes, axis=1, bitorder="little")
        packed[:, : bits.shape[1]] = bits
        equal = packed.view("<u8")[:, 0]
        vertical = equal | falls
        horizontal = (((equal & rises) + rises) ^ rises) | equal
        up, down = falls | ~(horizontal | rises), rises & horizontal
        score += ((up >> last) & one_bit).astype(np.int64)
        score -= ((down >> last) & one_bit).astype(np.int64)
        up = (up << one_bit) | one_bit
        rises, falls = (down << one_bit) | ~(vertical | up), up & vertical
        ends = np.flatnonzero((length_one == step + 1) & (length_other > 0))
        distance[ends] = score[ends]
    return np.asarray(distance)
