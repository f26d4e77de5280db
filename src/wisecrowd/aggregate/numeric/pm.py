"""PM: workers weighted by the logarithm of their share of the loss (also known as CRH)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator, NumericVotes
from wisecrowd.aggregate.numeric._truth_discovery import MAX_ITER_HELP, TOL_HELP, TruthDiscovery
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.poll import Poll
from wisecrowd.errors import check_choice

#: Smallest loss of a worker, in units of the mean first loss, so that a worker without loss has a finite weight.
MIN_LOSS = 1e-8
#: Weight of the worst worker, who decides where nobody else voted.
MIN_WEIGHT = 1e-7


@method_class
class PM(NumericAggregator):
    """Truth discovery with weights by the logarithm of the loss, relative to the worst worker (also known as CRH).

        w_r = −log( L_r / max_r' L_r' ),   L_r = loss of r per label against the current truth

    A wrong class has loss 1. A number has loss |y − z_i| / σ_i, σ_i the standard deviation of the task's labels, and the
    estimate is the weighted median; with ``loss="squared"`` it has loss (y − z_i)² / σ_i and the estimate is the weighted
    mean.

    Choose it for numbers with outliers from careless workers. With few workers per task the absolute loss may follow one worker
    throughout; check the weights. For classes, `OneCoin` maximises a likelihood instead.

    The results of Zheng et al. (2017) use the loss summed over a worker's labels, ``per_label=False``, which penalises
    active workers.

    Examples
    --------
    >>> from wisecrowd import PM, Crowd
    >>> votes = [(task, worker, task + error * (-1) ** task) for task in range(20)
    ...          for worker, error in (("ann", 0.1), ("bob", -0.2), ("cy", 2.0))]
    >>> PM().fit(Crowd.from_triples(votes, numeric=True)).workers_["mae"].round(2).to_dict()
    {'ann': 0.0, 'bob': 0.3, 'cy': 1.9}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014resolving", "aydin2014crowdsourcing", "zheng2017truth")
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("categorical", "ordinal", "numeric")

    max_iter: int = parameter(default=500, help=MAX_ITER_HELP)
    tol: float = parameter(default=1e-6, help=TOL_HELP)
    loss: Literal["absolute", "squared"] = parameter(
        default="absolute", help="Loss of numbers: 'absolute' (weighted median) or 'squared' (weighted mean)."
    )
    per_label: bool = parameter(default=True, help="Use the mean loss of a worker; False uses the sum.")

    n_iter_: int = fitted(help="Number of rounds.")
    converged_: bool = fitted(help="Whether truth and weights converged.")

    def _make_discovery(self) -> TruthDiscovery:
        """Return the iteration with the weights of this method."""
        check_choice("loss", self.loss, ("absolute", "squared"))
        return TruthDiscovery(self._compute_weights, self.max_iter, self.tol, type(self).__name__)

    def _compute_weights(
        self, loss: NDArray[np.float64], n_votes: NDArray[np.float64], unit: float
    ) -> NDArray[np.float64]:
        """Return the weights of workers with given losses and numbers of votes."""
        clipped = np.maximum(loss / n_votes if self.per_label else loss, MIN_LOSS * unit)
        return -np.log(clipped / clipped.max()) + MIN_WEIGHT

    def _compute_loss(self, votes: NumericVotes, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of each vote, in units of the spread of its task."""
        error = np.abs(votes.error(estimate))
        spread = votes.spread
        # A task whose labels all agree has the mean spread of the other tasks; its labels have a loss against gold only.
        mean_spread = spread[spread > 0].mean() if (spread > 0).any() else 1.0
        scale = np.where(spread > 0, spread, mean_spread)[votes.crowd.task]
        return (error if self.loss == "absolute" else error**2) / scale

    def _estimate(self, votes: NumericVotes) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        result = self._make_discovery().discover_numbers(
            votes,
            compute_loss=self._compute_loss,
            average=NumericVotes.median if self.loss == "absolute" else NumericVotes.mean,
        )
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        return result.truth, result.weight

    def _fit_classes(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        poll = Poll(crowd, gold)
        result = self._make_discovery().discover_classes(poll)
        self.weight_, self.n_iter_, self.converged_ = result.weight, result.n_iter, result.converged
        self._set_fitted(crowd, poll.normalize_scores(poll.compute_scores(result.weight)))

    def _compute_standard_error(
        self, votes: NumericVotes, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        factor = np.sqrt(np.pi / 2) if self.loss == "absolute" else 1.0
        return factor * votes.standard_error(estimate, weight)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._check_fitted("weight_")}
