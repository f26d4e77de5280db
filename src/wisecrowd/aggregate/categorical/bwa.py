"""Bayesian weighted average: votes as noisy measurements, workers with precisions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ACCELERATE_HELP
from wisecrowd.em.initialization import align_posterior, apply_gold, compute_vote_shares
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.errors import UsageError

#: Smallest expected variance of a vote, which keeps precisions finite where all workers agree.
MIN_VARIANCE = 1e-9


@method_class
class BWA(Aggregator):
    """Bayesian weighted average of votes, with weights by worker and class.

    Model, for each class k against the rest, with y_irk = [y_ir = k]: z_ik ~ N(μ_k, 1 / λ), y_irk | z_ik ~ N(z_ik, 1 /
    v_rk), and v_rk has a Gamma prior worth ``votes`` votes of variance s_k, which is 4 (1 − 1 / K) times the variance of
    the votes within tasks. The mode is found by alternating (`trace_`):

        v_rk = (a + n_r) / (a s_k + Σ_i (y_irk − z_ik)²)
        z_ik = (λ μ_k + Σ_r v_rk y_irk) / (λ + Σ_r v_rk),   μ_k = mean of z_ik

    The posterior is z normalised over classes: an average of votes rather than a probability, and less certain than that of
    `DawidSkene`. ``workers_`` has each worker's precision, averaged over classes.

    Choose it when most workers are good and tasks have five labels or more, or for very large and sparse crowds. The weight of
    a worker cannot be negative, so adversaries are ignored at best, and biases stay undetected.

    Examples
    --------
    >>> from wisecrowd import BWA
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = BWA().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.8
    True
    """

    references: ClassVar[tuple[str, ...]] = ("li2019truth",)

    votes: float = parameter(default=15.0, help="Number a of votes that the prior of a worker's precision is worth.")
    shrinkage: float = parameter(default=1.0, help="Weight λ of the mean of all tasks in each task.")
    prior_correction: bool = parameter(
        default=True, help="Expect 4 (1 - 1 / K) times the variance within tasks, as the paper does."
    )
    max_iter: int = parameter(default=500, help="Maximum number of passes over the votes.")
    tol: float = parameter(default=1e-9, help="Relative change of the objective below which the fit has converged.")
    accelerate: bool = parameter(default=True, help=ACCELERATE_HELP)

    prior_: NDArray[np.float64] = fitted(help="Normalised mean μ of all tasks.", shape=("n_classes",), finite=True)
    precision_: NDArray[np.float64] = fitted(
        help="Precision of each worker by class.", shape=("n_workers", "n_classes"), finite=True
    )
    trace_: NDArray[np.float64] = fitted(help="Objective of every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the fit converged.")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if self.max_iter < 1 or not (self.votes > 0 and self.shrinkage > 0):
            raise UsageError(
                "votes and shrinkage must be positive and max_iter 1 or more; "
                f"got {self.votes}, {self.shrinkage} and {self.max_iter}"
            )
        average = _WeightedAverage(self, crowd, gold)
        if isinstance(start, Aggregator):
            start = start.proba_
        first = apply_gold(compute_vote_shares(crowd) if start is None else align_posterior(start, crowd), gold)
        result = run_em(
            average.step,
            average.estimate_weights(first, average.sum_squared_errors(first)),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=self.accelerate,
            title=type(self).__name__,
        )
        mean, precision = result.statistics
        self.prior_, self.precision_ = mean / mean.sum(), precision
        self.trace_, self.n_iter_, self.converged_ = np.asarray(result.trace), len(result.trace), result.converged
        truth = average.estimate_truth(result.statistics)
        self._set_fitted(crowd, truth / truth.sum(axis=1, keepdims=True))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"precision": self.precision_.mean(axis=1)}


class _WeightedAverage:
    """The two half-steps over one crowd; their statistics are μ, (n_classes,), and v, (n_workers, n_classes)."""

    def __init__(self, method: BWA, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.layout, self.pairs, self.gold = crowd.layout, crowd.pairs, gold
        self.diagonal = np.arange(len(self.pairs)), self.pairs.label
        self.shrinkage = method.shrinkage
        self.votes_per_pair = self.layout.vote_matrix.sum(axis=0)
        self.evidence = method.votes + self.pairs.sum_by_worker(self.votes_per_pair)[:, None]  # a + n_r
        shares, n_votes = compute_vote_shares(crowd), crowd.vote_counts.sum(axis=1, keepdims=True)
        within = (n_votes * shares * (1 - shares)).sum(axis=0) / n_votes.sum()
        expected = 4 * (1 - 1 / crowd.n_classes) * within if method.prior_correction else within
        self.prior_loss = method.votes * np.maximum(expected, MIN_VARIANCE)  # a s_k

    def estimate_truth(self, weights: Statistics) -> NDArray[np.float64]:
        """Estimate z, the weighted averages of the votes.

        Parameters
        ----------
        weights : Statistics
            μ and v.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            The mean μ for tasks without votes.
        """
        mean, precision = weights
        by_pair = precision[self.pairs.worker]
        chosen = np.zeros_like(by_pair)
        chosen[self.diagonal] = by_pair[self.diagonal]
        total = self.shrinkage + self.layout.vote_matrix @ by_pair
        return apply_gold((self.shrinkage * mean + self.layout.vote_matrix @ chosen) / total, self.gold)

    def sum_squared_errors(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute Σ_i (y_irk − z_ik)².

        Parameters
        ----------
        truth : ndarray of shape (n_tasks, n_classes)
            z.

        Returns
        -------
        ndarray of shape (n_workers, n_classes)
        """
        errors = kernels.tally(self.layout, truth**2)
        errors[self.diagonal] += self.votes_per_pair - 2 * kernels.tally(self.layout, truth)[self.diagonal]
        return np.maximum(self.pairs.sum_by_worker(errors), 0)

    def estimate_weights(self, truth: NDArray[np.float64], errors: NDArray[np.float64]) -> Statistics:
        """Estimate μ and v given z and its squared errors.

        Parameters
        ----------
        truth : ndarray of shape (n_tasks, n_classes)
            z.
        errors : ndarray of shape (n_workers, n_classes)
            Squared errors.

        Returns
        -------
        Statistics
        """
        return Statistics(truth[self.layout.has_votes].mean(axis=0), self.evidence / (self.prior_loss + errors))

    def step(self, weights: Statistics) -> tuple[Statistics, float]:
        """Return the next weights, and the objective of the current ones.

        Parameters
        ----------
        weights : Statistics
            μ and v.

        Returns
        -------
        weights : Statistics
        objective : float
        """
        truth = self.estimate_truth(weights)
        mean, precision = weights
        errors, deviation = self.sum_squared_errors(truth), truth[self.layout.has_votes] - mean
        with np.errstate(divide="ignore"):  # an extrapolated precision may be zero; −∞ discards the extrapolation
            fit = self.evidence * np.log(precision) - precision * (self.prior_loss + errors)
        objective = 0.5 * float(fit.sum() - self.shrinkage * np.square(deviation).sum())
        return self.estimate_weights(truth, errors), objective
