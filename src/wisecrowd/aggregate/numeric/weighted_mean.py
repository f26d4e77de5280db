"""The mean of what was said, workers weighing by their precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric import Numbers, NumericAggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.loop import Statistics, iterate
from wisecrowd.errors import UsageError


@method_class
class WeightedMean(NumericAggregator):
    """Workers err with a variance of their own, learnt by EM; a task is the mean of its labels by precision.

    Model: y_ir = z_i + ε, ε ~ N(0, v_r), nothing known of z_i before, and s = ``smoothing`` pseudo-labels per worker
    with the crowd's own variance v₀ (an inverse gamma prior):

        E:  z_i ~ N(m_i, u_i),   u_i = 1 / Σ_r 1/v_r,   m_i = u_i Σ_r y_ir / v_r
        M:  v_r = (Σ_i ((y_ir − m_i)² + u_i) + s v₀) / (n_r + s)

    The u_i is what is not known of a task. Without it (``integrate=False``) z_i is a parameter like the others, and the
    likelihood has no bound: the more weight a worker gets, the nearer the estimates come to what that worker said, until
    one worker decides everything. That, without pseudo-labels, is what surveys call LFC_N. Published figures on the
    emotions in headlines (Zheng et al. 2017), mean absolute error 12.20 and root mean square error 18.97, are reproduced
    by ``integrate=False, smoothing=0``; as it stands the method has 11.98 and 18.52 there.

    Choose it when workers differ in precision and have ten labels each or more. Workers who are off by a constant are
    not corrected (see ``bias`` in ``workers_``). Wild labels move it less than `Mean`, more than `Median`.

    >>> from wisecrowd import Crowd, WeightedMean
    >>> votes = [(task, worker, task + error * (-1) ** (task // period)) for task in range(40)
    ...          for worker, error, period in (("ann", 0.1, 1), ("bob", 0.1, 2), ("cy", 2.0, 4))]
    >>> fitted = WeightedMean().fit(Crowd.from_triples(votes, numeric=True))
    >>> fitted.workers_["rmse"].round(1).to_dict()
    {'ann': 0.1, 'bob': 0.1, 'cy': 2.0}
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning", "zheng2017truth")

    smoothing: float = parameter(default=1.0, help="pseudo-labels of average precision that every worker has")
    integrate: bool = parameter(default=True, help="judge workers knowing that estimates are uncertain; False is LFC_N")
    max_iter: int = parameter(default=500, help="passes over the labels at most")
    tol: float = parameter(default=1e-9, help="stop when the objective rises by less than this fraction")
    accelerate: bool = parameter(default=True, help="extrapolate every third pass (SQUAREM)")

    def _estimate(self, numbers: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        if self.max_iter < 1 or self.smoothing < 0:
            raise UsageError(f"max_iter must be 1 or more, smoothing 0 or more; got {self.max_iter}, {self.smoothing}")
        cast, no_table = (
            numbers.cast,
            np.empty((0, 0)),
        )  # the loop carries a table of (worker, label) pairs; here are none
        first = numbers.by_worker(numbers.error(numbers.mean()) ** 2)
        unit = float(first.sum() / cast.sum()) or 1.0  # v₀; everything below is in units of it
        free = numbers.voted if numbers.known is None else numbers.voted & np.isnan(numbers.known)

        def precision(loss: NDArray[np.float64]) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore"):  # a worker without labels or pseudo-labels has none
                variance = (loss + self.smoothing) / (cast + self.smoothing)
            return np.where(cast > 0, 1 / np.maximum(variance, 1e-9), np.nan)

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            weight = precision(statistics.classes)
            known = _certainty(numbers, weight)
            doubt = np.divide(1, known, out=np.zeros(len(known)), where=free)
            error = numbers.error(numbers.mean(weight)) ** 2 / unit
            loss = numbers.by_worker(error)
            seen = cast > 0
            surprise = (loss + self.smoothing) * weight - (cast + self.smoothing) * np.log(weight)
            objective = -float(surprise[seen].sum()) / 2
            if self.integrate:
                objective -= float(np.log(known[free]).sum()) / 2
                loss = loss + numbers.by_worker(doubt[numbers.crowd.task])
            return Statistics(loss, no_table), objective

        run = iterate(step, Statistics(first / unit, no_table), max_iter=self.max_iter, tol=self.tol,
                      accelerate=self.accelerate, what="WeightedMean")  # fmt: skip
        self.trace_, self.n_iter_, self.converged_ = np.array(run.trace), len(run.trace), run.converged
        weight = precision(run.statistics.classes)
        return numbers.mean(weight), weight / unit

    def _standard_error(
        self, numbers: Numbers, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """What the model says, √u_i, also of a single label."""
        assert weight is not None
        known = _certainty(numbers, weight)
        return numbers.certain(np.sqrt(np.divide(1, known, out=np.full(len(known), np.nan), where=numbers.voted)))


def _certainty(numbers: Numbers, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Precision with which the labels of each task determine it, 1/u_i."""
    assert numbers.crowd.worker is not None
    return numbers.by_task(weight[numbers.crowd.worker])
