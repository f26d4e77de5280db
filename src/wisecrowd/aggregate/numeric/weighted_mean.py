"""The mean of the labels, with workers weighted by precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator, NumericVotes
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.em.confusion import ACCELERATE_HELP
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.errors import UsageError

#: Smallest variance of a worker, in units of the crowd's variance, so that precisions stay finite.
MIN_VARIANCE = 1e-9


@method_class
class WeightedMean(NumericAggregator):
    """Mean of labels weighted by the precision of the workers, which is estimated by EM.

    Model: y_ir = z_i + ε, ε ~ N(0, v_r), a flat prior of z_i, and s = ``smoothing`` pseudo-labels per worker with the
    crowd's own variance v₀ (an inverse gamma prior):

        E:  z_i ~ N(m_i, u_i),   u_i = 1 / Σ_r 1/v_r,   m_i = u_i Σ_r y_ir / v_r
        M:  v_r = (Σ_i ((y_ir − m_i)² + u_i) + s v₀) / (n_r + s)

    u_i is the uncertainty of the estimate. Without it (``integrate=False``) z_i is a parameter, and the likelihood is
    unbounded: the more weight a worker has, the closer the estimates come to that worker's labels, until one worker has all
    the weight. That, without pseudo-labels, is the method that surveys call LFC_N (``integrate=False, smoothing=0``).

    Choose it when workers differ in precision and have ten labels each or more. A constant bias of a worker is not
    corrected (see ``bias`` in ``workers_``). Outliers move it less than `Mean`, more than `Median`.

    Examples
    --------
    >>> from wisecrowd import Crowd, WeightedMean
    >>> votes = [(task, worker, task + error * (-1) ** (task // period)) for task in range(40)
    ...          for worker, error, period in (("ann", 0.1, 1), ("bob", 0.1, 2), ("cy", 2.0, 4))]
    >>> fitted = WeightedMean().fit(Crowd.from_triples(votes, numeric=True))
    >>> fitted.workers_["rmse"].round(1).to_dict()
    {'ann': 0.1, 'bob': 0.1, 'cy': 2.0}
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning", "zheng2017truth")

    smoothing: float = parameter(default=1.0, help="Number of pseudo-labels of average precision per worker.")
    integrate: bool = parameter(
        default=True, help="Account for the uncertainty of estimates in the variances of workers; False is LFC_N."
    )
    max_iter: int = parameter(default=500, help="Maximum number of passes over the labels.")
    tol: float = parameter(default=1e-9, help="Relative change of the objective below which EM has converged.")
    accelerate: bool = parameter(default=True, help=ACCELERATE_HELP)

    trace_: NDArray[np.float64] = fitted(help="Objective of every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether EM converged.")

    def _estimate(self, votes: NumericVotes) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        if self.max_iter < 1 or self.smoothing < 0:
            raise UsageError(f"max_iter must be 1 or more, smoothing 0 or more; got {self.max_iter}, {self.smoothing}")
        n_votes = votes.worker_totals
        no_tally = np.empty((0, 0))  # numeric labels have no (worker, label) pairs
        first_loss = votes.sum_by_worker(votes.error(votes.mean()) ** 2)
        unit = float(first_loss.sum() / n_votes.sum()) or 1.0  # v₀; variances below are in units of it
        is_free = votes.has_votes if votes.truth is None else votes.has_votes & np.isnan(votes.truth)

        def compute_precision(loss: NDArray[np.float64]) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore"):  # a worker without labels or pseudo-labels has no variance
                variance = (loss + self.smoothing) / (n_votes + self.smoothing)
            return np.where(n_votes > 0, 1 / np.maximum(variance, MIN_VARIANCE), np.nan)

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            weight = compute_precision(statistics.class_counts)
            task_precision = _sum_precision(votes, weight)
            task_variance = np.divide(1, task_precision, out=np.zeros(len(task_precision)), where=is_free)
            loss = votes.sum_by_worker(votes.error(votes.mean(weight)) ** 2 / unit)
            terms = (loss + self.smoothing) * weight - (n_votes + self.smoothing) * np.log(weight)
            objective = -float(terms[n_votes > 0].sum()) / 2
            if self.integrate:
                objective -= float(np.log(task_precision[is_free]).sum()) / 2
                loss = loss + votes.sum_by_worker(task_variance[votes.crowd.task])
            return Statistics(loss, no_tally), objective

        result = run_em(
            step,
            Statistics(first_loss / unit, no_tally),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=self.accelerate,
            title="WeightedMean",
        )
        self.trace_, self.n_iter_, self.converged_ = np.array(result.trace), len(result.trace), result.converged
        weight = compute_precision(result.statistics.class_counts)
        return votes.mean(weight), weight / unit

    def _compute_standard_error(
        self, votes: NumericVotes, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Return the model's standard error √u_i, also for a single label."""
        assert weight is not None
        precision = _sum_precision(votes, weight)
        variance = np.divide(1, precision, out=np.full(len(precision), np.nan), where=votes.has_votes)
        return votes.zero_gold(np.sqrt(variance))


def _sum_precision(votes: NumericVotes, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the precision 1/u_i of each task: the sum of the precisions of its workers."""
    assert votes.crowd.worker is not None
    return votes.sum_by_task(weight[votes.crowd.worker])
