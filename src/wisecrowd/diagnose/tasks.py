"""Which tasks are hard: disputed by the good, or merely mislabelled by the bad."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose.margins import aum, waum
from wisecrowd.diagnose.preparation import ModelledCrowd, count_agreeing_votes, get_worker_groups
from wisecrowd.em.incremental import estimate_crowd_label_probs
from wisecrowd.errors import ignore_fit_warnings

#: How probable the likeliest class must be for a task to count as settled.
SETTLED_CONFIDENCE = 0.9
#: How many standard deviations less likely than they should be the votes on an ambiguous task are, and how many there must be.
AMBIGUOUS_MISFIT, MIN_AMBIGUOUS_VOTES = -2.0, 3

#: What a task can be, and what to do about it.
TASK_KINDS = {
    "settled": "the votes agree, or those who know do",
    "outvoted": "settled, though half of the votes or more say something else: they are of workers who often err",
    "ambiguous": "the votes fit no single class, and those of good workers differ: look at the task, not at the workers",
    "undecided": "not enough is known: another vote will help",
    "unlabelled": "nobody voted",
}


@dataclass(frozen=True, eq=False)
class TaskDiagnosis(ModelledCrowd):
    """What the votes of a crowd say about each of its tasks.

    ``table`` has a row for each task: ``n_votes``; the likeliest ``label`` and its ``confidence``, by a model of workers;
    ``margin`` to the next class; ``entropy`` of the votes, 0 where all say the same and 1 where every class has as many,
    corrected for how few they are (Miller and Madow); ``uncertainty``, the entropy of the posterior, likewise from 0 to 1;
    ``misfit``, how many standard deviations less likely the votes are than votes on a task of that class should be;
    ``difficulty`` by Rasch's model with its ``standard_error``; ``kind`` (see `TASK_KINDS`); and with features ``X`` of the tasks
    ``aum`` and ``waum``, low where label and votes do not go with the features (see `wisecrowd.diagnose.margins`).

    With few votes a difficulty is mostly what was believed before; its standard error says so.

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=5)
    >>> TaskDiagnosis(made.crowd).table.columns.tolist()
    ['n_votes', 'label', 'confidence', 'margin', 'entropy', 'uncertainty', 'misfit', 'difficulty', 'standard_error', 'kind']
    """

    X: Any = None

    purpose: ClassVar[str] = "tasks are diagnosed"

    @property
    def table(self) -> pd.DataFrame:
        """A row for each task."""
        posterior, model = self.model.posterior_, self.model
        top = np.sort(posterior, axis=1)[:, ::-1]
        rasch = self._rasch
        columns = {
            "n_votes": self.crowd.votes_per_task,
            "label": model.labels_.to_numpy(),
            "confidence": top[:, 0],
            "margin": top[:, 0] - (top[:, 1] if top.shape[1] > 1 else 0),
            "entropy": self.entropy,
            "uncertainty": _entropy(posterior) / _max_entropy(posterior.shape[1]),
            "misfit": self.misfit,
            "difficulty": rasch["difficulty"].to_numpy(),
            "standard_error": rasch["standard_error"].to_numpy(),
            "kind": self.kind,
        }
        if self.X is not None:
            columns |= {"aum": self.aum, "waum": self.waum}
        return pd.DataFrame(columns, index=self.crowd.tasks.rename("task"))

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """Entropy of the votes on each task, with (labels that occur − 1) / 2n added for how few they are; NaN without votes."""
        votes = self.crowd.vote_counts
        total = votes.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            raw = _entropy(votes / total[:, None]) + ((votes > 0).sum(axis=1) - 1) / (2 * total)
        return np.where(total > 0, np.minimum(raw / _max_entropy(votes.shape[1]), 1.0), np.nan)

    @cached_property
    def misfit(self) -> NDArray[np.float64]:
        """z of log P(votes | likeliest class) under the model: far below zero where votes belong to no one class.

        A worker who is right nine times in ten says something else one time in ten; two such votes on a task are bad luck, four
        are not. Mean and variance of log π_r[k, y] over what the worker might say are the model's own. The votes of a group that
        errs together (`Panel`) count as one, which is as surprising as they are on average.
        """
        crowd, model = self.crowd, self.model
        best_class = model.posterior_.argmax(axis=1)
        moments = self._moments
        worker, true_class = crowd.worker_codes, best_class[crowd.task]
        log_probs = np.log(np.maximum(self._label_probs[crowd.pairs.vote_pairs, true_class], 1e-12))
        excess = np.bincount(
            crowd.task, self._vote_share * (log_probs - moments[0, worker, true_class]), minlength=crowd.n_tasks
        )
        variance = np.bincount(crowd.task, self._vote_share * moments[1, worker, true_class], minlength=crowd.n_tasks)
        # A tenth of a nat for each vote: where workers are near perfect, one slip is not infinitely surprising.
        return np.asarray(excess / np.sqrt(variance + 0.1 * np.maximum(self._effective_votes, 1)))

    @cached_property
    def kind(self) -> NDArray[Any]:
        """What each task is: see `TASK_KINDS`."""
        posterior, crowd = self.model.posterior_, self.crowd
        best_class = posterior.argmax(axis=1)
        is_confident = posterior[np.arange(len(best_class)), best_class] >= SETTLED_CONFIDENCE
        share = crowd.vote_counts[np.arange(len(best_class)), best_class] / np.maximum(crowd.vote_counts.sum(axis=1), 1)
        has_enough_votes = self._effective_votes > MIN_AMBIGUOUS_VOTES - 0.5
        kind = np.full(crowd.n_tasks, "undecided", dtype=object)
        kind[is_confident] = "settled"
        kind[is_confident & (share <= 0.5)] = "outvoted"
        kind[has_enough_votes & (self.misfit < AMBIGUOUS_MISFIT)] = "ambiguous"
        if crowd.n_classes == 1:  # of course it is that one: a single vote has settled nothing
            kind[crowd.votes_per_task < 2] = "undecided"
        kind[crowd.votes_per_task == 0] = "unlabelled"
        return kind

    @cached_property
    def aum(self) -> NDArray[np.float64]:
        """How well each task's label goes with its features, which must be there: see `wisecrowd.aum`."""
        return aum(self.crowd, self.X, answers=self.model.labels_).to_numpy()

    @cached_property
    def waum(self) -> NDArray[np.float64]:
        """How well its votes do: see `wisecrowd.waum`."""
        return waum(self.crowd, self.X, model=self.model).to_numpy()

    # ------------------------------------------------------------------ inside

    @cached_property
    def _label_probs(self) -> NDArray[np.float64]:
        """What each pair's worker says when each class is true, (pairs, classes): for itself or, of a group, for all of it."""
        if get_worker_groups(self.model) is None:
            return estimate_crowd_label_probs(self.model, self.crowd)
        return np.asarray(self.model.reported_label_probs(self.model.tally_, self.crowd.pairs))

    @cached_property
    def _vote_share(self) -> NDArray[np.float64]:
        """By vote, how much of a voice it is on its task: members of a group have one together."""
        group = get_worker_groups(self.model)
        if group is None:
            return np.ones(self.crowd.n_votes)
        return 1 / (1.0 + count_agreeing_votes(self.crowd)[1] - count_agreeing_votes(self.crowd, group)[1])

    @cached_property
    def _effective_votes(self) -> NDArray[np.float64]:
        """How many voices a task has: votes, but of groups one each."""
        return np.bincount(self.crowd.task, self._vote_share, minlength=self.crowd.n_tasks).astype(np.float64)

    @cached_property
    def _moments(self) -> NDArray[np.float64]:
        """Mean and variance of log π_r[k, y] for y drawn from π_r[k]: (2, workers, classes)."""
        from wisecrowd.utils.slices import slice_rows

        n_classes = self.crowd.n_classes
        moments = np.empty((2, self.crowd.n_workers, n_classes))
        for part in slice_rows(self.crowd.n_workers, n_classes**2):
            workers = np.arange(self.crowd.n_workers)[part]
            matrix = self.model.confusion_of(workers)
            logs = np.log(np.maximum(matrix, 1e-12))
            moments[0, workers] = (matrix * logs).sum(axis=2)
            moments[1, workers] = (matrix * logs**2).sum(axis=2) - moments[0, workers] ** 2
        return moments

    @cached_property
    def _rasch(self) -> pd.DataFrame:
        from wisecrowd.base.registry import find

        rasch_class: Any = find("rasch")
        model = rasch_class(guessing="chance")
        # A group that errs together would make a truth of its own; the model knows better.
        has_votes = self.crowd.votes_per_task > 0
        truth = None if get_worker_groups(self.model) is None else self.model.labels_[has_votes]
        with ignore_fit_warnings():  # a difficulty to a hundredth is more than anybody needs
            table: pd.DataFrame = model.fit(self.crowd, truth=truth).tasks_
        return table


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1))


def _max_entropy(n_classes: int) -> float:
    return float(np.log(max(n_classes, 2)))
