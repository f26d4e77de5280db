"""Bradley–Terry model of comparisons, with ties by Davidson."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.pairwise._covariates import Covariates
from wisecrowd.aggregate.pairwise._davidson import ComparisonRows, DavidsonModel, Effects, outcome_probs
from wisecrowd.aggregate.pairwise._score_covariance import (
    INTERVAL_HELP,
    N_BOOTSTRAP_HELP,
    IntervalKind,
    ScoreCovariance,
)
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.pairwise_aggregator import Array, PairwiseAggregator
from wisecrowd.data.comparisons import TIE, Comparisons
from wisecrowd.errors import UsageError, check_choice

RIDGE_HELP = (
    "Precision of the normal prior of the scores. A small one keeps scores finite if an item won, or lost, every comparison; 0 is "
    "maximum likelihood."
)


@method_class
class BradleyTerry(PairwiseAggregator):
    """Scores of items by the Bradley–Terry model, with ties by Davidson.

        P(i beats j) ∝ exp(θ_i),   P(j beats i) ∝ exp(θ_j),   P(tie) ∝ ν exp((θ_i + θ_j) / 2)

    All workers count alike. Comparisons are summed by pair, so that the cost of a fit does not depend on their number. Covariates
    of the items, such as the length of an answer, can be passed as ``X`` and are accounted for.

    Use `JudgeAwareBradleyTerry` if workers differ in quality, have a lean to one side, or call ties at different rates.

    Examples
    --------
    >>> from wisecrowd import BradleyTerry
    >>> votes = [(worker, "tea", "milk", "tea") for worker in "abc"] + [("d", "tea", "milk", "milk")]
    >>> BradleyTerry(ridge=0).fit(votes).scores_["score"].round(3).to_dict()
    {'tea': 0.549, 'milk': -0.549}
    """

    references: ClassVar[tuple[str, ...]] = ("bradley1952rank", "davidson1970extending")
    uses_features: ClassVar[bool] = True

    ridge: float = parameter(default=0.01, help=RIDGE_HELP)
    ties: Literal["davidson", "half"] = parameter(
        default="davidson", help="Ties are an outcome of their own ('davidson') or half a win of each item ('half')."
    )
    position: bool = parameter(default=False, help="Estimate the advantage of the item on the left.")
    interval: IntervalKind = parameter(default="auto", help=INTERVAL_HELP)
    n_bootstrap: int = parameter(default=200, help=N_BOOTSTRAP_HELP)
    max_iter: int = parameter(default=1000, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-9, help="Largest gradient per comparison at convergence.")
    random_state: int = parameter(default=0, help="Seed of the bootstrap.")

    tie_utility_: float = fitted(help="Utility log ν of a tie; -300 stands for no ties.")
    position_: float = fitted(help="Advantage of the left side in logits; 0 if it is not estimated.")
    covariate_coefficients_: Array | None = fitted(
        help="Coefficient of each covariate; None without covariates.", shape=("n_covariates",)
    )
    log_likelihood_: float = fitted(help="Log-likelihood plus log-prior of the comparisons.")
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the gradient vanished.")

    def _score_items(self, comparisons: Comparisons, X: Any) -> tuple[Array, Array | None]:
        check_choice("ties", self.ties, ("davidson", "half"))
        if not self.ridge >= 0:
            raise UsageError(f"ridge must be 0 or more; got {self.ridge}")
        covariates = None if X is None else Covariates.match(X, comparisons)
        rows = ComparisonRows.summed(
            comparisons, workers=False, tasks=False, covariates=None if covariates is None else covariates.difference
        )
        has_ties = bool((comparisons.outcome == TIE).any())
        if has_ties and self.ties == "half":
            rows = rows.split_ties()
        effects = Effects(lean=self.position, ties=has_ties and self.ties == "davidson")
        model = DavidsonModel(rows, comparisons.n_items, 0, 0, effects)
        precisions = model.prior_precisions({"score": self.ridge, "covariate": 1e-6})
        result = model.maximize(model.initial_parameters(), precisions, max_iter=self.max_iter, tol=self.tol)
        parameters = result.parameters
        self.n_iter_, self.converged_, self.log_likelihood_ = result.n_iter, result.converged, result.log_posterior
        blocks = model.blocks
        self.tie_utility_ = float(parameters[blocks["tie"]][0]) if effects.ties else -300.0
        self.position_ = float(parameters[blocks["lean"]][0]) if effects.lean else 0.0
        self.covariate_coefficients_ = None if covariates is None else parameters[blocks["covariate"]]
        if self.interval == "none":
            return parameters[blocks["score"]], None
        by_vote = ComparisonRows.summed(
            comparisons, workers=comparisons.has_workers, tasks=comparisons.tasks is not None,
            covariates=None if covariates is None else covariates.difference,
        )  # fmt: skip
        if has_ties and self.ties == "half":
            by_vote = by_vote.split_ties()
        covariance = ScoreCovariance(
            DavidsonModel(by_vote, comparisons.n_items, 0, 0, effects),
            parameters,
            precisions,
            comparisons,
            by_vote,
        ).compute(self.interval, n_bootstrap=self.n_bootstrap, max_iter=self.max_iter, random_state=self.random_state)
        return parameters[blocks["score"]], covariance

    def _outcome_probs(self, comparisons: Comparisons, item: NDArray[np.int64]) -> Array:
        score = self.score_[item]
        difference = score[comparisons.left] - score[comparisons.right] + self.position_
        return np.stack(outcome_probs(difference, self.tie_utility_), axis=1)
