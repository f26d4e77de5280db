"""Consecutive tasks of a larger crowd."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs


class PairVotes(ABC):
    """Storage of votes that are stored as pairs of worker and label.

    A subclass provides the pair and the weight of each vote and the bounds of the tasks; the columns follow from them.
    """

    has_task_order = True
    has_class_order = False
    has_checked_codes = False
    observed = None
    time = None

    @property
    @abstractmethod
    def tasks(self) -> pd.Index:
        """Task ids."""

    @property
    @abstractmethod
    def workers(self) -> pd.Index | None:
        """Worker ids of the larger crowd; None when votes have no worker ids."""

    @property
    @abstractmethod
    def classes(self) -> pd.Index:
        """Classes of the larger crowd."""

    @property
    @abstractmethod
    def n_tasks(self) -> int:
        """Number of tasks."""

    @property
    @abstractmethod
    def n_votes(self) -> int:
        """Number of votes."""

    @property
    @abstractmethod
    def pairs(self) -> Pairs:
        """Pairs of worker and label of the larger crowd, and the pair of each vote."""

    @property
    @abstractmethod
    def offset(self) -> NDArray[np.int64]:
        """First vote of each task, and the number of votes at the end."""

    @property
    @abstractmethod
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""

    @cached_property
    def task(self) -> NDArray[np.int32]:
        """Task code of each vote."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), np.diff(self.offset))

    @cached_property
    def worker(self) -> NDArray[np.int32] | None:
        """Worker code of each vote; None when votes have no worker ids."""
        return None if self.workers is None else self.pairs.worker[self.pairs.vote_pairs]

    @cached_property
    def label(self) -> NDArray[Any]:
        """Class code of each vote."""
        return self.pairs.label[self.pairs.vote_pairs]

    @property
    def label_codes(self) -> NDArray[Any]:
        """Class code of each vote in the smallest integer type that holds it."""
        return self.pairs.compact_label[self.pairs.vote_pairs]


class PairVotesInMemory(PairVotes):
    """Votes of consecutive tasks as arrays of pairs.

    Parameters
    ----------
    workers, classes : Index
        Vocabularies of the larger crowd; ``workers`` is None when votes have no worker ids.
    pairs : Pairs
        Pairs of the larger crowd, with the pair of each vote of these tasks.
    offset : ndarray of shape (n_tasks + 1,)
        First vote of each task, and the number of votes at the end.
    weight : ndarray of shape (n_votes,) or None
        Weight of each vote; None when every vote counts once.
    load_tasks : callable
        Returns the task ids. It is called on first access.
    has_checked_codes : bool, default=False
        Whether ``pairs`` and ``offset`` are known to be valid.
    """

    def __init__(
        self,
        workers: pd.Index | None,
        classes: pd.Index,
        pairs: Pairs,
        offset: NDArray[np.int64],
        weight: NDArray[np.float64] | None,
        load_tasks: Callable[[], pd.Index],
        has_checked_codes: bool = False,
    ) -> None:
        self.has_checked_codes = has_checked_codes
        self._workers, self._classes, self._pairs, self._offset = workers, classes, pairs, offset
        self._weight, self._load_tasks = weight, load_tasks

    @cached_property
    def tasks(self) -> pd.Index:
        """Task ids."""
        return self._load_tasks()

    @property
    def workers(self) -> pd.Index | None:
        """Worker ids of the larger crowd; None when votes have no worker ids."""
        return self._workers

    @property
    def classes(self) -> pd.Index:
        """Classes of the larger crowd."""
        return self._classes

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self._offset) - 1

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return len(self._pairs.vote_pairs)

    @property
    def pairs(self) -> Pairs:
        """Pairs of worker and label of the larger crowd, and the pair of each vote."""
        return self._pairs

    @property
    def offset(self) -> NDArray[np.int64]:
        """First vote of each task, and the number of votes at the end."""
        return self._offset

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""
        return self._weight

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = (self._workers, self._classes, self._pairs, self._offset, self._weight)
        return PairVotesInMemory, (*arrays, partial(_return_tasks, self.tasks))


class CrowdSlice(Crowd):
    """Consecutive tasks of a larger crowd with all their votes.

    Workers, classes and pairs are those of the larger crowd, so sums over tasks can be computed slice by slice.

    Parameters
    ----------
    storage : PairVotes
        Votes of the tasks.

    Examples
    --------
    >>> pairs = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]).pairs
    >>> pairs = pairs.with_votes(np.array([1], dtype=np.int32))
    >>> workers, classes = pd.Index(["ann", "bob"]), pd.Index(["cat", "dog"])
    >>> storage = PairVotesInMemory(workers, classes, pairs, np.array([0, 1]), None, lambda: pd.Index(["t2"]))
    >>> crowd = CrowdSlice(storage)
    >>> crowd.n_tasks, crowd.label.tolist(), crowd.tasks.tolist()
    (1, [1], ['t2'])
    """

    def __init__(self, storage: PairVotes) -> None:
        super().__init__(storage)
        self._pair_votes = storage

    def iter_slices(self, n_votes: int) -> Iterator[tuple[slice, CrowdSlice]]:
        """Iterate over consecutive tasks with about ``n_votes`` votes together, without copying.

        Parameters
        ----------
        n_votes : int
            Approximate number of votes per slice.

        Yields
        ------
        tasks : slice
            Positions of the tasks in this crowd.
        crowd : CrowdSlice
            The tasks.
        """
        offset, pairs, weight = self.offset, self.pairs, self.stored_weight
        _ = pairs.compact_label  # cached here, it is shared by all slices
        for begin, end in cut_tasks(offset, n_votes):
            rows = slice(offset[begin], offset[end])
            storage = PairVotesInMemory(
                self.workers,
                self._pair_votes.classes,
                pairs.with_votes(pairs.vote_pairs[rows]),
                offset[begin : end + 1] - offset[begin],
                None if weight is None else weight[rows],
                partial(self._load_tasks, begin, end),
                self._pair_votes.has_checked_codes,
            )
            yield slice(begin, end), CrowdSlice(storage)

    def _load_tasks(self, begin: int, end: int) -> pd.Index:
        return self.tasks[begin:end]

    def __reduce__(self) -> tuple[Any, ...]:
        return CrowdSlice, (self._pair_votes,)


def cut_tasks(offset: NDArray[np.int64], n_votes: int) -> Iterator[tuple[int, int]]:
    """Cut tasks into runs of consecutive tasks with about ``n_votes`` votes together.

    Parameters
    ----------
    offset : ndarray of shape (n_tasks + 1,)
        First vote of each task, and the number of votes at the end.
    n_votes : int
        Largest number of votes of a run of several tasks.

    Yields
    ------
    begin, end : int
        Bounds of the run.

    Examples
    --------
    >>> list(cut_tasks(np.array([0, 2, 3, 6]), 3))
    [(0, 2), (2, 3)]
    """
    begin = 0
    while begin < len(offset) - 1:
        end = max(int(np.searchsorted(offset, offset[begin] + n_votes, side="right")) - 1, begin + 1)
        yield begin, end
        begin = end


def _return_tasks(tasks: pd.Index) -> pd.Index:
    return tasks
