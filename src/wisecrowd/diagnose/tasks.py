"""Which tasks are hard: disputed by the good, or merely mislabelled by the bad."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose.margins import aum, waum
from wisecrowd.diagnose.preparation import Look, alike, groups_of
from wisecrowd.em import incremental as online
from wisecrowd.errors import unwarned

#: How probable the likeliest class must be for a task to count as settled.
SETTLED = 0.9
#: How many standard deviations less likely than they should be the votes on an ambiguous task are, and how many there must be.
MISFIT, ENOUGH = -2.0, 3

#: What a task can be, and what to do about it.
KINDS = {
    "settled": "the votes agree, or those who know do",
    "outvoted": "settled, though half of the votes or more say something else: they are of workers who often err",
    "ambiguous": "the votes fit no single class, and those of good workers differ: look at the task, not at the workers",
    "undecided": "not enough is known: another vote will help",
    "unlabelled": "nobody voted",
}


@dataclass(frozen=True, eq=False)
class TaskDiagnosis(Look):
    """What the votes of a crowd say about each of its tasks.

    ``table`` has a row for each task: ``n_votes``; the likeliest ``label`` and its ``confidence``, by a model of workers;
    ``margin`` to the next class; ``entropy`` of the votes, 0 where all say the same and 1 where every class has as many,
    corrected for how few they are (Miller and Madow); ``uncertainty``, the entropy of the posterior, likewise from 0 to 1;
    ``misfit``, how many standard deviations less likely the votes are than votes on a task of that class should be;
    ``difficulty`` by Rasch's model with its ``standard_error``; ``kind`` (see `KINDS`); and with features ``X`` of the tasks
    ``aum`` and ``waum``, low where label and votes do not go with the features (see `wisecrowd.diagnose.margins`).

    With few votes a difficulty is mostly what was believed before; its standard error says so.

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=5)
    >>> TaskDiagnosis(made.crowd).table.columns.tolist()
    ['n_votes', 'label', 'confidence', 'margin', 'entropy', 'uncertainty', 'misfit', 'difficulty', 'standard_error', 'kind']
    """

    X: Any = None

    what: ClassVar[str] = "tasks are diagnosed"

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
            "uncertainty": _entropy(posterior) / _most(posterior.shape[1]),
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
        votes = self.crowd.votes
        total = votes.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            raw = _entropy(votes / total[:, None]) + ((votes > 0).sum(axis=1) - 1) / (2 * total)
        return np.where(total > 0, np.minimum(raw / _most(votes.shape[1]), 1.0), np.nan)

    @cached_property
    def misfit(self) -> NDArray[np.float64]:
        """z of log P(votes | likeliest class) under the model: far below zero where votes belong to no one class.

        A worker who is right nine times in ten says something else one time in ten; two such votes on a task are bad luck, four
        are not. Mean and variance of log π_r[k, y] over what the worker might say are the model's own. The votes of a group that
        errs together (`Panel`) count as one, which is as surprising as they are on average.
        """
        crowd, model = self.crowd, self.model
        best = model.posterior_.argmax(axis=1)
        moments = self._moments
        worker, true = crowd.worker_codes, best[crowd.task]
        said = np.log(np.maximum(self._said[crowd.pairs.of_vote, true], 1e-12))
        gap = np.bincount(crowd.task, self._voice * (said - moments[0, worker, true]), minlength=crowd.n_tasks)
        spread = np.bincount(crowd.task, self._voice * moments[1, worker, true], minlength=crowd.n_tasks)
        # A tenth of a nat for each vote: where workers are near perfect, one slip is not infinitely surprising.
        return np.asarray(gap / np.sqrt(spread + 0.1 * np.maximum(self._voices, 1)))

    @cached_property
    def kind(self) -> NDArray[Any]:
        """What each task is: see `KINDS`."""
        posterior, crowd = self.model.posterior_, self.crowd
        best = posterior.argmax(axis=1)
        confident = posterior[np.arange(len(best)), best] >= SETTLED
        share = crowd.votes[np.arange(len(best)), best] / np.maximum(crowd.votes.sum(axis=1), 1)
        several = self._voices > ENOUGH - 0.5
        found = np.full(crowd.n_tasks, "undecided", dtype=object)
        found[confident] = "settled"
        found[confident & (share <= 0.5)] = "outvoted"
        found[several & (self.misfit < MISFIT)] = "ambiguous"
        if crowd.n_classes == 1:  # of course it is that one: a single vote has settled nothing
            found[crowd.votes_per_task < 2] = "undecided"
        found[crowd.votes_per_task == 0] = "unlabelled"
        return found

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
    def _said(self) -> NDArray[np.float64]:
        """What each pair's worker says when each class is true, (pairs, classes): for itself or, of a group, for all of it."""
        if groups_of(self.model) is None:
            return online.label_probs_of_crowd(self.model, self.crowd)
        return np.asarray(self.model._reported_label_probs(self.model.tally_, self.crowd.pairs))

    @cached_property
    def _voice(self) -> NDArray[np.float64]:
        """By vote, how much of a voice it is on its task: members of a group have one together."""
        group = groups_of(self.model)
        if group is None:
            return np.ones(self.crowd.n_votes)
        return 1 / (1.0 + alike(self.crowd)[1] - alike(self.crowd, group)[1])

    @cached_property
    def _voices(self) -> NDArray[np.float64]:
        """How many voices a task has: votes, but of groups one each."""
        return np.bincount(self.crowd.task, self._voice, minlength=self.crowd.n_tasks).astype(np.float64)

    @cached_property
    def _moments(self) -> NDArray[np.float64]:
        """Mean and variance of log π_r[k, y] for y drawn from π_r[k]: (2, workers, classes)."""
        from wisecrowd.em.priors import blocks

        n_classes = self.crowd.n_classes
        found = np.empty((2, self.crowd.n_workers, n_classes))
        for part in blocks(self.crowd.n_workers, n_classes**2):
            who = np.arange(self.crowd.n_workers)[part]
            matrix = self.model.confusion_of(who)
            logs = np.log(np.maximum(matrix, 1e-12))
            found[0, who] = (matrix * logs).sum(axis=2)
            found[1, who] = (matrix * logs**2).sum(axis=2) - found[0, who] ** 2
        return found

    @cached_property
    def _rasch(self) -> pd.DataFrame:
        from wisecrowd.base.registry import find

        kind_of_model: Any = find("rasch")
        model = kind_of_model(guessing="chance")
        # A group that errs together would make a truth of its own; the model knows better.
        voted = self.crowd.votes_per_task > 0
        truth = None if groups_of(self.model) is None else self.model.labels_[voted]
        with unwarned():  # a difficulty to a hundredth is more than anybody needs
            table: pd.DataFrame = model.fit(self.crowd, truth=truth).tasks_
        return table


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1))


def _most(n_classes: int) -> float:
    return float(np.log(max(n_classes, 2)))
