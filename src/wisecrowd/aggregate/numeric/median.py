"""The median of the labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator, NumericVotes
from wisecrowd.base.fields import method_class


@method_class
class Median(NumericAggregator):
    """The median of a task's labels.

    The label with half of the weight on either side, or the middle of the two central labels. The standard error in
    ``tasks_`` is that of the median of normal errors, √(π/2) times the mean's.

    Choose it for labels with outliers: up to half of a task's labels can be wrong by any amount. With noisy but careful workers
    `Mean` is more precise.

    Examples
    --------
    >>> from wisecrowd import Crowd, Median
    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t1", "cy", 900.0)], numeric=True)
    >>> Median().fit(crowd).labels_.to_dict()
    {'t1': 2.0}
    """

    references: ClassVar[tuple[str, ...]] = ("zheng2017truth",)
    needs_workers: ClassVar[bool] = False

    def _estimate(self, votes: NumericVotes) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        return votes.median(), None

    def _compute_standard_error(
        self, votes: NumericVotes, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        return np.sqrt(np.pi / 2) * votes.standard_error(estimate, weight)
