"""The family of aggregators of masks. A task has one mask with a probability per pixel instead of a posterior over classes."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.answer_crowds import as_answer_crowd
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.data.vote_patterns import VotePatterns, find_vote_patterns
from wisecrowd.errors import InputError, NoPosterior, UsageError, check_choice

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Probabilities are compared with this tolerance, so that the order of a sum does not decide a tie.
TIE_TOLERANCE = 1e-9


class PixelInference(NamedTuple):
    """Probabilities of pixels and rates of workers that a method inferred.

    Parameters
    ----------
    probability : ndarray of shape (n_patterns,)
        Probability that pixels with a pattern of votes belong to the mask.
    n_pixels : ndarray of shape (n_patterns,)
        Number of pixels with the pattern in the region that the method looks at.
    sensitivity, specificity : ndarray of shape (n_workers,)
        Share of the pixels inside, and outside, the true masks that a worker gives right.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the iteration converged.
    trace : ndarray
        Log-likelihood before every iteration; empty for methods without one.
    """

    probability: Array
    n_pixels: Array
    sensitivity: Array
    specificity: Array
    n_iter: int
    converged: bool
    trace: Array


def as_masks(votes: MaskCrowd | DataFrameLike) -> MaskCrowd:
    """Convert votes to a crowd of masks.

    Parameters
    ----------
    votes : MaskCrowd or table
        Votes. A table has the columns task, worker and mask, and optionally height and width.

    Returns
    -------
    MaskCrowd

    Raises
    ------
    InputError
        If the votes are no masks, or empty.

    Examples
    --------
    >>> as_masks({"task": ["t"], "worker": ["ann"], "mask": ['{"size": [2, 2], "counts": [0, 4]}']}).n_votes
    1
    """
    return as_answer_crowd(
        votes, MaskCrowd, "masks", columns="task, worker and mask", constructors="from_frame(df) or from_arrays"
    )


@method_class
class MaskAggregator(Aggregator):
    """Base class of aggregators that infer the mask of a task.

    A subclass implements `_infer_pixels`.
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("masks",)

    run_offset_: NDArray[np.int64] = fitted(
        help="Position of the first run of pixels of every mask.", shape=("n_tasks + 1",)
    )
    run_start_: NDArray[np.int64] = fitted(
        help="First pixel of every run; pixels are numbered by columns.", shape=("n_runs",)
    )
    run_end_: NDArray[np.int64] = fitted(help="Pixel after the last one of every run.", shape=("n_runs",))
    height_: NDArray[np.int64] = fitted(help="Height of the image of every task.", shape=("n_tasks",))
    width_: NDArray[np.int64] = fitted(help="Width of the image of every task.", shape=("n_tasks",))
    segment_offset_: NDArray[np.int64] = fitted(
        help="Position of the first segment of pixels with equal votes of every task.", shape=("n_tasks + 1",)
    )
    segment_end_: NDArray[np.int64] = fitted(help="Pixel after the last one of every segment.", shape=("n_segments",))
    segment_probability_: Array = fitted(
        help="Probability that the pixels of a segment belong to the mask.", shape=("n_segments",), finite=True
    )
    expected_iou_: Array = fitted(
        help="Expected intersection over union of a mask and the true one.", shape=("n_tasks",), finite=True
    )
    expected_dice_: Array = fitted(
        help="Expected Dice coefficient of a mask and the true one.", shape=("n_tasks",), finite=True
    )
    sensitivity_: Array = fitted(help="Share of the pixels of true masks that a worker marks.", shape=("n_workers",))
    specificity_: Array = fitted(
        help="Share of the other pixels, in the region that is looked at, that a worker leaves out.",
        shape=("n_workers",),
    )
    iou_: Array = fitted(
        help="Mean intersection over union of a worker's masks and the inferred ones.", shape=("n_workers",)
    )
    n_votes_: int = fitted(help="Number of masks.")
    votes_per_task_: NDArray[np.int64] = fitted(help="Number of masks of each task.", shape=("n_tasks",))
    votes_per_worker_: NDArray[np.int64] = fitted(help="Number of masks of each worker.", shape=("n_workers",))
    trace_: Array = fitted(help="Log-likelihood before every iteration.", shape=("n_steps",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the iteration converged.")

    threshold: Literal["half", "iou"] = parameter(
        default="half",
        help="Choose pixels that are at least as likely as not ('half'), or so that the expected intersection over union of every "
        "task is highest ('iou').",
    )

    def fit(  # type: ignore[override]  # masks instead of votes on classes
        self,
        crowd: MaskCrowd | DataFrameLike,
        X: FeaturesLike | None = None,
        *,
        truth: Any = None,
        start: Any = None,
    ) -> Self:
        """Infer the mask of every task.

        Parameters
        ----------
        crowd : MaskCrowd or table
            Votes.
        X : None
            Not used.
        truth : None
            Not used.
        start : None
            Not used.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        check_choice("threshold", self.threshold, ("half", "iou"))
        if X is not None or truth is not None or start is not None:
            raise UsageError(f"{type(self).__name__} takes votes only; leave X, truth and start out")
        votes = as_masks(crowd)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.task_index_, self.worker_index_ = votes.tasks, votes.workers
        self.height_, self.width_ = votes.height, votes.width
        self.n_votes_, self.votes_per_task_, self.votes_per_worker_ = (
            votes.n_votes, votes.votes_per_task, votes.votes_per_worker,
        )  # fmt: skip
        patterns = find_vote_patterns(votes)
        inference = self._infer_pixels(votes, patterns)
        # Nobody marked the pixels of an empty pattern, so they are never chosen.
        if self.threshold == "half":
            is_chosen = inference.probability >= 0.5 - TIE_TOLERANCE
        else:
            is_chosen = choose_by_iou(patterns, inference.probability, inference.n_pixels)
        is_chosen &= patterns.n_marks > 0
        masks = patterns.select_masks(is_chosen, votes.height, votes.width)
        self.run_offset_, self.run_start_, self.run_end_ = masks.offset, masks.start, masks.end
        n_segments = np.bincount(patterns.task[patterns.segment_pattern], minlength=votes.n_tasks)
        self.segment_offset_ = np.concatenate([[0], np.cumsum(n_segments)]).astype(np.int64)
        self.segment_end_ = patterns.segment_end
        self.segment_probability_ = inference.probability[patterns.segment_pattern]
        self.expected_iou_, self.expected_dice_ = compute_expected_overlap(
            patterns, inference.probability, inference.n_pixels, is_chosen
        )
        has_votes = votes.votes_per_task > 0
        self.expected_iou_[~has_votes] = self.expected_dice_[~has_votes] = 0.0
        self.sensitivity_, self.specificity_ = inference.sensitivity, inference.specificity
        iou = compute_vote_iou(patterns, votes, is_chosen)
        self.iou_ = np.bincount(votes.worker, iou, votes.n_workers) / np.maximum(votes.votes_per_worker, 1)
        self.n_iter_, self.converged_, self.trace_ = inference.n_iter, inference.converged, inference.trace
        self._finish_fit(start_time)
        return self

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        raise UsageError(f"{type(self).__name__} is fitted with fit(masks)")

    @abstractmethod
    def _infer_pixels(self, crowd: MaskCrowd, patterns: VotePatterns) -> PixelInference:
        """Return the probabilities of pixels and the rates of workers."""

    def check_restored(self) -> None:
        """Raise ValueError if runs or segments that were read from files are outside their images."""
        super().check_restored()
        size = self.height_ * self.width_
        for offset, end in ((self.run_offset_, self.run_end_), (self.segment_offset_, self.segment_end_)):
            if offset[0] != 0 or offset[-1] != len(end) or (np.diff(offset) < 0).any():
                raise ValueError("offsets of runs and segments must ascend from 0 to their number")
        is_inside = (self.run_start_ >= 0) & (self.run_end_ > self.run_start_)
        if not is_inside.all() or (self.run_end_ > np.repeat(size, np.diff(self.run_offset_))).any():
            raise ValueError("runs must be inside their images")
        n_segments = np.diff(self.segment_offset_)
        before = np.concatenate([[0], self.segment_end_[:-1]]) if len(self.segment_end_) else self.segment_end_
        before[self.segment_offset_[:-1][n_segments > 0]] = 0
        has_segments = n_segments > 0
        last = self.segment_end_[self.segment_offset_[1:][has_segments] - 1]
        if (self.segment_end_ <= before).any() or (last != size[has_segments]).any():
            raise ValueError("segments must cover their images")

    # ------------------------------------------------------------------ results

    @property
    def runs_(self) -> MaskRuns:
        """Inferred masks as runs of pixels, in the order of tasks."""
        self._check_fitted("expected_iou_")
        return MaskRuns(self.run_offset_, self.run_start_, self.run_end_, self.height_, self.width_)

    @property
    def masks_(self) -> pd.Series:
        """Mask of every task in COCO's run-length encoding, as a Series of dictionaries indexed by task."""
        masks = self.runs_.to_coco()
        return pd.Series(masks, index=self.task_index_.rename("task"), name="mask", dtype=object)

    @property
    def labels_(self) -> pd.Series:
        """Mask of every task; the same as ``masks_``."""
        return self.masks_

    def mask_of(self, task: Any) -> NDArray[np.bool_]:
        """Return the inferred mask of a task as an array of pixels.

        Parameters
        ----------
        task : object
            Id of the task.

        Returns
        -------
        ndarray of bool of shape (height, width)
        """
        return self.runs_.to_array(self._find_task(task))

    def probability_of(self, task: Any) -> Array:
        """Return the probability of every pixel of a task to belong to the mask.

        Parameters
        ----------
        task : object
            Id of the task.

        Returns
        -------
        ndarray of shape (height, width)
        """
        row = self._find_task(task)
        segments = slice(self.segment_offset_[row], self.segment_offset_[row + 1])
        length = np.diff(self.segment_end_[segments], prepend=0)
        height, width = int(self.height_[row]), int(self.width_[row])
        values = np.repeat(self.segment_probability_[segments], length)
        return np.zeros((height, width)) if not len(values) else values.reshape((height, width), order="F")

    def _find_task(self, task: Any) -> int:
        """Return the position of a task."""
        self._check_fitted("expected_iou_")
        position = self.task_index_.get_indexer(pd.Index([task]))[0]
        if position < 0:
            raise InputError(f"there is no task {task!r}; see task_index_ for all tasks")
        return int(position)

    @property
    def tasks_(self) -> pd.DataFrame:
        """Mask, area, confidence (expected intersection over union), expected Dice coefficient and votes of every task."""
        runs = self.runs_
        columns = {
            "mask": np.array(runs.to_texts(), dtype=object),
            "area": runs.area,
            "confidence": self.expected_iou_,
            "expected_dice": self.expected_dice_,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: number of masks, sensitivity, specificity, and intersection over union with the inferred masks."""
        self._check_fitted("expected_iou_")
        assert self.worker_index_ is not None
        columns = {
            "n_votes": self.votes_per_worker_,
            "sensitivity": self.sensitivity_,
            "specificity": self.specificity_,
            "iou": self.iou_,
        }
        return pd.DataFrame(columns, index=self.worker_index_.rename("worker"))

    def _repr_html_(self) -> str:
        from wisecrowd.utils.notebook import render_html

        return render_html(repr(self), self.tasks_ if "expected_iou_" in vars(self) else None)

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "expected_iou_" in vars(self):
            raise self._make_posterior_error()
        return super()._check_fitted(attribute)

    def _make_posterior_error(self) -> NoPosterior:
        return NoPosterior(
            f"{type(self).__name__} inferred masks, so there is no posterior over classes; use masks_, tasks_, workers_ and "
            "probability_of(task)"
        )

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "confusion_", "tally_", "proba_") and "expected_iou_" in vars(self):
                raise self._make_posterior_error()
            return super().__getattr__(name)


def compute_expected_overlap(
    patterns: VotePatterns, probability: Array, n_pixels: Array, is_chosen: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Compute the expected intersection over union, and the expected Dice coefficient, of chosen and true pixels.

    Both are ratios of expectations. Two empty masks agree fully.

    Parameters
    ----------
    patterns : VotePatterns
        Patterns of votes.
    probability, n_pixels : ndarray of shape (n_patterns,)
        Probability of pixels, and their number.
    is_chosen : ndarray of bool of shape (n_patterns,)
        Whether pixels are chosen.

    Returns
    -------
    iou, dice : ndarray of shape (n_tasks,)

    Examples
    --------
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> patterns = find_vote_patterns(crowd)
    >>> share = patterns.n_marks / 2
    >>> compute_expected_overlap(patterns, share, patterns.n_pixels, share >= 0.5)[0].tolist()
    [0.75]
    """
    shared = patterns.sum_over_tasks(np.where(is_chosen, probability, 0) * n_pixels)
    chosen = patterns.sum_over_tasks(np.where(is_chosen, n_pixels, 0.0))
    true = patterns.sum_over_tasks(probability * n_pixels)
    union, total = chosen + true - shared, chosen + true
    iou = np.divide(shared, union, out=np.ones(patterns.n_tasks), where=union > 0)
    dice = np.divide(2 * shared, total, out=np.ones(patterns.n_tasks), where=total > 0)
    return iou, dice


def choose_by_iou(patterns: VotePatterns, probability: Array, n_pixels: Array) -> NDArray[np.bool_]:
    """Choose the pixels of every task whose expected intersection over union with the truth is highest.

    The best choice has the most probable pixels: patterns are added in the order of their probability.

    Parameters
    ----------
    patterns : VotePatterns
        Patterns of votes.
    probability, n_pixels : ndarray of shape (n_patterns,)
        Probability of pixels, and their number.

    Returns
    -------
    ndarray of bool of shape (n_patterns,)

    Examples
    --------
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> patterns = find_vote_patterns(crowd)
    >>> choose_by_iou(patterns, np.array([0.0, 0.3, 0.9]), patterns.n_pixels).tolist()
    [False, False, True]
    """
    order = np.lexsort((-probability, patterns.task))
    task, weight = patterns.task[order], n_pixels[order]
    expected = (probability * n_pixels)[order]

    def cumulate(values: Array) -> Array:
        """Return cumulated sums that begin anew with every task."""
        total = np.cumsum(values)
        begins = np.append(True, np.diff(task) != 0)[: len(task)]
        before = (total - values)[begins]
        return np.asarray(total - before[np.cumsum(begins) - 1]) if len(total) else total

    shared = cumulate(expected)
    true = patterns.sum_over_tasks(probability * n_pixels)[task]
    iou = shared / np.maximum(cumulate(weight) + true - shared, 1e-300)
    best = np.zeros(patterns.n_tasks)
    np.maximum.at(best, task, iou)
    # Everything up to the first place where the expectation is highest.
    is_best = iou >= best[task] - TIE_TOLERANCE
    reached = cumulate(is_best.astype(np.float64)) - is_best
    is_chosen = np.zeros(len(order), dtype=bool)
    is_chosen[order] = (reached == 0) & (best[task] > 0)
    return is_chosen


def compute_vote_iou(patterns: VotePatterns, crowd: MaskCrowd, is_chosen: NDArray[np.bool_]) -> Array:
    """Compute the intersection over union of every mask of a worker and the chosen pixels of its task.

    Parameters
    ----------
    patterns : VotePatterns
        Patterns of votes.
    crowd : MaskCrowd
        Masks.
    is_chosen : ndarray of bool of shape (n_patterns,)
        Whether pixels are chosen.

    Returns
    -------
    ndarray of shape (n_votes,)
        1 where both are empty.

    Examples
    --------
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> compute_vote_iou(find_vote_patterns(crowd), crowd, np.array([False, False, True])).tolist()
    [0.5, 1.0]
    """
    chosen = np.where(is_chosen, patterns.n_pixels, 0.0)
    shared = patterns.marks_by_vote @ chosen
    union = crowd.masks.area + patterns.sum_over_tasks(chosen)[crowd.task] - shared
    return np.asarray(np.divide(shared, union, out=np.ones(crowd.n_votes), where=union > 0))


def compute_rates(patterns: VotePatterns, crowd: MaskCrowd, probability: Array, n_pixels: Array) -> tuple[Array, Array]:
    """Compute sensitivity and specificity of workers against pixels that are true with some probability.

    Parameters
    ----------
    patterns : VotePatterns
        Patterns of votes.
    crowd : MaskCrowd
        Masks.
    probability, n_pixels : ndarray of shape (n_patterns,)
        Probability of pixels, and their number.

    Returns
    -------
    sensitivity, specificity : ndarray of shape (n_workers,)
        1 for workers without such pixels.

    Examples
    --------
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> patterns = find_vote_patterns(crowd)
    >>> compute_rates(patterns, crowd, np.array([0.0, 0.0, 1.0]), patterns.n_pixels)[1].tolist()
    [0.5, 1.0]
    """
    rates = []
    for values, marks_are_right in ((probability * n_pixels, True), ((1 - probability) * n_pixels, False)):
        total = np.bincount(crowd.worker, patterns.sum_over_tasks(values)[crowd.task], crowd.n_workers)
        marked = np.bincount(crowd.worker, patterns.marks_by_vote @ values, crowd.n_workers)
        right = marked if marks_are_right else total - marked
        rates.append(np.clip(np.divide(right, total, out=np.ones(crowd.n_workers), where=total > 0), 0, 1))
    return rates[0], rates[1]
