"""The mean of what was said."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric import Numbers, NumericAggregator
from wisecrowd.base.fields import method_class


@method_class
class Mean(NumericAggregator):
    """The mean of a task's labels.

        z_i = mean over r of y_ir

    Choose it as the yardstick for numbers, and whenever errors are many and small: on the emotions in headlines of
    Zheng et al. (2017) no method beats it by much (mean absolute error 12.02). A single wild label moves it; take
    `Median` when labels may be wild, and `WeightedMean` when workers differ in precision and have many labels each.

    >>> from wisecrowd import Crowd, Mean
    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t2", "bob", 4.0)], numeric=True)
    >>> Mean().fit(crowd).labels_.to_dict()
    {'t1': 1.5, 't2': 4.0}
    """

    references: ClassVar[tuple[str, ...]] = ("zheng2017truth",)
    needs_workers: ClassVar[bool] = False

    def _estimate(self, numbers: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        return numbers.mean(), None
