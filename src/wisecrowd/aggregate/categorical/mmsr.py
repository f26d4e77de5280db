"""M-MSR: skills from agreement, by robust completion of a matrix of rank one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._agreement import Agreement, log_odds, within_reach
from wisecrowd.aggregate.categorical._weighting import Poll, WeightedVote
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

#: Skills do not fall below this while they are divided by: a pair at chance level must not send its partner to infinity.
LEAST = 1e-3


@method_class
class MMSR(WeightedVote):
    """Skills are read off who agrees with whom, leaving out the extremes, and weigh the votes.

    Agreement between two workers, corrected for chance, is X_ab ≈ s_a s_b with skills s_r = (K a_r − 1)/(K − 1). The
    factors of |X| are found by alternating means over a worker's partners,

        v_b = mean over a of |X_ab| / u_a,   u_a = mean over b of |X_ab| / v_b,

    where each mean leaves out up to F partners above the present value and F below it, so that a minority of workers
    who conspire cannot move it (F is half of what the least linked worker has in partners, less one). Signs come from
    who agrees with whom, the majority being honest. The posterior is that of the one-coin model with these skills:

        q_i(k) ∝ exp( Σ_r w_r [y_ir = k] ),   w_r = log((K − 1) a_r / (1 − a_r))

    A worker who shares tasks with nobody gets the mean skill. Known truth joins as a worker who is always right.

    Choose it when some workers may be attacking together and each worker shares many tasks with others. It looks at
    each pair alike, however few tasks they share, so sparse crowds make it noisy: take `OneCoin` there. It costs time
    and memory for each pair of workers with a common task.

    The implementation in crowd-kit finds the same magnitudes, but takes two workers without a common task for two
    who disagree, and so turns many signs around: on the sentiment data of Zheng et al. (2017) its skills correlate .31
    with the workers' true accuracies and these .91, and accuracy is .937 there and .945 here.

    >>> from wisecrowd import MMSR
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(500, 10, 2, votes_per_task=10, workers={"noisy(0.7)": 7, "adversary(0.9)": 3})
    >>> fitted = MMSR().fit(made.crowd)
    >>> bool(((fitted.workers_["skill"] > 0) == (made.kind == "noisy(0.7)")).all())
    True
    """

    references: ClassVar[tuple[str, ...]] = ("ma2020adversarial",)
    if_unsettled: ClassVar[str] = "raise max_iter, or set trim=0, which settles sooner"

    trim: int | None = parameter(
        default=None, help="partners left out at each end; chosen by the least linked worker unless given"
    )
    max_iter: int = parameter(default=1000, help="rounds of completion at most")
    tol: float = parameter(default=1e-8, help="stop when the completed matrix moves by less than this fraction")

    def _weigh(self, poll: Poll) -> NDArray[np.float64]:
        if self.max_iter < 1 or (self.trim is not None and self.trim < 0):
            raise UsageError(f"max_iter must be 1 or more, trim 0 or more; got {self.max_iter} and {self.trim}")
        crowd, oracle = poll.crowd, None if poll.gold is None else poll.crowd.n_workers
        pairs = Agreement.of(crowd, poll.gold)
        skill = (self._complete(pairs, oracle) * pairs.signs(oracle))[: crowd.n_workers]
        skill = within_reach(skill, crowd)
        linked = pairs.degree[: crowd.n_workers] > 0
        skill[~linked] = skill[linked].mean() if linked.any() else 0.5
        self.skill_ = skill
        return log_odds(skill, crowd.n_classes)

    def _complete(self, pairs: Agreement, oracle: int | None) -> NDArray[np.float64]:
        """Magnitudes of the skills of all workers; 1 for those who share no task."""
        u, v = np.ones(pairs.n_workers), np.ones(pairs.n_workers)
        self.n_iter_, self.converged_ = 0, len(pairs) == 0
        if self.converged_:
            return u
        size = np.abs(pairs.skew)
        trim = max(int(pairs.degree[pairs.degree > 0].min()) // 2 - 1, 0) if self.trim is None else self.trim
        by_v, by_u = _TrimmedMean(pairs, trim), _TrimmedMean(pairs, trim)
        start = np.sqrt((size * pairs.common).sum() / pairs.common.sum())
        u, v = np.maximum(u * start, LEAST), np.maximum(v * start, LEAST)
        while not self.converged_ and self.n_iter_ < self.max_iter:
            old_u, old_v = u, v
            v = np.maximum(by_v(size / u[pairs.second], v), LEAST)
            u = np.maximum(by_u(size / v[pairs.second], u), LEAST)
            if oracle is not None:
                u[oracle] = v[oracle] = 1
            moved = _distance(u, v, old_u, old_v)
            self.n_iter_ += 1
            self.converged_ = moved <= self.tol
            progress.report("M-MSR", self.n_iter_, self.max_iter, f"skills moved by {moved:.2g}")
        # Workers without partners kept their start, which must not tell in the scale of the others.
        linked = pairs.degree > 0
        return u * np.sqrt(np.linalg.norm(v[linked]) / np.linalg.norm(u[linked]))

    def _posterior(self, poll: Poll, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return poll.odds(scores)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"skill": self._check_fitted("skill_")}


class _TrimmedMean:
    """Mean over each worker's partners without up to ``trim`` of the values above the present one and below it."""

    def __init__(self, pairs: Agreement, trim: int) -> None:
        self._worker, self._count, self._trim = pairs.first, pairs.degree, trim
        self._rank = np.arange(len(pairs)) - (np.cumsum(self._count) - self._count)[self._worker]
        self._order = np.arange(len(pairs))

    def __call__(self, value: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
        worker = self._worker
        if self._trim == 0:
            return self._mean(value, self._count, present)
        # One sort for all workers: the whole part of the key is the worker. Values hardly change order from one round
        # to the next, which a stable sort from the last order turns into speed.
        key = worker + value / (1 + value)
        self._order = self._order[np.argsort(key[self._order], kind="stable")]
        value = value[self._order]
        low = np.minimum(np.bincount(worker, value < present[worker], len(present)), self._trim)
        high = self._count - np.minimum(np.bincount(worker, value > present[worker], len(present)), self._trim)
        kept = (self._rank >= low[worker]) & (self._rank < high[worker])
        return self._mean(np.where(kept, value, 0), high - low, present)

    def _mean(
        self, value: NDArray[np.float64], count: NDArray[Any], present: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        total = np.bincount(self._worker, value, len(present))
        return np.divide(total, count, out=present.copy(), where=count > 0)


def _distance(*factors: NDArray[np.float64]) -> float:
    """‖u vᵀ − u' v'ᵀ‖ / ‖u vᵀ‖ without the matrices, written so that near factors do not cancel."""
    u, v, old_u, old_v = factors
    du, dv = u - old_u, v - old_v
    square = float((du @ du) * (v @ v) + (old_u @ old_u) * (dv @ dv) + 2 * (du @ old_u) * (v @ dv))
    return float(np.sqrt(max(square, 0) / ((u @ u) * (v @ v))))
