"""Mixed-effects model of numeric ratings: raters differ in offset, scale and noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.em.loop import Statistics, run_em

Array = NDArray[np.float64]

#: Smallest variance, in units of the variance of all ratings, so that precisions stay finite for raters who never err.
MIN_VARIANCE = 1e-14


@dataclass(frozen=True, eq=False)
class Ratings:
    """Standardised ratings with sums by task and by worker.

    Parameters
    ----------
    task, worker : ndarray of shape (n_ratings,)
        Codes.
    value : ndarray of shape (n_ratings,)
        Ratings with mean zero and variance one.
    weight : ndarray of shape (n_ratings,)
        Weights; they count like repetitions.
    n_tasks, n_workers : int
        Numbers of tasks and workers.
    truth : ndarray of shape (n_tasks,) or None
        Known values in the same unit, NaN where unknown.
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: Array
    weight: Array
    n_tasks: int
    n_workers: int
    truth: Array | None = None

    def by_task(self, value: Array) -> Array:
        """Sum values of ratings by task.

        Parameters
        ----------
        value : ndarray of shape (n_ratings,)
            Values.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        return np.asarray(np.bincount(self.task, self.weight * value, self.n_tasks), dtype=np.float64)

    def by_worker(self, value: Array) -> Array:
        """Sum values of ratings by worker.

        Parameters
        ----------
        value : ndarray of shape (n_ratings,)
            Values.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        return np.asarray(np.bincount(self.worker, self.weight * value, self.n_workers), dtype=np.float64)

    @cached_property
    def task_totals(self) -> Array:
        """Total weight of the ratings of each task."""
        return self.by_task(np.ones(len(self.task)))

    @cached_property
    def worker_totals(self) -> Array:
        """Total weight of the ratings of each worker."""
        return self.by_worker(np.ones(len(self.worker)))

    @cached_property
    def is_gold(self) -> NDArray[np.bool_]:
        """Mask of the tasks with known value."""
        return np.zeros(self.n_tasks, dtype=bool) if self.truth is None else np.isfinite(self.truth)


class RaterState(NamedTuple):
    """Parameters of the raters and of all together, between two steps.

    Attributes
    ----------
    offset, scale : ndarray of shape (n_workers,)
        Posterior means of b and a.
    offset_variance, scale_variance, covariance : ndarray of shape (n_workers,)
        Their posterior variances and covariance.
    noise : ndarray of shape (n_workers,)
        Variance σ² of the noise.
    typical_noise, task_variance, offset_prior, scale_prior, mean : float
        Typical σ², τ², prior variances of b and a, and μ.
    """

    offset: Array
    scale: Array
    offset_variance: Array
    scale_variance: Array
    covariance: Array
    noise: Array
    typical_noise: float
    task_variance: float
    offset_prior: float
    scale_prior: float
    mean: float


class RaterFit(NamedTuple):
    """Fitted mixed-effects model.

    Attributes
    ----------
    score : ndarray of shape (n_tasks,)
        Posterior mean of u.
    variance : ndarray of shape (n_tasks,)
        Posterior variance of u given the raters.
    state : RaterState
        Offsets, scales and noise of raters, and variances.
    trace : ndarray
        Objective of every iteration.
    converged : bool
        Whether the iteration converged.
    """

    score: Array
    variance: Array
    state: RaterState
    trace: Array
    converged: bool


@dataclass(frozen=True)
class RaterModel:
    """Variational EM for y = μ + a_r u_i + b_r + e with e ~ N(0, σ_r²).

    Priors: u ~ N(0, τ²), b ~ N(0, s_b²), a ~ N(1, s_a²), and ``smoothing`` pseudo-ratings of typical noise per rater. The
    posterior is approximated by independent factors for u and for (a_r, b_r); variances are maximised. The evidence lower bound
    never falls.

    Parameters
    ----------
    has_scale : bool
        Whether raters differ in scale; otherwise a = 1.
    smoothing : float
        Pseudo-ratings of typical noise per rater; infinity makes the noise of all raters equal.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Relative change of the bound below which the iteration has converged.
    """

    has_scale: bool
    smoothing: float
    max_iter: int
    tol: float

    def fit(self, ratings: Ratings, title: str) -> RaterFit:
        """Fit the model.

        Parameters
        ----------
        ratings : Ratings
            Ratings.
        title : str
            Name in the progress bar.

        Returns
        -------
        RaterFit
        """
        zeros = np.zeros(ratings.n_workers)
        state = RaterState(
            zeros, zeros + 1, zeros, zeros, zeros, zeros + 0.5, typical_noise=0.5, task_variance=0.5, offset_prior=0.1,
            scale_prior=0.1, mean=0.0,
        )  # fmt: skip

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            nonlocal state
            state, residual = self._update_raters(ratings, state, statistics.class_counts, statistics.tally)
            bound = self._lower_bound(ratings, state, statistics.class_counts, statistics.tally, residual)
            return Statistics(*infer_scores(ratings, state)), bound

        result = run_em(
            step,
            Statistics(*infer_scores(ratings, state)),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=False,
            title=title,
        )
        score, variance = infer_scores(ratings, state)
        return RaterFit(score, variance, state, np.array(result.trace), result.converged)

    def _update_raters(
        self, ratings: Ratings, state: RaterState, score: Array, variance: Array
    ) -> tuple[RaterState, Array]:
        """Update raters and variances given the scores; return them and the expected squared residuals of every rater."""
        n, noise, active = ratings.worker_totals, state.noise, ratings.worker_totals > 0
        score_of_vote = score[ratings.task]
        error = ratings.value - state.mean
        sum_score, sum_square = ratings.by_worker(score_of_vote), ratings.by_worker((score**2 + variance)[ratings.task])
        sum_error, sum_product = ratings.by_worker(error), ratings.by_worker(score_of_vote * error)
        offset_precision = n / noise + 1 / state.offset_prior
        if self.has_scale:
            mixed, scale_precision = sum_score / noise, sum_square / noise + 1 / state.scale_prior
            determinant = offset_precision * scale_precision - mixed**2
            offset_variance, scale_variance = scale_precision / determinant, offset_precision / determinant
            covariance = -mixed / determinant
            first, second = sum_error / noise, sum_product / noise + 1 / state.scale_prior
            offset = offset_variance * first + covariance * second
            scale = covariance * first + scale_variance * second
        else:
            offset_variance, scale_variance, covariance = 1 / offset_precision, np.zeros_like(n), np.zeros_like(n)
            offset, scale = offset_variance * (sum_error - sum_score) / noise, np.ones_like(n)
        residual = (
            ratings.by_worker((error - scale[ratings.worker] * score_of_vote - offset[ratings.worker]) ** 2)
            + scale**2 * ratings.by_worker(variance[ratings.task])
            + scale_variance * sum_square
            + n * offset_variance
            + 2 * covariance * sum_score
        )
        mean = state.mean
        if not ratings.is_gold.any():  # known values fix the mean
            # Only the prior of the offsets depends on their mean, so moving it into μ raises the bound.
            shift = float(offset[active].mean())
            mean, offset = mean + shift, offset - shift
        if np.isinf(self.smoothing):
            noise, typical = np.full(len(n), max(residual.sum() / n.sum(), MIN_VARIANCE)), state.typical_noise
        else:
            noise = (residual + self.smoothing * state.typical_noise) / np.maximum(n + self.smoothing, MIN_VARIANCE)
            noise = np.where(active, np.maximum(noise, MIN_VARIANCE), state.typical_noise)
            typical = float(1 / (1 / noise[active]).mean())
            noise = np.where(active, noise, typical)
        rated = (ratings.task_totals > 0) | ratings.is_gold
        task_variance = max(float((score**2 + variance)[rated].mean()), MIN_VARIANCE)
        offset_prior = max(float((offset**2 + offset_variance)[active].mean()), MIN_VARIANCE)
        scale_prior = max(float(((scale - 1) ** 2 + scale_variance)[active].mean()), MIN_VARIANCE)
        updated = RaterState(
            offset, scale, offset_variance, scale_variance, covariance, noise, typical, task_variance, offset_prior,
            scale_prior if self.has_scale else state.scale_prior, mean,
        )  # fmt: skip
        return updated, residual

    def _lower_bound(
        self, ratings: Ratings, state: RaterState, score: Array, variance: Array, residual: Array
    ) -> float:
        """Return the evidence lower bound, up to a constant."""
        n, active = ratings.worker_totals, ratings.worker_totals > 0
        bound = -0.5 * float((n * np.log(state.noise) + residual / state.noise)[active].sum())
        if np.isfinite(self.smoothing):
            ratio = state.typical_noise / state.noise[active]
            bound += 0.5 * self.smoothing * float((np.log(ratio) - ratio).sum())
        rated = (ratings.task_totals > 0) | ratings.is_gold
        bound -= 0.5 * float((np.log(state.task_variance) + (score**2 + variance) / state.task_variance)[rated].sum())
        bound += 0.5 * float(np.log(variance[rated & ~ratings.is_gold]).sum())
        offset_term = np.log(state.offset_prior) + (state.offset**2 + state.offset_variance) / state.offset_prior
        bound -= 0.5 * float(offset_term[active].sum())
        if not self.has_scale:
            return bound + 0.5 * float(np.log(state.offset_variance[active]).sum())
        scale_term = np.log(state.scale_prior) + ((state.scale - 1) ** 2 + state.scale_variance) / state.scale_prior
        determinant = state.offset_variance * state.scale_variance - state.covariance**2
        return bound - 0.5 * float(scale_term[active].sum()) + 0.5 * float(np.log(determinant[active]).sum())


def infer_scores(ratings: Ratings, state: RaterState) -> tuple[Array, Array]:
    """Return mean and variance of the scores given the raters.

    Parameters
    ----------
    ratings : Ratings
        Ratings.
    state : RaterState
        Raters and variances.

    Returns
    -------
    score, variance : ndarray of shape (n_tasks,)
        Gold tasks have their known value, and variance zero.
    """
    worker = ratings.worker
    precision = (state.scale**2 + state.scale_variance) / state.noise
    variance = 1 / (1 / state.task_variance + ratings.by_task(precision[worker]))
    slope, shift = state.scale / state.noise, (state.scale * state.offset + state.covariance) / state.noise
    score = variance * ratings.by_task(slope[worker] * (ratings.value - state.mean) - shift[worker])
    if ratings.truth is not None:
        score = np.where(ratings.is_gold, ratings.truth - state.mean, score)
        variance = np.where(ratings.is_gold, 0.0, variance)
    return score, variance


def add_rater_uncertainty(ratings: Ratings, fit: RaterFit) -> Array:
    """Return the variance of the scores, including the uncertainty about the raters of each task.

    Parameters
    ----------
    ratings : Ratings
        Ratings.
    fit : RaterFit
        Fitted model.

    Returns
    -------
    ndarray of shape (n_tasks,)
    """
    state, worker = fit.state, ratings.worker
    squared = (state.scale / state.noise) ** 2
    terms = (
        ratings.by_task((squared * part)[worker])
        for part in (state.offset_variance, state.covariance, state.scale_variance)
    )
    by_offset, by_both, by_scale = terms
    from_raters = by_offset + 2 * fit.score * by_both + fit.score**2 * by_scale
    return fit.variance + fit.variance**2 * np.maximum(from_raters, 0)


def reference_scale(ratings: Ratings, state: RaterState) -> float:
    """Return the scale on which scores are reported: that of the raters, weighted by their reliability.

    The reliability of a rater is the squared correlation of the ratings with the scores. Raters who give nearly the same rating
    to every task have little of it, so they do not compress the scale. Known values define the scale themselves.

    Parameters
    ----------
    ratings : Ratings
        Ratings.
    state : RaterState
        Raters.

    Returns
    -------
    float
    """
    if ratings.is_gold.any():
        return 1.0
    signal = state.scale**2 * state.task_variance
    weight = ratings.worker_totals * signal / (signal + state.noise)
    return float((weight * state.scale).sum() / weight.sum()) if weight.sum() > 0 else 1.0
