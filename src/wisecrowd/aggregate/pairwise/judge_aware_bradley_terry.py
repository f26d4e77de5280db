"""Bradley–Terry model in which judges differ in discrimination, lean to a side and habit of ties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.aggregate.pairwise._covariates import Covariates
from wisecrowd.aggregate.pairwise._davidson import (
    NO_TIES,
    NULL_SPACE_JITTER,
    ComparisonRows,
    DavidsonModel,
    Effects,
    MaximizedParameters,
    outcome_probs,
)
from wisecrowd.aggregate.pairwise._score_covariance import (
    INTERVAL_HELP,
    N_BOOTSTRAP_HELP,
    IntervalKind,
    ScoreCovariance,
)
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.pairwise_aggregator import Array, PairwiseAggregator
from wisecrowd.data.comparisons import LEFT, TIE, Comparisons
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

#: Blocks whose prior precision is estimated from the data, with the value to start from.
INITIAL_PRECISIONS = {
    "score": 1.0,
    "worker_lean": 1.0,
    "worker_tie": 1.0,
    "task_score": 4.0,
    "task_tie": 1.0,
}
#: Bounds of estimated precisions: standard deviations of 10 and of 0.01 logits.
PRECISION_BOUNDS = (0.01, 1e4)
#: Largest number of parameters whose exact variances are computed (a second for a dense inverse); beyond it, variances given all
#: other parameters are used, which are too small.
MAX_INVERTED_PARAMETERS = 3_000
#: Relative change of all precisions below which they have converged.
PRECISION_TOLERANCE = 0.05
#: Largest share of the information about the scores that one judge may contribute, if there are three or more.
MAX_JUDGE_SHARE = 0.5
#: Rounds in which the weight of a dominating judge is reduced.
MAX_GUARD_ROUNDS = 5


@method_class
class JudgeAwareBradleyTerry(PairwiseAggregator):
    """Scores of items by comparisons of judges who differ (people, models, or both).

    Every judge r has a discrimination a_r, a lean π_r to the left side and a habit κ_r of calling ties:

        d = a_r (θ_L − θ_R) + π + π_r,   P(left) ∝ exp(d/2),   P(right) ∝ exp(−d/2),   P(tie) ∝ exp(κ + κ_r)

    If comparisons have tasks (prompts), items may be better on some tasks than on others, and ties more frequent:
    d gains u_Lt − u_Rt and κ gains κ_t. All effects have normal priors whose variances are estimated from the data (Laplace
    approximation of the marginal likelihood), except that of log a_r, which fixes the scale.

    A judge who always prefers the left side is explained by the lean, not by the items. A judge who contributes more than half
    of the information is weighted down, so that nobody can decide a ranking alone.

    Examples
    --------
    >>> from wisecrowd import JudgeAwareBradleyTerry
    >>> people = [(f"p{n}", *pair, "tea") for n in range(6) for pair in (("tea", "milk"), ("milk", "tea"))]
    >>> machine = [("bot", "milk", "tea", "left"), ("bot", "tea", "milk", "left")]
    >>> fitted = JudgeAwareBradleyTerry().fit(people + machine)
    >>> fitted.scores_.index[0], bool(fitted.workers_.loc["bot", "lean"] > 0)
    ('tea', True)
    """

    references: ClassVar[tuple[str, ...]] = ("bradley1952rank", "davidson1970extending")
    needs_workers: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True

    task_effects: bool = parameter(
        default=True, help="Let scores and ties depend on the task (prompt), if comparisons have tasks."
    )
    discrimination_spread: float = parameter(
        default=0.5, help="Standard deviation of the prior of log a_r; it fixes the scale of the scores."
    )
    interval: IntervalKind = parameter(default="auto", help=INTERVAL_HELP)
    n_bootstrap: int = parameter(default=200, help=N_BOOTSTRAP_HELP)
    max_iter: int = parameter(default=1000, help="Maximum number of iterations of one optimisation.")
    max_rounds: int = parameter(default=8, help="Maximum number of rounds in which variances are estimated.")
    tol: float = parameter(default=1e-7, help="Largest gradient per comparison at convergence.")
    random_state: int = parameter(default=0, help="Seed of the bootstrap.")

    discrimination_: Array = fitted(
        help="Discrimination a_r of each worker; 1 is average.", shape=("n_workers",), finite=True
    )
    lean_: Array = fitted(
        help="Lean of each worker to the left side, in logits; the common lean is included.",
        shape=("n_workers",),
        finite=True,
    )
    tie_habit_: Array = fitted(
        help="Utility of a tie of each worker; -300 stands for no ties.", shape=("n_workers",), finite=True
    )
    information_share_: Array = fitted(
        help="Share of each worker in the information about the scores.", shape=("n_workers",)
    )
    worker_counts_: Array = fitted(help="Comparisons, comparisons won by the left side, and ties of each worker.")
    common_lean_: float = fitted(help="Common lean to the left side, in logits.")
    common_tie_: float = fitted(help="Common utility of a tie.")
    precision_: dict[str, float] = fitted(help="Estimated prior precision of every kind of effect.")
    covariate_coefficients_: Array | None = fitted(
        help="Coefficient of each covariate; None without covariates.", shape=("n_covariates",)
    )
    task_id_index_: pd.Index | None = fitted(help="Task ids; None without effects of tasks.")
    task_tie_: Array | None = fitted(
        help="Additional utility of a tie on each task; None without effects of tasks.",
        shape=("n_task_ids",),
        finite=True,
    )
    cell_: NDArray[np.int64] | None = fitted(
        help="Combinations item x n_tasks + task with a deviation, sorted.",
        shape=("n_cells",),
        codes="n_items * n_task_ids",
    )
    task_score_: Array | None = fitted(
        help="Deviation of the score in each of these combinations.", shape=("n_cells",), finite=True
    )
    log_posterior_: float = fitted(help="Log-likelihood plus log-prior.")
    n_iter_: int = fitted(help="Number of iterations of the last optimisation.")
    converged_: bool = fitted(help="Whether the last optimisation converged.")

    def _score_items(self, comparisons: Comparisons, X: Any) -> tuple[Array, Array | None]:
        if not self.discrimination_spread > 0:
            raise UsageError(f"discrimination_spread must be positive; got {self.discrimination_spread}")
        covariates = None if X is None else Covariates.match(X, comparisons)
        has_tasks = self.task_effects and comparisons.tasks is not None
        rows = ComparisonRows.summed(
            comparisons, workers=True, tasks=comparisons.tasks is not None,
            covariates=None if covariates is None else covariates.difference,
        )  # fmt: skip
        effects = Effects(lean=True, ties=bool((comparisons.outcome == TIE).any()), workers=True, tasks=has_tasks)
        n_tasks = comparisons.n_tasks if has_tasks else 0
        model = DavidsonModel(rows, comparisons.n_items, comparisons.n_workers, n_tasks, effects)
        model, result, precision = self._fit_guarded(model)
        self._set_effects(model, result, precision, comparisons)
        covariance = ScoreCovariance(
            model, result.parameters, model.prior_precisions(precision), comparisons, rows
        ).compute(
            # The effects of workers explain most of the dependence, and with them a sandwich estimate is too small.
            "fisher" if self.interval == "auto" else self.interval,
            n_bootstrap=self.n_bootstrap,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        return result.parameters[model.blocks["score"]], covariance

    def _fit_guarded(self, model: DavidsonModel) -> tuple[DavidsonModel, MaximizedParameters, dict[str, float]]:
        """Fit the model; reduce the weight of a judge who would decide the scores alone, and fit again."""
        worker = model.rows.worker
        assert worker is not None
        n_workers = model.blocks["worker_slope"].stop - model.blocks["worker_slope"].start
        n_active = int((np.bincount(worker, minlength=n_workers) > 0).sum())
        weight = np.ones(n_workers)
        guarded = model
        for _ in range(MAX_GUARD_ROUNDS):
            result, precision = self._estimate_precisions(guarded)
            share = _information_shares(guarded, result.parameters, n_workers)
            dominating = share > MAX_JUDGE_SHARE + 0.01
            if n_active < 3 or not dominating.any():
                break
            # With weight w the share s becomes ws / (ws + 1 − s), which is the limit for this w.
            others = 1 - share[dominating]
            weight[dominating] *= MAX_JUDGE_SHARE * others / ((1 - MAX_JUDGE_SHARE) * share[dominating])
            guarded = model.reweight(weight[worker])
        return guarded, result, precision

    def _estimate_precisions(self, model: DavidsonModel) -> tuple[MaximizedParameters, dict[str, float]]:
        """Alternate between the parameters and the variances of their priors."""
        precision = {name: value for name, value in INITIAL_PRECISIONS.items() if name in model.blocks}
        fixed = {"worker_slope": self.discrimination_spread**-2, "covariate": 1e-6, "lean": 1e-2, "tie": 1e-4}
        parameters = model.initial_parameters()
        for number in range(max(self.max_rounds, 1)):
            progress.report("Judges", number + 1, self.max_rounds)
            precisions = model.prior_precisions(precision | fixed)
            result = model.maximize(parameters, precisions, max_iter=self.max_iter, tol=self.tol)
            parameters = result.parameters
            if number == self.max_rounds - 1:
                break
            updated = _update_precisions(model, parameters, precision, precisions)
            change = max(abs(np.log(updated[name] / precision[name])) for name in precision)
            precision = updated
            if change < PRECISION_TOLERANCE:
                break
        return result, precision | fixed

    def _set_effects(
        self,
        model: DavidsonModel,
        result: MaximizedParameters,
        precision: Mapping[str, float],
        comparisons: Comparisons,
    ) -> None:
        parameters, block = result.parameters, model.blocks
        has_ties, n_workers = model.effects.ties, comparisons.n_workers
        self.n_iter_, self.converged_, self.log_posterior_ = result.n_iter, result.converged, result.log_posterior
        self.precision_ = {name: float(precision[name]) for name in block if name in precision}
        self.common_lean_ = float(parameters[block["lean"]][0])
        self.common_tie_ = float(parameters[block["tie"]][0]) if has_ties else NO_TIES
        self.discrimination_ = model.worker_slopes(parameters)
        self.lean_ = parameters[block["worker_lean"]] + self.common_lean_
        self.tie_habit_ = self.common_tie_ + (parameters[block["worker_tie"]] if has_ties else np.zeros(n_workers))
        self.information_share_ = _information_shares(model, parameters, n_workers)
        worker, weight = comparisons.worker, comparisons.vote_weight
        assert worker is not None
        left, tie = comparisons.outcome == LEFT, comparisons.outcome == TIE
        counts = [np.bincount(worker, weight * mask, n_workers) for mask in (1, left, tie)]
        self.worker_counts_ = np.stack(counts, axis=1)
        self.covariate_coefficients_ = parameters[block["covariate"]] if "covariate" in block else None
        has_tasks = model.effects.tasks
        self.task_id_index_ = comparisons.tasks if has_tasks else None
        self.task_tie_ = parameters[block["task_tie"]] if has_tasks and has_ties else None
        self.cell_ = model.cells if has_tasks else None
        self.task_score_ = parameters[block["task_score"]] if has_tasks else None

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        total, left, tie = self.worker_counts_.T
        with np.errstate(invalid="ignore"):  # a worker without comparisons has no shares: NaN
            return {
                "n_votes": total,
                "discrimination": self.discrimination_,
                "lean": self.lean_,
                "tie_habit": self.tie_habit_,
                "left_share": left / (total - tie),
                "tie_share": tie / total,
                "information_share": self.information_share_,
            }

    def _outcome_probs(self, comparisons: Comparisons, item: NDArray[np.int64]) -> Array:
        score = self.score_[item]
        advantage = score[comparisons.left] - score[comparisons.right]
        deviation: Array | float = 0.0
        slope: Array | float = 1.0
        lean: Array | float = self.common_lean_
        tie: Array | float = self.common_tie_
        if comparisons.workers is not None and comparisons.worker is not None and self.worker_index_ is not None:
            position = self.worker_index_.get_indexer(match_id_type(comparisons.workers, self.worker_index_))
            position = position[comparisons.worker]
            is_known = position >= 0
            slope = np.where(is_known, self.discrimination_[position], slope)
            lean = np.where(is_known, self.lean_[position], lean)
            tie = np.where(is_known, self.tie_habit_[position], tie)
        if self.task_id_index_ is not None and comparisons.tasks is not None and comparisons.task is not None:
            task = self.task_id_index_.get_indexer(match_id_type(comparisons.tasks, self.task_id_index_))[
                comparisons.task
            ]
            if self.task_tie_ is not None:
                tie = tie + np.where(task >= 0, self.task_tie_[task], 0.0)
            for side, sign in ((comparisons.left, 1), (comparisons.right, -1)):
                deviation = deviation + sign * self._find_deviations(item[side], task)
        return np.stack(outcome_probs(slope * advantage + deviation + lean, tie), axis=1)

    def _find_deviations(self, item: NDArray[np.int64], task: NDArray[np.int64]) -> Array:
        """Return the deviations u_it of items on tasks; zero for combinations that were not compared."""
        assert self.cell_ is not None
        assert self.task_score_ is not None
        assert self.task_id_index_ is not None
        key = item * len(self.task_id_index_) + task
        place = np.minimum(np.searchsorted(self.cell_, key), len(self.cell_) - 1)
        return np.where((task >= 0) & (self.cell_[place] == key), self.task_score_[place], 0.0)


def _update_precisions(
    model: DavidsonModel, parameters: Array, precision: Mapping[str, float], precisions: Array
) -> dict[str, float]:
    """Return precisions 1 / mean(value² + variance), the fixed-point step of the Laplace approximation."""
    is_exact = model.n_parameters <= MAX_INVERTED_PARAMETERS
    if model.has_separate_workers(precisions):
        by_worker = model.worker_information(parameters, precisions)
        diagonal = by_worker.diagonal()
        variance = by_worker.inverse_diagonal() if is_exact else 1 / diagonal
    else:
        information = model.information(parameters, precisions)
        diagonal = information.diagonal()
        jitter = NULL_SPACE_JITTER * np.eye(len(diagonal) if is_exact else 0)
        variance = np.diagonal(np.linalg.inv(information.toarray() + jitter)) if is_exact else 1 / diagonal
    updated = {}
    for name in precision:
        block = model.blocks[name]
        # Parameters without data say nothing about the variance.
        is_active = diagonal[block] > precisions[block] * (1 + 1e-9)
        if not is_active.any():
            updated[name] = precision[name]
            continue
        second_moment = (parameters[block] ** 2 + variance[block])[is_active].mean()
        updated[name] = float(np.clip(1 / second_moment, *PRECISION_BOUNDS))
    return updated


def _information_shares(model: DavidsonModel, parameters: Array, n_workers: int) -> Array:
    """Return the share of each worker in the information about the scores."""
    worker = model.rows.worker
    assert worker is not None
    slope = model.worker_slopes(parameters)[worker]
    information = model.rows.weight * model.outcome_probs(parameters).difference_information * slope**2
    total = np.bincount(worker, information, n_workers)
    return np.asarray(total / max(total.sum(), 1e-300), dtype=np.float64)
