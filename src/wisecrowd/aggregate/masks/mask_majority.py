"""Masks by majority vote on pixels, with optional weights of workers."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.mask_aggregator import (
    TIE_TOLERANCE,
    Array,
    MaskAggregator,
    PixelInference,
    compute_rates,
    compute_vote_iou,
)
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import VotePatterns
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError, check_choice

#: Smallest distance of a mask from the result, so that no worker decides alone.
MIN_DISTANCE = 0.01


@method_class
class MaskMajority(MaskAggregator):
    """Pixels that at least half of the workers marked.

    With ``weights="task"``, a worker weighs log(1 + 1 / d), where d is 1 minus the intersection over union of the worker's
    mask and the result of the iteration before: SegmentationRASA of crowd-kit. With ``weights="worker"``, d is the mean over
    all masks of the worker.

    The confidence takes the weighted share of votes for a pixel as its probability.

    Examples
    --------
    >>> from wisecrowd import MaskCrowd, MaskMajority
    >>> masks = [[[1, 1, 0]], [[1, 1, 0]], [[0, 1, 1]]]
    >>> fitted = MaskMajority().fit(MaskCrowd.from_arrays(["i"] * 3, ["ann", "bob", "cy"], masks))
    >>> fitted.masks_["i"], fitted.tasks_["confidence"].round(3)["i"]
    ({'size': [1, 3], 'counts': '021'}, np.float64(0.714))
    """

    references: ClassVar[tuple[str, ...]] = ("lee2018aggregating", "li2019dataset")

    weights: Literal["equal", "task", "worker"] = parameter(
        default="equal",
        help="Weights of workers: all equal, by the distance of the mask from the result on the task, or by the mean "
        "distance over all "
        "masks of the worker.",
    )
    shrinkage: float = parameter(default=1.0, help="Pseudo-masks that draw a worker's distance to that of the crowd.")
    max_iter: int = parameter(default=20, help="Maximum number of iterations.")
    tol: float = parameter(
        default=1e-4, help="Largest change of a weight, relative to the mean weight, at convergence."
    )

    def _infer_pixels(self, crowd: MaskCrowd, patterns: VotePatterns) -> PixelInference:
        check_choice("weights", self.weights, ("equal", "task", "worker"))
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")

        def compute_share(weight: Array) -> Array:
            """Return the weighted share of votes for every pattern."""
            total = np.bincount(crowd.task, weight, crowd.n_tasks)
            return np.asarray((patterns.marks @ weight) / total[patterns.task])

        def choose(share: Array) -> Array:
            return ((share >= 0.5 - TIE_TOLERANCE) & (patterns.n_marks > 0)).astype(np.float64)

        def step(weight: Array) -> tuple[Array, float]:
            distance = 1 - compute_vote_iou(patterns, crowd, choose(compute_share(weight)) > 0)
            if self.weights == "worker":
                total = np.bincount(crowd.worker, distance, crowd.n_workers) + self.shrinkage * distance.mean()
                distance = (total / np.maximum(crowd.votes_per_worker + self.shrinkage, 1e-9))[crowd.worker]
            updated = np.log1p(1 / np.maximum(distance, MIN_DISTANCE))
            updated /= updated.mean()
            return updated, float(np.abs(updated - weight).max(initial=0))

        weight, n_iter, converged = np.ones(crowd.n_votes), 0, True
        if self.weights != "equal":
            weight, n_iter, converged = iterate_to_fixed_point(
                step, weight, max_iter=self.max_iter, tol=self.tol, title="Masks"
            )
        share = compute_share(weight)
        rates = compute_rates(patterns, crowd, choose(share), patterns.n_pixels)
        return PixelInference(share, patterns.n_pixels, *rates, n_iter, converged, np.empty(0))
