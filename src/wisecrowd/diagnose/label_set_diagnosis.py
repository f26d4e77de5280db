"""Diagnosis of label sets: workers, labels, tasks and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.default_method import DEFAULT_METHODS
from wisecrowd.base.label_set_aggregator import LabelSetAggregator, as_label_sets
from wisecrowd.base.registry import find
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.diagnose.agreement import AgreementCoefficient
from wisecrowd.diagnose.label_set_agreement import label_alphas, label_set_alpha, worker_set_agreement
from wisecrowd.errors import UsageError
from wisecrowd.io.validation.label_set_checks import find_constant_workers
from wisecrowd.utils.levels import LEVEL
from wisecrowd.utils.notebook import render_html

#: Votes from which a worker is flagged for the rates of hits and false alarms.
MIN_VOTES = 10
#: Difference of the rates of hits and false alarms below which marks say nothing, and below which they say the opposite.
MIN_INFORMEDNESS, REVERSED = 0.15, -0.15


@dataclass(frozen=True, eq=False)
class LabelSetDiagnosis:
    """Diagnosis of label sets by one fitted method.

    All results are computed when they are first accessed.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    model : LabelSetAggregator
        Method fitted to them.

    Examples
    --------
    >>> from wisecrowd import simulate_label_sets
    >>> result = diagnose_label_sets(simulate_label_sets(n_tasks=60, random_state=0).crowd, model="binary-relevance")
    >>> result.workers.columns.tolist()
    ['n_votes', 'labels_per_vote', 'agreement', 'hit_rate', 'false_alarm_rate', 'flags', 'why']
    """

    crowd: LabelSetCrowd
    model: LabelSetAggregator

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.labels)

    def __repr__(self) -> str:
        figures = self.overview
        masi = figures["alpha_masi"]
        return (
            f"Diagnosis of {self.crowd!r}\n"
            f"  agreement: {'undefined' if masi is None else f'alpha (MASI) {masi:.2f}'}; flagged workers: "
            f"{figures['flagged_workers']}\n  see: .workers, .labels, .tasks, .overview"
        )

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Chosen labels of every task with expected F1 score and confidence of the whole set, the least certain first."""
        return self.model.tasks_.sort_values("confidence", kind="stable")

    @cached_property
    def labels(self) -> pd.DataFrame:
        """Table of labels.

        Columns are marked (share of the sets with the label), agreement and alpha of workers on it, chosen (share of the tasks for
        which it is chosen), confidence (mean probability that the decision about the label is right) and uncertain (number of
        tasks where this probability is below 0.8).
        """
        probs = self.model.label_probs_
        chosen = probs >= self.model.threshold_
        right = np.where(chosen, probs, 1 - probs)
        columns = {
            "chosen": chosen.mean(axis=0),
            "confidence": right.mean(axis=0),
            "uncertain": (right < 0.8).sum(axis=0),
        }
        fitted = pd.DataFrame(columns, index=self.model.label_index_.rename("label"))
        return label_alphas(self.crowd).join(fitted)

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Table of workers.

        Columns are n_votes, labels_per_vote, agreement (mean similarity to the sets of other workers on the same tasks, by MASI),
        the columns of the method, flags (empty, one-answer, random or reversed) and why.
        """
        crowd = self.crowd
        n_votes = crowd.votes_per_worker
        n_marks = np.bincount(crowd.worker[crowd.mark], minlength=crowd.n_workers)
        columns: dict[str, Any] = {
            "n_votes": n_votes,
            "labels_per_vote": n_marks / np.maximum(n_votes, 1),
            "agreement": worker_set_agreement(crowd).to_numpy(),
        }
        table = pd.DataFrame(columns, index=crowd.workers.rename("worker"))
        fitted = self.model.workers_
        table = table.join(fitted[[name for name in fitted if name not in table]])
        flags, reasons = np.full(len(table), "", dtype=object), np.full(len(table), "", dtype=object)
        if {"hit_rate", "false_alarm_rate"} <= set(table):
            informedness = (table["hit_rate"] - table["false_alarm_rate"]).to_numpy()
            for code in np.flatnonzero((n_votes >= MIN_VOTES) & (informedness < MIN_INFORMEDNESS)):
                flags[code] = "reversed" if informedness[code] < REVERSED else "random"
                reasons[code] = (
                    f"marks {table['hit_rate'].iloc[code]:.0%} of the labels that apply, and "
                    f"{table['false_alarm_rate'].iloc[code]:.0%} of those that do not"
                )
        for code in np.flatnonzero(find_constant_workers(crowd)):
            flags[code] = "empty" if n_marks[code] == 0 else "one-answer"
            reasons[code] = "never marks a label" if n_marks[code] == 0 else "always marks the same labels"
        return table.assign(flags=flags, why=reasons)

    @cached_property
    def agreement(self) -> AgreementCoefficient:
        """Krippendorff's alpha with the distance MASI and a bootstrap interval."""
        return label_set_alpha(self.crowd, "masi", interval=LEVEL, repeats=400)

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures, ready for JSON."""
        crowd, tasks = self.crowd, self.tasks
        jaccard, whole_sets = label_set_alpha(crowd, "jaccard").value, label_set_alpha(crowd, "nominal").value
        return {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "votes": crowd.n_votes,
            "labels": crowd.n_labels,
            "labels_per_vote": round(len(crowd.label) / max(crowd.n_votes, 1), 4),
            "empty_sets": round(float((np.diff(crowd.offset) == 0).mean()), 4),
            "alpha_masi": _finite(self.agreement.value),
            "alpha_masi_low": _finite(self.agreement.low),
            "alpha_masi_high": _finite(self.agreement.high),
            "alpha_jaccard": _finite(jaccard),
            "alpha_whole_sets": _finite(whole_sets),
            "expected_f1": round(float(tasks["expected_f1"].mean()), 4),
            "mean_confidence": round(float(tasks["confidence"].mean()), 4),
            "flagged_workers": int((self.workers["flags"] != "").sum()),
        }


def _finite(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(float(value), 4)


def diagnose_label_sets(
    crowd: LabelSetCrowd | DataFrameLike, *, model: LabelSetAggregator | str | None = None
) -> LabelSetDiagnosis:
    """Diagnose the workers, labels and tasks of label sets.

    Parameters
    ----------
    crowd : LabelSetCrowd or table
        Votes.
    model : LabelSetAggregator or str, default=None
        Fitted method, or the name of one. Defaults to the label-set mixture.

    Returns
    -------
    LabelSetDiagnosis

    Examples
    --------
    >>> from wisecrowd import simulate_label_sets
    >>> diagnosis = diagnose_label_sets(simulate_label_sets(n_tasks=60, random_state=0).crowd, model="binary-relevance")
    >>> diagnosis.labels.columns.tolist()
    ['marked', 'agreement', 'alpha', 'chosen', 'confidence', 'uncertain']
    """
    votes = as_label_sets(crowd)
    fitted: Any = model
    if model is None or isinstance(model, str):
        unfitted: Any = find(model or DEFAULT_METHODS["multilabel"])()
        fitted = unfitted.fit(votes)
    if not isinstance(fitted, LabelSetAggregator):
        raise UsageError(f"model must infer label sets, such as 'binary-relevance'; got {fitted!r}")
    return LabelSetDiagnosis(votes, fitted)
