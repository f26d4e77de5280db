"""Diagnosis of boxes, points and spans: workers, tasks and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHODS
from wisecrowd.base.mark_aggregator import MarkAggregator
from wisecrowd.base.registry import find
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.overlaps import SimilarPairs, find_box_pairs, find_point_pairs, find_span_pairs
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.notebook import render_html

#: Votes from which a worker is flagged.
MIN_VOTES = 5
#: Detection rate, relative to the median worker, below which a worker misses too much.
MIN_DETECTION = 0.5
#: Expected share of false marks from which a worker raises too many false alarms.
MAX_FALSE_SHARE = 0.5
#: Size of marks relative to objects outside of which a worker draws too small or too large.
SIZE_RANGE = (0.7, 1.4)
#: Error of boundaries, relative to the median worker, from which a worker is imprecise.
MAX_BOUNDARY_ERROR = 2.0
#: Similarity from which marks of two workers agree.
AGREEMENT_SIMILARITY = 0.5


@dataclass(frozen=True, eq=False)
class MarkDiagnosis:
    """Diagnosis of marks by one fitted method.

    All results are computed when they are first accessed.

    Parameters
    ----------
    crowd : MarkCrowd
        Votes.
    model : MarkAggregator
        Method fitted to them.

    Examples
    --------
    >>> from wisecrowd import simulate_boxes
    >>> result = diagnose_marks(simulate_boxes(n_tasks=60, random_state=0).crowd)
    >>> result.workers.columns.tolist()[:4]
    ['n_votes', 'n_marks', 'marks_per_vote', 'agreement']
    """

    crowd: MarkCrowd
    model: MarkAggregator

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.workers)

    def __repr__(self) -> str:
        figures = self.overview
        agreement = figures["agreement"]
        return (
            f"Diagnosis of {self.crowd!r}\n"
            f"  agreement: {'undefined' if agreement is None else f'pairwise F1 {agreement:.2f}'}; flagged workers: "
            f"{figures['flagged_workers']}\n  see: .workers, .tasks, .overview"
        )

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Number of objects and expected F1 score of every task, the least certain first."""
        return self.model.tasks_.sort_values("expected_f1", kind="stable")

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Table of workers.

        Columns are n_votes, n_marks, marks_per_vote, agreement (share of a worker's marks and of others' marks on the same tasks
        that match, a pairwise F1 score), the columns of the method, flags (silent, misses, false-alarms, too-large, too-small or
        imprecise) and why.
        """
        crowd, fitted = self.crowd, self.model.workers_
        matched, total = self._count_agreement
        with np.errstate(invalid="ignore"):
            agreement = matched / total
        columns: dict[str, Any] = {
            "n_votes": crowd.votes_per_worker,
            "n_marks": crowd.marks_per_worker,
            "marks_per_vote": crowd.marks_per_worker / np.maximum(crowd.votes_per_worker, 1),
            "agreement": agreement,
        }
        table = pd.DataFrame(columns, index=crowd.workers.rename("worker"))
        table = table.join(fitted[[name for name in fitted if name not in table]])
        flags, reasons = self._find_flags(table)
        return table.assign(flags=flags, why=reasons)

    def _find_flags(self, table: pd.DataFrame) -> tuple[list[str], list[str]]:
        """Return the flags of every worker and the reasons."""
        detection = table["detection_rate"].to_numpy()
        error = table["boundary_error"].to_numpy()
        false_share = table["false_alarms"].to_numpy() / np.maximum(table["marks_per_vote"].to_numpy(), 1e-9)
        size = table["size_ratio"].to_numpy() if "size_ratio" in table else np.ones(len(table))
        has_marks = table["n_marks"].to_numpy() >= MIN_VOTES
        typical_detection, typical_error = np.nanmedian(detection), np.nanmedian(error)
        rules: list[tuple[str, NDArray[np.bool_], NDArray[Any], str]] = [
            ("silent", table["n_marks"].to_numpy() == 0, detection, "never marks anything"),
            (
                "misses",
                (detection < MIN_DETECTION * typical_detection) & (table["n_marks"].to_numpy() > 0),
                detection,
                f"marks {{:.0%}} of the objects; the median worker marks {typical_detection:.0%}",
            ),
            (
                "false-alarms",
                has_marks & (false_share > MAX_FALSE_SHARE),
                false_share,
                "{:.0%} of the marks are probably false",
            ),
            ("too-small", has_marks & (size < SIZE_RANGE[0]), size, "marks have {:.0%} of the size of the objects"),
            ("too-large", has_marks & (size > SIZE_RANGE[1]), size, "marks have {:.0%} of the size of the objects"),
            (
                "imprecise",
                has_marks & (error > MAX_BOUNDARY_ERROR * typical_error),
                error,
                f"boundaries are off by {{:.2f}}; those of the median worker by {typical_error:.2f}",
            ),
        ]
        flags: list[list[str]] = [[] for _ in range(len(table))]
        reasons: list[list[str]] = [[] for _ in range(len(table))]
        is_judged = table["n_votes"].to_numpy() >= MIN_VOTES
        for name, mask, values, text in rules:
            for code in np.flatnonzero(mask & is_judged):
                flags[code].append(name)
                reasons[code].append(text.format(values[code]))
        return [", ".join(names) for names in flags], ["; ".join(parts) for parts in reasons]

    @cached_property
    def _count_agreement(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Matched and all marks of each worker against every other worker on the same tasks, and the other way round."""
        crowd = self.crowd
        pairs = _find_pairs(crowd, self.model)
        worker = crowd.mark_worker
        is_match = (pairs.similarity >= AGREEMENT_SIMILARITY) & (worker[pairs.first] != worker[pairs.second])
        is_match &= crowd.label[pairs.first] == crowd.label[pairs.second]
        mark = np.concatenate([pairs.first[is_match], pairs.second[is_match]])
        other = worker[np.concatenate([pairs.second[is_match], pairs.first[is_match]])].astype(np.int64)
        # A mark matches another worker at most once.
        key = np.unique(mark * np.int64(max(crowd.n_workers, 1)) + other)
        mark, other = np.divmod(key, max(crowd.n_workers, 1))
        n_workers = crowd.n_workers
        matched = np.bincount(worker[mark], minlength=n_workers) + np.bincount(other, minlength=n_workers)
        n_marks = np.diff(crowd.offset)
        in_task = np.bincount(crowd.task, n_marks, crowd.n_tasks)
        n_others = crowd.votes_per_task[crowd.task] - 1
        total = np.bincount(crowd.worker, n_marks * n_others + in_task[crowd.task] - n_marks, n_workers)
        return matched.astype(np.float64), total.astype(np.float64)

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures, ready for JSON."""
        crowd, objects = self.crowd, self.model.objects_
        matched, total = self._count_agreement
        agreement = float(matched.sum() / total.sum()) if total.sum() else None
        return {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "votes": crowd.n_votes,
            "marks": crowd.n_marks,
            "marks_per_vote": round(crowd.n_marks / max(crowd.n_votes, 1), 4),
            "empty_votes": round(float((np.diff(crowd.offset) == 0).mean()), 4),
            "agreement": None if agreement is None else round(agreement, 4),
            "objects": len(objects),
            "expected_f1": round(float(self.tasks["expected_f1"].mean()), 4),
            "mean_confidence": round(float(objects["confidence"].mean()), 4) if len(objects) else None,
            "flagged_workers": int((self.workers["flags"] != "").sum()),
        }


def _find_pairs(crowd: MarkCrowd, model: MarkAggregator) -> SimilarPairs:
    """Return the pairs of marks that overlap."""
    if crowd.answer_type == "points":
        return find_point_pairs(crowd.mark_task, crowd.coordinates, float(getattr(model, "radius_", 1.0)))
    find_pairs = find_box_pairs if crowd.answer_type == "boxes" else find_span_pairs
    return find_pairs(crowd.mark_task, crowd.coordinates)


def diagnose_marks(crowd: MarkCrowd, *, model: MarkAggregator | str | None = None) -> MarkDiagnosis:
    """Diagnose the workers and tasks of boxes, points or spans.

    Parameters
    ----------
    crowd : MarkCrowd
        Votes.
    model : MarkAggregator or str, default=None
        Fitted method, or the name of one. Defaults to the default method for the marks.

    Returns
    -------
    MarkDiagnosis

    Raises
    ------
    InputError
        If the votes are no marks.
    UsageError
        If the method does not infer objects.

    Examples
    --------
    >>> from wisecrowd import simulate_spans
    >>> diagnose_marks(simulate_spans(n_tasks=60, random_state=0).crowd).overview["workers"]
    20
    """
    if not isinstance(crowd, MarkCrowd):
        raise InputError(f"expected a BoxCrowd, PointCrowd or SpanCrowd; got {type(crowd).__name__}")
    fitted: Any = model
    if model is None or isinstance(model, str):
        unfitted: Any = find(model or DEFAULT_METHODS[crowd.answer_type])()
        if not isinstance(unfitted, MarkAggregator):
            raise UsageError(f"model must infer objects, such as {DEFAULT_METHODS[crowd.answer_type]!r}; got {model!r}")
        fitted = unfitted.fit(crowd)
    if not isinstance(fitted, MarkAggregator):
        raise UsageError(f"model must infer objects, such as {DEFAULT_METHODS[crowd.answer_type]!r}; got {fitted!r}")
    return MarkDiagnosis(crowd, fitted)
