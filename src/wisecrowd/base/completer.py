"""Base class of completers, which fill in the votes that workers did not give."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.method import Method
from wisecrowd.data.alignment import align_feature_rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import find_invalid_weight
from wisecrowd.data.types import CrowdLike, FeaturesLike
from wisecrowd.data.vocabulary import as_index, locate_ids
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.utils.hashing import GOLDEN_GAMMA, mix_bits, to_unit_interval
from wisecrowd.utils.progress import report

#: Number of label probabilities held at a time, which bounds the memory of a completion beside its result.
BLOCK_CELLS = 2**22
#: Smallest probability of a soft vote; rows with smaller ones carry no information.
MIN_SOFT_PROB = 1e-3
#: Smallest probability in the logarithm of a predicted vote, which keeps it finite.
MIN_VOTE_PROB = 1e-12
#: Start of the hash of a (task, worker) cell, which separates these random numbers from others with the same seed.
CELL_HASH_OFFSET = np.uint64(0x632BE59BD9B4E019)


class WorkerLabelProbs(NamedTuple):
    """Predicted labels of workers on tasks.

    Attributes
    ----------
    proba : ndarray of shape (n_tasks, n_workers, n_classes)
        P(label given task and worker); the last axis sums to one.
    fillable : ndarray of bool of shape (n_tasks, n_workers), optional
        Cells that the completer is ready to fill; all of them by default.

    Examples
    --------
    >>> WorkerLabelProbs(np.full((2, 3, 4), 0.25)).fillable is None
    True
    """

    proba: NDArray[Any]
    fillable: NDArray[np.bool_] | None = None


class FilledVotes(NamedTuple):
    """Columns of the votes to fill in.

    Attributes
    ----------
    task : ndarray of int of shape (n_votes,)
        Task of each vote, as a position in the chunk.
    worker : ndarray of int of shape (n_votes,)
        Worker code of each vote.
    label : ndarray of int of shape (n_votes,)
        Class code of each vote.
    weight : ndarray of shape (n_votes,)
        Weight of each vote.
    """

    task: NDArray[np.intp]
    worker: NDArray[np.intp]
    label: NDArray[np.intp]
    weight: NDArray[np.float64]


@method_class
class Completer(Method):
    """Method that fills in the votes that workers did not give.

    ``complete(crowd, X)`` returns a `Crowd` with all observed votes and with filled votes, which are marked (``observed`` is
    False) and weighted. By default the filled votes on a task have, in total, the weight of the observed votes on an average
    task, because fifty predicted votes are not fifty independent opinions. ``fill_weight=1`` counts each as a vote, as papers do.

    A completer predicts workers, not the truth: a worker who confuses cats and dogs continues to do so. Without features, a
    completer adds no information about a task beyond its votes and what is known of the workers.

    Examples
    --------
    >>> from wisecrowd import GMV, Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "bob", "dog")])
    >>> GMV().complete(crowd).to_frame()
      task worker label  observed
    0   t1    ann   cat      True
    1   t1    bob   cat      True
    2   t2    ann   dog     False
    3   t2    bob   dog      True
    """

    #: Whether ``fit`` needs task features.
    uses_features: ClassVar[bool] = False

    fill_mode: Literal["hard", "sample", "soft"] = parameter(
        default="hard",
        help="Labels to fill in: 'hard' for the most probable one, 'sample' for a random one, 'soft' for all of them, "
        "weighted by their probabilities.",
    )
    fill_weight: float | Literal["shared"] = parameter(
        default="shared",
        help="Weight of a filled vote. 'shared' gives all filled votes on a task the total weight of the observed votes on "
        "an average task.",
    )
    min_votes: int = parameter(default=0, help="Fill in only for workers with more observed votes than this.")
    max_per_task: int | None = parameter(
        default=None,
        help="Maximum number of workers to fill in on a task; those with most observed votes come first.",
    )
    random_state: int = parameter(default=0, help="Seed of all random numbers.")

    vote_task_: NDArray[np.int32] = fitted(
        help="Task of every observed vote, as a position in ``task_index_``.", shape=("n_votes",), codes="n_tasks"
    )
    vote_worker_: NDArray[np.int32] = fitted(
        help="Worker of every observed vote.", shape=("n_votes",), codes="n_workers"
    )
    vote_label_: NDArray[np.int32] = fitted(help="Label of every observed vote.", shape=("n_votes",), codes="n_classes")
    vote_weight_: NDArray[np.float64] = fitted(help="Weight of every observed vote; empty if all are 1.")
    vote_time_: NDArray[np.float64] = fitted(help="Time of every observed vote; empty if unknown.")
    has_task_order_: bool = fitted(help="Whether the order of the tasks was given explicitly.")

    def check_restored(self) -> None:
        """Raise ValueError if a method that was read from a file has invalid parameters, or invalid weights or times of votes."""
        super().check_restored()
        self._check_parameters()
        for name in ("vote_weight_", "vote_time_"):
            if getattr(self, name).shape not in ((0,), self.vote_task_.shape):
                raise ValueError(f"{name} must be empty or have one value per vote; got {getattr(self, name).shape}")
        problem = find_invalid_weight(self.vote_weight_)
        if problem is not None:
            raise ValueError(problem)

    # ------------------------------------------------------------------ hooks

    @abstractmethod
    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        """Fit the model of the workers to observed votes."""

    @abstractmethod
    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        """Return the label probabilities of all pairs of some tasks and workers, both by position."""

    # ------------------------------------------------------------------ public methods

    def fit(self, crowd: CrowdLike, X: FeaturesLike | None = None) -> Self:
        """Fit the completer to the observed votes; votes that were filled in before are ignored.

        Parameters
        ----------
        crowd : Crowd or DataFrame
            Votes with columns task, worker and label.
        X : DataFrame or ndarray, optional
            Features with one row per task, for completers that use them.

        Returns
        -------
        Completer
            The completer itself.
        """
        started = time.perf_counter()
        self._check_parameters()
        votes = self.validate_votes(self.as_crowd(crowd).select_observed())
        if X is None and self.uses_features:
            raise UsageError(f"{type(self).__name__} needs the features of the tasks; call complete(crowd, X)")
        if X is not None and not self.uses_features:
            raise UsageError(f"{type(self).__name__} does not use features; call complete(crowd) without X")
        rows = None if X is None else align_feature_rows(X, votes)
        self._set_votes(votes)
        self._fit(votes, rows)
        self.fit_seconds_ = time.perf_counter() - started
        return self

    def complete(self, crowd: CrowdLike, X: FeaturesLike | None = None) -> Crowd:
        """Fit the completer and return the completed crowd.

        Parameters
        ----------
        crowd : Crowd or DataFrame
            Votes with columns task, worker and label.
        X : DataFrame or ndarray, optional
            Features with one row per task, for completers that use them.

        Returns
        -------
        Crowd
        """
        return self.fit(crowd, X).fill()

    def fill(self) -> Crowd:
        """Return the fitted crowd with filled votes."""
        return Crowd.join_chunks(self.stream())

    def stream(self) -> Iterator[Crowd]:
        """Yield the completed crowd in chunks of tasks, one of which is in memory at a time.

        Examples
        --------
        >>> from wisecrowd import GMV, simulate_crowd
        >>> chunks = GMV().fit(simulate_crowd(n_tasks=30, n_workers=5).crowd).stream()
        >>> sum(chunk.n_votes for chunk in chunks)
        150
        """
        crowd, workers = self._crowd, self.eligible_workers
        for start, stop in self._task_blocks(len(workers)):
            chunk = crowd[start:stop]
            if len(workers) == 0:
                yield chunk
                continue
            filled = self._fill_tasks(np.arange(start, stop), workers)
            report(f"{type(self).__name__}: filling in", stop, crowd.n_tasks)
            yield _append_votes(chunk, filled)

    def predict_worker_proba(
        self, tasks: Sequence[Any] | None = None, workers: Sequence[Any] | None = None
    ) -> NDArray[np.float64]:
        """Predict the labels that workers would give to tasks.

        Parameters
        ----------
        tasks : list, optional
            Task ids; all by default.
        workers : list, optional
            Worker ids; all by default.

        Returns
        -------
        ndarray of shape (n_tasks, n_workers, n_classes)
        """
        crowd = self._crowd
        positions = [
            _find_positions(crowd.tasks, tasks, "task"),
            _find_positions(as_index(crowd.workers), workers, "worker"),
        ]
        if min(map(len, positions)) == 0:
            return np.empty((*map(len, positions), len(self.classes_)))
        return np.asarray(self._worker_label_probs(*positions).proba, dtype=np.float64)

    def expected_votes(self) -> pd.DataFrame:
        """Return the weight of observed and expected filled votes by task and class, without the completed crowd."""
        crowd, workers = self._crowd, self.eligible_workers
        total = crowd.vote_counts.copy()
        for start, stop in self._task_blocks(len(workers)) if len(workers) else ():
            proba, fillable = self._find_fillable(np.arange(start, stop), workers)
            weight = self._filled_vote_weight(fillable.sum(axis=1))
            total[start:stop] += np.einsum("twk,tw->tk", proba, fillable) * weight[:, None]
        return pd.DataFrame(total, index=crowd.tasks.rename("task"), columns=self.classes_.rename("class"))

    def predict_vote_proba(self, votes: Crowd) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Predict votes over the tasks, workers and classes of the fit, such as held-out votes.

        Parameters
        ----------
        votes : Crowd
            Votes to predict, such as `Crowd.hide` returns.

        Returns
        -------
        proba : ndarray of shape (n_votes, n_classes)
            Label probabilities of the worker of every vote on its task.
        fillable : ndarray of bool, shape (n_votes,)
            Whether the completer is ready to fill the cell.
        """
        if not isinstance(votes, Crowd):
            raise UsageError(f"votes must be a Crowd, such as hide() returns; got {type(votes).__name__}")
        if not hasattr(self, "vote_task_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first")
        same = ((votes.tasks, self.task_index_), (votes.workers, self.worker_index_), (votes.classes, self.classes_))
        if not all(index is not None and index.equals(fitted_index) for index, fitted_index in same):
            raise UsageError("votes must have the tasks, workers and classes of the fit, such as hide() returns")
        proba = np.empty((votes.n_votes, len(self.classes_)))
        fillable = np.empty(votes.n_votes, dtype=bool)
        for start, stop in self._task_blocks(votes.n_workers):
            rows = slice(votes.offset[start], votes.offset[stop])
            if rows.start == rows.stop:
                continue
            tasks, task = np.unique(votes.task[rows], return_inverse=True)
            workers, worker = np.unique(votes.worker_codes[rows], return_inverse=True)
            label_probs = self._worker_label_probs(tasks.astype(np.intp), workers.astype(np.intp))
            proba[rows] = label_probs.proba[task, worker]
            fillable[rows] = True if label_probs.fillable is None else label_probs.fillable[task, worker]
        return proba, fillable

    def predict_vote_log_proba(self, votes: Crowd) -> NDArray[np.float64]:
        """Return the logarithm of the predicted probability of every vote.

        Parameters
        ----------
        votes : Crowd
            Votes over the tasks, workers and classes of the fit, such as `Crowd.hide` returns.

        Returns
        -------
        ndarray of shape (n_votes,)

        Examples
        --------
        >>> from wisecrowd import DSFill, simulate_crowd
        >>> visible, hidden = simulate_crowd(n_tasks=200).crowd.hide(0.2)
        >>> bool(DSFill().fit(visible).predict_vote_log_proba(hidden).mean() > np.log(1 / 4))  # better than guessing
        True
        """
        proba, _ = self.predict_vote_proba(votes)
        return np.log(np.maximum(proba[np.arange(votes.n_votes), votes.label], MIN_VOTE_PROB))

    @property
    def eligible_workers(self) -> NDArray[np.intp]:
        """Positions of the workers to fill in for."""
        return np.flatnonzero(self._crowd.votes_per_worker > self.min_votes)

    # ------------------------------------------------------------------ internals

    def _check_parameters(self) -> None:
        """Check the parameters; a method adds its own checks."""
        self._check_parameter_types()
        check_choice("fill_mode", self.fill_mode, ("hard", "sample", "soft"))
        weight: Any = self.fill_weight
        if weight != "shared" and not (isinstance(weight, int | float | np.number) and 0 < weight < np.inf):
            raise UsageError(f"fill_weight must be 'shared' or a positive number; got {self.fill_weight!r}")
        if self.min_votes < 0:
            raise UsageError(f"min_votes must be 0 or more; got {self.min_votes}")
        limit: Any = self.max_per_task
        if limit is not None and not (isinstance(limit, int | np.integer) and limit > 0):
            raise UsageError(f"max_per_task must be a whole number of 1 or more, or None; got {self.max_per_task!r}")
        if self.random_state < 0:
            raise UsageError(f"random_state must be 0 or more; got {self.random_state}")

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        """Return a fitted attribute, or raise an error that explains how to infer the truth."""
        if not hasattr(self, attribute) and hasattr(self, "vote_task_"):
            raise UsageError(
                f"{type(self).__name__} completes votes and infers no truth; aggregate the completed crowd: "
                "MajorityVote().fit(completer.fill())"
            )
        return super()._check_fitted(attribute)

    def _set_votes(self, votes: Crowd) -> None:
        """Set the votes as arrays, which can be saved."""
        self.task_index_, self.worker_index_ = votes.tasks, as_index(votes.workers)
        self.classes_ = as_index(votes.classes)
        self.vote_task_, self.vote_worker_, self.vote_label_ = votes.task, votes.worker_codes, votes.label
        self.vote_weight_ = votes.weight if votes.is_weighted else np.empty(0)
        self.vote_time_ = votes.time if votes.has_times else np.empty(0)
        self.has_task_order_ = votes.has_task_order
        vars(self).pop("_crowd", None)  # of an earlier fit

    @cached_property
    def _crowd(self) -> Crowd:
        """Observed votes."""
        if not hasattr(self, "vote_task_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first, or complete(crowd, X)")
        return Crowd.from_codes(
            self.vote_task_,
            self.vote_worker_,
            self.vote_label_,
            weight=self.vote_weight_ if len(self.vote_weight_) else None,
            tasks=self.task_index_,
            workers=self.worker_index_,
            classes=self.classes_,
            duplicates="keep",
            time=self.vote_time_ if len(self.vote_time_) else None,
            has_task_order=self.has_task_order_,
        )

    def _task_blocks(self, n_workers: int) -> Iterator[tuple[int, int]]:
        """Yield the bounds of blocks of tasks whose label probabilities fit in memory."""
        size = max(1, BLOCK_CELLS // max(1, n_workers * len(self.classes_)))
        n_tasks = self._crowd.n_tasks
        return ((start, min(start + size, n_tasks)) for start in range(0, n_tasks, size))

    def _find_fillable(
        self, tasks: NDArray[np.intp], workers: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return label probabilities and the cells to fill: those without a vote, up to ``max_per_task``."""
        crowd = self._crowd
        proba, fillable = self._worker_label_probs(tasks, workers)
        fillable = np.ones(proba.shape[:2], dtype=bool) if fillable is None else fillable.copy()
        rows = slice(crowd.offset[tasks[0]], crowd.offset[tasks[-1] + 1])
        position = np.full(crowd.n_workers, -1)
        position[workers] = np.arange(len(workers))
        column = position[crowd.worker_codes[rows]]
        fillable[crowd.task[rows][column >= 0] - tasks[0], column[column >= 0]] = False
        if self.max_per_task is not None and self.max_per_task < len(workers):
            busiest = np.argsort(-crowd.votes_per_worker[workers], kind="stable")
            rank = np.cumsum(fillable[:, busiest], axis=1)
            fillable[:, busiest] &= rank <= self.max_per_task
        return proba, fillable

    def _fill_tasks(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> FilledVotes:
        """Return the votes to fill in on some tasks."""
        proba, fillable = self._find_fillable(tasks, workers)
        task, column = np.nonzero(fillable)
        weight = self._filled_vote_weight(fillable.sum(axis=1))[task]
        cell_proba = proba[task, column]
        if self.fill_mode == "soft":
            # With very many classes all may be improbable; the most probable is always above half of a uniform share.
            row, label = np.nonzero(cell_proba >= min(MIN_SOFT_PROB, 0.5 / proba.shape[2]))
            share = cell_proba[row, label]
            total = np.bincount(row, share, minlength=len(cell_proba))[row]
            return FilledVotes(task[row], workers[column[row]], label, weight[row] * share / total)
        if self.fill_mode == "hard":
            label = cell_proba.argmax(axis=1)
        else:
            label = self._sample_labels(cell_proba, tasks[task], workers[column])
        return FilledVotes(task, workers[column], label, weight)

    def _sample_labels(self, proba: NDArray[Any], task: NDArray[np.intp], worker: NDArray[np.intp]) -> NDArray[np.intp]:
        """Draw a label from every distribution, with a random number per cell that does not depend on the chunks."""
        number = _draw_uniform(self.random_state, task, worker)
        return np.minimum((np.cumsum(proba, axis=1) < number[:, None]).sum(axis=1), proba.shape[1] - 1)

    def _filled_vote_weight(self, n_filled: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Return the weight of a filled vote on tasks with a given number of them."""
        if self.fill_weight != "shared":
            return np.full(len(n_filled), float(self.fill_weight))
        votes = self._crowd.vote_counts.sum(axis=1)
        return np.minimum(1.0, votes[votes > 0].mean() / np.maximum(n_filled, 1))


def _append_votes(chunk: Crowd, filled: FilledVotes) -> Crowd:
    """Return a chunk of the crowd with filled votes."""
    n_filled = len(filled.task)
    return Crowd.from_codes(
        np.concatenate([chunk.task, filled.task]),
        np.concatenate([chunk.worker_codes, filled.worker]),
        np.concatenate([chunk.label, filled.label]),
        weight=np.concatenate([chunk.weight, filled.weight]),
        observed=np.repeat([True, False], [chunk.n_votes, n_filled]),
        duplicates="keep",
        time=np.concatenate([chunk.time, np.full(n_filled, np.nan)]),
        has_task_order=chunk.has_task_order,
        tasks=chunk.tasks,
        workers=chunk.workers,
        classes=chunk.classes,
    )


def _find_positions(index: pd.Index, ids: Sequence[Any] | None, noun: str) -> NDArray[np.intp]:
    """Return the positions of ids in an index; all positions if there are no ids."""
    if ids is None:
        return np.arange(len(index))
    if isinstance(ids, str) or not pd.api.types.is_list_like(ids):
        raise UsageError(f"{noun}s must be a list of ids; got {ids!r}. For one {noun}: [{ids!r}]")
    position = locate_ids(pd.Index(ids), index)
    if (position < 0).any():
        raise InputError(f"unknown {noun}s: {preview(pd.Index(ids)[position < 0])}; use ids of the fitted crowd")
    return position


def _draw_uniform(seed: int, task: NDArray[np.intp], worker: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for every (task, worker), independent of all other cells."""
    with np.errstate(over="ignore"):
        state = np.uint64(seed) * GOLDEN_GAMMA + (task.astype(np.uint64) << np.uint64(32))
        state = state + worker.astype(np.uint64) + CELL_HASH_OFFSET
    return to_unit_interval(mix_bits(mix_bits(state)))
