"""Diagnosis of a crowd: workers, tasks, groups and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.diagnose.agreement import fleiss_kappa, gwet_ac1, krippendorff_alpha
from wisecrowd.diagnose.assessment import CrowdAssessment, sort_flagged_first
from wisecrowd.diagnose.groups import WorkerGroups, group_workers
from wisecrowd.diagnose.intraclass import intraclass_correlation
from wisecrowd.diagnose.preparation import resolve_model
from wisecrowd.diagnose.raters import RaterDiagnosis, diagnose_raters
from wisecrowd.diagnose.tasks import TASK_KINDS, TaskDiagnosis
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils.levels import LEVEL
from wisecrowd.utils.notebook import render_html


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Diagnosis of a crowd, its workers and its tasks.

    All results are computed when they are first accessed.

    Parameters
    ----------
    assessment : CrowdAssessment
        Labels, confidence, worker flags and warnings, which all views share.
    X : DataFrame or ndarray, default=None
        Features of the tasks.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> result = diagnose_crowd(simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=5).crowd)
    >>> result.workers.shape[0], result.tasks.shape[0], result.confusion.shape
    (10, 200, (4, 4))
    """

    assessment: CrowdAssessment
    X: FeaturesLike | None = None

    @property
    def crowd(self) -> Crowd:
        """Votes."""
        return self.assessment.crowd

    @property
    def model(self) -> ConfusionEM:
        """Model that infers the labels."""
        assert isinstance(self.assessment.model, ConfusionEM)
        return self.assessment.model

    @property
    def level(self) -> float:
        """Probability of intervals."""
        return self.assessment.level

    def _repr_html_(self) -> str:
        return render_html(repr(self), sort_flagged_first(self.workers))

    def __repr__(self) -> str:
        figures = self.overview
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in figures["tasks_by_kind"].items() if n)
        flagged = self.assessment.flags
        alpha = figures["krippendorff_alpha"]
        warnings = "".join(f"  warning: {warning}\n" for warning in self.assessment.warnings)
        return (
            f"Diagnosis of {self.crowd!r}\n{warnings}"
            f"  agreement: {'undefined' if alpha is None else f'alpha {alpha:.2f}'}; tasks: {kinds}\n"
            f"  flagged workers: {', '.join(f'{name!r} ({flags})' for name, flags in flagged.head(8).items()) or 'none'}"
            f"{f' and {len(flagged) - 8:,} more' if len(flagged) > 8 else ''}\n"
            "  see: .workers, .tasks, .groups, .confusion, .overview"
        )

    @cached_property
    def worker_diagnosis(self) -> WorkerDiagnosis:
        """Diagnosis of the workers, with confusion matrices and copying pairs."""
        return self.assessment.workers

    @cached_property
    def task_diagnosis(self) -> TaskDiagnosis:
        """Diagnosis of the tasks."""
        return TaskDiagnosis(self.crowd, self.model, self.X, self.assessment.labels)

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Table of `WorkerDiagnosis`, one row per worker."""
        return self.assessment.worker_table

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Table of `TaskDiagnosis`, one row per task."""
        return self.task_diagnosis.table

    @cached_property
    def raters(self) -> RaterDiagnosis | None:
        """Severity and fit of raters if classes are ordered, else None; see `diagnose_raters`."""
        return diagnose_raters(self.crowd) if self.crowd.is_ordered else None

    @cached_property
    def groups(self) -> WorkerGroups:
        """Groups of workers with similar errors; see `group_workers`."""
        return group_workers(self.worker_diagnosis)

    def frequent_classes(self, max_classes: int = 20) -> NDArray[np.intp]:
        """Return the positions of the most frequent classes, in the order of the crowd's classes.

        Parameters
        ----------
        max_classes : int, default=20
            Largest number of classes to return.

        Returns
        -------
        ndarray of shape (n_frequent_classes,)
        """
        share = self.model.posterior_.mean(axis=0)
        return np.sort(np.argsort(-share, kind="stable")[:max_classes])

    @cached_property
    def confusion(self) -> pd.DataFrame:
        """Confusion matrix of the whole crowd, true classes by row and labels by column."""
        classes = self.model.classes_
        return pd.DataFrame(
            self.worker_diagnosis.confusion,
            index=pd.Index(classes, name="true"),
            columns=pd.Index(classes, name="said"),
        )

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures about the crowd, ready for JSON."""
        crowd = self.crowd
        alpha, accuracy = self.assessment.agreement, self.assessment.accuracy
        per_worker = crowd.votes_per_worker[crowd.votes_per_worker > 0]
        figures: dict[str, Any] = {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "votes": crowd.n_votes,
            "votes_per_task": round(crowd.n_votes / max(int((crowd.votes_per_task > 0).sum()), 1), 4),
            "votes_per_worker_median": float(np.median(per_worker)),
            "workers_with_fewer_than_10_votes": int((per_worker < 10).sum()),
            "density": round(crowd.n_votes / max(crowd.n_tasks * crowd.n_workers, 1), 6),
            "krippendorff_alpha": alpha.value,
            "krippendorff_alpha_low": alpha.low,
            "krippendorff_alpha_high": alpha.high,
            "gwet_ac1": float(gwet_ac1(crowd)),
            "expected_accuracy": accuracy.accuracy,
            "expected_accuracy_low": accuracy.low,
            "expected_accuracy_high": accuracy.high,
            "tasks_by_kind": {kind: int((self.task_diagnosis.kind == kind).sum()) for kind in TASK_KINDS},
            "flagged_workers": len(self.assessment.flags),
            "interval_level": self.level,
        }
        if self.raters is not None:
            ordinal = krippendorff_alpha(crowd, "ordinal", interval=self.level)
            figures |= {
                "ordinal_alpha": ordinal.value,
                "ordinal_alpha_low": ordinal.low,
                "ordinal_alpha_high": ordinal.high,
                "icc": _compute_icc(crowd),
                "rater_reliability": self.raters.reliability,
                "flagged_raters": int((self.raters.workers["flags"] != "").sum()),
            }
        try:
            figures["fleiss_kappa"] = float(fleiss_kappa(crowd))
        except InputError:  # Fleiss' kappa needs equally many votes on every task
            figures["fleiss_kappa"] = None
        return {
            name: None if isinstance(value, float) and np.isnan(value) else value for name, value in figures.items()
        }


def _compute_icc(crowd: Crowd) -> float:
    """Return the intraclass correlation of one rating, or NaN if no task has two."""
    try:
        return float(intraclass_correlation(crowd)["icc"].iloc[0])
    except InputError:
        return float("nan")


def diagnose_crowd(
    crowd: CrowdLike,
    X: FeaturesLike | None = None,
    *,
    model: ConfusionEM | str | None = None,
    level: float = LEVEL,
    gold: TruthLike | None = None,
    checked: TruthLike | None = None,
) -> Diagnosis:
    """Diagnose the workers and tasks of a crowd.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    X : DataFrame or ndarray, default=None
        Features of the tasks. With features, labels and votes that contradict them are found as well (``aum`` and ``waum``).
    model : ConfusionEM or str, default=None
        Fitted method with confusion matrices, or the name of one, for labels and workers. By default labels are those of the
        default method, and workers are rated by Dawid–Skene.
    level : float, default=0.9
        Probability of intervals.
    gold : Series, mapping or table, default=None
        Known truth of some tasks that the model is fitted with. A fitted ``model`` must have been fitted with it.
    checked : Series, mapping or table, default=None
        Known truth of some tasks that the model was not fitted with; it recalibrates the confidence and narrows the interval of
        the expected accuracy.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from wisecrowd import diagnose_crowd, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, workers=["noisy(0.8)"] * 9 + ["spammer"], votes_per_task=5)
    >>> diagnose_crowd(simulation.crowd).workers.query("flags != ''").index.tolist()
    ['w9']
    """
    votes = require_categorical_crowd(crowd, "diagnosing a crowd")
    fitted = resolve_model(votes, DEFAULT_METHOD if model is None else model, gold)
    return Diagnosis(CrowdAssessment(votes, fitted, gold, checked, level=level), X)
