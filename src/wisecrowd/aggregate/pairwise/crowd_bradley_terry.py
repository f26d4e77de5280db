"""Bradley–Terry model in which every worker is right with a probability, which may be below one half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from wisecrowd.aggregate.pairwise._davidson import (
    MAX_ELIMINATED_ITEMS,
    MAX_HALVINGS,
    ComparisonRows,
    DavidsonModel,
    Effects,
)
from wisecrowd.aggregate.pairwise._worker_information import WorkerCells, WorkerInformation
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.pairwise_aggregator import Array, PairwiseAggregator
from wisecrowd.data.comparisons import LEFT, RIGHT, TIE, Comparisons
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

#: Largest change of a score, or of the logit of a reliability, in one step, so that no step leaves the solution near the start.
MAX_STEP = 1.0


@method_class
class CrowdBradleyTerry(PairwiseAggregator):
    """Bradley–Terry scores from workers of different reliability.

    Worker r reports the true outcome with probability η_r and the opposite otherwise:

        P(r prefers i to j) = η_r p + (1 − η_r)(1 − p),   p = 1 / (1 + exp(θ_j − θ_i))

    A worker below one half is an adversary, whose comparisons count reversed. Newton steps maximise the posterior density (L-BFGS
    with more than 2,000 items). Scores and reliabilities could change sign together; the Beta(4, 2) prior of η_r and a start from
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
    max_iter: int = parameter(default=500, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-4, help="Largest change of a score or reliability at convergence.")

    reliability_: Array = fitted(help="Probability η_r that a report of the worker is true.", shape=("n_workers",))
    votes_per_worker_: Array = fitted(help="Total weight of the comparisons of each worker.", shape=("n_workers",))
    tie_share_: float = fitted(help="Share of ties.")
    trace_: Array = fitted(help="Log-likelihood plus log-prior before every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
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
        n_items, n_workers = comparisons.n_items, comparisons.n_workers
        self.votes_per_worker_ = np.bincount(rows.worker, rows.weight, n_workers).astype(np.float64)
        pairs = ComparisonRows.summed(comparisons, workers=False, tasks=False).split_ties()
        plain = DavidsonModel(pairs, n_items, 0, 0, Effects(ties=False))
        precisions = plain.prior_precisions({"score": self.ridge})
        score = plain.maximize(plain.initial_parameters(), precisions, max_iter=500, tol=1e-8).parameters
        logit = np.full(n_workers, np.log(self.alpha / self.beta))
        posterior = _Posterior(rows, n_items, n_workers, self.ridge, self.alpha, self.beta)
        maximize = self._maximize_by_newton if n_items <= MAX_ELIMINATED_ITEMS else self._maximize_by_lbfgs
        parameters = maximize(posterior, np.concatenate([score, logit]))
        self.reliability_ = expit(parameters[n_items:])
        return parameters[:n_items], None

    def _maximize_by_newton(self, posterior: _Posterior, parameters: Array) -> Array:
        """Repeat Newton steps, or Fisher scoring where the observed information is indefinite."""
        cells = posterior.find_cells()
        value, gradient = posterior.objective(parameters)
        trace: list[float] = []
        self.converged_ = False
        while len(trace) < self.max_iter and not self.converged_:
            trace.append(-value)
            information = posterior.information(parameters, cells, observed=True)
            if not information.is_positive_definite():
                information = posterior.information(parameters, cells, observed=False)
            step = information.solve(gradient)
            step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-300))
            for halvings in range(MAX_HALVINGS):
                candidate = parameters - step / 2**halvings
                candidate_value, candidate_gradient = posterior.objective(candidate)
                if candidate_value <= value:
                    break
            else:  # rounding hides any further progress
                self.converged_ = True
                break
            change = float(np.abs(candidate - parameters).max())
            parameters, value, gradient = candidate, candidate_value, candidate_gradient
            self.converged_ = change <= self.tol
            progress.report("Reliabilities", len(trace), self.max_iter, f"change {change:.2g}")
        self.n_iter_, self.trace_ = len(trace), np.array(trace)
        return parameters

    def _maximize_by_lbfgs(self, posterior: _Posterior, parameters: Array) -> Array:
        """Maximise without a matrix of items by items."""
        from scipy.optimize import minimize

        scale = max(float(posterior.rows.weight.sum()), 1.0)

        def scaled(values: Array) -> tuple[float, Array]:
            value, gradient = posterior.objective(values)
            return value / scale, gradient / scale

        trace = [-posterior.objective(parameters)[0]]
        options = {"maxiter": self.max_iter, "maxfun": 4 * self.max_iter, "gtol": self.tol / scale, "ftol": 1e-15}

        def record(intermediate_result: Any) -> None:
            trace.append(-float(intermediate_result.fun) * scale)

        result = minimize(scaled, parameters, jac=True, method="L-BFGS-B", options=options, callback=record)
        self.trace_ = np.array(trace[: max(int(result.nit), 1)])
        self.n_iter_, self.converged_ = len(self.trace_), bool(result.success)
        return np.asarray(result.x, dtype=np.float64)

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


@dataclass(frozen=True)
class _Posterior:
    """Posterior density of the scores θ and of the logits z of the reliabilities.

    The probability that the left item is preferred is 1/2 + u with u = (2η − 1)(p − 1/2).
    """

    rows: ComparisonRows
    n_items: int
    n_workers: int
    ridge: float
    alpha: float
    beta: float

    def find_cells(self) -> WorkerCells:
        rows = self.rows
        assert rows.worker is not None
        return WorkerCells.from_rows(rows.worker, rows.left, rows.right, self.n_items, self.n_workers)

    def _excess(self, parameters: Array) -> tuple[Array, Array, Array]:
        """Return p − 1/2 of every row, 2η − 1 of every worker, and 2η − 1 of every row."""
        score, logit = parameters[: self.n_items], parameters[self.n_items :]
        lead = np.tanh(logit / 2)
        return np.tanh((score[self.rows.left] - score[self.rows.right]) / 2) / 2, lead, lead[self.rows.worker]

    def objective(self, parameters: Array) -> tuple[float, Array]:
        """Return the negative log-posterior and its gradient."""
        rows, n_items = self.rows, self.n_items
        score, logit = parameters[:n_items], parameters[n_items:]
        excess, lead, row_lead = self._excess(parameters)
        product = row_lead * excess
        left, right = 0.5 + product, 0.5 - product
        value = float(rows.wins[:, LEFT] @ np.log(left) + rows.wins[:, RIGHT] @ np.log(right))
        value += float((self.alpha - 1) * log_expit(logit).sum() + (self.beta - 1) * log_expit(-logit).sum())
        value -= 0.5 * self.ridge * float(score @ score)
        by_product = rows.wins[:, LEFT] / left - rows.wins[:, RIGHT] / right
        by_score = by_product * row_lead * (0.25 - excess**2)
        gradient = np.empty_like(parameters)
        gradient[:n_items] = np.bincount(rows.left, by_score, n_items) - np.bincount(rows.right, by_score, n_items)
        gradient[:n_items] -= self.ridge * score
        by_lead = np.bincount(rows.worker, by_product * excess, self.n_workers)  # type: ignore[arg-type]
        gradient[n_items:] = by_lead * (1 - lead**2) / 2
        gradient[n_items:] += self.alpha - 1 - (self.alpha + self.beta - 2) * (1 + lead) / 2
        return -value, -gradient

    def information(self, parameters: Array, cells: WorkerCells, *, observed: bool) -> WorkerInformation:
        """Return the observed or the Fisher information plus the prior precision.

        Parameters
        ----------
        parameters : ndarray of shape (n_items + n_workers,)
            Scores of the items, then z of each worker.
        cells : WorkerCells
            Combinations of worker and item that occur in rows.
        observed : bool
            Whether to return the observed information, which need not be positive definite.

        Returns
        -------
        WorkerInformation
        """
        from scipy.sparse import csr_array

        rows = self.rows
        excess, lead, row_lead = self._excess(parameters)
        product = row_lead * excess
        left, right = 0.5 + product, 0.5 - product
        excess_slope = 0.25 - excess**2  # derivative of p by the difference of the scores
        lead_slope = (1 - lead**2) / 2  # derivative of 2η − 1 by z
        if observed:
            by_product = rows.wins[:, LEFT] / left - rows.wins[:, RIGHT] / right
            curvature = rows.wins[:, LEFT] / left**2 + rows.wins[:, RIGHT] / right**2
        else:
            by_product, curvature = np.zeros(1), rows.weight / (left * right)
        by_score = row_lead * excess_slope
        shared = cells.sum_products(curvature * by_score**2 + 2 * by_product * by_score * excess)
        shared[np.diag_indices(self.n_items)] += self.ridge
        table = cells.sum_sides(curvature * by_score * excess - by_product * excess_slope) * lead_slope[cells.worker]
        shape = (self.n_workers, self.n_items)
        own = np.bincount(rows.worker, curvature * excess**2, self.n_workers) * lead_slope**2  # type: ignore[arg-type]
        own += (self.alpha + self.beta - 2) * lead_slope / 2
        if observed:
            by_lead = np.bincount(rows.worker, by_product * excess, self.n_workers)  # type: ignore[arg-type]
            own += by_lead * lead_slope * lead
        return WorkerInformation(
            shared, [csr_array((table, (cells.worker, cells.item)), shape=shape)], own[:, None, None]
        )
