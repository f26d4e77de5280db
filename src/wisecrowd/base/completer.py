"""The contract of completers: what workers would have said of tasks that they did not see."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.method import Method
from wisecrowd.data.alignment import feature_rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError, one_of, some
from wisecrowd.utils.hashing import STEP, mixed, within_one
from wisecrowd.utils.progress import report

#: Probabilities that are held at a time, (tasks, workers, classes): what a fill needs beside its result.
CELLS = 2**22
#: A soft answer less probable than this is left out: it would be a row that says nothing.
FAINT = 1e-3


class Answers(NamedTuple):
    """What workers would say of tasks, and which of it is to be filled in.

    >>> Answers(np.full((2, 3, 4), 0.25)).given is None
    True
    """

    proba: NDArray[Any]
    """(tasks, workers, classes), rows sum to one."""
    given: NDArray[np.bool_] | None = None
    """(tasks, workers): where the completer is ready to answer; None is everywhere."""


@method_class
class Completer(Method):
    """Fills in what each worker would have said of the tasks that they did not see.

    ``complete(crowd, X)`` gives a `Crowd` with every vote of before, and filled ones that are marked (``observed`` is False)
    and weighted. By default the filled votes on a task count, together, as much as the real votes on an average task:
    fifty imitated votes do not make anybody fifty votes surer. ``fill_weight=1`` counts each as a vote, as papers do.

    A completer imitates workers, not the truth: who always takes cats for dogs goes on doing so. Where it knows nothing but
    the votes on a task, it can add nothing to them; what it adds comes from features and from what is known of workers.

    >>> from wisecrowd import GMV, Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "bob", "dog")])
    >>> GMV().complete(crowd).to_frame()
      task worker label  observed
    0   t1    ann   cat      True
    1   t1    bob   cat      True
    2   t2    ann   dog     False
    3   t2    bob   dog      True
    """

    #: Whether ``fit`` takes task features, and does not do without.
    uses_features: ClassVar[bool] = False
    #: Laws of `wisecrowd.base.laws` that this method breaks, each with the reason.
    breaks: ClassVar[dict[str, str]] = {}

    answers: Literal["hard", "sample", "soft"] = parameter(
        default="hard", help="'hard' fills in the likeliest label, 'sample' draws one, 'soft' gives each its share"
    )
    fill_weight: float | Literal["shared"] = parameter(default="shared", help="of a filled vote: a number, or 'shared', all on a task as much as the real ones on an average task")  # fmt: skip
    min_labels: int = parameter(default=0, help="fill in for workers with more labels than this only")
    max_per_task: int | None = parameter(
        default=None, help="filled votes on a task at most: those of workers with most labels"
    )
    random_state: int = parameter(default=0, help="seed of whatever is drawn")

    # ------------------------------------------------------------------ what a method says

    @abstractmethod
    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        """Learn what is needed to imitate the workers; the crowd has real votes only."""

    @abstractmethod
    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> Answers:
        """What some workers would say of some tasks, both by position: every pair of them."""

    # ------------------------------------------------------------------ in and out

    def fit(self, crowd: Any, X: Any = None) -> Self:
        """Learn what workers say of which tasks; votes that were filled in before do not count.

        ``crowd`` is a `Crowd` or a dataframe with task, worker and label. ``X`` holds a row of features for every task, for
        completers that look at features.
        """
        begun = time.perf_counter()
        self._check()
        votes = self._admit(self._as_crowd(crowd).only_observed())
        if X is None and self.uses_features:
            raise UsageError(
                f"{type(self).__name__} imitates workers by the features of tasks; give them: complete(crowd, X)"
            )
        if X is not None and not self.uses_features:
            raise UsageError(f"{type(self).__name__} does not look at features; leave X out")
        rows = None if X is None else feature_rows(X, votes)
        self._keep(votes)
        self._fit(votes, rows)
        self.fit_seconds_ = time.perf_counter() - begun
        return self

    def complete(self, crowd: Any, X: Any = None) -> Crowd:
        """Fit, and give the completed crowd."""
        return self.fit(crowd, X).fill()

    def fill(self) -> Crowd:
        """The crowd that was fitted, with what its workers would have said of the other tasks."""
        return Crowd.joined(self.stream())

    def stream(self) -> Iterator[Crowd]:
        """The completed crowd in chunks, tasks after tasks: nothing larger than a chunk is ever held.

        >>> from wisecrowd import GMV, simulate_crowd
        >>> chunks = GMV().fit(simulate_crowd(n_tasks=30, n_workers=5).crowd).stream()
        >>> sum(chunk.n_votes for chunk in chunks)
        150
        """
        crowd, workers = self._crowd, self._eligible
        for start, stop in self._blocks(len(workers)):
            chunk = crowd[start:stop]
            if len(workers) == 0:
                yield chunk
                continue
            filled = self._filled(np.arange(start, stop), workers)
            report(f"{type(self).__name__}: filling in", stop, crowd.n_tasks)
            yield self._with(chunk, filled)

    def predict_worker_proba(self, tasks: Any = None, workers: Any = None) -> NDArray[np.float64]:
        """What some workers would say of some tasks (both by id; all unless given): (tasks, workers, classes)."""
        crowd = self._crowd
        which = [
            _places(index, wanted, what)
            for index, wanted, what in ((crowd.tasks, tasks, "task"), (crowd.workers, workers, "worker"))
        ]
        if min(map(len, which)) == 0:
            return np.empty((*map(len, which), len(self.classes_)))
        return np.asarray(self._worker_label_probs(*which).proba, dtype=np.float64)

    def expected_votes(self) -> pd.DataFrame:
        """Votes for each class of each task, filled ones by their probability and weight: soft, and never a dense crowd."""
        crowd, workers = self._crowd, self._eligible
        total = crowd.votes.copy()
        for start, stop in self._blocks(len(workers)) if len(workers) else ():
            tasks = np.arange(start, stop)
            proba, given = self._open(tasks, workers)
            weight = self._weight_of(given.sum(axis=1))
            total[start:stop] += np.einsum("twk,tw->tk", proba, given) * weight[:, None]
        return pd.DataFrame(total, index=crowd.tasks.rename("task"), columns=self.classes_.rename("class"))

    def log_proba_of(self, votes: Crowd) -> NDArray[np.float64]:
        """log P of what was said of each of some votes over the same vocabularies: how well they are foretold.

        >>> from wisecrowd import DSFill, simulate_crowd
        >>> kept, hidden = simulate_crowd(n_tasks=200).crowd.hide(0.2)
        >>> bool(DSFill().fit(kept).log_proba_of(hidden).mean() > np.log(1 / 4))  # better than a guess
        True
        """
        return np.log(np.maximum(self._cells(votes)[0][np.arange(votes.n_votes), votes.label], 1e-12))

    # ------------------------------------------------------------------ inside

    def _check(self) -> None:
        """Refuse parameters that make no sense; a method adds its own."""
        self._check_types()
        one_of("answers", self.answers, ("hard", "sample", "soft"))
        weight: Any = self.fill_weight
        if weight != "shared" and not (isinstance(weight, int | float | np.number) and 0 < weight < np.inf):
            raise UsageError(f"fill_weight must be 'shared' or a positive number; got {self.fill_weight!r}")
        if self.min_labels < 0:
            raise UsageError(f"min_labels must be 0 or more; got {self.min_labels}")
        most: Any = self.max_per_task
        if most is not None and not (isinstance(most, int | np.integer) and most > 0):
            raise UsageError(f"max_per_task must be a whole number of 1 or more, or None; got {self.max_per_task!r}")
        if self.random_state < 0:
            raise UsageError(f"random_state must be 0 or more; got {self.random_state}")

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        """Return a fitted attribute, or say how to infer the truth from what a completer gives."""
        if not hasattr(self, attribute) and hasattr(self, "vote_task_"):
            raise UsageError(
                f"{type(self).__name__} completes votes and infers no truth; aggregate the completed crowd: "
                "MajorityVote().fit(completer.fill())"
            )
        return super()._check_fitted(attribute)

    def _keep(self, votes: Crowd) -> None:
        """The votes, as arrays that can be saved."""
        self.task_index_, self.worker_index_ = votes.tasks, as_index(votes.workers)
        self.classes_ = as_index(votes.classes)
        self.vote_task_, self.vote_worker_, self.vote_label_ = votes.task, votes.worker, votes.label
        self.vote_weight_ = votes.weight if votes.is_weighted else np.empty(0)
        self.vote_time_ = votes.time if votes.has_times else np.empty(0)
        self.tasks_given_ = votes.tasks_given
        vars(self).pop("_crowd", None)

    @cached_property
    def _crowd(self) -> Crowd:
        if not hasattr(self, "vote_task_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first, or complete(crowd, X)")
        return Crowd(
            self.vote_task_, self.vote_worker_, self.vote_label_, weight=self.vote_weight_ if len(self.vote_weight_) else None,
            tasks=self.task_index_, workers=self.worker_index_, classes=self.classes_, duplicates="keep",
            time=self.vote_time_ if len(self.vote_time_) else None, tasks_given=self.tasks_given_,
        )  # fmt: skip

    @property
    def _eligible(self) -> NDArray[np.intp]:
        """Workers who are filled in for."""
        return np.flatnonzero(self._crowd.votes_per_worker > self.min_labels)

    def _blocks(self, n_workers: int) -> Iterator[tuple[int, int]]:
        size = max(1, CELLS // max(1, n_workers * len(self.classes_)))
        n_tasks = self._crowd.n_tasks
        return ((start, min(start + size, n_tasks)) for start in range(0, n_tasks, size))

    def _open(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Answers to some tasks, and which cells are to be filled: nobody's own votes, and no more than are wanted."""
        crowd = self._crowd
        proba, given = self._worker_label_probs(tasks, workers)
        given = np.ones(proba.shape[:2], dtype=bool) if given is None else given.copy()
        rows = slice(crowd.offset[tasks[0]], crowd.offset[tasks[-1] + 1])
        place = np.full(crowd.n_workers, -1)
        place[workers] = np.arange(len(workers))
        column = place[crowd.worker_codes[rows]]
        given[crowd.task[rows][column >= 0] - tasks[0], column[column >= 0]] = False
        if self.max_per_task is not None and self.max_per_task < len(workers):
            busiest = np.argsort(-crowd.votes_per_worker[workers], kind="stable")
            rank = np.cumsum(given[:, busiest], axis=1)
            given[:, busiest] &= rank <= self.max_per_task
        return proba, given

    def _filled(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> tuple[NDArray[Any], ...]:
        """Columns of the rows to fill in: task within the chunk, worker, label, weight."""
        proba, given = self._open(tasks, workers)
        task, column = np.nonzero(given)
        weight = self._weight_of(given.sum(axis=1))[task]
        chosen = proba[task, column]
        if self.answers == "soft":
            # Of very many classes all may be faint; the likeliest is never half as probable as an even one.
            row, label = np.nonzero(chosen >= min(FAINT, 0.5 / proba.shape[2]))
            share = chosen[row, label]
            total = np.bincount(row, share, minlength=len(chosen))[row]
            return task[row], workers[column[row]], label, weight[row] * share / total
        label = chosen.argmax(axis=1) if self.answers == "hard" else self._drawn(chosen, tasks[task], workers[column])
        return task, workers[column], label, weight

    def _drawn(
        self, proba: NDArray[Any], task: NDArray[np.intp], worker: NDArray[np.intp]
    ) -> NDArray[np.intp]:  # fmt: skip
        """A label from each distribution, by a number that belongs to the cell: chunks of any size draw alike."""
        number = _uniform(self.random_state, task, worker)
        return np.minimum((np.cumsum(proba, axis=1) < number[:, None]).sum(axis=1), proba.shape[1] - 1)

    def _weight_of(self, n_filled: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """What a filled vote counts on tasks with so many of them."""
        if self.fill_weight != "shared":
            return np.full(len(n_filled), float(self.fill_weight))
        votes = self._crowd.votes.sum(axis=1)
        return np.minimum(1.0, votes[votes > 0].mean() / np.maximum(n_filled, 1))

    def _with(self, chunk: Crowd, filled: tuple[NDArray[Any], ...]) -> Crowd:
        """A chunk of the crowd with rows filled in."""
        task, worker, label, weight = filled
        return Crowd(
            np.concatenate([chunk.task, task]), np.concatenate([chunk.worker_codes, worker]),
            np.concatenate([chunk.label, label]), weight=np.concatenate([chunk.weight, weight]),
            observed=np.repeat([True, False], [chunk.n_votes, len(task)]), duplicates="keep",
            time=np.concatenate([chunk.time, np.full(len(task), np.nan)]), tasks_given=chunk.tasks_given,
            tasks=chunk.tasks, workers=chunk.workers, classes=chunk.classes,
        )  # fmt: skip

    def _cells(self, votes: Crowd) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """What is foretold of each of some votes, (votes, classes), and whether it would be filled in."""
        if not isinstance(votes, Crowd):
            raise UsageError(f"a Crowd of votes was wanted, such as hide() gives; got {type(votes).__name__}")
        if not hasattr(self, "vote_task_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first")
        same = ((votes.tasks, self.task_index_), (votes.workers, self.worker_index_), (votes.classes, self.classes_))
        if not all(theirs is not None and theirs.equals(ours) for theirs, ours in same):
            raise UsageError("votes over the tasks, workers and classes of fit were wanted, such as hide() gives")
        proba = np.empty((votes.n_votes, len(self.classes_)))
        given = np.empty(votes.n_votes, dtype=bool)
        for start, stop in self._blocks(votes.n_workers):
            rows = slice(votes.offset[start], votes.offset[stop])
            if rows.start == rows.stop:
                continue
            tasks, task = np.unique(votes.task[rows], return_inverse=True)
            workers, worker = np.unique(votes.worker_codes[rows], return_inverse=True)
            label_probs = self._worker_label_probs(tasks.astype(np.intp), workers.astype(np.intp))
            proba[rows] = label_probs.proba[task, worker]
            given[rows] = True if label_probs.given is None else label_probs.given[task, worker]
        return proba, given


def _places(index: pd.Index | None, wanted: Any, what: str) -> NDArray[np.intp]:
    assert index is not None  # a crowd without worker ids is not let in
    if wanted is None:
        return np.arange(len(index))
    if isinstance(wanted, str) or not pd.api.types.is_list_like(wanted):
        raise UsageError(f"a list of {what} ids was wanted; got {wanted!r}. For one {what}: [{wanted!r}]")
    place = index.get_indexer(pd.Index(wanted))
    if (place < 0).any():
        raise InputError(f"unknown {what}s: {some(pd.Index(wanted)[place < 0])}")
    return place


def _uniform(seed: int, task: NDArray[np.intp], worker: NDArray[np.intp]) -> NDArray[np.float64]:
    """A number in [0, 1) for each (task, worker): whatever else is drawn."""
    with np.errstate(over="ignore"):
        state = np.uint64(seed) * STEP + (task.astype(np.uint64) << np.uint64(32))
        state = state + worker.astype(np.uint64) + np.uint64(0x632BE59BD9B4E019)
    return within_one(mixed(mixed(state)))


__all__ = ["CELLS", "Answers", "Completer"]
