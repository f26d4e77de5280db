"""M-MSR: skills from pairwise agreement, by robust completion of a matrix of rank one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._pairwise_agreement import PairwiseAgreement, clip_skills, compute_log_odds
from wisecrowd.aggregate.categorical._weighted_vote import WeightedVote
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.em.loop import FixedPoint, iterate_to_fixed_point
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError

#: Smallest skill that appears in a denominator: a pair at chance level must not give its partner an infinite skill.
MIN_SKILL = 1e-3
#: Skill of workers who share tasks with nobody, if nobody shares tasks.
DEFAULT_SKILL = 0.5

Factors = tuple[NDArray[np.float64], NDArray[np.float64]]


@method_class
class MMSR(WeightedVote):
    """Weighted vote with skills from pairwise agreement, robust against workers who conspire.

    Agreement between two workers, corrected for chance, is X_ab ≈ s_a s_b with skills s_r = (K a_r − 1)/(K − 1). The factors of
    |X| are found by alternating means over a worker's partners,

        v_b = mean over a of |X_ab| / u_a,   u_a = mean over b of |X_ab| / v_b,

    where each mean leaves out up to F partners above the current value and F below it, so that a minority of workers who
    conspire cannot move it. F is half of the smallest number of partners, minus one. Signs follow from the signs of the
    agreements; the majority is assumed to be honest. The posterior is that of the one-coin model with these skills:

        q_i(k) ∝ exp( Σ_r w_r [y_ir = k] ),   w_r = log((K − 1) a_r / (1 − a_r))

    A worker who shares no tasks has the mean skill. Gold becomes a worker who is always right.

    Choose it when some workers may attack together and each worker shares many tasks with others. All pairs count the same,
    however few tasks they share, so sparse crowds give noisy skills; use `OneCoin` there. Time and memory grow with the
    number of pairs of workers with a common task.

    crowd-kit finds the same magnitudes but treats two workers without a common task as two who disagree, which changes signs.

    Examples
    --------
    >>> from wisecrowd import MMSR
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(500, 10, 2, votes_per_task=10, workers={"noisy(0.7)": 7, "adversary(0.9)": 3})
    >>> fitted = MMSR().fit(simulation.crowd)
    >>> bool(((fitted.workers_["skill"] > 0) == (simulation.kind == "noisy(0.7)")).all())
    True
    """

    references: ClassVar[tuple[str, ...]] = ("ma2020adversarial",)
    convergence_advice: ClassVar[str] = "raise max_iter, or set trim=0, which converges faster"

    trim: int | None = parameter(
        default=None,
        help="Number of partners left out at each end of a mean; derived from the number of partners if None.",
    )
    max_iter: int = parameter(default=1000, help="Maximum number of rounds of matrix completion.")
    tol: float = parameter(
        default=1e-8, help="Relative change of the completed matrix below which the iteration has converged."
    )

    skill_: NDArray[np.float64] = fitted(help="Skill of each worker.", shape=("n_workers",))
    n_iter_: int = fitted(help="Number of rounds.")
    converged_: bool = fitted(help="Whether the skills converged.")

    def _estimate_weights(self, poll: Poll) -> NDArray[np.float64]:
        if self.max_iter < 1 or (self.trim is not None and self.trim < 0):
            raise UsageError(f"max_iter must be 1 or more, trim 0 or more; got {self.max_iter} and {self.trim}")
        crowd, oracle = poll.crowd, None if poll.gold is None else poll.crowd.n_workers
        pairs = PairwiseAgreement.from_crowd(crowd, poll.gold)
        result = self._complete_matrix(pairs, oracle)
        magnitude = _balance_factors(pairs, *result.state)
        skill = clip_skills((magnitude * pairs.estimate_signs(oracle))[: crowd.n_workers], crowd)
        has_partners = pairs.n_partners[: crowd.n_workers] > 0
        skill[~has_partners] = skill[has_partners].mean() if has_partners.any() else DEFAULT_SKILL
        self.skill_, self.n_iter_, self.converged_ = skill, result.n_iter, result.converged
        return compute_log_odds(skill, crowd.n_classes)

    def _complete_matrix(self, pairs: PairwiseAgreement, oracle: int | None) -> FixedPoint[Factors]:
        """Return the factors u and v of the matrix of absolute agreements."""
        ones = np.ones(pairs.n_workers)
        if len(pairs) == 0:
            return FixedPoint((ones, ones), 0, True)
        size = np.abs(pairs.agreement)
        fewest = int(pairs.n_partners[pairs.n_partners > 0].min())
        trim = max(fewest // 2 - 1, 0) if self.trim is None else self.trim
        mean_for_v, mean_for_u = _TrimmedMean(pairs, trim), _TrimmedMean(pairs, trim)
        start = np.maximum(ones * np.sqrt((size * pairs.n_common).sum() / pairs.n_common.sum()), MIN_SKILL)

        def step(factors: Factors) -> tuple[Factors, float]:
            old_u, old_v = factors
            v = np.maximum(mean_for_v(size / old_u[pairs.second], old_v), MIN_SKILL)
            u = np.maximum(mean_for_u(size / v[pairs.second], old_u), MIN_SKILL)
            if oracle is not None:
                u[oracle] = v[oracle] = 1
            return (u, v), _compute_relative_change(u, v, old_u, old_v)

        return iterate_to_fixed_point(
            step, (start, start), max_iter=self.max_iter, tol=self.tol, title="M-MSR", message="skills moved by {:.2g}"
        )

    def _compute_posterior(self, poll: Poll, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return poll.apply_softmax(scores)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"skill": self._check_fitted("skill_")}


class _TrimmedMean:
    """Mean over each worker's partners without up to ``trim`` values above the current one, and as many below it."""

    def __init__(self, pairs: PairwiseAgreement, trim: int) -> None:
        self._worker, self._count, self._trim = pairs.first, pairs.n_partners, trim
        self._rank = np.arange(len(pairs)) - (np.cumsum(self._count) - self._count)[self._worker]
        self._order = np.arange(len(pairs))

    def __call__(self, value: NDArray[np.float64], current: NDArray[np.float64]) -> NDArray[np.float64]:
        worker = self._worker
        if self._trim == 0:
            return self._compute_mean(value, self._count, current)
        # One sort for all workers: the integer part of the key is the worker. Values hardly change order between rounds, and
        # a stable sort that starts from the last order is fast then.
        key = worker + value / (1 + value)
        self._order = self._order[np.argsort(key[self._order], kind="stable")]
        value = value[self._order]
        low = np.minimum(np.bincount(worker, value < current[worker], len(current)), self._trim)
        high = self._count - np.minimum(np.bincount(worker, value > current[worker], len(current)), self._trim)
        is_inside = (self._rank >= low[worker]) & (self._rank < high[worker])
        return self._compute_mean(np.where(is_inside, value, 0), high - low, current)

    def _compute_mean(
        self, value: NDArray[np.float64], count: NDArray[Any], current: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the mean of values by worker; the current value of workers without partners."""
        total = np.bincount(self._worker, value, len(current))
        return np.divide(total, count, out=current.copy(), where=count > 0)


def _balance_factors(pairs: PairwiseAgreement, u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return u scaled so that both factors have the same norm, over workers with partners."""
    if len(pairs) == 0:
        return u
    has_partners = pairs.n_partners > 0
    return u * np.sqrt(np.linalg.norm(v[has_partners]) / np.linalg.norm(u[has_partners]))


def _compute_relative_change(*factors: NDArray[np.float64]) -> float:
    """Return ‖u vᵀ − u' v'ᵀ‖ / ‖u vᵀ‖ without the matrices, in a form that avoids cancellation."""
    u, v, old_u, old_v = factors
    du, dv = u - old_u, v - old_v
    square = float((du @ du) * (v @ v) + (old_u @ old_u) * (dv @ dv) + 2 * (du @ old_u) * (v @ dv))
    return float(np.sqrt(max(square, 0) / ((u @ u) * (v @ v))))
