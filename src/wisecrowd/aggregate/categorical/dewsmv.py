"""DEWSMV: weights of workers found by differential evolution. Experimental."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighting import Poll, WeightedVote
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.priors import blocks
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress


@method_class
class DEWSMV(WeightedVote):
    """Experimental: weights are searched that leave the weighted vote least uncertain.

    With p_i(k) = Σ_r w_r [y_ir = k] / Σ_r w_r, differential evolution minimises over w in [floor, 1]

        mean_i (1 − max_k p_i(k))  +  mean_i H(p_i) / log K,

    the uncertainty of the answer and that of the class probabilities. Known truth z counts as 2 (1 − p_i(z)).

    **This is a reading of an abstract.** The paper on the method before it (DEWMV, of which this is the soft form)
    names the search, its three fitness functions and that the sum of the two uncertainties is the one to take; what
    exactly carries a weight, and the settings of the search, were not available. Here workers carry weights, the search
    is rand/1/bin and starts around the weights of `Wawa`, and weights have a floor, because all weight on one worker
    who labelled everything would be the surest answer of all.

    Choose it only to compare with it. On the real data that we tried it is about as good as `Wawa`, better and worse
    by a few points, at hundreds of times the cost; nothing ties certainty to truth.

    >>> from wisecrowd import DEWSMV
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(100, 8, 2, votes_per_task=5, workers={"expert": 4, "spammer": 4})
    >>> weight = DEWSMV(max_iter=50).fit(made.crowd).workers_["weight"]
    >>> bool(weight[made.kind == "expert"].mean() > weight[made.kind == "spammer"].mean())
    True
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2018differential",)
    breaks: ClassVar[dict[str, str]] = {
        "worker_names_do_not_matter": "the search deals out random weights in the order of workers",
    }

    floor: float = parameter(default=0.1, help="least weight of a worker, between 0 and 1")
    population: int = parameter(default=50, help="candidates in a generation")
    max_iter: int = parameter(default=100, help="generations")
    random_state: int = parameter(default=0, help="seed of the search")

    def _weigh(self, poll: Poll) -> NDArray[np.float64]:
        from scipy.optimize import differential_evolution

        if not 0 < self.floor < 1:
            raise UsageError(f"floor must lie between 0 and 1; got {self.floor}")
        if self.population < 5 or self.max_iter < 1:
            raise UsageError(
                f"population must be 5 or more and max_iter 1 or more; got {self.population} and {self.max_iter}"
            )
        rng = np.random.default_rng(self.random_state)
        wawa = poll.agreement(poll.winners(poll.crowd.votes))
        voted = np.isfinite(wawa)
        around = np.where(voted, wawa, 0) + 0.1 * rng.normal(size=(self.population, len(wawa)))
        around[0] = np.where(voted, wawa, 0)  # so that the end is never worse than Wawa
        generation = iter(range(1, self.max_iter + 1))
        found = differential_evolution(
            _Uncertainty(poll), [(self.floor, 1)] * len(wawa), strategy="rand1bin", mutation=0.5, recombination=0.9,
            init=np.clip(around, self.floor, 1), maxiter=self.max_iter, tol=0, polish=False,
            updating="deferred", vectorized=True, seed=rng,
            callback=lambda intermediate_result: progress.report(
                "DEWSMV", next(generation, self.max_iter), self.max_iter, f"fitness {intermediate_result.fun:.4f}"),
        )  # fmt: skip
        self.n_iter_, self.uncertainty_ = int(found.nit), float(found.fun)
        return np.where(voted, found.x, np.nan)


class _Uncertainty:
    """The fitness of candidates: (workers, candidates) weights to one number each."""

    def __init__(self, poll: Poll) -> None:
        crowd = poll.crowd
        ballots = poll.ballots
        cell = np.flatnonzero(np.diff(ballots.indptr))  # (task, class) cells that somebody chose
        task = cell // crowd.n_classes
        self._ballots = ballots[cell]
        self._first = np.flatnonzero(np.diff(task, prepend=-1))
        self._scale = np.log(max(crowd.n_classes, 2))
        gold = np.full(crowd.n_tasks, -1) if poll.gold is None else poll.gold
        self._known = gold[task[self._first]] >= 0
        self._true = gold[task] == cell % crowd.n_classes

    def __call__(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = [self._of(weight[:, some]) for some in blocks(weight.shape[1], len(self._true))]
        return np.concatenate(parts)

    def _of(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        score = self._ballots @ weight  # (cells, candidates)
        total = np.add.reduceat(score, self._first)  # (tasks, candidates)
        doubt = 1 - np.maximum.reduceat(score, self._first) / total
        entropy = np.log(total) - np.add.reduceat(score * np.log(score), self._first) / total
        uncertainty = doubt + entropy / self._scale
        if self._known.any():
            right = np.add.reduceat(score * self._true[:, None], self._first) / total
            uncertainty[self._known] = 2 * (1 - right[self._known])
        return uncertainty.mean(axis=0)
