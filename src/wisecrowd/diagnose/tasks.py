"""Diagnosis of tasks: difficulty, ambiguity and disputed labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.types import FeaturesLike, TruthLike
from wisecrowd.diagnose.margins import aum, waum
from wisecrowd.diagnose.preparation import ModelledCrowd, count_agreeing_votes, get_worker_groups
from wisecrowd.em.incremental import estimate_crowd_label_probs
from wisecrowd.errors import UsageError, ignore_fit_warnings
from wisecrowd.evaluate.confidence import LabelConfidence, estimate_confidence

#: Smallest posterior of the label of a settled task.
SETTLED_CONFIDENCE = 0.9
#: Largest misfit (in standard deviations) of an ambiguous task.
AMBIGUOUS_MISFIT = -2.0
#: Smallest number of votes on an ambiguous task.
MIN_AMBIGUOUS_VOTES = 3

#: Kinds of tasks, with their meaning.
TASK_KINDS = {
    "settled": "the votes agree, or the reliable workers do",
    "outvoted": "settled against half of the votes or more, because these come from unreliable workers",
    "ambiguous": "reliable workers disagree, so that no single class fits the votes: review the task itself",
    "undecided": "the votes do not decide yet: another vote will help",
    "unlabelled": "no votes",
}


@dataclass(frozen=True, eq=False)
class TaskDiagnosis(ModelledCrowd):
    """Diagnosis of the tasks of a crowd.

    ``table`` has one row per task with these columns:

    - ``n_votes``;
    - ``label``, the most probable class, its calibrated ``confidence``, and the ``margin`` of its posterior to the next class;
    - ``entropy`` of the votes from 0 (all equal) to 1 (uniform), with the bias correction of Miller and Madow;
    - ``uncertainty``, the entropy of the posterior from 0 to 1;
    - ``misfit``, the z-score of the log-likelihood of the votes given the label: far below 0 for inconsistent votes;
    - ``difficulty`` by the Rasch model with its ``standard_error``; with few votes it is close to the prior;
    - ``kind``, a key of `TASK_KINDS`;
    - ``aum`` and ``waum`` if features are given: low if label or votes contradict the features (see `wisecrowd.diagnose.margins`).

    Parameters
    ----------
    crowd : Crowd
        Votes with classes and worker ids.
    fitted : ConfusionEM or str, default=None
        Fitted method with confusion matrices, or its name. Defaults to Dawid–Skene.
    X : DataFrame or ndarray, default=None
        Features of the tasks.
    checked : Series, mapping or table, default=None
        Known truth of some tasks that the method was not fitted with; it recalibrates the confidence.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=5)
    >>> TaskDiagnosis(simulation.crowd).table.columns.tolist()
    ['n_votes', 'label', 'confidence', 'margin', 'entropy', 'uncertainty', 'misfit', 'difficulty', 'standard_error', 'kind']
    """

    X: FeaturesLike | None = None
    checked: TruthLike | None = None

    purpose: ClassVar[str] = "diagnosing tasks"

    @property
    def table(self) -> pd.DataFrame:
        """Table with one row per task."""
        posterior, model = self.model.posterior_, self.model
        top = np.sort(posterior, axis=1)[:, ::-1]
        rasch = self._rasch
        columns = {
            "n_votes": self.crowd.votes_per_task,
            "label": model.labels_.to_numpy(),
            "confidence": self.estimate.confidence,
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
    def estimate(self) -> LabelConfidence:
        """Calibrated confidence of the labels, and their expected accuracy."""
        return estimate_confidence(self.model, self.crowd, checked=self.checked)

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """Normalised entropy of the votes on each task with (n_labels − 1) / 2n added as bias correction; NaN without votes."""
        votes = self.crowd.vote_counts
        total = votes.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            raw = _entropy(votes / total[:, None]) + ((votes > 0).sum(axis=1) - 1) / (2 * total)
        return np.where(total > 0, np.minimum(raw / _max_entropy(votes.shape[1]), 1.0), np.nan)

    @cached_property
    def misfit(self) -> NDArray[np.float64]:
        """Z-score of log P(votes | label) under the model: far below 0 if the votes fit no single class.

        Mean and variance of log π_r[k, y] over the possible labels of a worker are those of the model. The votes of a group that
        errs together (`Panel`) count as one vote with their average surprise.
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
        # A variance of 0.1 nats² per vote keeps a single error of a nearly perfect worker from dominating.
        return np.asarray(excess / np.sqrt(variance + 0.1 * np.maximum(self._effective_votes, 1)))

    @cached_property
    def kind(self) -> NDArray[Any]:
        """Kind of each task, a key of `TASK_KINDS`."""
        posterior, crowd = self.model.posterior_, self.crowd
        best_class = posterior.argmax(axis=1)
        is_confident = posterior[np.arange(len(best_class)), best_class] >= SETTLED_CONFIDENCE
        share = crowd.vote_counts[np.arange(len(best_class)), best_class] / np.maximum(crowd.vote_counts.sum(axis=1), 1)
        has_enough_votes = self._effective_votes > MIN_AMBIGUOUS_VOTES - 0.5
        kind = np.full(crowd.n_tasks, "undecided", dtype=object)
        kind[is_confident] = "settled"
        kind[is_confident & (share <= 0.5)] = "outvoted"
        kind[has_enough_votes & (self.misfit < AMBIGUOUS_MISFIT)] = "ambiguous"
        if crowd.n_classes == 1:  # the posterior is 1 by definition, so a single vote decides nothing
            kind[crowd.votes_per_task < 2] = "undecided"
        kind[crowd.votes_per_task == 0] = "unlabelled"
        return kind

    @cached_property
    def aum(self) -> NDArray[np.float64]:
        """Area under the margin of each task's label; see `wisecrowd.aum`."""
        return aum(self.crowd, self._features, answers=self.model.labels_).to_numpy()

    @cached_property
    def waum(self) -> NDArray[np.float64]:
        """Weighted area under the margin of each task's votes; see `wisecrowd.waum`."""
        return waum(self.crowd, self._features, model=self.model).to_numpy()

    @property
    def _features(self) -> FeaturesLike:
        """Features of the tasks, which must have been given."""
        if self.X is None:
            raise UsageError("areas under the margin need features; pass X to the diagnosis")
        return self.X

    @cached_property
    def _label_probs(self) -> NDArray[np.float64]:
        """Probability of the label of each (worker, label) pair given each class; of a whole group for its members."""
        if get_worker_groups(self.model) is None:
            return estimate_crowd_label_probs(self.model, self.crowd)
        return np.asarray(self.model.reported_label_probs(self.model.tally_, self.crowd.pairs))

    @cached_property
    def _vote_share(self) -> NDArray[np.float64]:
        """Share of each vote in one independent vote: members of a group share one vote on a task."""
        group = get_worker_groups(self.model)
        if group is None:
            return np.ones(self.crowd.n_votes)
        return 1 / (1.0 + count_agreeing_votes(self.crowd)[1] - count_agreeing_votes(self.crowd, group)[1])

    @cached_property
    def _effective_votes(self) -> NDArray[np.float64]:
        """Number of independent votes on each task."""
        return np.bincount(self.crowd.task, self._vote_share, minlength=self.crowd.n_tasks).astype(np.float64)

    @cached_property
    def _moments(self) -> NDArray[np.float64]:
        """Mean and variance of log π_r[k, y] for y drawn from π_r[k], of shape (2, n_workers, n_classes)."""
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
        """Difficulties by the Rasch model."""
        from wisecrowd.base.registry import find

        rasch_class: Any = find("rasch")
        model = rasch_class(guessing="chance")
        # The Rasch model has no groups, so it takes the truth from the model that has.
        has_votes = self.crowd.votes_per_task > 0
        truth = None if get_worker_groups(self.model) is None else self.model.labels_[has_votes]
        with ignore_fit_warnings():  # full convergence is not needed for a ranking
            table: pd.DataFrame = model.fit(self.crowd, truth=truth).tasks_
        return table


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of each row of shares, in nats."""
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1))


def _max_entropy(n_classes: int) -> float:
    """Return the entropy of a uniform distribution."""
    return float(np.log(max(n_classes, 2)))
