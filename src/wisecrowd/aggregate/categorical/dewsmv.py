"""DEWSMV: weights of workers found by differential evolution (experimental)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighted_vote import WeightedVote
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress
from wisecrowd.utils.slices import slice_rows

#: Standard deviation of the first candidates around the weights of Wawa.
INITIAL_SPREAD = 0.1


@method_class
class DEWSMV(WeightedVote):
    """Weighted vote whose weights minimise the uncertainty of the outcome, by differential evolution (experimental).

    With p_i(k) = Σ_r w_r [y_ir = k] / Σ_r w_r, differential evolution minimises over w in [floor, 1]

        mean_i (1 − max_k p_i(k))  +  mean_i H(p_i) / log K,

    the uncertainty of the label plus that of the class probabilities. Known truth z contributes 2 (1 − p_i(z)).

    **This implementation follows an abstract.** *Published*, in the abstract of the predecessor DEWMV (Zhang, Jiang and
    others 2018): differential evolution searches a voting quality for each label; of three fitness functions (the
    uncertainty of the integrated label, that of the class membership probability, and their hybrid) the hybrid is chosen.
    Neither the text of DEWSMV nor its program, to which other programs of the group refer, is available. *Guesses*: that a
    quality belongs to a worker and not to a single vote; both formulas of uncertainty and their equal weights; all settings
    of the search (rand/1/bin, F = .5, CR = .9, 50 candidates, 100 generations) and its start around the weights of `Wawa`;
    that votes are not softened before the vote. *Ours*: the floor of weights, since all weight on one worker who labelled
    everything would minimise the uncertainty.

    Choose it for comparisons only: it is about as accurate as `Wawa` at hundreds of times the cost.

    Examples
    --------
    >>> from wisecrowd import DEWSMV
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(100, 8, 2, votes_per_task=5, workers={"expert": 4, "spammer": 4})
    >>> weight = DEWSMV(max_iter=50).fit(simulation.crowd).workers_["weight"]
    >>> bool(weight[simulation.kind == "expert"].mean() > weight[simulation.kind == "spammer"].mean())
    True
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2018differential",)
    breaks: ClassVar[dict[str, str]] = {
        "worker_names_do_not_matter": "the search draws random weights in the order of workers",
    }

    floor: float = parameter(default=0.1, help="Smallest weight of a worker, between 0 and 1.")
    population: int = parameter(default=50, help="Number of candidates in a generation.")
    max_iter: int = parameter(default=100, help="Number of generations.")
    random_state: int = parameter(default=0, help="Seed of the search.")

    n_iter_: int = fitted(help="Number of generations.")
    uncertainty_: float = fitted(help="Uncertainty of the weighted vote with the final weights.")

    def _estimate_weights(self, poll: Poll) -> NDArray[np.float64]:
        from scipy.optimize import differential_evolution

        if not 0 < self.floor < 1:
            raise UsageError(f"floor must lie between 0 and 1; got {self.floor}")
        if self.population < 5 or self.max_iter < 1:
            raise UsageError(
                f"population must be 5 or more and max_iter 1 or more; got {self.population} and {self.max_iter}"
            )
        rng = np.random.default_rng(self.random_state)
        agreement = poll.compute_agreement(poll.find_winners(poll.crowd.vote_counts))
        voted = np.isfinite(agreement)
        candidates = np.where(voted, agreement, 0) + INITIAL_SPREAD * rng.normal(size=(self.population, len(agreement)))
        candidates[0] = np.where(voted, agreement, 0)  # so that the result is never worse than Wawa
        generation = iter(range(1, self.max_iter + 1))
        # The loop over generations is scipy's, so the shared loop does not apply.
        result = differential_evolution(
            _Uncertainty(poll), [(self.floor, 1)] * len(agreement), strategy="rand1bin", mutation=0.5, recombination=0.9,
            init=np.clip(candidates, self.floor, 1), maxiter=self.max_iter, tol=0, polish=False,
            updating="deferred", vectorized=True, seed=rng,
            callback=lambda intermediate_result: progress.report(
                "DEWSMV", next(generation, self.max_iter), self.max_iter, f"fitness {intermediate_result.fun:.4f}"),
        )  # fmt: skip
        self.n_iter_, self.uncertainty_ = int(result.nit), float(result.fun)
        return np.where(voted, result.x, np.nan)


class _Uncertainty:
    """Uncertainty of weighted votes, as a function of candidate weights (n_workers, n_candidates)."""

    def __init__(self, poll: Poll) -> None:
        crowd = poll.crowd
        matrix = poll.cell_matrix
        cell = np.flatnonzero(np.diff(matrix.indptr))  # (task, class) cells with votes
        task = cell // crowd.n_classes
        self._matrix = matrix[cell]
        self._first_cell = np.flatnonzero(np.diff(task, prepend=-1))
        self._max_entropy = np.log(max(crowd.n_classes, 2))
        gold = np.full(crowd.n_tasks, -1) if poll.gold is None else poll.gold
        self._is_gold = gold[task[self._first_cell]] >= 0
        self._is_true_cell = gold[task] == cell % crowd.n_classes

    def __call__(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        columns = slice_rows(weight.shape[1], len(self._is_true_cell))
        return np.concatenate([self._compute(weight[:, selection]) for selection in columns])

    def _compute(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean uncertainty of each candidate."""
        score = self._matrix @ weight  # (cells, candidates)
        total = np.add.reduceat(score, self._first_cell)  # (tasks, candidates)
        error = 1 - np.maximum.reduceat(score, self._first_cell) / total
        entropy = np.log(total) - np.add.reduceat(score * np.log(score), self._first_cell) / total
        uncertainty = error + entropy / self._max_entropy
        if self._is_gold.any():
            right = np.add.reduceat(score * self._is_true_cell[:, None], self._first_cell) / total
            uncertainty[self._is_gold] = 2 * (1 - right[self._is_gold])
        return uncertainty.mean(axis=0)
