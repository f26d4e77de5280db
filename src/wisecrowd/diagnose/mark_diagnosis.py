"""Diagnosis of boxes, points, polygons and spans: workers, tasks and agreement."""

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
from wisecrowd.data.mark_matches import find_mark_pairs
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.overlaps import SimilarPairs
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.diagnose.mark_agreement import HALF_IOU, MarkAgreement, compute_alpha_u, compute_pairwise_agreement
from wisecrowd.diagnose.mark_habits import describe_habits
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
#: Mean displacement of the centre of marks from which they are shifted: relative to objects, in radii of points, in offsets.
MAX_SHIFT = {"boxes": 0.1, "points": 0.5, "polygons": 0.1, "spans": 0.5}
#: Standard errors by which a shift must exceed zero.
SHIFT_ERRORS = 3.0
#: Objects that a worker split or merged, as a number and as a share of the worker's marks, from which a flag is set.
MIN_PARTS, MIN_PARTS_SHARE = 3, 0.1
#: Share of detected objects with another class from which a worker confuses classes, and relative to the median worker.
MIN_CONFUSED, MAX_CONFUSED_RATIO = 0.2, 2.0


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
        that match, a pairwise F1 score), the columns of the method, habits (shift_x and shift_y, or shift of spans; splits,
        merges, confused_share, confuses), flags (silent, misses, false-alarms, too-large, too-small, imprecise, shifted, splits,
        merges, confuses) and why.
        """
        crowd, fitted = self.crowd, self.model.workers_
        columns: dict[str, Any] = {
            "n_votes": crowd.votes_per_worker,
            "n_marks": crowd.marks_per_worker,
            "marks_per_vote": crowd.marks_per_worker / np.maximum(crowd.votes_per_worker, 1),
            "agreement": self.agreement.worker_f1,
        }
        table = pd.DataFrame(columns, index=crowd.workers.rename("worker"))
        table = table.join(fitted[[name for name in fitted if name not in table]]).join(self._habits)
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
        rules += self._habit_rules(table)
        flags: list[list[str]] = [[] for _ in range(len(table))]
        reasons: list[list[str]] = [[] for _ in range(len(table))]
        is_judged = table["n_votes"].to_numpy() >= MIN_VOTES
        for name, mask, values, text in rules:
            for code in np.flatnonzero(mask & is_judged):
                flags[code].append(name)
                reasons[code].append(text.format(values[code]))
        return [", ".join(names) for names in flags], ["; ".join(parts) for parts in reasons]

    def _habit_rules(self, table: pd.DataFrame) -> list[tuple[str, NDArray[np.bool_], NDArray[Any], str]]:
        """Return the flags by shifts, parts and classes: name, workers, values and reason."""
        kind, n_marks = self.crowd.answer_type, np.maximum(table["n_marks"].to_numpy(), 1)
        has_matches = table["n_matches"].to_numpy() >= MIN_VOTES
        rules: list[tuple[str, NDArray[np.bool_], NDArray[Any], str]] = []
        limit = MAX_SHIFT[kind] * (self._radius if kind == "points" else 1.0)
        sides = {
            "shift_x": ("to the right", "to the left"),
            "shift_y": ("down", "up"),
            "shift": ("towards the end", "towards the beginning"),
        }
        unit = {"points": "{:.1f} pixels", "spans": "{:.1f} positions"}.get(kind, "{:.0%} of the size of objects")
        for name, directions in sides.items():
            if name not in table:
                continue
            shift, error = table[name].to_numpy(), table[f"{name}_error"].to_numpy()
            for sign, direction in zip((1, -1), directions, strict=True):
                is_shifted = has_matches & (sign * shift > limit) & (sign * shift > SHIFT_ERRORS * error)
                rules.append(("shifted", is_shifted, np.abs(shift), f"marks lie {unit} {direction}"))
        for name, text in (
            ("splits", "{:.0f} objects marked in parts"),
            ("merges", "{:.0f} marks cover several objects"),
        ):
            if name in table:
                count = table[name].to_numpy()
                rules.append((name, (count >= MIN_PARTS) & (count > MIN_PARTS_SHARE * n_marks), count, text))
        if "confused_share" in table:
            share = table["confused_share"].to_numpy()
            typical = float(np.nanmedian(share)) if np.isfinite(share).any() else 0.0
            is_confused = has_matches & (share > max(MIN_CONFUSED, MAX_CONFUSED_RATIO * typical))
            rules.append(("confuses", is_confused, share, "{:.0%} of the marked objects get another class"))
        return rules

    @property
    def _radius(self) -> float:
        """Distance at which points have a similarity of 1/2."""
        return float(getattr(self.model, "radius_", 1.0))

    @cached_property
    def _habits(self) -> pd.DataFrame:
        """Habits of workers relative to the chosen objects that several workers marked."""
        model = self.model
        chosen = model.candidates_["chosen"].to_numpy() & (model.object_marks_ > 1)
        rings = model.rings_
        return describe_habits(
            self.crowd,
            model.object_task_[chosen],
            model.object_coordinates_[chosen],
            model.object_probs_[chosen].argmax(axis=1),
            self._radius,
            None if rings is None else rings.take(np.flatnonzero(chosen)),
        )

    @cached_property
    def agreement(self) -> MarkAgreement:
        """Agreement of every two workers on overlapping marks of the same class."""
        return compute_pairwise_agreement(self.crowd, pairs=self._mark_pairs)

    @cached_property
    def _mark_pairs(self) -> SimilarPairs:
        """Pairs of marks that overlap, which every measure of agreement needs."""
        crowd = self.crowd
        return find_mark_pairs(crowd.answer_type, crowd.mark_task, crowd.coordinates, self._radius, crowd.get_rings())

    @cached_property
    def expected_scores(self) -> dict[str, float]:
        """Expected precision, recall and F1 of the chosen objects; the recall is relative to objects that somebody marked."""
        table = self.model.candidates_
        confidence, chosen = table["confidence"].to_numpy(), table["chosen"].to_numpy()
        hits, n_chosen, total = float(confidence[chosen].sum()), int(chosen.sum()), float(confidence.sum())
        return {
            "precision": hits / n_chosen if n_chosen else float("nan"),
            "recall": hits / total if total else float("nan"),
            "f1": 2 * hits / (n_chosen + total) if n_chosen + total else float("nan"),
        }

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures, ready for JSON."""
        crowd, objects = self.crowd, self.model.objects_
        scores = self.expected_scores
        return {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "votes": crowd.n_votes,
            "marks": crowd.n_marks,
            "marks_per_vote": round(crowd.n_marks / max(crowd.n_votes, 1), 4),
            "empty_votes": round(float((np.diff(crowd.offset) == 0).mean()), 4),
            **{name: _round(value) for name, value in self._agreement_figures().items()},
            "objects": len(objects),
            "expected_precision": _round(scores["precision"]),
            "expected_recall": _round(scores["recall"]),
            "expected_f1": round(float(self.tasks["expected_f1"].mean()), 4),
            "mean_confidence": round(float(objects["confidence"].mean()), 4) if len(objects) else None,
            "flagged_workers": int((self.workers["flags"] != "").sum()),
        }

    def _agreement_figures(self) -> dict[str, float]:
        """Return the measures of agreement that suit the kind of marks."""
        crowd, figures = self.crowd, {"agreement": self.agreement.f1}
        if isinstance(crowd, SpanCrowd):
            figures["agreement_exact"] = compute_pairwise_agreement(
                crowd, min_similarity=1.0, pairs=self._mark_pairs
            ).f1
            figures["alpha_u"] = compute_alpha_u(crowd)
        elif crowd.has_size:
            agreement = compute_pairwise_agreement(crowd, min_similarity=HALF_IOU, pairs=self._mark_pairs)
            figures["agreement_iou50"] = agreement.f1
        if crowd.has_size:
            figures["mean_iou"] = self.agreement.mean_iou
        return figures


def _round(value: float) -> float | None:
    """Return a figure for JSON; None if it is undefined."""
    return round(value, 4) if np.isfinite(value) else None


def diagnose_marks(crowd: MarkCrowd, *, model: MarkAggregator | str | None = None) -> MarkDiagnosis:
    """Diagnose the workers and tasks of boxes, points, polygons or spans.

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
        raise InputError(f"expected a BoxCrowd, PointCrowd, PolygonCrowd or SpanCrowd; got {type(crowd).__name__}")
    fitted: Any = model
    if model is None or isinstance(model, str):
        unfitted: Any = find(model or DEFAULT_METHODS[crowd.answer_type])()
        if not isinstance(unfitted, MarkAggregator):
            raise UsageError(f"model must infer objects, such as {DEFAULT_METHODS[crowd.answer_type]!r}; got {model!r}")
        fitted = unfitted.fit(crowd)
    if not isinstance(fitted, MarkAggregator):
        raise UsageError(f"model must infer objects, such as {DEFAULT_METHODS[crowd.answer_type]!r}; got {fitted!r}")
    return MarkDiagnosis(crowd, fitted)
