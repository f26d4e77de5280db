"""CATD: workers weigh by the lower end of a confidence interval of their precision."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from wisecrowd.aggregate.numeric._discovery import TruthDiscovery
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.errors import UsageError


@method_class
class CATD(TruthDiscovery):
    """Workers weigh by how precise they are for certain: few labels, little certainty, little weight.

        w_r = χ²(α/2; n_r) / Σ_i d(y_ir, z_i),   z_i = weighted mean (numbers) or weighted vote (classes)

    with d the squared error of numbers, and 0 or 1 for right or wrong classes. The lower α/2 quantile of χ² with n_r
    degrees of freedom over the loss is the lower end of the confidence interval of a worker's precision, so a worker
    with three labels counts for less than one with three hundred who errs as often. Weights are shown as parts of one.

    Choose it to compare with it. The loss is taken against estimates that the worker's own labels have shaped, so weight
    breeds weight: a worker who shares most tasks and is clearly better than the rest ends with all of it, and with
    classes whoever never disagreed outweighs everybody. `WeightedMean` allows for that with numbers, `OneCoin` with
    classes.

    Published figures (Zheng et al. 2017): accuracy 92.66 on product matching, 95.50 on sentiment, both reproduced, and
    45.32 on relevance judgements, where ties are broken at random (45.25 here). For numbers their implementation never
    divides a task by its workers' weight, which shrinks every estimate: mean absolute error 16.36 on the emotions in
    headlines, where the weighted mean has 12.14.

    >>> from wisecrowd import CATD, Crowd
    >>> votes = [(task, worker, task + error * (-1) ** task) for task in range(20)
    ...          for worker, error in (("ann", 0.1), ("bob", -0.2), ("cy", 2.0))]
    >>> CATD().fit(Crowd.from_triples(votes, numeric=True)).workers_["weight"].round(2).to_dict()
    {'ann': 1.0, 'bob': 0.0, 'cy': 0.0}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014confidence", "zheng2017truth")

    alpha: float = parameter(default=0.05, help="one minus the confidence, between 0 and 1")

    def _weights(self, loss: NDArray[np.float64], cast: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha must lie between 0 and 1; got {self.alpha}")
        quantile = 2 * gammaincinv(cast / 2, self.alpha / 2)
        weight = quantile / (loss + 1e-9 * unit)
        return weight / weight.sum()
