"""Diagnosis of masks: workers, tasks and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHODS
from wisecrowd.base.mask_aggregator import MaskAggregator
from wisecrowd.base.registry import find
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import find_vote_patterns
from wisecrowd.diagnose.mask_agreement import MaskAgreement, compute_mask_agreement
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.notebook import render_html

Array = NDArray[np.float64]

#: Masks from which a worker is flagged.
MIN_VOTES = 5
#: Area of masks relative to the results outside of which a worker marks too little or too much.
SIZE_RANGE = (0.7, 1.4)
#: Distance from the results (1 - intersection over union) from which a worker is imprecise, and relative to the median worker.
MIN_DISTANCE, MAX_DISTANCE_RATIO = 0.1, 2.0
#: Intersection over union with the results below which a worker marks something else.
MIN_IOU = 0.1
#: Sum of sensitivity and specificity below which masks are rather those of the background; 1 is chance.
MIN_RATE_SUM = 0.8


@dataclass(frozen=True, eq=False)
class MaskDiagnosis:
    """Diagnosis of masks by one fitted method.

    All results are computed when they are first accessed.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    model : MaskAggregator
        Method fitted to them.

    Examples
    --------
    >>> from wisecrowd import simulate_masks
    >>> result = diagnose_masks(simulate_masks(n_tasks=20, random_state=0).crowd)
    >>> result.workers.columns.tolist()[:5]
    ['n_votes', 'sensitivity', 'specificity', 'agreement', 'pairwise_iou']
    """

    crowd: MaskCrowd
    model: MaskAggregator

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.workers)

    def __repr__(self) -> str:
        figures = self.overview
        agreement = figures["agreement"]
        return (
            f"Diagnosis of {self.crowd!r}\n"
            f"  agreement: {'undefined' if agreement is None else f'pairwise Dice {agreement:.2f}'}; flagged workers: "
            f"{figures['flagged_workers']}\n  see: .workers, .tasks, .overview"
        )

    @cached_property
    def agreement(self) -> MaskAgreement:
        """Overlap of every mask with the other masks of its task."""
        return compute_mask_agreement(self.crowd, find_vote_patterns(self.crowd))

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Area, confidence, expected and mean pairwise Dice coefficient, and votes by task, the least certain first."""
        model, crowd = self.model, self.crowd
        columns = {
            "area": model.runs_.area,
            "confidence": model.expected_iou_,
            "expected_dice": model.expected_dice_,
            "agreement": self.agreement.average(self.agreement.dice, crowd.task, crowd.n_tasks),
            "n_votes": crowd.votes_per_task,
        }
        table = pd.DataFrame(columns, index=crowd.tasks.rename("task"))
        return table.sort_values("confidence", kind="stable")

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Table of workers.

        Columns are n_votes, sensitivity, specificity, agreement and pairwise_iou (mean Dice coefficient and intersection over
        union with the other workers' masks of the same tasks), iou (with the results), area_ratio (median area relative to the
        results), empty_share (masks without pixels, of tasks whose result has some), flags (silent, inverted, elsewhere,
        too-small, too-large, imprecise) and why.
        """
        crowd, model, agreement = self.crowd, self.model, self.agreement
        area, result = crowd.masks.area, model.runs_.area[crowd.task]
        is_compared = result > 0
        worker, n_workers = crowd.worker[is_compared], crowd.n_workers
        ratio = pd.Series(area[is_compared] / result[is_compared]).groupby(worker).median()
        n_compared = np.bincount(worker, minlength=n_workers)
        n_empty = np.bincount(worker, area[is_compared] == 0, n_workers)
        columns: dict[str, Any] = {
            "n_votes": crowd.votes_per_worker,
            "sensitivity": model.sensitivity_,
            "specificity": model.specificity_,
            "agreement": agreement.average(agreement.dice, crowd.worker, n_workers),
            "pairwise_iou": agreement.average(agreement.iou, crowd.worker, n_workers),
            "iou": model.iou_,
            "area_ratio": ratio.reindex(range(n_workers)).to_numpy(),
            "empty_share": np.divide(n_empty, n_compared, out=np.full(n_workers, np.nan), where=n_compared > 0),
        }
        table = pd.DataFrame(columns, index=crowd.workers.rename("worker"))
        flags, reasons = self._find_flags(table)
        return table.assign(flags=flags, why=reasons)

    def _find_flags(self, table: pd.DataFrame) -> tuple[list[str], list[str]]:
        """Return the flags of every worker and the reasons."""
        iou, ratio = table["iou"].to_numpy(), table["area_ratio"].to_numpy()
        distance, rates = 1 - iou, (table["sensitivity"] + table["specificity"]).to_numpy()
        typical = float(np.median(distance)) if len(distance) else 0.0
        is_silent = (table["empty_share"] == 1).to_numpy()
        is_inverted = ~is_silent & (rates < MIN_RATE_SUM)
        is_elsewhere = ~is_silent & ~is_inverted & (iou < MIN_IOU)
        is_other = is_silent | is_inverted | is_elsewhere
        is_rough = ~is_other & (distance > max(MIN_DISTANCE, MAX_DISTANCE_RATIO * typical))
        overlap = f"masks and results share {{:.0%}} of their union; those of the median worker {1 - typical:.0%}"
        area = "masks have {:.0%} of the area of the results"
        rules: list[tuple[str, NDArray[np.bool_], Array, str]] = [
            ("silent", is_silent, iou, "never marks anything"),
            ("inverted", is_inverted, rates - 1, "marks the background: sensitivity + specificity - 1 is {:.2f}"),
            ("elsewhere", is_elsewhere, iou, overlap),
            ("too-small", ~is_other & (ratio < SIZE_RANGE[0]), ratio, area),
            ("too-large", ~is_other & (ratio > SIZE_RANGE[1]), ratio, area),
            ("imprecise", is_rough, iou, overlap),
        ]  # fmt: skip
        flags: list[list[str]] = [[] for _ in range(len(table))]
        reasons: list[list[str]] = [[] for _ in range(len(table))]
        is_judged = table["n_votes"].to_numpy() >= MIN_VOTES
        for name, mask, values, text in rules:
            for code in np.flatnonzero(mask & is_judged):
                flags[code].append(name)
                reasons[code].append(text.format(values[code]))
        return [", ".join(names) for names in flags], ["; ".join(parts) for parts in reasons]

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures, ready for JSON."""
        crowd, model = self.crowd, self.model
        return {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "votes": crowd.n_votes,
            "empty_votes": round(float((crowd.masks.area == 0).mean()), 4),
            "agreement": _round(self.agreement.mean_dice),
            "pairwise_iou": _round(self.agreement.mean_iou),
            "mean_confidence": _round(float(model.expected_iou_.mean())),
            "expected_dice": _round(float(model.expected_dice_.mean())),
            "sensitivity": _round(float(np.median(model.sensitivity_))),
            "specificity": _round(float(np.median(model.specificity_))),
            "flagged_workers": int((self.workers["flags"] != "").sum()),
        }


def _round(value: float) -> float | None:
    """Return a figure for JSON; None if it is undefined."""
    return round(value, 4) if np.isfinite(value) else None


def diagnose_masks(crowd: MaskCrowd, *, model: MaskAggregator | str | None = None) -> MaskDiagnosis:
    """Diagnose the workers and tasks of masks.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    model : MaskAggregator or str, default=None
        Fitted method, or the name of one. Defaults to the default method for masks.

    Returns
    -------
    MaskDiagnosis

    Raises
    ------
    InputError
        If the votes are no masks.
    UsageError
        If the method does not infer masks.

    Examples
    --------
    >>> from wisecrowd import simulate_masks
    >>> diagnose_masks(simulate_masks(n_tasks=20, random_state=0).crowd).overview["workers"]
    12
    """
    if not isinstance(crowd, MaskCrowd):
        raise InputError(f"expected a MaskCrowd; got {type(crowd).__name__}. Build it with MaskCrowd.from_frame(df)")
    method: Any = find(model or DEFAULT_METHODS["masks"])() if model is None or isinstance(model, str) else model
    if not isinstance(method, MaskAggregator):
        raise UsageError(f"model must infer masks, such as {DEFAULT_METHODS['masks']!r}; got {model!r}")
    return MaskDiagnosis(crowd, method.fit(crowd) if method is not model else method)
