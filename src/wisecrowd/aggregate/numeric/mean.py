"""The mean of the labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator, NumericVotes
from wisecrowd.base.fields import method_class


@method_class
class Mean(NumericAggregator):
    """The mean of a task's labels.

        z_i = mean over r of y_ir

    Choose it as a baseline for numbers, and whenever errors are many and small. A single outlier moves it; use `Median` for
    labels with outliers, and `WeightedMean` when workers differ in precision and have many labels each.

    Examples
    --------
    >>> from wisecrowd import Crowd, Mean
    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t2", "bob", 4.0)], numeric=True)
    >>> Mean().fit(crowd).labels_.to_dict()
    {'t1': 1.5, 't2': 4.0}
    """

    references: ClassVar[tuple[str, ...]] = ("zheng2017truth",)
    needs_workers: ClassVar[bool] = False

    def _estimate(self, votes: NumericVotes) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        return votes.mean(), None
