"""Diagnosis of tasks: difficulty, ambiguity and disputed labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import FeaturesLike
from wisecrowd.diagnose.margins import aum, waum
from wisecrowd.diagnose.preparation import WORKER_MODEL, ModelledCrowd, count_agreeing_votes, get_worker_groups
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.incremental import estimate_crowd_label_probs
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings
from wisecrowd.evaluate.confidence import LabelConfidence, estimate_confidence
from wisecrowd.utils.slices import MAX_CELLS, slice_rows

#: Smallest posterior of the label of a settled task.
SETTLED_CONFIDENCE = 0.9
#: Largest misfit (in standard deviations) of an ambiguous task.
AMBIGUOUS_MISFIT = -2.0
#: Smallest number of votes on an ambiguous task.
MIN_AMBIGUOUS_VOTES = 3
#: Smallest probability of a label in a logarithm.
MIN_PROB = 1e-12
#: Cells of confusion matrices that are computed one after the other for the misfit, which takes about ten seconds.
MAX_SCANNED_CELLS = 2**28

#: Number of votes from which the Rasch model is fitted in few steps. After these, the order of tasks hardly changes, and every
#: further step takes seconds.
MANY_VOTES, MAX_RASCH_STEPS = 1_000_000, 3

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
    labels : LabelConfidence, default=None
        Labels of the method with their confidence. Defaults to those that votes alone support.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=10, votes_per_task=5)
    >>> TaskDiagnosis(simulation.crowd).table.columns.tolist()
    ['n_votes', 'label', 'confidence', 'margin', 'entropy', 'uncertainty', 'misfit', 'difficulty', 'standard_error', 'kind']
    """

    X: FeaturesLike | None = None
    labels: LabelConfidence | None = None

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
        return self.labels if self.labels is not None else estimate_confidence(self.model, self.crowd)

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
        true_class = best_class[crowd.task]
        mean, vote_variance = compute_label_moments(model, crowd.worker_codes, true_class)
        log_probs = np.log(np.maximum(self._label_probs[crowd.pairs.vote_pairs, true_class], MIN_PROB))
        excess = np.bincount(crowd.task, self._vote_share * (log_probs - mean), minlength=crowd.n_tasks)
        variance = np.bincount(crowd.task, self._vote_share * vote_variance, minlength=crowd.n_tasks)
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
    def _rasch(self) -> pd.DataFrame:
        """Difficulties by the Rasch model."""
        from wisecrowd.base.registry import find

        rasch_class: Any = find("rasch")
        model = rasch_class(guessing="chance")
        if self.crowd.n_votes > MANY_VOTES:
            model.set_params(max_iter=MAX_RASCH_STEPS)
        # The Rasch model has no groups, so it takes the truth from the model that has.
        has_votes = self.crowd.votes_per_task > 0
        truth = None if get_worker_groups(self.model) is None else self.model.labels_[has_votes]
        with ignore_fit_warnings():  # full convergence is not needed for a ranking
            table: pd.DataFrame = model.fit(self.crowd, truth=truth).tasks_
        return table


def compute_label_moments(
    model: ConfusionEM, worker: NDArray[Any], true_class: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute mean and variance of log π_r[k, y] for a label y drawn from π_r[k], for combinations of worker and true class.

    The cost is that of the tally of the workers, unless the labels that a worker never gave differ in probability
    (`ConfusionEM.unused_labels_are_equal`): then every worker needs a matrix of classes by classes.

    Parameters
    ----------
    model : ConfusionEM
        Fitted model.
    worker : ndarray of shape (n_combinations,)
        Positions of workers.
    true_class : ndarray of shape (n_combinations,)
        Codes of classes.

    Returns
    -------
    mean : ndarray of shape (n_combinations,)
    variance : ndarray of shape (n_combinations,)

    Raises
    ------
    InputError
        If the model needs more confusion matrices than can be computed.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> fitted = DawidSkene().fit(simulate_crowd(n_tasks=50, n_workers=5, votes_per_task=3, random_state=0).crowd)
    >>> mean, variance = compute_label_moments(fitted, np.array([0, 4]), np.array([2, 2]))
    >>> bool((mean < 0).all()), bool((variance > 0).all())
    (True, True)
    """
    n_classes = len(model.classes_)
    combinations, inverse = np.unique(worker.astype(np.int64) * n_classes + true_class, return_inverse=True)
    compute = _sum_listed_labels if model.unused_labels_are_equal else _sum_all_labels
    mean, square = compute(model, *np.divmod(combinations, n_classes))
    return mean[inverse], (square - mean**2)[inverse]


def _sum_all_labels(
    model: ConfusionEM, worker: NDArray[np.int64], true_class: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return Σ_l π log π and Σ_l π log² π of each combination, from whole matrices of the workers."""
    n_classes, workers = len(model.classes_), np.unique(worker)
    if len(workers) * n_classes**2 > MAX_SCANNED_CELLS:
        raise InputError(
            f"the misfit of tasks needs {len(workers):,} matrices of {n_classes:,} x {n_classes:,} classes for {model.name}, "
            f"which would take minutes; diagnose with {WORKER_MODEL}, or merge rare classes"
        )
    sums = np.empty((2, len(worker)))
    for part in slice_rows(len(workers), n_classes**2):
        rows = slice(*np.searchsorted(worker, [workers[part][0], workers[part][-1] + 1]))
        probs = model.confusion_of(workers[part])[np.searchsorted(workers[part], worker[rows]), true_class[rows]]
        logs = np.log(np.maximum(probs, MIN_PROB))
        sums[:, rows] = (probs * logs).sum(axis=1), (probs * logs**2).sum(axis=1)
    return sums


def _sum_listed_labels(
    model: ConfusionEM, worker: NDArray[np.int64], true_class: NDArray[np.int64]
) -> NDArray[np.float64]:  # fmt: skip
    """Return the same sums from the labels that a worker gave and the true classes; the other labels share the rest equally."""
    n_classes = len(model.classes_)
    counted = model.pair_worker_.astype(np.int64) * n_classes + model.pair_label_
    listed = np.union1d(counted, worker * n_classes + true_class)
    listed_worker, listed_label = np.divmod(listed, n_classes)
    n_listed = np.bincount(listed_worker)
    block_of_worker = np.cumsum(n_listed * n_classes) // MAX_CELLS  # all labels of a worker are in one block
    sums = np.empty((2, len(worker)))
    for block in np.unique(block_of_worker[worker]):
        workers = np.flatnonzero(block_of_worker == block)
        span = [workers[0], workers[-1] + 1]
        rows, pairs_of_block = slice(*np.searchsorted(worker, span)), slice(*np.searchsorted(listed_worker, span))
        counted_rows = slice(*np.searchsorted(model.pair_worker_, span))
        tally = np.zeros((pairs_of_block.stop - pairs_of_block.start, n_classes))
        tally[np.searchsorted(listed[pairs_of_block], counted[counted_rows])] = model.tally_[counted_rows]
        position = (listed_worker[pairs_of_block] - workers[0]).astype(np.int32)
        label = listed_label[pairs_of_block].astype(np.int32)
        pairs = Pairs(position, label, np.empty(0, dtype=np.int32), len(workers))
        probs = model.reported_label_probs(tally, pairs)
        logs = np.log(np.maximum(probs, MIN_PROB))
        cell = worker[rows] - workers[0], true_class[rows]
        n_unused = n_classes - n_listed[worker[rows]]
        unused = np.maximum(1 - pairs.sum_by_worker(probs)[cell], 0.0) * (n_unused > 0)
        unused_log = np.log(np.maximum(unused / np.maximum(n_unused, 1), MIN_PROB))
        for power in (1, 2):
            sums[power - 1, rows] = pairs.sum_by_worker(probs * logs**power)[cell] + unused * unused_log**power
    return sums


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of each row of shares, in nats."""
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1))


def _max_entropy(n_classes: int) -> float:
    """Return the entropy of a uniform distribution."""
    return float(np.log(max(n_classes, 2)))
