"""Answers of workers to tasks: the part that all crowds share whose answers are more than single labels."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.rows import draw_heldout
from wisecrowd.errors import InputError, preview
from wisecrowd.utils.notebook import MAX_ROWS, render_html
from wisecrowd.utils.text import count_noun


class AnswersByTask(ABC):
    """Immutable answers, each of one worker to one task.

    Answer ``n`` is by worker ``workers[worker[n]]`` to task ``tasks[task[n]]``. Answers are sorted by task and worker. A subclass
    adds what was answered: its arrays, ``digest``, `take` and `to_frame`.

    Attributes
    ----------
    task, worker : ndarray of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    tasks, workers : Index
        Vocabularies.

    Examples
    --------
    >>> from wisecrowd import LabelSetCrowd
    >>> issubclass(LabelSetCrowd, AnswersByTask)
    True
    """

    answer_type: ClassVar[AnswerType]

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    tasks: pd.Index
    workers: pd.Index

    @property
    def n_votes(self) -> int:
        """Number of answers."""
        return len(self.task)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.workers)

    def __len__(self) -> int:
        return self.n_tasks

    @cached_property
    def votes_per_task(self) -> NDArray[np.int64]:
        """Number of answers to each task."""
        return np.bincount(self.task, minlength=self.n_tasks)

    @cached_property
    def votes_per_worker(self) -> NDArray[np.int64]:
        """Number of answers of each worker."""
        return np.bincount(self.worker, minlength=self.n_workers)

    @cached_property
    def task_offset(self) -> NDArray[np.int64]:
        """Task ``t`` has the answers ``task_offset[t]:task_offset[t + 1]``."""
        return np.concatenate([[0], np.cumsum(self.votes_per_task)]).astype(np.int64)

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""

    @abstractmethod
    def take(self, rows: ArrayLike) -> Self:
        """Select answers; the vocabularies stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the answers to keep.

        Returns
        -------
        AnswersByTask
            A crowd of this class.
        """

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Convert the answers to a table.

        Returns
        -------
        DataFrame
        """

    def hide(self, fraction: float = 0.2, *, random_state: int = 0) -> tuple[Self, Self]:
        """Split the answers at random into visible and held-out ones, to validate without gold.

        Parameters
        ----------
        fraction : float, default=0.2
            Fraction of the answers to hold out.
        random_state : int, default=0
            Seed.

        Returns
        -------
        visible, heldout : AnswersByTask
            Crowds of this class, both over the vocabularies of this crowd.

        Examples
        --------
        >>> from wisecrowd import LabelSetCrowd
        >>> frame = {"task": list("aabb"), "worker": [1, 2, 1, 2], "labels": ["x", "", "x|y", "y"]}
        >>> [part.n_votes for part in LabelSetCrowd.from_frame(frame).hide(0.5)]
        [2, 2]
        """
        is_heldout = draw_heldout(self.n_votes, fraction, random_state)
        return self.take(~is_heldout), self.take(is_heldout)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.n_votes == other.n_votes and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.take(np.arange(min(self.n_votes, MAX_ROWS))).to_frame())

    def _select_rows(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Return the positions of the selected answers in ascending order; an empty list selects none."""
        selection = np.asarray(rows)
        return np.sort(np.arange(self.n_votes)[selection if selection.size else slice(0)])


def compute_answers_digest(kind: str, vocabularies: Iterable[Any], arrays: Iterable[NDArray[Any]]) -> str:
    """Compute the SHA-256 of the contents of a crowd.

    Parameters
    ----------
    kind : str
        Kind of the answers, by which crowds of different kinds differ.
    vocabularies : iterable of array-like
        Ids, names or texts.
    arrays : iterable of ndarray
        Codes and numbers.

    Returns
    -------
    str

    Examples
    --------
    >>> codes = np.array([0, 1])
    >>> compute_answers_digest("texts", [["a"]], [codes]) == compute_answers_digest("texts", [["b"]], [codes])
    False
    """
    sha = hashlib.sha256(kind.encode())
    for vocabulary in vocabularies:
        sha.update(pd.util.hash_array(np.asarray(vocabulary, dtype=object)).tobytes())
    for array in arrays:
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def order_by_task(
    task: NDArray[np.int32],
    worker: NDArray[np.int32],
    tasks: pd.Index,
    workers: pd.Index,
    *,
    advice: str,
    noun: str = "repeated row",
    verb: str = "answered",
) -> NDArray[np.intp]:
    """Return the order of answers by task and worker.

    Parameters
    ----------
    task, worker : ndarray of shape (n_votes,)
        Codes of the tasks and workers of the answers.
    tasks, workers : Index
        Vocabularies.
    advice : str
        Last sentence of the error, such as "Keep one row each".
    noun, verb : str
        Words of the error for a second answer, and for what a worker did to a task.

    Returns
    -------
    ndarray of shape (n_votes,)

    Raises
    ------
    InputError
        If a worker answers a task twice.

    Examples
    --------
    >>> ids = pd.Index(["a", "b"])
    >>> order_by_task(np.array([1, 0]), np.array([0, 0]), ids, ids, advice="Keep one row each").tolist()
    [1, 0]
    """
    key = task.astype(np.int64) * len(workers) + worker
    order = np.argsort(key, kind="stable")
    repeated = np.flatnonzero(np.diff(key[order]) == 0)
    if repeated.size:
        row = order[repeated[0]]
        raise InputError(
            f"{count_noun(repeated.size, noun)}; for example worker {preview([workers[worker[row]]])} {verb} task "
            f"{preview([tasks[task[row]]])} twice. {advice}"
        )
    return order
