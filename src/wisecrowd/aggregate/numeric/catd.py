"""CATD: workers weighted by the lower confidence limit of their precision."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, gammaln, softmax

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator, NumericVotes
from wisecrowd.aggregate.numeric._truth_discovery import MAX_ITER_HELP, TOL_HELP, TruthDiscovery
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError

#: Loss added to that of every worker, in units of the mean first loss, so that a worker without loss has a finite weight.
MIN_LOSS = 1e-9


@method_class
class CATD(NumericAggregator):
    """Confidence-aware truth discovery, for numbers or classes: few labels of a worker mean little weight.

        w_r = χ²(α/2; n_r) / Σ_i d(y_ir, z_i),   z_i = weighted mean (numbers) or weighted vote (classes)

    with d the squared error of numbers, and 0 or 1 for right or wrong classes. The lower α/2 quantile of χ² with n_r
    degrees of freedom divided by the loss is the lower confidence limit of a worker's precision, so a worker with three
    labels has less weight than one with three hundred who errs as often. Weights are normalised to sum to one.

    Choose it for comparisons. The loss is computed against estimates that the worker's own labels have influenced, so
    weights reinforce themselves: a worker who shares most tasks and is better than the rest ends with nearly all the
    weight. `WeightedMean` avoids that for numbers, `OneCoin` for classes.

    For numbers, the implementation of Zheng et al. (2017) does not divide by the total weight of a task, which shrinks the
    estimates; here they are weighted means.

    Examples
    --------
    >>> from wisecrowd import CATD, Crowd
    >>> votes = [(task, worker, task + error * (-1) ** task) for task in range(20)
    ...          for worker, error in (("ann", 0.1), ("bob", -0.2), ("cy", 2.0))]
    >>> CATD().fit(Crowd.from_triples(votes, numeric=True)).workers_["weight"].round(2).to_dict()
    {'ann': 1.0, 'bob': 0.0, 'cy': 0.0}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014confidence", "zheng2017truth")
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("categorical", "ordinal", "numeric")

    max_iter: int = parameter(default=500, help=MAX_ITER_HELP)
    tol: float = parameter(default=1e-6, help=TOL_HELP)
    alpha: float = parameter(default=0.05, help="One minus the confidence level, between 0 and 1.")

    n_iter_: int = fitted(help="Number of rounds.")
    converged_: bool = fitted(help="Whether truth and weights converged.")

    def _make_discovery(self) -> TruthDiscovery:
        """Return the iteration with the weights of this method."""
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha must lie between 0 and 1; got {self.alpha}")
        return TruthDiscovery(self._compute_weights, self.max_iter, self.tol, type(self).__name__)

    def _compute_weights(
        self, loss: NDArray[np.float64], n_votes: NDArray[np.float64], unit: float
    ) -> NDArray[np.float64]:
        """Return the weights of workers with given losses and numbers of votes."""
        quantile = 2 * gammaincinv(n_votes / 2, self.alpha / 2)
        weight = quantile / (loss + MIN_LOSS * unit)
        total = weight.sum()
        if total > 0:
            return weight / total
        # All quantiles are below the smallest number: P(a, x) = x^a / Γ(a + 1) for small a, solved for log x.
        shape = np.maximum(n_votes, np.finfo(float).tiny) / 2
        log_quantile = (np.log(self.alpha / 2) + gammaln(shape + 1)) / shape
        return softmax(log_quantile - np.log(loss + MIN_LOSS * unit))

    def _estimate(self, votes: NumericVotes) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        result = self._make_discovery().discover_numbers(
            votes,
            compute_loss=lambda votes, estimate: votes.error(estimate) ** 2,
            average=lambda votes, weight: votes.mean(weight),
        )
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        return result.truth, result.weight

    def _fit_classes(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        poll = Poll(crowd, gold)
        result = self._make_discovery().discover_classes(poll)
        self.weight_, self.n_iter_, self.converged_ = result.weight, result.n_iter, result.converged
        self._set_fitted(crowd, poll.normalize_scores(poll.compute_scores(result.weight)))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._check_fitted("weight_")}
