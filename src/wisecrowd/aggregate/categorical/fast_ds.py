"""Fast Dawid–Skene: hard decisions in place of posteriors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import ACCELERATE_HELP, ConfusionEM
from wisecrowd.em.loop import Statistics, iterate_to_fixed_point
from wisecrowd.em.priors import compute_smoothing_log_prior, estimate_smoothed_probs
from wisecrowd.engines.base import Chunk, Engine, compute_chunk_posterior, tally_chunk
from wisecrowd.errors import check_choice
from wisecrowd.kernels import MIN_PROB, Expectation

#: Total change of the class prior below which the soft passes of the hybrid algorithm end (Sinha et al. 2018).
SOFT_TOLERANCE = 0.005
#: Relative difference of posteriors below which they are tied, so that the order of a product cannot decide.
TIE_TOLERANCE = 1e-9


@method_class
class FastDS(ConfusionEM):
    """Dawid–Skene model with hard decisions: every E-step gives each task to its most probable class.

    Model and M-step are those of `DawidSkene`; the E-step is

        q_i(k) = [k = argmax_k ρ_k Π_r π_r[k, y_ir]]

    so the iteration maximises Σ_i max_k log ρ_k Π_r π_r[k, y_ir] (`trace_`) and ends when no decision changes, usually
    after 4 to 20 passes. At the end, one soft pass turns the decisions into probabilities.

    Choose it to compare with published results. Hard decisions ignore uncertainty, so the final likelihood is lower than
    that of `DawidSkene`, whose accelerated passes are as fast here.

    Examples
    --------
    >>> from wisecrowd import FastDS
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = FastDS().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.8, fitted.n_iter_ < 10
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("sinha2018fast",)
    unused_labels_are_equal: ClassVar[bool] = True

    hybrid: bool = parameter(
        default=False, help="Begin with soft passes until the class prior changes by less than 0.005 in total."
    )
    ties: Literal["split", "first"] = parameter(
        default="split", help="Decision on a tied task: 'split' it between the tied classes, or take the 'first' one."
    )
    accelerate: bool = parameter(default=False, help=ACCELERATE_HELP)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("ties", self.ties, ("split", "first"))

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return compute_smoothing_log_prior(tally, pairs, self.smoothing, self.diagonal)

    def _decide(self, posterior: NDArray[Any]) -> NDArray[Any]:
        """Return 1 for the most probable class of each task, split between tied classes."""
        if self.ties == "first":
            decision = np.zeros_like(posterior)
            decision[np.arange(len(posterior)), posterior.argmax(axis=1)] = 1
            return decision
        # Class by class: numpy reduces short rows slowly.
        threshold = reduce(np.maximum, posterior.T) * (1 - TIE_TOLERANCE)
        decision = (posterior >= threshold[:, None]).astype(posterior.dtype)
        n_winners = reduce(np.add, decision.T)
        tied = np.flatnonzero(n_winners > 1)
        decision[tied] /= n_winners[tied, None]
        return decision

    def _e_step(self, engine: Engine, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> Expectation:
        class_counts, tally = engine.sum(self._sum_decisions, prior, label_probs)
        # The log-joint of the decisions; tied classes have equal terms.
        log_joint = xlogy(class_counts, np.maximum(prior, MIN_PROB)).sum()
        log_joint += xlogy(tally, np.maximum(label_probs, MIN_PROB)).sum()
        return Expectation(float(log_joint), class_counts, tally, None)

    def _sum_decisions(
        self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return class counts and tally of the decisions on the tasks of a chunk."""
        decision = self._decide(compute_chunk_posterior(chunk, prior, label_probs))
        voted = chunk.crowd.votes_per_task[:, None] > 0
        return decision.sum(axis=0, where=voted, dtype=np.float64), tally_chunk(chunk, decision)

    def _initial_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        posterior = super()._initial_posterior(chunk, start, dtype, attempt)
        return posterior if self.hybrid else self._decide(posterior)

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        for statistics in super()._initialize(engine, start, dtype):
            yield self._run_soft_passes(engine, statistics) if self.hybrid else statistics

    def _run_soft_passes(self, engine: Engine, start: Statistics) -> Statistics:
        """Return the statistics after soft passes, which end when the class prior hardly changes."""

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            expectation = engine.expect(*self._m_step(statistics, engine.crowd.pairs))
            new, old = (counts / counts.sum() for counts in (expectation.class_counts, statistics.class_counts))
            return Statistics(expectation.class_counts, expectation.tally), float(np.abs(new - old).sum())

        return iterate_to_fixed_point(step, start, max_iter=self.max_iter, tol=SOFT_TOLERANCE).state
