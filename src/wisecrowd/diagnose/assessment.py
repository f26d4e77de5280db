"""Assessment of a crowd: the figures that every command, page and service shows.

Labels with their confidence, the expected accuracy, the flags of workers, the recommended method and the warnings are computed
here and nowhere else, so that all views of the same votes agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.base.method import Method, check_class_count
from wisecrowd.base.registry import find
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.diagnose.agreement import AgreementCoefficient, gwet_ac1, krippendorff_alpha
from wisecrowd.diagnose.preparation import WORKER_MODEL, has_worker_groups
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings
from wisecrowd.evaluate.accuracy import AccuracyEstimate
from wisecrowd.evaluate.confidence import LabelConfidence, compute_calibrated_posterior, estimate_confidence
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.evaluate.method_check import MethodCheck, check_default_method
from wisecrowd.utils.levels import LEVEL, format_level
from wisecrowd.utils.text import display_name, format_percent

#: Krippendorff's alpha below which workers agree about as often as by chance. The lowest of 24 public crowds with useful labels
#: has 0.09.
CHANCE_ALPHA = 0.05
#: Gwet's AC1 from which votes agree, although alpha is near zero because nearly all votes have one label.
MAX_CHANCE_AC1 = 0.8
#: Smallest number of tasks with two votes for a warning about agreement.
MIN_COMPARED_TASKS = 10
#: Share of all tasks that are labelled with one class although another label has more votes, from which labels have collapsed. On
#: 24 public crowds it is at most 0.14 by the default method; of Dawid–Skene on a hundred classes with three votes each it is 0.98.
COLLAPSED_SHARE = 0.2
#: Smallest number of such tasks for a warning.
MIN_COLLAPSED_TASKS = 10


@dataclass(frozen=True, eq=False)
class CrowdAssessment:
    """Figures about a crowd: labels, expected accuracy, worker flags, recommended method and warnings.

    All figures are computed when they are first accessed.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    model : Method
        Method fitted to ``crowd`` that infers the labels.
    gold : Series, mapping or table, default=None
        Known truth of some tasks that ``model`` was fitted with.
    checked : Series, mapping or table, default=None
        Known truth of some tasks that ``model`` was not fitted with; it calibrates the confidence.
    X : DataFrame or ndarray, default=None
        Features that ``model`` was fitted with.
    level : float, default=0.9
        Probability of intervals.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> crowd = simulate_crowd(n_tasks=200, workers=["noisy(0.8)"] * 9 + ["spammer"], votes_per_task=5).crowd
    >>> assessment = assess_crowd(crowd)
    >>> assessment.flags.tolist(), assessment.recommended_method, assessment.warnings
    (['spammer'], 'model-average', ())
    """

    crowd: Crowd
    model: Method
    gold: TruthLike | None = None
    checked: TruthLike | None = None
    X: FeaturesLike | None = None
    level: float = LEVEL

    # ------------------------------------------------------------------ labels

    @cached_property
    def labels(self) -> LabelConfidence:
        """Labels with their calibrated confidence."""
        return estimate_confidence(
            self.model, self.crowd, truth=self.gold, checked=self.checked, X=self.X, level=self.level
        )

    @property
    def accuracy(self) -> AccuracyEstimate:
        """Expected share of right labels with an interval."""
        return self.labels.accuracy

    @cached_property
    def posterior(self) -> NDArray[np.float64]:
        """Class probabilities in which the probability of each label is its confidence, (n_tasks, n_classes)."""
        return compute_calibrated_posterior(self.labels, self.model, self.crowd)

    @property
    def mean_confidence(self) -> float:
        """Mean confidence over the tasks with votes or gold."""
        is_labelled = (self.labels.n_votes > 0) | (self.labels.truth >= 0)
        return float(self.labels.confidence[is_labelled].mean()) if is_labelled.any() else float("nan")

    # ------------------------------------------------------------------ workers

    @cached_property
    def workers(self) -> WorkerDiagnosis:
        """Diagnosis of the workers, by the model of `rating_model`."""
        return WorkerDiagnosis(require_categorical_crowd(self.crowd, "rating workers"), self.rating_model, self.level)

    @cached_property
    def rating_model(self) -> ConfusionEM:
        """Model that rates the workers: Dawid–Skene if labels are those of the default method, else theirs if it can."""
        model = self.model
        if isinstance(model, ConfusionEM) and model.name != DEFAULT_METHOD and _can_leave_votes_out(model, self.crowd):
            return model
        rating_class: Any = find(WORKER_MODEL)
        with ignore_fit_warnings():  # the labelling model has reported problems of the votes
            rated: ConfusionEM = rating_class().fit(self.crowd.select_observed(), truth=self.gold)
        return rated

    @cached_property
    def can_rate_workers(self) -> bool:
        """True if there are few enough rare classes for the tables of votes by classes that rating workers needs."""
        try:
            check_class_count(self.crowd, has_vote_tables=True)
        except InputError:
            return False
        return True

    @cached_property
    def worker_table(self) -> pd.DataFrame:
        """Table of `WorkerDiagnosis`, in the order of the crowd's workers."""
        return self.workers.table

    @property
    def flags(self) -> pd.Series:
        """Flags of the flagged workers, those with most votes first; empty if votes have no workers."""
        if not self.crowd.has_workers:
            return pd.Series([], dtype=object, name="flags")
        ordered = sort_flagged_first(self.worker_table)
        return ordered["flags"][ordered["flags"] != ""]

    # ------------------------------------------------------------------ method and warnings

    @cached_property
    def method_check(self) -> MethodCheck | None:
        """Check of the default method by held-out votes; None if it is not applicable."""
        if not self.crowd.has_workers or self.crowd.is_ordered or has_worker_groups(self.model):
            return None
        with ignore_fit_warnings():
            return check_default_method(self.crowd.select_observed())

    @property
    def recommended_method(self) -> str:
        """Method whose labels to use: the default, majority vote if held-out votes reject it, or the model of groups."""
        if has_worker_groups(self.model):
            return self.model.name
        return DEFAULT_METHOD if self.method_check is None else self.method_check.recommended

    @cached_property
    def agreement(self) -> AgreementCoefficient:
        """Krippendorff's alpha with an interval."""
        return krippendorff_alpha(self.crowd, interval=self.level)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the labels, for the top of every view."""
        candidates = (self._warn_single_votes(), self._warn_agreement(), self._warn_collapse(), self._warn_rejection())
        return tuple(warning for warning in candidates if warning)

    def _warn_single_votes(self) -> str:
        if self.crowd.votes_per_task.max(initial=0) > 1 or self.crowd.n_votes < 2:
            return ""
        return (
            "No task has two votes, so votes cannot be compared with each other: the labels are the votes, and workers are not "
            "rated. Collect a second vote on some tasks."
        )

    def _warn_agreement(self) -> str:
        alpha = self.agreement
        if not alpha.n_tasks >= MIN_COMPARED_TASKS or not alpha.value < CHANCE_ALPHA:
            return ""
        if float(gwet_ac1(self.crowd)) >= MAX_CHANCE_AC1:
            return ""
        verdict = "less often than" if alpha.high is not None and alpha.high < 0 else "hardly more often than"
        return (
            f"Workers agree {verdict} by chance (Krippendorff's alpha {alpha.value:.2f}, {format_level(self.level)} "
            f"{alpha.low:.2f} to {alpha.high:.2f}). The votes do not determine labels. Check that the columns are right, and "
            "the guideline."
        )

    def _warn_collapse(self) -> str:
        labels = self.labels
        has_votes = (labels.n_votes > 0) & (labels.truth < 0)
        n_tasks = int(has_votes.sum())
        is_outvoted = has_votes & is_outvoted_by_another(self.crowd, labels.label)
        n_outvoted = np.bincount(labels.label[is_outvoted], minlength=len(labels.classes))
        top = int(n_outvoted.argmax()) if len(n_outvoted) else 0
        if not n_tasks or n_outvoted[top] < max(MIN_COLLAPSED_TASKS, COLLAPSED_SHARE * n_tasks):
            return ""
        share = format_percent(float((labels.label[has_votes] == top).mean()))
        return (
            f"Labels collapse into one class: {self.model.name} puts {share} of the tasks into "
            f"'{display_name(labels.classes[top], 40)}', although another label has more votes on {n_outvoted[top]:,} of them. "
            "Do not use these labels or their confidence; compare with -m majority-vote."
        )

    def _warn_rejection(self) -> str:
        if self.model.name != DEFAULT_METHOD or self.method_check is None or not self.method_check.is_rejected:
            return ""
        check = self.method_check
        return (
            f"Held-out votes reject {check.method}: it gives them {np.exp(-check.distance):.2f} times the probability that "
            f"{check.recommended} gives them. Use -m {check.recommended}."
        )

    # ------------------------------------------------------------------ record

    def to_dict(self, *, with_workers: bool = True) -> dict[str, Any]:
        """Return the figures for JSON.

        Parameters
        ----------
        with_workers : bool, default=True
            Whether to rate the workers, which takes longest.

        Returns
        -------
        dict
            Expected accuracy, mean confidence, flags by worker, recommended method and warnings.
        """
        flags = {str(worker): flags for worker, flags in self.flags.items()} if with_workers else None
        return {
            "expected_accuracy": self.accuracy.to_dict(),
            "mean_confidence": round(self.mean_confidence, 6),
            "flagged_workers": flags,
            "recommended_method": self.recommended_method,
            "warnings": list(self.warnings),
        }

    def describe_flags(self, max_named: int = 5) -> str:
        """Return a phrase that names the flagged workers.

        Parameters
        ----------
        max_named : int, default=5
            Largest number of workers to name.

        Returns
        -------
        str
        """
        flags = self.flags
        n_workers = self.crowd.n_workers if self.crowd.has_workers else 0
        if flags.empty:
            return f"none of {n_workers:,} workers"
        named = ", ".join(f"{display_name(worker, 24)} ({flag})" for worker, flag in flags.head(max_named).items())
        more = f" and {len(flags) - max_named:,} more" if len(flags) > max_named else ""
        return f"{len(flags):,} of {n_workers:,} workers: {named}{more}"


def assess_crowd(
    crowd: CrowdLike,
    model: Method | str | None = None,
    *,
    gold: TruthLike | None = None,
    checked: TruthLike | None = None,
    level: float = LEVEL,
) -> CrowdAssessment:
    """Infer labels and assess the crowd.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes.
    model : Method or str, default=None
        Method fitted to ``crowd``, or the name of one. By default labels are those of the default method, and workers are rated
        by Dawid–Skene. A method with confusion matrices does both.
    gold : Series, mapping or table, default=None
        Known truth of some tasks. A method that is given by name is fitted with it; a fitted one must have been.
    checked : Series, mapping or table, default=None
        Known truth of some tasks that the method does not use; it calibrates the confidence.
    level : float, default=0.9
        Probability of intervals.

    Returns
    -------
    CrowdAssessment

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> print(assess_crowd(simulate_crowd(n_tasks=100, votes_per_task=5, random_state=0).crowd, "majority-vote").model.name)
    majority-vote
    """
    votes = as_crowd(crowd)
    fitted: Any = model
    if model is None or isinstance(model, str):
        if votes.n_votes == 0:
            raise InputError("the crowd has no votes; give at least one")
        method_class: Any = find(model or DEFAULT_METHOD)
        fitted = method_class().fit(votes, truth=gold)
    if not hasattr(fitted, "posterior_"):
        raise UsageError(f"this {type(fitted).__name__} is not fitted; pass {type(fitted).__name__}().fit(crowd)")
    return CrowdAssessment(votes, fitted, gold, checked, level=level)


def sort_flagged_first(workers: pd.DataFrame) -> pd.DataFrame:
    """Sort a table of workers: flagged ones first, and those with most votes before others.

    Parameters
    ----------
    workers : DataFrame
        Table with the columns ``flags`` and ``n_votes``.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> table = pd.DataFrame({"n_votes": [9, 5, 7], "flags": ["", "spammer", ""]}, index=["ann", "bob", "cy"])
    >>> sort_flagged_first(table).index.tolist()
    ['bob', 'ann', 'cy']
    """
    is_flagged = (workers["flags"] != "").to_numpy()
    return workers.iloc[np.lexsort((-workers["n_votes"].to_numpy(), ~is_flagged))]


def is_outvoted_by_another(crowd: Crowd, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether another label has more votes than the label of each task.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    labels : ndarray of int of shape (n_tasks,)
        Code of the label of each task.

    Returns
    -------
    ndarray of bool of shape (n_tasks,)

    Examples
    --------
    >>> votes = Crowd.from_triples([("t1", "ann", "a"), ("t1", "bob", "b"), ("t1", "cy", "b"), ("t2", "ann", "a")])
    >>> is_outvoted_by_another(votes, np.array([0, 0])).tolist()
    [True, False]
    """
    # Sums over the (task, label) cells that occur; there are as many as votes, even if classes are many.
    cell, position = np.unique(crowd.task.astype(np.int64) * crowd.n_classes + crowd.label, return_inverse=True)
    most = np.zeros(crowd.n_tasks)
    np.maximum.at(most, cell // max(crowd.n_classes, 1), np.bincount(position, crowd.weight))
    own = np.bincount(crowd.task, crowd.weight * (crowd.label == labels[crowd.task]), minlength=crowd.n_tasks)
    return np.asarray(most > own)


def _can_leave_votes_out(model: ConfusionEM, crowd: Crowd) -> bool:
    """Return whether single votes can be removed from the posterior of a model, which rating workers needs."""
    return len(model.e_step_prior_) == crowd.n_classes or model.tally_is_sufficient
