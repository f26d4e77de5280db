"""PM: workers weigh by the logarithm of their share of the loss (CRH)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._discovery import TruthDiscovery
from wisecrowd.aggregate.numeric._numeric import Numbers
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.errors import one_of


@method_class
class PM(TruthDiscovery):
    """Workers weigh by the logarithm of how little they lose, compared with the worst of them (also known as CRH).

        w_r = −log( L_r / max_r' L_r' ),   L_r = what r loses per label against the present truth

    A wrong class loses 1. A number loses |y − z_i| / σ_i, σ_i being the standard deviation of the task's labels, and a
    task is then the weighted median; with ``loss="squared"`` it loses (y − z_i)² / σ_i and the weighted mean is taken.

    Choose it for numbers with wild labels from careless workers, when `Median` wastes the good ones. With few workers
    per task the absolute loss may end by following one of them throughout; look at the weights. For classes, `OneCoin`
    does the same by a likelihood.

    Published figures (Zheng et al. 2017) are those of the loss summed over a worker's labels, ``per_label=False``, which
    takes activity for error: accuracy 89.81 on product matching and 95.04 on sentiment, mean absolute error 13.91 and
    root mean square error 21.96 on the emotions in headlines. They are reproduced so, but for what random ties change.
    Per label, accuracy is .926 and .954, and .845 instead of .394 on web search, where a few workers did most.

    >>> from wisecrowd import PM, Crowd
    >>> votes = [(task, worker, task + error * (-1) ** task) for task in range(20)
    ...          for worker, error in (("ann", 0.1), ("bob", -0.2), ("cy", 2.0))]
    >>> PM().fit(Crowd.from_triples(votes, numeric=True)).workers_["mae"].round(2).to_dict()
    {'ann': 0.0, 'bob': 0.3, 'cy': 1.9}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014resolving", "aydin2014crowdsourcing", "zheng2017truth")

    loss: Literal["absolute", "squared"] = parameter(
        default="absolute", help="loss of numbers: 'absolute' (weighted median) or 'squared' (weighted mean)"
    )
    per_label: bool = parameter(default=True, help="judge workers by their mean loss, not by its sum")

    def _lost(self, numbers: Numbers, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
        error = np.abs(numbers.error(estimate))
        spread = numbers.spread
        # Labels that all agree lose against a known truth only, and then by the scale of the other tasks.
        usual = spread[spread > 0].mean() if (spread > 0).any() else 1.0
        scale = np.where(spread > 0, spread, usual)[numbers.crowd.task]
        return (error if self.loss == "absolute" else error**2) / scale

    def _average(self, numbers: Numbers, weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
        return numbers.median(weight) if self.loss == "absolute" else numbers.mean(weight)

    def _weights(self, loss: NDArray[np.float64], cast: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
        one_of("loss", self.loss, ("absolute", "squared"))
        share = np.maximum(loss / cast if self.per_label else loss, 1e-8 * unit)
        return -np.log(share / share.max()) + 1e-7  # so that the worst worker decides where nobody else voted

    def _standard_error(
        self, numbers: Numbers, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        factor = np.sqrt(np.pi / 2) if self.loss == "absolute" else 1.0
        return factor * numbers.standard_error(estimate, weight)
