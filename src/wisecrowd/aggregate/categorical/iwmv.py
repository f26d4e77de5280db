"""Iterative weighted majority voting."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighted_vote import DistributedPoll, PollOutcome, WeightedVote
from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, fitted, method_class, parameter
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError


@method_class
class IWMV(WeightedVote):
    """Weighted vote in which the weight of a worker is the agreement with the outcome above chance, iterated.

        v_r = K a_r − 1,   a_r = share of r's labels that agree with the weighted vote of the previous round

    A worker at chance level has weight zero; a worker below it has a negative weight. Li and Yu derive the weight as the
    first-order form of the optimal one, log((K − 1) a_r / (1 − a_r)) ≈ K/(K − 1) · v_r, so the posterior is

        q_i(k) ∝ exp( K/(K − 1) · Σ_r v_r [y_ir = k] )

    Choose it as a fast approximation of `OneCoin`: no prior, no likelihood, a handful of rounds. Use `Wawa` when most workers
    have very few labels, and `DawidSkene` when workers confuse particular classes. Ties inside the iteration are split.

    Examples
    --------
    >>> from wisecrowd import Crowd, IWMV
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> IWMV().fit(crowd).workers_["weight"].to_dict()
    {'ann': 1.0, 'bad': -1.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014error",)
    convergence_advice: ClassVar[str] = "raise max_iter, or treat tasks whose labels still change as undecided"
    streams: ClassVar[bool] = True

    max_iter: int = parameter(default=100, help="Maximum number of rounds.")
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    n_iter_: int = fitted(help="Number of rounds.")
    converged_: bool = fitted(help="Whether the last round changed no label.")

    def _estimate_weights(self, poll: DistributedPoll) -> NDArray[np.float64]:
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")

        def step(
            state: tuple[NDArray[np.float64], PollOutcome],
        ) -> tuple[tuple[NDArray[np.float64], PollOutcome], float]:
            outcome = state[1]
            weight = poll.n_classes * outcome.agreement - 1
            outcome = poll.vote(weight, outcome)
            return (weight, outcome), outcome.n_changed

        result = iterate_to_fixed_point(
            step,
            (np.empty(0), poll.vote()),
            max_iter=self.max_iter,
            tol=0,
            title="IWMV",
            message="{:,} labels changed",
        )
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        return result.state[0]

    def _compute_posterior(self, poll: Poll, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        n_classes = poll.crowd.n_classes
        return poll.apply_softmax(scores * (n_classes / max(n_classes - 1, 1)))
