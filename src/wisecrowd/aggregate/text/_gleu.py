"""GLEU: overlap of the word sequences of two texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from wisecrowd.data.texts import TokenCodes

Codes = NDArray[np.int64]
#: Longest sequences of words that are compared.
MAX_ORDER = 4
#: Pairs whose word sequences are in memory at once.
PAIRS_PER_CHUNK = 1 << 16


def compute_gleu(tokens: TokenCodes, first: Codes, second: Codes) -> NDArray[np.float64]:
    """Return the GLEU score of pairs of texts.

    It is the number of sequences of one to four tokens that both texts have, over their number in the longer text.

    Parameters
    ----------
    tokens : TokenCodes
        Texts.
    first, second : ndarray of shape (n_pairs,)
        Positions of texts.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Scores between 0 and 1; two empty texts have 1.
    """
    sequences = _count_sequences(tokens)
    size = np.diff(sequences.indptr)
    longer = np.maximum(size[first], size[second])
    common = np.zeros(len(first))
    for begin in range(0, len(first), PAIRS_PER_CHUNK):
        part = slice(begin, begin + PAIRS_PER_CHUNK)
        shared = sequences[first[part]].multiply(sequences[second[part]])
        common[part] = np.asarray(shared.sum(axis=1)).ravel()
    return np.where(longer > 0, common / np.maximum(longer, 1), 1.0)


def _count_sequences(tokens: TokenCodes) -> sparse.csr_matrix:
    """Return which text has which sequences; the second occurrence in a text is a column of its own, and so on."""
    text = np.repeat(np.arange(len(tokens.length)), tokens.length)
    is_inside = np.ones(len(text), dtype=bool)  # whether the sequence from a token on ends within its text
    sequence = np.zeros(len(text), dtype=np.int64)
    position = np.arange(len(text))
    rows, columns, n_columns = [], [], 0
    for order in range(1, MAX_ORDER + 1):
        last = position + order - 1
        is_inside &= last < tokens.offset[text + 1]
        start = position[is_inside]
        codes = sequence[start] * len(tokens.tokens) + tokens.code[last[is_inside]]
        distinct, codes = np.unique(codes, return_inverse=True)
        sequence[start] = codes
        by_text = np.lexsort((codes, text[start]))
        is_new = np.append(True, (np.diff(codes[by_text]) != 0) | (np.diff(text[start][by_text]) != 0))[: len(start)]
        first = np.flatnonzero(is_new)
        occurrence = np.arange(len(start)) - np.repeat(first, np.diff(np.append(first, len(start))))
        _, column = np.unique(occurrence * max(len(distinct), 1) + codes[by_text], return_inverse=True)
        rows.append(text[start][by_text])
        columns.append(column + n_columns)
        n_columns += int(column.max(initial=-1)) + 1
    row, column = np.concatenate(rows), np.concatenate(columns)
    shape = (len(tokens.length), max(n_columns, 1))
    return sparse.csr_matrix((np.ones(len(row)), (row, column)), shape=shape)
