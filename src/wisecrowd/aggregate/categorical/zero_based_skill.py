"""Zero-based skill: agreement with the weighted vote, approached in decreasing steps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighted_vote import DistributedPoll, WeightedVote
from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, fitted, method_class, parameter
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError

#: Skill above chance with which every worker starts, so that the first vote is not tied everywhere.
INITIAL_ADVANTAGE = 1e-5


@method_class
class ZeroBasedSkill(WeightedVote):
    """Weighted vote in which skills move towards agreement with the outcome, in decreasing steps.

        s_r ← s_r + λ (a_r − s_r),   a_r = share of r's labels that agree with the vote weighted by s

    All skills start slightly above chance, at 1/K + 10⁻⁵. The step λ starts at ``learning_rate`` and is halved every
    ``halve_every`` rounds, which damps oscillations. The method is an iterated `Wawa`: weights are accuracies, so a random
    guesser has 1/K of the weight of a perfect worker.

    Choose it to reproduce the results of platforms that use it. `IWMV` discounts guessers, and the posteriors of `OneCoin` are
    probabilities.

    Examples
    --------
    >>> from wisecrowd import Crowd, ZeroBasedSkill
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> ZeroBasedSkill().fit(crowd).workers_["weight"].to_dict()
    {'ann': 1.0, 'bad': 0.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("ustalov2024learning",)
    streams: ClassVar[bool] = True

    max_iter: int = parameter(default=100, help="Maximum number of rounds.")
    learning_rate: float = parameter(
        default=1.0, help="First step towards the agreement, between 0 and 1; 1 replaces the skill by the agreement."
    )
    halve_every: int = parameter(default=20, help="Number of rounds after which the step is halved.")
    tol: float = parameter(default=1e-5, help="Largest difference between skill and agreement of a converged fit.")
    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    n_iter_: int = fitted(help="Number of rounds.")
    converged_: bool = fitted(help="Whether the skills converged.")

    def _estimate_weights(self, poll: DistributedPoll) -> NDArray[np.float64]:
        if self.max_iter < 1 or self.halve_every < 1:
            raise UsageError(f"max_iter and halve_every must be 1 or more; got {self.max_iter} and {self.halve_every}")
        if not 0 < self.learning_rate <= 1:
            raise UsageError(f"learning_rate must lie between 0 and 1; got {self.learning_rate}")

        def step(state: tuple[int, NDArray[np.float64]]) -> tuple[tuple[int, NDArray[np.float64]], float]:
            number, skill = state[0] + 1, state[1]
            rate = self.learning_rate / 2 ** (number // self.halve_every)
            gap = poll.compute_agreement(skill) - skill
            return (number, skill + rate * gap), float(np.nanmax(np.abs(gap)))

        first = np.where(poll.worker_totals > 0, 1 / poll.n_classes + INITIAL_ADVANTAGE, np.nan)
        result = iterate_to_fixed_point(
            step,
            (0, first),
            max_iter=self.max_iter,
            tol=self.tol,
            title="ZeroBasedSkill",
            message="largest gap {:.2g}",
        )
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        return result.state[1]
