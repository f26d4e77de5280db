"""Bradley–Terry model in which every worker is right with a probability, which may be below one half."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.aggregate.pairwise._davidson import ComparisonRows, DavidsonModel, Effects
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.pairwise_aggregator import Array, PairwiseAggregator
from wisecrowd.data.comparisons import LEFT, RIGHT, TIE, Comparisons
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError


@method_class
class CrowdBradleyTerry(PairwiseAggregator):
    """Bradley–Terry scores from workers of different reliability.

    Worker r reports the true outcome with probability η_r and the opposite otherwise:

        P(r prefers i to j) = η_r p + (1 − η_r)(1 − p),   p = 1 / (1 + exp(θ_j − θ_i))

    A worker below one half is an adversary, whose comparisons count reversed. EM alternates between the probability that a report
    was true and the parameters. Scores and reliabilities could change sign together; the Beta(4, 2) prior of η_r and a start from
    plain Bradley–Terry select the solution in which most workers are reliable. A tie counts as half a win of each item.

    Scores have no intervals, because their scale depends on the prior of the reliabilities; `JudgeAwareBradleyTerry` gives
    intervals.

    Examples
    --------
    >>> from wisecrowd import CrowdBradleyTerry
    >>> pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    >>> votes = [(worker, *pair, pair[0]) for worker in "uvw" for pair in pairs] + [("x", *pair, pair[1]) for pair in pairs]
    >>> fitted = CrowdBradleyTerry().fit(votes)
    >>> fitted.scores_.index.tolist(), bool(fitted.workers_.loc["x", "reliability"] < 0.5)
    (['a', 'b', 'c'], True)
    """

    references: ClassVar[tuple[str, ...]] = ("chen2013pairwise",)
    needs_workers: ClassVar[bool] = True

    ridge: float = parameter(default=0.1, help="Precision of the normal prior of the scores.")
    alpha: float = parameter(default=4.0, help="First parameter of the Beta prior of reliabilities, more than 1.")
    beta: float = parameter(default=2.0, help="Second parameter of the Beta prior of reliabilities, more than 1.")
    max_iter: int = parameter(default=500, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-4, help="Largest change of a score or reliability at convergence.")

    reliability_: Array = fitted(help="Probability η_r that a report of the worker is true.", shape=("n_workers",))
    votes_per_worker_: Array = fitted(help="Total weight of the comparisons of each worker.", shape=("n_workers",))
    tie_share_: float = fitted(help="Share of ties.")
    trace_: Array = fitted(help="Log-likelihood plus log-prior before every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of EM iterations.")
    converged_: bool = fitted(help="Whether the iteration converged.")

    def _score_items(self, comparisons: Comparisons, X: Any) -> tuple[Array, Array | None]:
        if not (self.ridge > 0 and self.alpha > 1 and self.beta > 1):
            raise UsageError(
                f"ridge must be positive, alpha and beta more than 1; got {self.ridge}, {self.alpha} and {self.beta}"
            )
        rows = ComparisonRows.summed(comparisons, workers=True, tasks=False)
        self.tie_share_ = float(rows.wins[:, TIE].sum() / rows.weight.sum())
        rows = rows.split_ties()
        assert rows.worker is not None
        model = DavidsonModel(rows, comparisons.n_items, 0, 0, Effects(ties=False))
        precisions = model.prior_precisions({"score": self.ridge})
        start = model.maximize(model.initial_parameters(), precisions, max_iter=500, tol=1e-8).parameters
        n_workers = comparisons.n_workers
        worker = rows.worker
        self.votes_per_worker_ = np.bincount(worker, rows.weight, n_workers).astype(np.float64)
        trace: list[float] = []

        def step(state: tuple[Array, Array]) -> tuple[tuple[Array, Array], float]:
            score, reliability = state
            left_is_true, right_is_true, likelihood = self._truth_probs(rows, score, reliability)
            prior = (self.alpha - 1) * np.log(reliability) + (self.beta - 1) * np.log(1 - reliability)
            trace.append(likelihood + float(prior.sum()) - 0.5 * self.ridge * float(score @ score))
            n_true = np.bincount(
                worker, rows.wins[:, LEFT] * left_is_true + rows.wins[:, RIGHT] * right_is_true, n_workers
            )
            new_reliability = (self.alpha - 1 + n_true) / (self.alpha + self.beta - 2 + self.votes_per_worker_)
            # A win that was not reported truly is a win of the other side.
            reversed_wins = rows.wins[:, [RIGHT, LEFT]] * (1 - np.stack([right_is_true, left_is_true], axis=1))
            wins = np.zeros_like(rows.wins)
            wins[:, :2] = rows.wins[:, :2] * np.stack([left_is_true, right_is_true], axis=1) + reversed_wins
            new_score = model.replace_wins(wins).maximize(score, precisions, max_iter=200, tol=1e-9).parameters
            change = max(float(np.abs(new_score - score).max()), float(np.abs(new_reliability - reliability).max()))
            return (new_score, new_reliability), change

        first = (start, np.full(n_workers, self.alpha / (self.alpha + self.beta)))
        result = iterate_to_fixed_point(step, first, max_iter=self.max_iter, tol=self.tol, title="Reliabilities")
        score, self.reliability_ = result.state
        self.n_iter_, self.converged_, self.trace_ = result.n_iter, result.converged, np.array(trace)
        return score, None

    @staticmethod
    def _truth_probs(rows: ComparisonRows, score: Array, reliability: Array) -> tuple[Array, Array, float]:
        """Return the probability that a report of left, or of right, was true, and the log-likelihood."""
        assert rows.worker is not None
        eta, prob = reliability[rows.worker], expit(score[rows.left] - score[rows.right])
        left, right = eta * prob + (1 - eta) * (1 - prob), eta * (1 - prob) + (1 - eta) * prob
        likelihood = rows.wins[:, LEFT] @ np.log(left) + rows.wins[:, RIGHT] @ np.log(right)
        return eta * prob / left, eta * (1 - prob) / right, float(likelihood)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return {"n_votes": self.votes_per_worker_, "reliability": self.reliability_}

    def _outcome_probs(self, comparisons: Comparisons, item: NDArray[np.int64]) -> Array:
        score = self.score_[item]
        prob = expit(score[comparisons.left] - score[comparisons.right])
        eta: Array | float = float(np.average(self.reliability_, weights=self.votes_per_worker_))
        if comparisons.workers is not None and comparisons.worker is not None and self.worker_index_ is not None:
            position = self.worker_index_.get_indexer(match_id_type(comparisons.workers, self.worker_index_))
            position = position[comparisons.worker]
            eta = np.where(position >= 0, self.reliability_[position], eta)
        left = eta * prob + (1 - eta) * (1 - prob)
        decided = 1 - self.tie_share_
        return np.stack([decided * left, decided * (1 - left), np.full_like(left, self.tie_share_)], axis=1)
