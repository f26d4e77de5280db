"""The family of aggregators of numeric labels.

A task has an estimate instead of a posterior, and a worker has errors instead of a confusion matrix.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class
from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, NoPosterior, UsageError, preview

Array = NDArray[np.float64]

#: Difference of a share of weight from one half below which it is one half; the median then lies between two labels.
TIE_TOLERANCE = 1e-8
#: Largest absolute label: squares of larger numbers overflow when they are summed.
MAX_ABSOLUTE_LABEL = 1e150


@dataclass(frozen=True, eq=False)
class NumericVotes:
    """Votes of a numeric crowd, prepared for repeated averages with different weights of the workers.

    Parameters
    ----------
    crowd : Crowd
        Votes with numeric labels. Weights of votes count like repetitions.
    truth : ndarray of shape (n_tasks,), optional
        Known values, NaN where the truth is unknown.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t1", "cy", 9.0)], numeric=True)
    >>> votes = NumericVotes(crowd)
    >>> votes.mean().tolist(), votes.median().tolist(), votes.mean(np.array([2.0, 1.0, 0.0])).round(3).tolist()
    ([4.0], [2.0], [1.333])
    """

    crowd: Crowd
    truth: Array | None = None

    def sum_by_task(self, value: Array) -> Array:
        """Sum values of votes by task.

        Parameters
        ----------
        value : ndarray of shape (n_votes,)
            Values.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        return np.asarray(np.bincount(self.crowd.task, value * self.crowd.weight, self.crowd.n_tasks), dtype=np.float64)

    def sum_by_worker(self, value: Array) -> Array:
        """Sum values of votes by worker.

        Parameters
        ----------
        value : ndarray of shape (n_votes,)
            Values.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        assert self.crowd.worker is not None
        sums = np.bincount(self.crowd.worker, value * self.crowd.weight, self.crowd.n_workers)
        return np.asarray(sums, dtype=np.float64)

    @cached_property
    def worker_totals(self) -> Array:
        """Total weight of the votes of each worker."""
        return self.sum_by_worker(np.ones(self.crowd.n_votes))

    @property
    def has_votes(self) -> NDArray[np.bool_]:
        """Mask of the tasks with votes."""
        return self.crowd.votes_per_task > 0

    def error(self, estimate: Array) -> Array:
        """Return the difference between each label and the estimate of its task.

        Parameters
        ----------
        estimate : ndarray of shape (n_tasks,)
            Estimates.

        Returns
        -------
        ndarray of shape (n_votes,)
        """
        return self.crowd.label - estimate[self.crowd.task]

    def mean(self, weight: Array | None = None) -> Array:
        """Return the weighted mean of the labels of every task.

        Parameters
        ----------
        weight : ndarray of shape (n_workers,), optional
            Weights of the workers; equal weights if not given.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        share = self._compute_shares(weight)
        # Relative to the plain mean, so that labels far from zero lose no digits.
        centre = self.sum_by_task(self.crowd.label * self._compute_shares(None))
        return self._fill_estimates(centre + self.sum_by_task(share * self.error(centre)))

    def median(self, weight: Array | None = None) -> Array:
        """Return the weighted median of the labels of every task; the middle of two labels if both are medians.

        Parameters
        ----------
        weight : ndarray of shape (n_workers,), optional
            Weights of the workers; equal weights if not given.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        crowd, order = self.crowd, self._order
        share = (self._compute_shares(weight) * crowd.weight)[order]
        # Relative to the start of the task: a running sum over all tasks would drift by more than the tie tolerance.
        total = np.cumsum(share)
        total_before_task = np.concatenate([[0.0], total])[crowd.offset[:-1]]
        cumulative = total - total_before_task[crowd.task]
        n_below, n_below_or_tied = (
            np.bincount(crowd.task, cumulative < half, crowd.n_tasks).astype(np.int64)
            for half in (0.5 - TIE_TOLERANCE, 0.5 + TIE_TOLERANCE)
        )
        tasks = np.flatnonzero(self.has_votes)
        first, last = crowd.offset[tasks], crowd.offset[tasks + 1] - 1
        label = crowd.label[order]
        lower, upper = (label[np.minimum(first + count[tasks], last)] for count in (n_below, n_below_or_tied))
        middle = np.zeros(crowd.n_tasks)
        middle[tasks] = lower + (upper - lower) / 2
        return self._fill_estimates(middle)

    def standard_error(self, estimate: Array, weight: Array | None = None) -> Array:
        """Return the standard error of the weighted mean of every task, from the scatter of its labels.

        Parameters
        ----------
        estimate : ndarray of shape (n_tasks,)
            Estimates.
        weight : ndarray of shape (n_workers,), optional
            Weights of the workers; equal weights if not given.

        Returns
        -------
        ndarray of shape (n_tasks,)
            NaN for tasks with a single label, zero for gold tasks.
        """
        share = self._compute_shares(weight)
        n_effective = np.divide(1, self.sum_by_task(share**2), out=np.zeros(len(estimate)), where=self.has_votes)
        scatter = self.sum_by_task((share * self.error(estimate)) ** 2)
        has_several = n_effective > 1 + TIE_TOLERANCE
        variance = np.divide(
            scatter * n_effective, n_effective - 1, out=np.full(len(estimate), np.nan), where=has_several
        )
        return self.zero_gold(np.sqrt(variance))

    def zero_gold(self, standard_error: Array) -> Array:
        """Return standard errors with zero for gold tasks.

        Parameters
        ----------
        standard_error : ndarray of shape (n_tasks,)
            Standard errors.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        return standard_error if self.truth is None else np.where(np.isfinite(self.truth), 0.0, standard_error)

    @cached_property
    def spread(self) -> Array:
        """Standard deviation of the labels of each task."""
        centre = self.sum_by_task(self.crowd.label * self._compute_shares(None))
        return np.sqrt(self.sum_by_task(self._compute_shares(None) * self.error(centre) ** 2))

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.lexsort((self.crowd.label, self.crowd.task))

    def _compute_shares(self, weight: Array | None) -> Array:
        """Return the share of each vote in its task; equal shares where all workers of the task have weight zero."""
        vote_weight = np.ones(self.crowd.n_votes)
        total = self.sum_by_task(vote_weight)
        if weight is not None:
            assert self.crowd.worker is not None
            worker_weight = weight[self.crowd.worker]
            worker_total = self.sum_by_task(worker_weight)
            is_weighted = worker_total > 0
            vote_weight = np.where(is_weighted[self.crowd.task], worker_weight, vote_weight)
            total = np.where(is_weighted, worker_total, total)
        return vote_weight / total[self.crowd.task]

    def _fill_estimates(self, estimate: Array) -> Array:
        """Return estimates with gold inserted, and the mean of the others for tasks without votes."""
        has_estimate = self.has_votes
        if self.truth is not None:
            estimate = np.where(np.isfinite(self.truth), self.truth, estimate)
            has_estimate = has_estimate | np.isfinite(self.truth)
        estimate[~has_estimate] = estimate[self.has_votes].mean()
        return estimate


@method_class
class NumericAggregator(Aggregator):
    """Base class of aggregators that estimate one number per task.

    A subclass implements `_estimate`. A task without votes has the mean of the other estimates. Numeric labels have no
    posterior and no confusion matrices; their attributes raise an error.

    A subclass that also aggregates classes (``answer_types`` includes "categorical") implements `_fit_classes`.
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("numeric",)

    estimates_: Array = fitted(help="Estimate of each task.", shape=("n_tasks",))
    standard_error_: Array = fitted(help="Standard error of each estimate.", shape=("n_tasks",))
    votes_per_task_: Array = fitted(help="Total weight of the votes of each task.", shape=("n_tasks",))
    votes_per_worker_: Array = fitted(help="Total weight of the votes of each worker.", shape=("n_workers",))
    weight_: Array = fitted(help="Weight of each worker.", shape=("n_workers",))
    bias_: Array = fitted(help="Mean error of each worker against the estimates.", shape=("n_workers",))
    mae_: Array = fitted(help="Mean absolute error of each worker against the estimates.", shape=("n_workers",))
    rmse_: Array = fitted(help="Root mean square error of each worker against the estimates.", shape=("n_workers",))

    def fit(
        self, crowd: CrowdLike, X: FeaturesLike | None = None, *, truth: TruthLike | None = None, start: Any = None
    ) -> Self:
        """Estimate every task.

        Parameters
        ----------
        crowd : crowd-like
            Votes.
        X : features-like, optional
            Not used; present for API consistency.
        truth : truth-like, optional
            Known values of some tasks. They replace the estimates, and errors of workers are computed against them.
        start : object, optional
            Not used for numeric labels; posterior or fitted method for classes.

        Returns
        -------
        NumericAggregator
            The method itself.
        """
        votes = self.validate_votes(crowd)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a previous fit may have had the other kind of labels
        if votes.is_numeric:
            if start is not None:
                raise UsageError(f"{type(self).__name__} starts from the labels themselves; leave start out")
            if not (np.abs(votes.label) < MAX_ABSOLUTE_LABEL).all():
                raise InputError(
                    f"numbers must be finite and below {MAX_ABSOLUTE_LABEL:g} in size; drop or rescale the others"
                )
        return super().fit(votes, X, truth=truth, start=start)

    def _encode_gold(self, truth: TruthLike, crowd: Any) -> Any:
        return encode_numeric_truth(truth, crowd) if crowd.is_numeric else super()._encode_gold(truth, crowd)

    def _fit(self, crowd: Crowd, gold: NDArray[Any] | None, *, X: Any, start: Any) -> None:
        if not crowd.is_numeric:
            self._fit_classes(crowd, gold)
            return
        votes = NumericVotes(crowd, gold)
        estimate, weight = self._estimate(votes)
        self.estimates_ = estimate
        self.n_votes_ = crowd.n_votes
        self.votes_per_task_ = votes.sum_by_task(np.ones(crowd.n_votes))
        self.standard_error_ = self._compute_standard_error(votes, estimate, weight)
        if crowd.has_workers:
            self.weight_ = np.ones(crowd.n_workers) if weight is None else weight
            self.votes_per_worker_ = votes.worker_totals
            error = votes.error(estimate)
            with np.errstate(invalid="ignore"):  # a worker without votes has no errors: NaN
                self.bias_ = votes.sum_by_worker(error) / votes.worker_totals
                self.mae_ = votes.sum_by_worker(np.abs(error)) / votes.worker_totals
                self.rmse_ = np.sqrt(votes.sum_by_worker(error**2) / votes.worker_totals)

    @abstractmethod
    def _estimate(self, votes: NumericVotes) -> tuple[Array, Array | None]:
        """Return the estimate of every task, and the weight of every worker (None for equal weights)."""

    def _fit_classes(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """Fit a crowd with classes as labels."""
        raise NotImplementedError(f"{type(self).__name__} aggregates numeric labels only")

    def _compute_standard_error(self, votes: NumericVotes, estimate: Array, weight: Array | None) -> Array:
        """Return the standard error of every estimate: that of the weighted mean."""
        return votes.standard_error(estimate, weight)

    # ------------------------------------------------------------------ results

    @property
    def labels_(self) -> pd.Series:
        """Estimate of every task."""
        if "estimates_" not in vars(self):
            return super().labels_
        return pd.Series(self.estimates_, index=self.task_index_.rename("task"), name="label")

    @property
    def tasks_(self) -> pd.DataFrame:
        """Estimate, standard error and number of votes of every task."""
        columns = {
            "estimate": self._check_fitted("estimates_"),
            "standard_error": self.standard_error_,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    @property
    def workers_(self) -> pd.DataFrame:
        """Number of votes, weight, bias, mean absolute error and root mean square error of every worker."""
        if "estimates_" not in vars(self):
            return super().workers_
        if self.worker_index_ is None:
            raise UsageError("this crowd has no worker ids, so there are no results by worker")
        columns = {
            "n_votes": self.votes_per_worker_,
            "weight": self.weight_,
            "bias": self.bias_,
            "mae": self.mae_,
            "rmse": self.rmse_,
        }
        return pd.DataFrame(columns, index=self.worker_index_.rename("worker"))

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "estimates_" in vars(self):
            raise self._make_posterior_error()
        return super()._check_fitted(attribute)

    def _make_posterior_error(self) -> NoPosterior:
        """Return the error of attributes that need a posterior."""
        return NoPosterior(
            f"{type(self).__name__} estimated numbers, so there is no posterior and no confusion matrix; use labels_, "
            "tasks_ (with standard errors) and workers_ (with errors)"
        )

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "proba_", "confusion_", "tally_") and "estimates_" in vars(self):
                raise self._make_posterior_error()
            return super().__getattr__(name)


def encode_numeric_truth(truth: TruthLike, crowd: Crowd) -> Array:
    """Return the known value of every task.

    Parameters
    ----------
    truth : truth-like
        Known values of some tasks.
    crowd : Crowd
        Votes with numeric labels.

    Returns
    -------
    ndarray of shape (n_tasks,)
        NaN where the truth is unknown.

    Raises
    ------
    InputError
        If tasks are repeated, unknown to the crowd, or their values are not finite numbers.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t2", "ann", 2.0)], numeric=True)
    >>> encode_numeric_truth({"t2": 3}, crowd).tolist()
    [nan, 3.0]
    """
    series = as_truth_series(truth, crowd)
    if not series.index.is_unique:
        repeated = series.index[series.index.duplicated()]
        raise InputError(f"the truth names some tasks twice: {preview(repeated)}; keep one row each")
    position = crowd.tasks.get_indexer(match_id_type(series.index, crowd.tasks))
    if len(series) and not (position >= 0).any():
        raise InputError(
            f"none of the {len(series):,} tasks with truth is in the crowd; the truth starts with {preview(series.index)}, "
            f"the crowd with {preview(crowd.tasks)}. Check that both use the same ids"
        )
    try:
        value = series.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the truth of numeric labels must be numbers; got {preview(series)}") from None
    encoded = np.full(crowd.n_tasks, np.nan)
    encoded[position[position >= 0]] = value[position >= 0]
    if np.isinf(encoded).any():
        raise InputError("the truth of numeric labels must be finite; drop infinite values")
    return encoded
