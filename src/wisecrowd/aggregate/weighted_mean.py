"""The mean of what was said, workers weighing by their precision (LFC_N)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate._discovery import TruthDiscovery
from wisecrowd.aggregate._numeric import Numbers
from wisecrowd.errors import UsageError


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedMean(TruthDiscovery):
    """Workers err with a variance of their own, learnt together with the truth; a task is the mean by precision.

    Model: y_ir = z_i + ε, ε ~ N(0, v_r), with s = ``smoothing`` pseudo-labels of the crowd's own variance v₀ (an inverse
    gamma prior), alternately maximised:

        v_r = (Σ_i (y_ir − z_i)² + s v₀) / (n_r + s),     z_i = Σ_r y_ir / v_r  /  Σ_r 1 / v_r

    Without pseudo-labels it is the numeric form of Raykar's model that surveys call LFC_N, and its likelihood has no
    bound: a worker whom the estimates follow gets all the weight. That figure is reproduced with ``smoothing=0``: mean
    absolute error 12.20 and root mean square error 18.97 on the emotions in headlines of Zheng et al. (2017).

    Choose it when workers differ in precision and have ten labels each or more. Workers who are off by a constant are
    not corrected (see ``bias`` in ``workers_``). Wild labels move it less than `Mean`, more than `Median`.

    >>> from wisecrowd import Crowd, WeightedMean
    >>> votes = [(task, worker, task + error * (-1) ** task) for task in range(20)
    ...          for worker, error in (("ann", 0.1), ("bob", -0.1), ("cy", 2.0))]
    >>> fitted = WeightedMean().fit(Crowd.from_triples(votes, numeric=True))
    >>> fitted.workers_["rmse"].round(1).to_dict()
    {'ann': 0.1, 'bob': 0.1, 'cy': 2.0}
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning", "zheng2017truth")
    numeric: ClassVar[bool | None] = True

    smoothing: float = field(default=1.0, metadata={"help": "pseudo-labels of average precision that every worker has"})

    def _begin(self, numbers: Numbers) -> NDArray[np.float64]:
        if self.smoothing < 0:
            raise UsageError(f"smoothing must not be negative; got {self.smoothing}")
        return numbers.mean()

    def _weights(self, loss: NDArray[np.float64], cast: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
        variance = (loss + self.smoothing * unit) / (cast + self.smoothing)
        return 1 / np.maximum(variance, 1e-9 * unit)

    def _objective(
        self, loss: NDArray[np.float64], cast: NDArray[np.float64], weight: NDArray[np.float64], unit: float
    ) -> float:
        """Logarithm of likelihood and prior, up to a constant."""
        surprise = (loss + self.smoothing * unit) * weight - (cast + self.smoothing) * np.log(weight)
        return -float(surprise.sum()) / 2

    def _standard_error(
        self, numbers: Numbers, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """What the model says, 1/√(Σ_r 1/v_r), also of a single label."""
        assert weight is not None
        assert numbers.crowd.worker is not None
        precision = numbers.by_task(weight[numbers.crowd.worker])
        with np.errstate(divide="ignore"):
            found = np.where(precision > 0, 1 / np.sqrt(precision), np.nan)
        return numbers.certain(found)
