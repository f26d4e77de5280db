"""Live model: inference from votes that arrive one by one, at the cost of the tasks that they change.

`ConfusionEM.partial_fit` makes the same incremental EM step with a whole crowd, at the cost of all votes. A live model
keeps its tables in place and changes only the affected rows. Tasks, workers and classes are integers from 0; the caller
keeps their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.incremental import LabelProbsEstimator, estimate_pair_label_probs
from wisecrowd.em.label_support import (
    CountedVotes,
    LabelSupport,
    TaskVotes,
    VoteModel,
    bound_confidence,
    calibrate_class_probs,
)
from wisecrowd.em.vote_buffers import GrowableTable, VoteBatch
from wisecrowd.errors import UsageError

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Task -> worker -> label: all current votes on some tasks.
Votes = Mapping[int, Mapping[int, int]]

_NO_VOTES: dict[int, int] = {}
_NO_CODES = np.empty(0, dtype=np.int32)
_NO_PAIRS = Pairs(_NO_CODES, _NO_CODES, _NO_CODES, 0)
#: Methods that can be updated vote by vote, for messages.
LIVE_METHODS = "model-average, dawid-skene, ibcc, lfc, one-coin, hds or zencrowd"
#: Hooks that a method must not override: a live model assumes one confusion matrix per worker and nothing else.
_PLAIN_HOOKS = ("predictive_label_probs", "fold_to_classes", "_complete_statistics", "_e_step")
#: Count of a class that appeared after the last fit; with a count of zero it could never win a task.
NEW_CLASS_COUNT = 0.5
#: Factor by which the tables of workers grow when a new worker votes, so that they are rarely copied.
WORKER_GROWTH = 1.5


class SupportCalibration(Protocol):
    """Map from the support of labels to their confidence, such as `wisecrowd.evaluate.accuracy.CrowdCalibration`."""

    def score(self, support: LabelSupport) -> Array:
        """Compute the scores of labels.

        Parameters
        ----------
        support : LabelSupport
            Support of the labels by their votes.

        Returns
        -------
        ndarray of shape (n_labels,)
            Scores; a label with a higher score is more often right.
        """

    def confidence(self, scores: Array) -> Array:
        """Compute the probability that labels with these scores are right.

        Parameters
        ----------
        scores : ndarray of shape (n_labels,)
            Results of `score`.

        Returns
        -------
        ndarray of shape (n_labels,)
            Probabilities.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class FitConfidence:
    """Confidence of the labels of a fit, with the model that updates it when votes arrive.

    Attributes
    ----------
    calibrated_posterior : ndarray of shape (n_tasks, n_classes)
        Class probabilities in which the probability of each label is its confidence.
    confidence : ndarray of shape (n_tasks,)
        Probability that each label is right.
    score : ndarray of shape (n_tasks,)
        Score of each label.
    counted_votes : CountedVotes
        Model of the votes of the fit.
    calibration : SupportCalibration
        Map from support to confidence.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, estimate_confidence, simulate_crowd
    >>> from wisecrowd.evaluate.confidence import compute_calibrated_posterior
    >>> crowd = simulate_crowd(n_tasks=50, n_workers=5, votes_per_task=3, random_state=0).crowd
    >>> fitted = DawidSkene().fit(crowd)
    >>> estimate = estimate_confidence(fitted, crowd)
    >>> FitConfidence(
    ...     calibrated_posterior=compute_calibrated_posterior(estimate, fitted, crowd), confidence=estimate.confidence,
    ...     score=estimate.score, counted_votes=estimate.counted_votes, calibration=estimate.calibration,
    ... ).confidence.shape
    (50,)
    """

    calibrated_posterior: Array
    confidence: Array
    score: Array
    counted_votes: CountedVotes
    calibration: SupportCalibration


@dataclass(frozen=True, kw_only=True, eq=False)
class FitSnapshot:
    """State of a fit to all votes: votes by task, tally by pair, and posterior.

    Attributes
    ----------
    offset : ndarray of int of shape (n_tasks + 1,)
        Position of the first vote of each task.
    worker : ndarray of int of shape (n_votes,)
        Worker of each vote.
    label : ndarray of int of shape (n_votes,)
        Label of each vote.
    pair_worker : ndarray of int of shape (n_pairs,)
        Worker of each pair.
    pair_label : ndarray of int of shape (n_pairs,)
        Label of each pair.
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior.
    n_workers : int
        Number of workers.
    method : ConfusionEM, optional
        Method of the fit; by default the method of the live model.
    e_step_prior : ndarray of shape (n_columns,), optional
        Weights of the columns of the E-step in the fit.
    confidence : FitConfidence, optional
        Confidence of the labels.

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in range(3)])
    >>> FitSnapshot.from_fit(DawidSkene().fit(crowd), crowd).posterior.shape
    (8, 2)
    """

    offset: Codes
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    pair_worker: NDArray[np.int32]
    pair_label: NDArray[np.int32]
    tally: Array
    posterior: Array
    n_workers: int
    method: ConfusionEM | None = None
    e_step_prior: Array | None = None
    confidence: FitConfidence | None = None

    @classmethod
    def from_fit(cls, method: ConfusionEM, crowd: Crowd, confidence: FitConfidence | None = None) -> FitSnapshot:
        """Return the snapshot of a fitted method.

        Parameters
        ----------
        method : ConfusionEM
            Fitted method.
        crowd : Crowd
            Votes that it was fitted to.
        confidence : FitConfidence, optional
            Confidence of the labels.

        Returns
        -------
        FitSnapshot
        """
        posterior = np.asarray(method.posterior_, dtype=np.float64)
        pairs = crowd.pairs
        return cls(
            offset=crowd.offset,
            worker=crowd.worker_codes,
            label=crowd.label,
            pair_worker=pairs.worker,
            pair_label=pairs.label,
            # The tally of the fit belongs to the posterior one step earlier; an update must subtract what a task has added.
            tally=kernels.tally(crowd.layout, posterior),
            posterior=posterior,
            n_workers=crowd.n_workers,
            method=method.clone_unfitted(),
            e_step_prior=np.asarray(method.e_step_prior_, dtype=np.float64),
            confidence=confidence,
        )

    @classmethod
    def empty(cls, n_classes: int) -> FitSnapshot:
        """Return the snapshot of a model without votes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        FitSnapshot
        """
        none, table = np.empty(0, dtype=np.int32), np.empty((0, n_classes))
        return cls(
            offset=np.zeros(1, dtype=np.int64),
            worker=none,
            label=none,
            pair_worker=none,
            pair_label=none,
            tally=table,
            posterior=table,
            n_workers=0,
        )


@dataclass(eq=False)
class LiveModel:
    """Model of worker confusion over a growing crowd, updated after every change.

    An update is one step of incremental EM (Neal and Hinton 1998): the changed tasks are inferred with the current
    parameters of the workers, and their new posterior replaces the old one in the workers' tallies. The result equals
    ``partial_fit`` with the same votes, at the cost of the votes on the changed tasks. `load_snapshot` adopts a fit to all
    votes that was made elsewhere.

    Parameters
    ----------
    method : ConfusionEM
        Method whose formulas to use; it must have one confusion matrix per worker and no further latent variables.
    n_classes : int, default 1
        Number of classes; grows with the votes.

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> model = LiveModel(DawidSkene(), n_classes=2)
    >>> model.update_votes({0: {7: 1, 8: 1}, 1: {7: 0}})
    >>> model.posterior.argmax(axis=1).tolist(), model.n_votes
    ([1, 0], 3)
    >>> model.update_votes({1: {7: 0, 8: 1, 9: 1}})
    >>> bool(model.posterior[1, 1] > 0.5)
    True
    """

    method: ConfusionEM
    n_classes: int = 1
    #: Last fit that was adopted, without its tables: `posterior` and the others have grown since.
    snapshot: FitSnapshot = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._gold: dict[int, int] = {}
        self._set_method(self.method)
        self.load_snapshot(FitSnapshot.empty(self.n_classes))

    # ------------------------------------------------------------------ state

    @property
    def posterior(self) -> Array:
        """Posterior, (n_tasks, n_classes); a task without votes has the class prior of when it was added."""
        return self._posterior.rows

    @property
    def calibrated_posterior(self) -> Array:
        """Class probabilities with the confidence of each label, (n_tasks, n_classes); the posterior if there is none."""
        return self._calibrated_posterior.rows

    @property
    def confidence(self) -> Array | None:
        """Probability that the label of each task is right; None before a fit with a confidence."""
        return None if self._confidence is None else self._confidence.rows[:, 0]

    @property
    def score(self) -> Array | None:
        """Score of the label of each task; None before a fit with a confidence."""
        return None if self._confidence is None else self._confidence.rows[:, 1]

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return self._n_votes

    @property
    def votes_per_task(self) -> NDArray[np.int64]:
        """Number of votes of each task."""
        return self._counts.rows[:, 0]

    @property
    def gold(self) -> Mapping[int, int]:
        """Class by task, for tasks with known truth."""
        return self._gold

    def votes_on(self, task: int) -> Mapping[int, int]:
        """Return the current votes on a task.

        Parameters
        ----------
        task : int
            Task.

        Returns
        -------
        mapping
            Label by worker.
        """
        votes = self._changed.get(task)
        if votes is not None:
            return votes
        if task + 1 >= len(self.snapshot.offset):
            return _NO_VOTES
        rows = slice(self.snapshot.offset[task], self.snapshot.offset[task + 1])
        return dict(zip(self.snapshot.worker[rows].tolist(), self.snapshot.label[rows].tolist(), strict=True))

    def estimate_worker_accuracy(self) -> tuple[Array, Array]:
        """Estimate the accuracy of every worker, as ``workers_`` of a fitted method does.

        Returns
        -------
        n_votes : ndarray of shape (n_workers,)
        accuracy : ndarray of shape (n_workers,)
        """
        worker, label = self._pair_worker.rows[:, 0], self._pair_label.rows[:, 0]
        n_workers = int(worker.max(initial=-1)) + 1
        tally = self._tally.rows
        right = np.bincount(worker, tally[np.arange(len(label)), label], minlength=n_workers)
        total: Array = np.bincount(worker, tally.sum(axis=1), minlength=n_workers).astype(np.float64)
        right_pseudo_votes, pseudo_votes = self.method.accuracy_pseudo_votes(self.n_classes)
        return total, (right + right_pseudo_votes) / (total + pseudo_votes)

    def confusion_of(self, worker: int) -> Array:
        """Return the confusion matrix of a worker, shrunk toward that of the crowd if the worker has few votes.

        Parameters
        ----------
        worker : int
            Worker; one without votes has the matrix of the crowd.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Confusion matrix [true, given].
        """
        label = np.arange(self.n_classes, dtype=np.int64)
        if self._vote_model is None:
            requested = worker * self.n_classes + label
            return np.asarray(self._estimate_label_probs(requested, self.method.predictive_label_probs).T)
        workers = np.full(self.n_classes, worker)
        model = self._get_vote_model(worker + 1)
        label_probs = model.label_probs(workers, label, self._find_fit_rows(workers, label))
        return np.asarray(label_probs.T / label_probs.T.sum(axis=1, keepdims=True))

    # ------------------------------------------------------------------ changes

    def load_snapshot(self, snapshot: FitSnapshot, later_votes: Votes | None = None) -> None:
        """Replace the state by a fit to all votes.

        Parameters
        ----------
        snapshot : FitSnapshot
            Fit to adopt, by the same or another method.
        later_votes : mapping, optional
            Current votes on the tasks that have changed since the fit began.
        """
        # The growing tables below replace those of the fit, which would double the memory.
        fit_classes = snapshot.posterior.shape[1]
        no_rows = np.empty((0, fit_classes))
        self.snapshot = replace(snapshot, posterior=no_rows, tally=no_rows, confidence=None)
        if snapshot.method is not None:
            self._set_method(snapshot.method)
        counts = np.diff(snapshot.offset)
        self._changed: dict[int, Mapping[int, int]] = {}
        self._posterior, self._counts = GrowableTable(snapshot.posterior), GrowableTable(counts[:, None])
        self._load_confidence(snapshot.confidence)
        self._tally = GrowableTable(snapshot.tally)
        self._pair_worker = GrowableTable(snapshot.pair_worker[:, None].astype(np.int64))
        self._pair_label = GrowableTable(snapshot.pair_label[:, None].astype(np.int64))
        self._first_pair = np.searchsorted(snapshot.pair_worker, np.arange(snapshot.n_workers + 1))
        self._new_rows: dict[int, dict[int, int]] = {}  # worker -> label -> row of the tally, for pairs after the fit
        self._n_votes = int(counts.sum())
        self._crowd_tally = np.zeros((fit_classes, fit_classes))
        np.add.at(self._crowd_tally, snapshot.pair_label, snapshot.tally)
        has_tasks = len(counts) > 0
        self._class_counts = snapshot.posterior[counts > 0].sum(axis=0) if has_tasks else np.zeros(fit_classes)
        self._fit_pairs = snapshot.pair_worker.astype(np.int64) * fit_classes + snapshot.pair_label
        n_classes, self.n_classes = max(self.n_classes, fit_classes), fit_classes
        self.add_classes(n_classes)
        if later_votes:
            self.update_votes(later_votes)

    def add_classes(self, n_classes: int) -> None:
        """Raise the number of classes.

        Parameters
        ----------
        n_classes : int
            New number of classes; a smaller number than the current one has no effect.
        """
        n_new = n_classes - self.n_classes
        if n_new <= 0:
            return
        for table in {self._posterior, self._calibrated_posterior, self._tally}:
            table.add_columns(n_new)
        self._crowd_tally = np.pad(self._crowd_tally, ((0, n_new), (0, n_new)))
        self._class_counts = np.pad(self._class_counts, (0, n_new))
        self.n_classes = n_classes

    def add_tasks(self, n_tasks: int) -> None:
        """Raise the number of tasks; new tasks have the class prior.

        Parameters
        ----------
        n_tasks : int
            New number of tasks; a smaller number than the current one has no effect.
        """
        n_new = n_tasks - len(self.posterior)
        if n_new > 0:
            prior = self.method.fold_to_classes(self._estimate_prior())
            prior = np.repeat(prior[None] / prior.sum(), n_new, axis=0)
            for table in {self._posterior, self._calibrated_posterior}:
                table.append(prior)
            if self._confidence is not None:
                self._confidence.append(np.stack([prior.max(axis=1), np.zeros(n_new)], axis=1))
            self._counts.append(np.zeros((n_new, 1), dtype=np.int64))

    def set_gold(self, truth: Mapping[int, int | None]) -> None:
        """Set the known truth of some tasks.

        Parameters
        ----------
        truth : mapping
            Class by task; None removes the truth of a task.
        """
        for task, label in truth.items():
            if label is None:
                self._gold.pop(task, None)
            else:
                self._gold[task] = label
        self.update_votes({task: self.votes_on(task) for task in truth})

    def update_votes(self, votes: Votes) -> None:
        """Replace the votes on some tasks, and update their posterior and the tallies of their workers.

        Parameters
        ----------
        votes : mapping
            Task -> worker -> label: all current votes on the tasks, old and new.
        """
        if not votes:
            return
        self.add_classes(1 + max((label for labels in votes.values() for label in labels.values()), default=-1))
        self.add_classes(1 + max((self._gold[task] for task in votes if task in self._gold), default=-1))
        self.add_tasks(1 + max(votes))
        tasks = np.fromiter(votes, dtype=np.int64, count=len(votes))
        before = VoteBatch.from_mappings(self.votes_on(task) for task in votes)
        after = VoteBatch.from_mappings(votes.values())
        label_probs = self._estimate_label_probs(
            after.worker * self.n_classes + after.label, self.method.e_step_label_probs
        )
        posterior = self.method.e_step_posterior(after.compute_posterior, self._estimate_prior(), label_probs)
        posterior = self._apply_gold(tasks, posterior)
        self._add_to_tally(before, self._posterior.rows[tasks], -1.0)
        self._add_to_tally(after, posterior, 1.0)
        self._posterior.rows[tasks] = posterior
        self._update_confidence(tasks, after, posterior)
        self._counts.rows[tasks, 0] = after.count
        self._n_votes += len(after.worker) - len(before.worker)
        self._changed.update((task, dict(labels)) for task, labels in votes.items())

    # ------------------------------------------------------------------ helpers

    def _load_confidence(self, confidence: FitConfidence | None) -> None:
        """Replace the confidence by that of a fit. Without one, the calibrated posterior is the posterior."""
        self._calibrated_posterior = self._posterior
        self._confidence: GrowableTable | None = None
        self._vote_model: VoteModel | None = None
        if confidence is None:
            return
        self._calibrated_posterior = GrowableTable(confidence.calibrated_posterior)
        self._confidence = GrowableTable(np.stack([confidence.confidence, confidence.score], axis=1))
        self._vote_model, counted_posterior = confidence.counted_votes
        self._counted_posterior = np.asarray(counted_posterior, dtype=np.float32)  # half of the memory, 7 digits
        self._calibration = confidence.calibration

    def _set_method(self, method: ConfusionEM) -> None:
        """Adopt a method, or raise an error if it has more than a confusion matrix per worker."""
        method_class = type(method)
        is_plain = all(getattr(method_class, name) is getattr(ConfusionEM, name) for name in _PLAIN_HOOKS)
        if not (is_plain or method.tally_is_sufficient):
            raise UsageError(
                f"{method.name} cannot be updated vote by vote, because it has other parameters besides a confusion matrix per "
                f"worker; use {LIVE_METHODS}"
            )
        if not isinstance(method.prior, str):
            raise UsageError(
                f"prior must be 'estimate' or 'uniform' in a live model, which may get further classes; got {method.prior!r}"
            )
        self.method = method.clone_unfitted()

    def _estimate_prior(self) -> Array:
        """Return the weights of the columns of the E-step."""
        if self.method.tally_is_sufficient:
            return self._extend_fitted_prior()
        if not self._class_counts.sum() > 0:
            return np.full(self.n_classes, 1 / self.n_classes)
        class_counts = np.where(self._class_counts > 0, self._class_counts, NEW_CLASS_COUNT)
        return self.method.estimate_class_prior(class_counts)

    def _extend_fitted_prior(self) -> Array:
        """Return the weights of the columns in the last fit, with new classes; they are uniform before the first fit."""
        fitted_prior, n_fitted = self.snapshot.e_step_prior, self.snapshot.posterior.shape[1]
        if fitted_prior is None:
            label_probs = self.method.e_step_label_probs(np.zeros((0, self.n_classes)), _NO_PAIRS)
            return np.full(label_probs.shape[1], 1 / self.n_classes)
        by_class = fitted_prior.reshape(-1, n_fitted)
        added = np.pad(by_class, ((0, 0), (0, self.n_classes - n_fitted)), constant_values=1 / self.n_classes)
        return np.asarray((added / added.sum(axis=1, keepdims=True)).ravel())

    def _apply_gold(self, tasks: Codes, posterior: Array) -> Array:
        """Set the posterior of gold tasks to certainty, in place."""
        for row, task in enumerate(tasks.tolist()):
            if task in self._gold:
                posterior[row] = 0
                posterior[row, self._gold[task]] = 1
        return posterior

    def _add_to_tally(self, batch: VoteBatch, posterior: Array, sign: float) -> None:
        """Add the posterior of some tasks to all counts, or subtract it."""
        rows = self._get_tally_rows(batch.worker, batch.label)
        share = sign * posterior[batch.position]
        np.add.at(self._tally.rows, rows, share)
        np.add.at(self._crowd_tally, batch.label, share)
        self._class_counts += sign * posterior[batch.count > 0].sum(axis=0)
        if sign < 0:  # rounding can leave a negative count after a subtraction
            self._tally.rows[rows] = np.maximum(self._tally.rows[rows], 0.0)
            np.maximum(self._crowd_tally, 0.0, out=self._crowd_tally)
            np.maximum(self._class_counts, 0.0, out=self._class_counts)

    def _get_tally_rows(self, worker: Codes, label: Codes) -> Codes:
        """Return the rows of some pairs in the tally; new pairs get a row."""
        rows = self._find_fit_rows(worker, label)
        for index in np.flatnonzero(rows < 0).tolist():
            rows[index] = self._get_new_row(int(worker[index]), int(label[index]))
        return rows

    def _find_fit_rows(self, worker: Codes, label: Codes) -> Codes:
        """Return the rows of some pairs in the tally of the last fit, −1 for pairs that it does not have."""
        if not len(self._fit_pairs):
            return np.full(len(worker), -1, dtype=np.int64)
        n_classes = self.snapshot.posterior.shape[1]
        code = np.where(label < n_classes, worker * n_classes + label, -1)
        row = np.minimum(np.searchsorted(self._fit_pairs, code), len(self._fit_pairs) - 1)
        return np.where(self._fit_pairs[row] == code, row, -1)

    def _get_new_row(self, worker: int, label: int) -> int:
        """Return the row of a pair that the last fit does not have; append one if necessary."""
        rows = self._new_rows.setdefault(worker, {})
        if label not in rows:
            rows[label] = len(self._tally.rows)
            self._tally.append(np.zeros((1, self.n_classes)))
            self._pair_worker.append(np.array([[worker]]))
            self._pair_label.append(np.array([[label]]))
        return rows[label]

    def _estimate_label_probs(self, requested: Codes, estimate: LabelProbsEstimator) -> Array:
        """Return P(label given class) of some pairs, coded as worker·n_classes + label, by a formula of the method."""
        rows: list[int] = []
        for worker in np.unique(requested // self.n_classes).tolist():
            if worker < self.snapshot.n_workers:
                rows.extend(range(self._first_pair[worker], self._first_pair[worker + 1]))
            rows.extend(self._new_rows.get(worker, {}).values())
        counted_rows = np.array(rows, dtype=np.int64)
        counted = self._pair_worker.rows[counted_rows, 0] * self.n_classes + self._pair_label.rows[counted_rows, 0]
        pairs, inverse = np.unique(requested, return_inverse=True)
        label_probs = estimate_pair_label_probs(
            estimate, counted, self._tally.rows[counted_rows], pairs, self._crowd_tally
        )
        return np.asarray(label_probs[inverse])

    def _get_vote_model(self, n_workers: int) -> VoteModel:
        """Return the model of the votes of the last fit, with the classes and workers that came later."""
        assert self._vote_model is not None
        model = self._vote_model.add_classes(self.n_classes)
        if n_workers > len(model.vote_weight):
            model = model.add_workers(max(n_workers, int(WORKER_GROWTH * len(model.vote_weight))))
        self._vote_model = model
        return model

    def _update_confidence(self, tasks: Codes, batch: VoteBatch, posterior: Array) -> None:
        """Compute confidence and calibrated posterior of some tasks from all their votes, as for the labels of a fit."""
        if self._confidence is None:
            return
        model = self._get_vote_model(int(batch.worker.max(initial=-1)) + 1)
        label = posterior.argmax(axis=1)
        support, class_log_probs = model.measure_block(self._describe_votes(tasks, batch), label)
        score = self._calibration.score(support)
        confidence = bound_confidence(self._calibration.confidence(score), self.n_classes)
        calibrated = calibrate_class_probs(class_log_probs, label, confidence)
        is_given = (batch.count == 0) | np.array([task in self._gold for task in tasks.tolist()], dtype=bool)
        calibrated[is_given] = posterior[is_given]
        confidence[is_given] = posterior[is_given].max(axis=1)
        self._calibrated_posterior.rows[tasks] = calibrated
        self._confidence.rows[tasks] = np.stack([confidence, score], axis=1)

    def _describe_votes(self, tasks: Codes, batch: VoteBatch) -> TaskVotes:
        """Return votes with their rows in the tally of the last fit, and whether that fit has counted them."""
        n_fit_tasks, n_fit_classes = self._counted_posterior.shape
        in_fit = tasks < n_fit_tasks
        counted_posterior = np.zeros((len(tasks), self.n_classes))
        counted_posterior[in_fit, :n_fit_classes] = self._counted_posterior[tasks[in_fit]]
        first, last = (np.where(in_fit, self.snapshot.offset[np.minimum(tasks + n, n_fit_tasks)], 0) for n in (0, 1))
        count = last - first
        rows = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        n_workers = 1 + max(int(batch.worker.max(initial=-1)), self.snapshot.n_workers - 1)
        votes_of_fit = np.repeat(np.arange(len(tasks)), count) * n_workers + self.snapshot.worker[rows]
        votes_of_fit = votes_of_fit * self.n_classes + self.snapshot.label[rows]
        votes = (batch.position * n_workers + batch.worker) * self.n_classes + batch.label
        return TaskVotes(
            count=batch.count,
            position=batch.position,
            worker=batch.worker,
            label=batch.label,
            pair=self._find_fit_rows(batch.worker, batch.label),
            weight=np.ones(len(batch.worker)),
            posterior=counted_posterior,
            is_counted=np.isin(votes, votes_of_fit),
        )
