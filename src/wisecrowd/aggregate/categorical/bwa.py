"""Bayesian weighted average: votes are noisy measurements, workers have precisions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, given_posterior, vote_shares
from wisecrowd.em.loop import Statistics, iterate
from wisecrowd.errors import UsageError
from wisecrowd.kernels import reference as kernels

#: Least expected variance of a vote: where nobody ever disagrees, precisions must stay finite.
LEAST_VARIANCE = 1e-9


@method_class
class BWA(Aggregator):
    """Votes are averaged with weights by worker and class, as if they were noisy measurements of the truth.

    Model, for each class k against the rest, with y_irk = [y_ir = k]: z_ik ~ N(μ_k, 1 / λ), y_irk | z_ik ~ N(z_ik, 1 / v_rk),
    and v_rk has a Gamma prior worth ``votes`` votes of variance s_k, which is 4 (1 − 1 / K) times the variance of the votes
    within tasks. The mode is climbed by turns (`trace_`):

        v_rk = (a + n_r) / (a s_k + Σ_i (y_irk − z_ik)²)
        z_ik = (λ μ_k + Σ_r v_rk y_irk) / (λ + Σ_r v_rk),   μ_k = mean of z_ik

    The posterior is z normalised over classes: an average of votes rather than a probability, and modest where `DawidSkene`
    would be certain. ``workers_`` has each worker's precision, averaged over classes.

    Choose it when most workers are good and tasks have five labels or more, or for very large and sparse crowds: it cannot
    run away. A worker's weight cannot turn negative, so adversaries are ignored at best and biases go unseen (bluebirds:
    .759 as majority vote, `DawidSkene` .898).

    >>> from wisecrowd import BWA
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = BWA().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.8
    True
    """

    references: ClassVar[tuple[str, ...]] = ("li2019truth",)

    votes: float = parameter(default=15.0, help="a: how many votes the prior of a worker's precision is worth")
    shrinkage: float = parameter(default=1.0, help="λ: weight of the mean of all tasks in each of them")
    prior_correction: bool = parameter(
        default=True, help="expect 4 (1 - 1 / K) times the variance within tasks, as the paper does"
    )
    max_iter: int = parameter(default=500, help="passes over the votes at most")
    tol: float = parameter(default=1e-9, help="stop when the objective rises by less than this fraction")
    accelerate: bool = parameter(default=True, help="extrapolate every third pass (SQUAREM)")

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if self.max_iter < 1 or not (self.votes > 0 and self.shrinkage > 0):
            raise UsageError(
                "votes and shrinkage must be positive and max_iter 1 or more; "
                f"got {self.votes}, {self.shrinkage} and {self.max_iter}"
            )
        average = _Average(self, crowd, gold)
        if isinstance(start, Aggregator):
            start = start.proba_
        first = apply_gold(vote_shares(crowd) if start is None else given_posterior(start, crowd), gold)
        run = iterate(
            average.step, average.weights(first, average.errors(first)), max_iter=self.max_iter, tol=self.tol,
            accelerate=self.accelerate, what=type(self).__name__,
        )  # fmt: skip
        mean, precision = run.statistics
        self.prior_, self.precision_ = mean / mean.sum(), precision
        self.trace_, self.n_iter_, self.converged_ = np.asarray(run.trace), len(run.trace), run.converged
        truth = average.truth(run.statistics)
        self._set_fitted(crowd, truth / truth.sum(axis=1, keepdims=True))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"precision": self.precision_.mean(axis=1)}


class _Average:
    """The two half-steps over one crowd. What they pass on is μ, (classes,), and v, (workers, classes)."""

    def __init__(self, method: BWA, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.layout, self.pairs, self.gold = crowd.layout, crowd.pairs, gold
        self.own = np.arange(len(self.pairs)), self.pairs.label
        self.shrinkage = method.shrinkage
        self.cast = self.layout.matrix.sum(axis=0)  # votes by pair
        self.evidence = method.votes + self.pairs.by_worker(self.cast)[:, None]  # a + n_r
        shares, n_votes = vote_shares(crowd), crowd.votes.sum(axis=1, keepdims=True)
        within = (n_votes * shares * (1 - shares)).sum(axis=0) / n_votes.sum()
        expected = 4 * (1 - 1 / crowd.n_classes) * within if method.prior_correction else within
        self.before = method.votes * np.maximum(expected, LEAST_VARIANCE)  # a s_k

    def truth(self, weights: Statistics) -> NDArray[np.float64]:
        """z, (tasks, classes): the weighted averages; the mean where nobody voted."""
        mean, precision = weights
        every = precision[self.pairs.worker]
        chosen = np.zeros_like(every)
        chosen[self.own] = every[self.own]
        total = self.shrinkage + self.layout.matrix @ every
        return apply_gold((self.shrinkage * mean + self.layout.matrix @ chosen) / total, self.gold)

    def errors(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ_i (y_irk − z_ik)², (workers, classes)."""
        errors = kernels.tally(self.layout, truth**2)
        errors[self.own] += self.cast - 2 * kernels.tally(self.layout, truth)[self.own]
        return np.maximum(self.pairs.by_worker(errors), 0)

    def weights(self, truth: NDArray[np.float64], errors: NDArray[np.float64]) -> Statistics:
        return Statistics(truth[self.layout.voted].mean(axis=0), self.evidence / (self.before + errors))

    def step(self, weights: Statistics) -> tuple[Statistics, float]:
        truth = self.truth(weights)
        errors, apart = self.errors(truth), truth[self.layout.voted] - weights.classes
        with np.errstate(divide="ignore"):  # an extrapolated precision may be zero; minus infinity takes it back
            fit = self.evidence * np.log(weights.tally) - weights.tally * (self.before + errors)
        return self.weights(truth, errors), 0.5 * float(fit.sum() - self.shrinkage * np.square(apart).sum())
