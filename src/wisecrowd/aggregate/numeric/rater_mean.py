"""The mean of ratings, corrected for the raters' offsets and scales."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator, NumericVotes
from wisecrowd.aggregate.numeric._rater_model import (
    Array,
    RaterModel,
    Ratings,
    add_rater_uncertainty,
    reference_scale,
)
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.class_values import class_values
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold
from wisecrowd.errors import UsageError


class _Estimates(NamedTuple):
    """Estimates in the unit of the ratings."""

    value: Array
    error: Array
    mean: float
    sd: float


@method_class
class RaterMean(NumericAggregator):
    """Mixed-effects mean of ratings: raters differ in offset, scale and noise.

    Model: y_ir = μ + a_r u_i + b_r + e with u ~ N(0, τ²), b ~ N(0, s_b²), a ~ N(1, s_a²) and e ~ N(0, σ_r²). A strict rater has b
    < 0, a rater who avoids the ends of the scale has a < 1. All variances are estimated, by variational EM.

    The estimate of a task is μ + g·E[u_i]. It is pulled towards the mean of all tasks as far as its ratings are few and noisy
    (``shrink``). g is the mean scale of the raters, weighted by their reliability, so that raters who give nearly the same
    rating to all tasks do not compress the estimates. Intervals include the uncertainty about the raters.

    Choose it for ratings on a scale with equal steps, numbers or ordered classes, especially if tasks have few ratings or
    different raters. For classes, the label is the class nearest to the estimate; `GradedResponse` needs no equal steps and
    suits scales on which many tasks are at an end.

    Examples
    --------
    >>> from wisecrowd import Mean, RaterMean, simulate_ratings
    >>> simulation = simulate_ratings(n_tasks=200, n_classes=None, votes_per_task=3, severity_sd=1.0, random_state=1)
    >>> corrected, plain = (method.fit(simulation.crowd).labels_.corr(simulation.scores) for method in (RaterMean(), Mean()))
    >>> bool(corrected > plain + 0.05)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("laird1982random", "raykar2010learning")
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("numeric", "ordinal")
    without_workers: ClassVar[str] = "mean"

    scale: bool = parameter(default=True, help="Raters differ in scale; False corrects offsets only.")
    smoothing: float = parameter(
        default=20.0,
        help="Number of pseudo-ratings of typical noise per rater; inf makes the noise of all raters equal.",
    )
    shrink: bool = parameter(
        default=True, help="Pull uncertain estimates towards the mean; False gives unbiased estimates, which vary more."
    )
    level: float = parameter(default=0.9, help="Probability of the intervals.")
    max_iter: int = parameter(default=1000, help="Maximum number of passes over the ratings.")
    tol: float = parameter(default=1e-7, help="Relative change of the objective below which EM has converged.")

    prior_: Array = fitted(help="Class probabilities of a task without votes, for classes.", shape=("n_classes",))
    task_values_: Array = fitted(
        help="Estimate of each task: in the unit of numeric classes, else in class positions.", shape=("n_tasks",)
    )
    task_error_: Array = fitted(help="Standard error of each estimate.", shape=("n_tasks",))
    offset_: Array = fitted(help="Offset b of each worker.", shape=("n_workers",))
    offset_error_: Array = fitted(help="Standard error of each offset.", shape=("n_workers",))
    scale_: Array = fitted(help="Scale a of each worker, relative to the scale of the estimates.", shape=("n_workers",))
    noise_: Array = fitted(help="Standard deviation of the noise of each worker.", shape=("n_workers",))
    trace_: Array = fitted(help="Evidence lower bound of every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether EM converged.")

    def _estimate(self, votes: NumericVotes) -> tuple[Array, Array | None]:
        estimates = self._fit_ratings(votes.crowd, votes.truth)
        value = np.where(votes.has_votes, estimates.value, estimates.value[votes.has_votes].mean())
        if votes.truth is not None:
            value = np.where(np.isfinite(votes.truth), votes.truth, value)
        self.task_values_, self.task_error_ = value, votes.zero_gold(estimates.error)
        return value, self.scale_ / self.noise_**2

    def _compute_standard_error(self, votes: NumericVotes, estimate: Array, weight: Array | None) -> Array:
        """Return the model's standard error, also for a single rating."""
        return self.task_error_

    def _fit_classes(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        values = class_values(self.classes_)
        numbers = crowd.replace_fields(label=values[crowd.label], classes=None, ordered=False)
        truth = None if gold is None else np.where(gold >= 0, values[gold], np.nan)
        estimates = self._fit_ratings(numbers, truth)
        middle = (values[1:] + values[:-1]) / 2
        self.prior_ = _class_probs(np.array([estimates.mean]), np.array([estimates.sd]), middle)[0]
        posterior = _class_probs(estimates.value, estimates.error, middle)
        has_votes = crowd.votes_per_task > 0
        posterior[~has_votes] = self.prior_
        self.task_values_ = np.where(has_votes, estimates.value, estimates.mean)
        self.task_error_ = np.where(has_votes, estimates.error, estimates.sd)
        if truth is not None:
            self.task_values_ = np.where(gold >= 0, truth, self.task_values_)  # type: ignore[operator]  # gold is given
            self.task_error_ = np.where(gold >= 0, 0.0, self.task_error_)  # type: ignore[operator]
        self.votes_per_task_ = np.bincount(crowd.task, crowd.weight, crowd.n_tasks).astype(np.float64)
        self._set_fitted(crowd, apply_gold(posterior, gold))

    def _fit_ratings(self, crowd: Crowd, truth: Array | None) -> _Estimates:
        """Fit the model to numbers, and set the attributes of workers."""
        if self.max_iter < 1 or not self.smoothing >= 0 or not 0 < self.level < 1:
            raise UsageError(
                "max_iter must be 1 or more, smoothing 0 or more, and level between 0 and 1; got "
                f"{self.max_iter}, {self.smoothing} and {self.level}"
            )
        weight = crowd.weight
        centre = float((weight * (crowd.label - crowd.label[0])).sum() / weight.sum()) + float(crowd.label[0])
        unit = float(np.sqrt((weight / weight.sum() * (crowd.label - centre) ** 2).sum())) or 1.0
        assert crowd.worker is not None
        ratings = Ratings(
            crowd.task, crowd.worker, (crowd.label - centre) / unit, weight, crowd.n_tasks, crowd.n_workers,
            None if truth is None else (truth - centre) / unit,
        )  # fmt: skip
        model = RaterModel(self.scale, self.smoothing, self.max_iter, self.tol)
        fit = model.fit(ratings, "RaterMean")
        self.trace_, self.n_iter_, self.converged_ = fit.trace, len(fit.trace), fit.converged
        state, common = fit.state, reference_scale(ratings, fit.state)
        # A task whose ratings say nothing would be divided by zero.
        pull = np.ones(crowd.n_tasks) if self.shrink else np.maximum(1 - fit.variance / state.task_variance, 1e-6)
        error = np.sqrt(add_rater_uncertainty(ratings, fit)) / pull
        self.offset_, self.offset_error_ = unit * state.offset, unit * np.sqrt(state.offset_variance)
        self.scale_, self.noise_ = state.scale / common, unit * np.sqrt(state.noise)
        return _Estimates(
            centre + unit * (state.mean + common * fit.score / pull),
            unit * abs(common) * error,
            centre + unit * state.mean,
            unit * abs(common) * float(np.sqrt(state.task_variance)),
        )

    @property
    def tasks_(self) -> pd.DataFrame:
        """Table of tasks: estimate with standard error and interval, and number of votes."""
        self._check_fitted("task_values_")
        width = float(ndtri((1 + self.level) / 2)) * self.task_error_
        columns = {
            "estimate": self.task_values_,
            "standard_error": self.task_error_,
            "lower": self.task_values_ - width,
            "upper": self.task_values_ + width,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: number of votes, quality, offset with standard error, scale and noise."""
        columns = {"offset": "offset_", "offset_error": "offset_error_", "scale": "scale_", "noise": "noise_"}
        return super().workers_.assign(**{name: self._check_fitted(key) for name, key in columns.items()})


def _class_probs(mean: Array, error: Array, middle: Array) -> Array:
    """Return the probability that a normal variable is nearest to each class."""
    with np.errstate(divide="ignore", invalid="ignore"):
        below = ndtr((middle - mean[:, None]) / error[:, None])
    edges = np.concatenate([np.zeros((len(mean), 1)), below, np.ones((len(mean), 1))], axis=1)
    return np.asarray(np.diff(edges, axis=1), dtype=np.float64)
