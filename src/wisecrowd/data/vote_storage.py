"""Columns and vocabularies behind a crowd, in memory or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.pairs import Pairs, find_pairs
from wisecrowd.data.rows import VoteRows


class VoteStorage(Protocol):
    """Interface through which a `Crowd` reads its votes.

    Votes are sorted by task and worker. An attribute that is expensive to obtain may be read on first access.
    """

    @property
    def tasks(self) -> pd.Index:
        """Task ids."""

    @property
    def workers(self) -> pd.Index | None:
        """Worker ids; None when votes have no worker ids."""

    @property
    def classes(self) -> pd.Index | None:
        """Classes; None when labels are numbers."""

    @property
    def has_class_order(self) -> bool:
        """True if the classes are ordered, from lowest to highest."""

    @property
    def has_task_order(self) -> bool:
        """True if the caller fixed the order of the tasks."""

    @property
    def has_checked_codes(self) -> bool:
        """True if the pairs and bounds of the votes are known to be valid; otherwise the kernels check them."""

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""

    @property
    def n_votes(self) -> int:
        """Number of votes."""

    @property
    def task(self) -> NDArray[np.int32]:
        """Task code of each vote."""

    @property
    def worker(self) -> NDArray[np.int32] | None:
        """Worker code of each vote."""

    @property
    def label(self) -> NDArray[Any]:
        """Label of each vote: the position of its class in ``classes``, or the number itself if labels are numbers."""

    @property
    def label_codes(self) -> NDArray[Any]:
        """Class code of each vote in any integer type."""

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""

    @property
    def observed(self) -> NDArray[np.bool_] | None:
        """Mask of the votes that a worker cast; None when all were cast."""

    @property
    def time(self) -> NDArray[np.float64] | None:
        """Time of each vote in seconds since 1970; None when no vote has a time."""

    @property
    def offset(self) -> NDArray[np.int64]:
        """First vote of each task, and the number of votes at the end."""

    @property
    def pairs(self) -> Pairs:
        """Pairs of worker and label."""


@dataclass(frozen=True, eq=False)
class VotesInMemory:
    """Votes as arrays, the storage of an ordinary `Crowd`.

    Parameters
    ----------
    rows : VoteRows
        Sorted rows; the arrays become read-only.
    tasks, workers, classes : Index
        Vocabularies of the codes in ``rows``.
    has_task_order : bool
        Whether the caller fixed the order of the tasks.
    has_class_order : bool, default=False
        Whether the classes are ordered, from lowest to highest.
    """

    rows: VoteRows
    tasks: pd.Index
    workers: pd.Index | None
    classes: pd.Index | None
    has_task_order: bool
    has_class_order: bool = False

    has_checked_codes = False

    def __post_init__(self) -> None:
        for array in self.rows:
            if array is not None:
                array.setflags(write=False)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return len(self.rows.task)

    @property
    def task(self) -> NDArray[np.int32]:
        """Task code of each vote."""
        return self.rows.task

    @property
    def worker(self) -> NDArray[np.int32] | None:
        """Worker code of each vote."""
        return self.rows.worker

    @property
    def label(self) -> NDArray[Any]:
        """Class code of each vote; in a numeric crowd, the number itself."""
        return self.rows.label

    @property
    def label_codes(self) -> NDArray[Any]:
        """Class code of each vote."""
        return self.rows.label

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""
        return self.rows.weight

    @property
    def observed(self) -> NDArray[np.bool_] | None:
        """Mask of the votes that a worker cast; None when all were cast."""
        return self.rows.observed

    @property
    def time(self) -> NDArray[np.float64] | None:
        """Time of each vote in seconds since 1970; None when no vote has a time."""
        return self.rows.time

    @cached_property
    def offset(self) -> NDArray[np.int64]:
        """First vote of each task, and the number of votes at the end."""
        offset = np.concatenate([[0], np.cumsum(np.bincount(self.task, minlength=self.n_tasks))])
        offset.setflags(write=False)
        return offset

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs of worker and label."""
        n_workers = 0 if self.workers is None else len(self.workers)
        return find_pairs(self.worker, self.label, n_workers, 0 if self.classes is None else len(self.classes))
