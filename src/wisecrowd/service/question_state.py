"""State of a question: labels, workers, tasks to ask about next, and tasks that are finished."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.diagnose.assessment import sort_flagged_first
from wisecrowd.diagnose.workers import SPAMMER_FLAG_PROBABILITY
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.live import LiveModel
from wisecrowd.errors import InputError
from wisecrowd.evaluate.accuracy import AccuracyEstimate
from wisecrowd.plan.greedy import information_gains
from wisecrowd.plan.stopping import is_finished
from wisecrowd.service.database import SIMILAR_CLASSES_ADVICE, QuestionVocabulary
from wisecrowd.service.refit_schedule import INITIAL_VOTES, MAX_NEW_SHARE, RefitSchedule
from wisecrowd.service.refits import MAX_CALIBRATION_VOTES, MIN_CALIBRATION_VOTES, Calibration, Refit

#: Number of tasks whose information gain is computed for a suggestion; the least certain ones are candidates.
MAX_CANDIDATES = 2_000
#: Multiplications that may be spent on a suggestion: candidates times the square of the classes.
MAX_PRODUCTS = 200_000_000
#: Seconds after which the candidates are selected again, and the expected accuracy is computed again.
CANDIDATES_SECONDS = ACCURACY_SECONDS = 2.0
#: Recalibrate when the number of votes has grown by this factor.
RECALIBRATION_GROWTH = 1.1
#: Share of labels changed by a fit above which labels count as unsettled.
UNSETTLED_SHARE = 0.01
#: Number of votes below which labels always change, so that a warning would carry no information.
MIN_UNSETTLED_VOTES = 200
#: Pause between two jobs of a kind, as a multiple of the duration of the last one. It bounds the load of a core by 1/3.
PAUSE_FACTOR = 2.0
#: Seconds without votes after which the remaining votes are fitted.
IDLE_FIT_SECONDS = 2.0
#: Seconds without votes after which a question is calibrated again.
IDLE_CALIBRATION_SECONDS = 30.0
#: Seconds after which a job that failed may start again.
RETRY_SECONDS = 1.0


@dataclass
class JobTimer:
    """Times of a repeated job, and the number of changes that it has covered.

    Attributes
    ----------
    is_running : bool
        Whether the job runs.
    started_at, ended_at : float
        Monotonic times of the last run.
    changes_read : int
        Number of changes when the last run started to read.
    changes_covered : int
        Number of changes that the last successful run covers.
    """

    is_running: bool = False
    started_at: float = 0.0
    ended_at: float = 0.0
    changes_read: int = 0
    changes_covered: int = 0

    def start(self, n_changes: int) -> None:
        """Record the start of a run.

        Parameters
        ----------
        n_changes : int
            Number of changes so far.
        """
        self.is_running, self.started_at, self.changes_read = True, time.monotonic(), n_changes

    def finish(self, *, succeeded: bool = True) -> None:
        """Record the end of a run.

        Parameters
        ----------
        succeeded : bool, default=True
            Whether the run covers the changes it has read.
        """
        self.is_running, self.ended_at = False, time.monotonic()
        if succeeded:
            self.changes_covered = self.changes_read
        else:
            self.started_at = min(self.started_at, self.ended_at - RETRY_SECONDS)

    def can_start(self, now: float) -> bool:
        """Return whether the pause after the last run is over.

        Parameters
        ----------
        now : float
            Monotonic time.

        Returns
        -------
        bool
            Whether the job may start.
        """
        return not self.is_running and now >= self.ended_at + PAUSE_FACTOR * (self.ended_at - self.started_at)


@dataclass
class QuestionState:
    """A question with its votes, its incremental model and its last fit.

    Attributes
    ----------
    vocabulary : QuestionVocabulary
        Names of tasks, workers and classes.
    live : LiveModel
        Incremental model.
    target : float
        Confidence at which a task is finished.
    fit : Refit or None
        Last fit.
    calibration : Calibration or None
        Last calibration.
    fit_calibration : Calibration or None
        Calibration that the last fit used.
    n_new_votes : int
        Number of votes that were new in the last fit with any.
    changed_share : float or None
        Share of labels that this fit changed.
    schedule : RefitSchedule
        Interval between fits.
    fit_timer, calibration_timer : JobTimer
        Times of the two jobs.
    n_changes : int
        Number of changes of votes and gold labels.
    changed_tasks : set of int
        Tasks that changed since the last fit started to read.
    changed_at : float
        Monotonic time of the last change.
    fit_error : str
        Error of the last fit; empty where it succeeded.
    n_tasks, n_workers, n_classes : int
        Number of names that are committed. The vocabulary may hold more while a batch is written.
    n_similar_classes : int
        Number of classes that differ only in spelling from another, at the last warning.
    """

    vocabulary: QuestionVocabulary
    live: LiveModel
    target: float
    fit: Refit | None = None
    calibration: Calibration | None = None
    fit_calibration: Calibration | None = None
    n_new_votes: int = 0
    changed_share: float | None = None
    schedule: RefitSchedule = field(default_factory=RefitSchedule)
    fit_timer: JobTimer = field(default_factory=JobTimer)
    calibration_timer: JobTimer = field(default_factory=JobTimer)
    n_changes: int = 0
    changed_tasks: set[int] = field(default_factory=set)
    changed_at: float = 0.0
    fit_error: str = ""
    n_tasks: int = 0
    n_workers: int = 0
    n_classes: int = 0
    n_similar_classes: int = 0
    _candidates: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _candidates_at: float = 0.0
    _accuracy: AccuracyEstimate | None = None
    _accuracy_at: float = 0.0
    _accuracy_changes: int = 0
    _accuracy_fit: Refit | None = None

    @classmethod
    def create(cls, vocabulary: QuestionVocabulary, method: ConfusionEM, target: float) -> QuestionState:
        """Create the state of a question without votes.

        Parameters
        ----------
        vocabulary : QuestionVocabulary
            Names of the question.
        method : ConfusionEM
            Method of the question.
        target : float
            Confidence at which a task is finished.

        Returns
        -------
        QuestionState
            State.
        """
        live = LiveModel(method, n_classes=max(len(vocabulary.classes), 1))
        return cls(vocabulary, live, target)

    # ------------------------------------------------------------------ changes

    def update_sizes(self) -> None:
        """Adopt the names that were committed to the vocabulary."""
        self.n_tasks, self.n_workers, self.n_classes = self.vocabulary.sizes
        self.live.add_classes(self.n_classes)
        self.live.add_tasks(self.n_tasks)

    def update_votes(
        self, votes: Mapping[int, Mapping[int, int]], gold: Mapping[int, int | None], n_changes: int
    ) -> None:
        """Update the incremental model.

        Parameters
        ----------
        votes : mapping
            Task to worker to label: all votes on the tasks that changed.
        gold : mapping
            Task to true class, or to None where the gold label was deleted.
        n_changes : int
            Number of changes.
        """
        self.live.update_votes(votes)
        if gold:
            self.live.set_gold(gold)
        self.changed_tasks.update(votes, gold)
        self.n_changes += max(n_changes, 1)
        self.changed_at = time.monotonic()

    @property
    def is_stale(self) -> bool:
        """True if the last fit does not cover all changes."""
        return self.fit_timer.changes_covered < self.n_changes or self.calibration is not self.fit_calibration

    @property
    def is_unsettled(self) -> bool:
        """True if few new votes still change many labels."""
        if self.fit is None or self.changed_share is None or self.fit.n_votes < MIN_UNSETTLED_VOTES:
            return False
        is_small_batch = self.n_new_votes <= max(INITIAL_VOTES, MAX_NEW_SHARE * self.fit.n_votes)
        return self.changed_share > UNSETTLED_SHARE and is_small_batch

    def fit_is_due(self, now: float) -> bool:
        """Return whether it is time for a fit to all votes.

        Parameters
        ----------
        now : float
            Monotonic time.

        Returns
        -------
        bool
            Whether a fit should start.
        """
        if not self.is_stale or not self.fit_timer.can_start(now):
            return False
        has_new_class = self.fit is not None and self.live.n_classes > self.fit.snapshot.posterior.shape[1]
        return (
            self.n_changes - self.fit_timer.changes_read >= self.schedule.interval
            or has_new_class
            or self.calibration is not self.fit_calibration
            or now >= self.changed_at + IDLE_FIT_SECONDS
        )

    def calibration_is_due(self, now: float) -> bool:
        """Return whether it is time for a calibration.

        Parameters
        ----------
        now : float
            Monotonic time.

        Returns
        -------
        bool
            Whether a calibration should start.
        """
        timer, live = self.calibration_timer, self.live
        if self.fit is None or timer.changes_covered >= self.n_changes or not timer.can_start(now):
            return False
        # A calibration by other votes would return nothing.
        if not MIN_CALIBRATION_VOTES <= live.n_votes <= MAX_CALIBRATION_VOTES:
            return False
        if live.votes_per_task.max() < 2 and not live.gold:
            return False
        n_before = 0 if self.calibration is None else self.calibration.n_votes
        return live.n_votes > RECALIBRATION_GROWTH * n_before or now >= self.changed_at + IDLE_CALIBRATION_SECONDS

    def start_fit(self) -> Calibration | None:
        """Record that a fit starts to read; it may not see later changes.

        Returns
        -------
        Calibration or None
            Calibration that the fit should use.
        """
        self.changed_tasks = set()
        self.fit_calibration = self.calibration
        self.fit_timer.start(self.n_changes)
        return self.calibration

    def finish_fit(self, fit: Refit | None) -> None:
        """Adopt a fit and apply the votes that arrived while it ran.

        Parameters
        ----------
        fit : Refit or None
            Result; None where there were no votes.
        """
        if fit is not None:
            later_votes = {task: self.live.votes_on(task) for task in self.changed_tasks}
            n_new_votes = self.fit_timer.changes_read - self.fit_timer.changes_covered
            if n_new_votes > 0:
                self.n_new_votes, self.changed_share = n_new_votes, self._compute_changed_share(fit)
                self.schedule.update(n_new_votes, self.changed_share, fit.n_votes)
            self.live.load_snapshot(fit.snapshot, later_votes)
            self.fit, self.fit_error = replace(fit, snapshot=self.live.snapshot), ""  # its tables are in the live model
            self.live.add_classes(self.n_classes)
            self.live.add_tasks(self.n_tasks)
        self.fit_timer.finish()

    def fail_fit(self, error: str) -> None:
        """Record that a fit failed. The votes stay, and the next fit comes after a pause.

        Parameters
        ----------
        error : str
            Message of the error.
        """
        self.fit_error = error
        self.fit_timer.finish(succeeded=False)

    def finish_calibration(self, calibration: Calibration | None) -> None:
        """Adopt a calibration.

        Parameters
        ----------
        calibration : Calibration or None
            Result; None keeps the previous one.
        """
        self.calibration = calibration or self.calibration
        self.calibration_timer.finish()

    def _compute_changed_share(self, fit: Refit) -> float:
        """Return the share of labels that a fit changes, among tasks without later votes."""
        has_votes = np.diff(fit.snapshot.offset) > 0
        has_votes[[task for task in self.changed_tasks if task < len(has_votes)]] = False
        old_labels = self.live.posterior[: len(has_votes)].argmax(axis=1)
        is_changed = old_labels != fit.snapshot.posterior.argmax(axis=1)
        return float(is_changed[has_votes].mean()) if has_votes.any() else 0.0

    # ------------------------------------------------------------------ answers

    def task_code(self, name: str) -> int:
        """Return the number of a task.

        Parameters
        ----------
        name : str
            Task id.

        Returns
        -------
        int
            Number.

        Raises
        ------
        InputError
            If the question has no such task.
        """
        code = self.vocabulary.tasks.codes.get(name)
        if code is None or code >= self.n_tasks:
            raise InputError(f"the question {self.vocabulary.name} has no task of this name")
        return code

    def worker_code(self, name: str) -> int | None:
        """Return the number of a worker.

        Parameters
        ----------
        name : str
            Worker id.

        Returns
        -------
        int or None
            Number; None for a worker without votes.
        """
        code = self.vocabulary.workers.codes.get(name)
        return code if code is not None and code < self.n_workers else None

    def describe_task(self, task: int) -> dict[str, Any]:
        """Return the answer for a task.

        Parameters
        ----------
        task : int
            Number of the task.

        Returns
        -------
        dict
            Fields of `schemas.TaskAnswer`.
        """
        return self.describe_tasks(np.array([task]))[0]

    def describe_tasks(self, tasks: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return the answers for several tasks.

        Parameters
        ----------
        tasks : ndarray of int
            Numbers of the tasks.

        Returns
        -------
        list of dict
            Fields of `schemas.TaskAnswer`. A task without votes has no label, and before the first fit there is no confidence.
        """
        live = self.live
        posterior, n_votes = live.posterior[tasks], live.votes_per_task[tasks].tolist()
        labels = posterior.argmax(axis=1)
        probabilities = posterior[np.arange(len(tasks)), labels].round(6).tolist()
        confidences = [None] * len(tasks) if live.confidence is None else live.confidence[tasks].round(6).tolist()
        finished = self._is_finished(tasks).tolist()
        names, classes = self.vocabulary.tasks.names, self.vocabulary.classes.names
        answers = []
        for row, task in enumerate(tasks.tolist()):
            is_gold = task in live.gold
            has_label = is_gold or n_votes[row] > 0
            answers.append(
                {
                    "task": names[task],
                    "label": classes[labels[row]] if has_label else None,
                    "probability": probabilities[row] if has_label else None,
                    "confidence": 1.0 if is_gold else confidences[row] if has_label else None,
                    "n_votes": n_votes[row],
                    "is_gold": is_gold,
                    "is_finished": finished[row],
                }
            )
        return answers

    def class_probabilities(self, task: int) -> dict[str, float]:
        """Return the posterior of a task.

        Parameters
        ----------
        task : int
            Number of the task.

        Returns
        -------
        dict of str to float
            Probability of each class.
        """
        classes = self.vocabulary.classes.names[: self.n_classes]
        return {name: round(float(p), 6) for name, p in zip(classes, self.live.posterior[task], strict=False)}

    def votes_by_name(self, task: int) -> dict[str, str]:
        """Return the votes on a task.

        Parameters
        ----------
        task : int
            Number of the task.

        Returns
        -------
        dict of str to str
            Label of each worker.
        """
        workers, classes = self.vocabulary.workers.names, self.vocabulary.classes.names
        return {workers[worker]: classes[label] for worker, label in self.live.votes_on(task).items()}

    def describe_workers(self, workers: Iterable[int] | None = None) -> list[dict[str, Any]]:
        """Return the quality of workers.

        Parameters
        ----------
        workers : iterable of int, default=None
            Numbers of the workers; all of them by default.

        Returns
        -------
        list of dict
            Fields of `schemas.WorkerSummary`.
        """
        n_votes, accuracy = self.live.estimate_worker_accuracy()
        descriptions = []
        for code in range(self.n_workers) if workers is None else workers:
            has_votes = code < len(n_votes) and n_votes[code] > 0
            rating = self._rating(code)
            description = {
                "worker": self.vocabulary.workers.names[code],
                "n_votes": round(n_votes[code]) if code < len(n_votes) else 0,
                "accuracy": round(float(accuracy[code]), 4) if has_votes else None,
                "low": None, "high": None, "p_spammer": None, "p_adversary": None, "flags": "", "why": "",
            }  # fmt: skip
            if rating is not None and has_votes:
                figures = ("accuracy", "low", "high", "p_spammer", "p_adversary")
                description |= {name: round(float(rating[name]), 4) for name in figures}
                description |= {"flags": rating["flags"], "why": rating["why"]}
            descriptions.append(description)
        return descriptions

    def list_workers(self, n: int) -> list[int]:
        """Return the flagged workers, and after them those with most votes.

        Parameters
        ----------
        n : int
            Maximum number of workers.

        Returns
        -------
        list of int
            Numbers of the workers.
        """
        n_votes = self.live.estimate_worker_accuracy()[0]
        is_flagged = np.zeros(len(n_votes), dtype=bool)
        is_flagged[[code for code in self._flagged_codes() if code < len(n_votes)]] = True
        return np.lexsort((-n_votes, ~is_flagged))[: min(n, self.n_workers)].tolist()

    def flagged_workers(self) -> dict[str, str]:
        """Return the flags of the flagged workers as of the last calibration.

        Returns
        -------
        dict of str to str
            Flags by worker, those with most votes first.
        """
        names = self.vocabulary.workers.names
        return {names[code]: str(self._rating(code)["flags"]) for code in self._flagged_codes()}  # type: ignore[index]  # rated

    def suggest_tasks(self, worker: int | None, n: int) -> tuple[list[dict[str, Any]], str]:
        """Select the tasks to ask about next.

        Parameters
        ----------
        worker : int or None
            Number of the worker to ask; None for a worker without votes.
        n : int
            Maximum number of tasks.

        Returns
        -------
        tasks : list of dict
            Fields of `schemas.SuggestedTask`, with the most informative task first.
        reason : str
            Reason why the list is empty; an empty string otherwise.
        """
        if worker is not None and self._is_spammer(worker):
            return [], "the votes of this worker appear to be independent of the truth"
        tasks = self._select_candidates()
        if not len(tasks):
            return [], "every task is finished"
        # A worker without votes has the number after the last one, whose matrix is that of the crowd.
        confusion = self.live.confusion_of(self.n_workers if worker is None else worker)
        gain = information_gains(self.live.calibrated_posterior[tasks], confusion[None])[:, 0]
        # Among equally informative tasks, those with fewer votes come first.
        order = np.lexsort((tasks, self.live.votes_per_task[tasks], -gain.round(9)))
        suggestions = []
        for position in order.tolist():
            task = int(tasks[position])
            if worker is None or worker not in self.live.votes_on(task):
                suggestions.append({**self.describe_task(task), "gain": round(float(gain[position]), 6)})
            if len(suggestions) == n:
                break
        return suggestions, "" if suggestions else "this worker has voted on every unfinished task"

    def expect_accuracy(self) -> AccuracyEstimate | None:
        """Return the expected share of right labels with an interval, as of a moment ago.

        Returns
        -------
        AccuracyEstimate or None
            Estimate; None before the first fit, and where no task has votes.
        """
        now, has_new_fit = time.monotonic(), self._accuracy_fit is not self.fit
        is_old = now > self._accuracy_at + ACCURACY_SECONDS and self._accuracy_changes < self.n_changes
        if has_new_fit or is_old:
            self._accuracy, self._accuracy_fit = self._compute_expected_accuracy(), self.fit
            self._accuracy_at, self._accuracy_changes = now, self.n_changes
        return self._accuracy

    def describe(self) -> dict[str, Any]:
        """Return the counts and the state of the question.

        Returns
        -------
        dict
            Fields of `schemas.QuestionSummary`.
        """
        live, fit, fit_summary = self.live, self.fit, None
        accuracy = self.expect_accuracy()
        if fit is not None:
            fit_summary = {
                "n_votes": fit.n_votes, "seconds": round(fit.seconds, 3), "n_iter": fit.n_iter,
                "converged": fit.converged, "seconds_ago": round(time.monotonic() - self.fit_timer.ended_at, 1),
                "changed_share": None if self.changed_share is None else round(self.changed_share, 6),
            }  # fmt: skip
        return {
            "question": self.vocabulary.name,
            "method": live.method.name,
            "n_votes": live.n_votes,
            "n_tasks": self.n_tasks,
            "n_workers": self.n_workers,
            "classes": self.vocabulary.classes.names[: self.n_classes],
            "n_gold": len(live.gold),
            "n_finished": int(self._is_finished(np.arange(len(live.posterior))).sum()),
            "expected_accuracy": None if accuracy is None else accuracy.to_dict(),
            "mean_confidence": self._compute_mean_confidence(),
            "flagged_workers": self.flagged_workers(),
            "recommended_method": None if self.calibration is None else self.calibration.recommended_method,
            "warnings": [
                *(f"{sentence}. {SIMILAR_CLASSES_ADVICE}" for sentence in self.vocabulary.find_similar_classes()[0]),
                *([] if self.calibration is None else self.calibration.warnings),
            ],
            "fit": fit_summary,
            "is_current": not (self.is_stale or self.fit_timer.is_running),
            "fit_error": self.fit_error or None,
        }

    # ------------------------------------------------------------------ helpers

    def _select_candidates(self) -> NDArray[np.int64]:
        """Return the unfinished tasks; of very many, the least certain ones as of a moment ago."""
        now = time.monotonic()
        is_old = now > self._candidates_at + CANDIDATES_SECONDS or self._candidates_at < self.fit_timer.ended_at
        n_candidates = min(MAX_CANDIDATES, max(MAX_PRODUCTS // max(self.live.n_classes, 1) ** 2, 1))
        if self.n_tasks <= n_candidates or is_old:
            tasks = np.flatnonzero(~self._is_finished(np.arange(self.n_tasks)))
            if len(tasks) > n_candidates:
                uncertainty = 1 - self.live.calibrated_posterior[tasks].max(axis=1)
                tasks = tasks[np.argpartition(-uncertainty, n_candidates)[:n_candidates]]
            self._candidates, self._candidates_at = tasks, now
        return self._candidates[~self._is_finished(self._candidates)]

    def _is_finished(self, tasks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether tasks need no more votes; before the first fit, only gold tasks are finished."""
        is_gold = np.isin(tasks, list(self.live.gold))
        if self.live.confidence is None:
            return is_gold
        return is_gold | is_finished(self.live.votes_per_task[tasks], self.live.confidence[tasks], self.target)

    def _compute_expected_accuracy(self) -> AccuracyEstimate | None:
        """Return the expected accuracy of the current labels."""
        score, n_gold = self.live.score, len(self.live.gold)
        if self.fit is None or score is None:
            return None
        is_unknown = self.live.votes_per_task > 0
        is_unknown[list(self.live.gold)] = False
        if not is_unknown.any() and not n_gold:
            return None
        return self.fit.crowd_calibration.expect_accuracy(score[is_unknown], n_known=n_gold, n_known_right=n_gold)

    def _compute_mean_confidence(self) -> float | None:
        """Return the mean confidence of the current labels; None before the first fit."""
        if self.live.confidence is None:
            return None
        is_labelled = self.live.votes_per_task > 0
        is_gold = np.zeros(len(is_labelled), dtype=bool)
        is_gold[list(self.live.gold)] = True
        if not (is_labelled | is_gold).any():
            return None
        confidence = np.where(is_gold, 1.0, self.live.confidence[: len(is_gold)])
        return round(float(confidence[is_labelled | is_gold].mean()), 6)

    def _is_spammer(self, worker: int) -> bool:
        rating = self._rating(worker)
        return rating is not None and float(rating["p_spammer"]) > SPAMMER_FLAG_PROBABILITY

    def _rating(self, worker: int) -> dict[str, Any] | None:
        """Return the row of a worker in the last calibration; None where it does not cover them."""
        if self.calibration is None or worker >= len(self.calibration.workers):
            return None
        return {str(name): value for name, value in self.calibration.workers.iloc[worker].items()}

    def _flagged_codes(self) -> list[int]:
        """Return the numbers of the flagged workers, those with most votes first."""
        if self.calibration is None or not len(self.calibration.workers):
            return []
        table = sort_flagged_first(self.calibration.workers)
        return table.index[(table["flags"] != "").to_numpy()].tolist()
