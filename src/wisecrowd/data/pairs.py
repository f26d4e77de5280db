"""Pairs of worker and label that occur in a crowd."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.rows import are_codes

#: Cells beyond four per vote for which a dense table is still cheaper than sorting.
DENSE_TABLE_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of worker and label that occur in a crowd, sorted.

    Methods keep one row of probabilities per pair. Such a table never has more rows than the crowd has votes.

    Parameters
    ----------
    worker : ndarray of shape (n_pairs,)
        Worker code of each pair, ascending.
    label : ndarray of shape (n_pairs,)
        Class code of each pair, ascending within a worker.
    vote_pairs : ndarray of shape (n_votes,)
        Pair of each vote.
    n_workers : int
        Number of workers, including those without a vote.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])
    >>> pairs = crowd.pairs
    >>> pairs.worker.tolist(), pairs.label.tolist(), pairs.vote_pairs.tolist()
    ([0, 1], [0, 1], [0, 1, 0])
    """

    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    vote_pairs: NDArray[np.int32]
    n_workers: int

    def __len__(self) -> int:
        return len(self.worker)

    def sum_by_worker(self, table: NDArray[Any]) -> NDArray[Any]:
        """Sum the rows of a table over the pairs of each worker.

        Parameters
        ----------
        table : ndarray of shape (n_pairs, ...)
            One row per pair.

        Returns
        -------
        ndarray of shape (n_workers, ...)
            One row per worker; zeros for a worker without votes.

        Examples
        --------
        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")])
        >>> crowd.pairs.sum_by_worker(np.array([1.0, 2.0])).tolist()
        [3.0]
        """
        total = np.zeros((self.n_workers, *table.shape[1:]), dtype=table.dtype)
        if len(self):
            total[self.worker[self._worker_starts]] = np.add.reduceat(table, self._worker_starts, axis=0)
        return total

    def find_problem(self, n_classes: int) -> str | None:
        """Return why these are no pairs over the vocabularies, or None if they are.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        str or None
            Part of a sentence.

        Examples
        --------
        >>> codes = np.array([0, -1], dtype=np.int32)
        >>> Pairs(codes, np.array([0, 0], dtype=np.int32), codes[:0], n_workers=1).find_problem(n_classes=1)
        'worker codes of pairs lie outside 0…0'
        """
        if self.worker.shape != self.label.shape or self.worker.ndim != 1:
            return "pairs have different numbers of workers and labels"
        for kind, codes, n in (("worker", self.worker, self.n_workers), ("label", self.label, n_classes)):
            if not are_codes(codes, n):
                return f"{kind} codes of pairs lie outside 0…{n - 1}"
        key = self.worker.astype(np.int64) * n_classes + self.label
        return None if (np.diff(key) > 0).all() else "pairs of worker and label are repeated or not in ascending order"

    def with_votes(self, vote_pairs: NDArray[np.int32]) -> Pairs:
        """Return the same pairs for other votes.

        Parameters
        ----------
        vote_pairs : ndarray of shape (n_votes,)
            Pair of each of the other votes.

        Returns
        -------
        Pairs
            Shares its arrays, and what it has cached, with this object.

        Examples
        --------
        >>> from wisecrowd import Crowd
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
        >>> crowd.pairs.with_votes(np.array([1], dtype=np.int32)).vote_pairs.tolist()
        [1]
        """
        pairs = Pairs(self.worker, self.label, vote_pairs, self.n_workers)
        cached = {name: value for name, value in vars(self).items() if name in ("_worker_starts", "compact_label")}
        vars(pairs).update(cached)
        return pairs

    @cached_property
    def compact_label(self) -> NDArray[Any]:
        """Class code of each pair in the smallest integer type that holds it.

        Votes look labels up in random order, and a smaller table fits into the processor's cache.

        Examples
        --------
        >>> from wisecrowd import Crowd
        >>> Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")]).pairs.compact_label.dtype.name
        'uint8'
        """
        return self.label.astype(np.min_scalar_type(int(self.label.max(initial=0))))

    @cached_property
    def _worker_starts(self) -> NDArray[np.int64]:
        """First pair of each worker who has votes."""
        return np.flatnonzero(np.diff(self.worker, prepend=-1))


def find_pairs(worker: NDArray[Any] | None, label: NDArray[Any], n_workers: int, n_classes: int) -> Pairs:
    """Find the pairs of worker and label that occur.

    Parameters
    ----------
    worker : ndarray of shape (n_votes,) or None
        Worker code of each vote; None when votes have no worker ids, and all of them count as one worker.
    label : ndarray of shape (n_votes,)
        Class code of each vote.
    n_workers, n_classes : int
        Sizes of the vocabularies.

    Returns
    -------
    Pairs
        The distinct pairs, sorted, and the pair of each vote.

    Examples
    --------
    >>> len(find_pairs(np.array([0, 1, 1]), np.array([2, 0, 0]), n_workers=2, n_classes=3))
    2
    """
    n_workers = max(n_workers, 1)
    code = label.astype(np.int64) if worker is None else worker.astype(np.int64) * n_classes + label
    if n_workers * n_classes <= 4 * len(code) + DENSE_TABLE_CELLS:
        occurs = np.zeros(n_workers * n_classes, dtype=bool)
        occurs[code] = True
        pair_codes, vote_pairs = np.flatnonzero(occurs), (np.cumsum(occurs, dtype=np.int32) - 1)[code]
    else:
        pair_codes, vote_pairs = np.unique(code, return_inverse=True)
    pair_worker, pair_label = np.divmod(pair_codes, n_classes)
    pairs = Pairs(pair_worker.astype(np.int32), pair_label.astype(np.int32), vote_pairs.astype(np.int32), n_workers)
    for column in (pairs.worker, pairs.label, pairs.vote_pairs):
        column.setflags(write=False)
    return pairs
