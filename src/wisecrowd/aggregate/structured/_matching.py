"""Match: marks of different workers become objects by their similarity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.overlaps import SimilarPairs

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Similarities are compared with this many decimals, so that the order of summation does not decide.
DECIMALS = 12


def group_marks(pairs: SimilarPairs, worker: NDArray[np.int32], weight: Array, min_similarity: float) -> Codes:
    """Group marks into objects by agglomeration with average linkage, with at most one mark per worker and object.

    The two most similar groups are united again and again, unless they share a worker, until no similarity reaches
    ``min_similarity``. The similarity of groups is the weighted mean over all pairs of their marks; pairs that are not listed have
    similarity 0. Average linkage is reducible: uniting two groups makes neither more similar to a third than the more similar one
    was. So all pairs of groups that prefer each other are united at once, with the same result as one by one, and the number
    of rounds grows with the size of groups instead of their number.

    Parameters
    ----------
    pairs : SimilarPairs
        Similar pairs; equal similarities are ordered by positions of marks.
    worker : ndarray of shape (n_marks,)
        Worker codes.
    weight : ndarray of shape (n_marks,)
        Positive weights of the marks.
    min_similarity : float
        Similarity from which groups are united.

    Returns
    -------
    ndarray of shape (n_marks,)
        Number of the object of each mark, in the order of first marks.

    Examples
    --------
    >>> pairs = SimilarPairs(np.array([0, 1]), np.array([1, 2]), np.array([0.9, 0.8]))
    >>> group_marks(pairs, np.array([0, 1, 0], np.int32), np.ones(3), 0.5).tolist()
    [0, 0, 1]
    """
    n, n_workers = len(worker), int(worker.max(initial=0)) + 1
    group, size = np.arange(n), weight.astype(np.float64)
    first, second = pairs.first, pairs.second
    total = pairs.similarity * weight[first] * weight[second]
    is_barred = worker[first] == worker[second]
    while True:
        mean = np.round(total / (size[first] * size[second]), DECIMALS)
        candidates = np.flatnonzero((mean >= min_similarity) & ~is_barred)
        if not candidates.size:
            break
        candidates = candidates[np.lexsort((second[candidates], first[candidates], -mean[candidates]))]
        one, other = first[candidates], second[candidates]
        preferred = np.full(n, len(candidates))
        position = np.arange(len(candidates))
        np.minimum.at(preferred, one, position)
        np.minimum.at(preferred, other, position)
        chosen = np.flatnonzero((preferred[one] == position) & (preferred[other] == position))
        united, absorbed = one[chosen], other[chosen]
        target = np.arange(n)
        target[absorbed] = united
        # Groups that share a worker stay apart, whatever they are united with later.
        is_touched = np.zeros(n, dtype=bool)
        is_touched[united] = is_touched[absorbed] = True
        members = np.flatnonzero(is_touched[group])
        keys = np.sort(target[group[members]] * n_workers + worker[members])
        clashing = np.isin(united, keys[1:][keys[1:] == keys[:-1]] // n_workers)
        is_barred[candidates[chosen[clashing]]] = True
        target[absorbed[clashing]] = absorbed[clashing]
        group, size = target[group], np.bincount(target, size, n).astype(np.float64)
        one, other = target[first], target[second]
        is_open = one != other
        one, other = np.minimum(one, other)[is_open], np.maximum(one, other)[is_open]
        key, number = np.unique(one * n + other, return_inverse=True)
        total = np.bincount(number, total[is_open], len(key)).astype(np.float64)
        is_barred = np.bincount(number, is_barred[is_open], len(key)) > 0
        first, second = np.divmod(key, n)
    return np.asarray(np.unique(group, return_inverse=True)[1], dtype=np.int64)
