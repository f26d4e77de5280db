"""Truth discovery: weigh workers by what they lose against the estimates, estimate again, until nothing moves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighting import Poll
from wisecrowd.aggregate.numeric._numeric import Numbers, NumericAggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

Array = NDArray[np.float64]


@method_class
class TruthDiscovery(NumericAggregator):
    """Alternates between the weights of workers and the truth of tasks, be they numbers or classes.

    A family member says how weights follow from losses; for numbers, also what a label loses by its error and which
    average minimises the losses. Against classes a vote loses one if it is wrong, and the average is the weighted vote.

    >>> from wisecrowd import CATD
    >>> issubclass(CATD, TruthDiscovery)
    True
    """

    numeric: ClassVar[bool | None] = None

    max_iter: int = parameter(default=500, help="rounds at most")
    tol: float = parameter(
        default=1e-6, help="stop when no estimate moves by more than this part of the labels' spread"
    )

    @abstractmethod
    def _weights(self, loss: Array, cast: Array, unit: float) -> Array:
        """Weight of workers with a loss over so many labels each; ``unit`` is what a label lost on average at first."""

    def _lost(self, numbers: Numbers, estimate: Array) -> Array:
        """What each label loses: the square of its error."""
        return numbers.error(estimate) ** 2

    def _average(self, numbers: Numbers, weight: Array | None) -> Array:
        """The estimates that lose least under some weights."""
        return numbers.mean(weight)

    def _fit(self, crowd: Crowd, gold: NDArray[Any] | None, *, X: Any, start: Any) -> None:
        if crowd.is_numeric:
            super()._fit(crowd, gold, X=X, start=start)
            return
        poll = Poll(crowd, gold)
        _, self.weight_ = self._alternate(
            poll.winners(crowd.votes),
            loss=lambda winners: poll.cast - np.nan_to_num(poll.cast * poll.agreement(winners)),
            average=lambda weight: poll.winners(poll.scores(weight)),
            moved=lambda before, after: float(np.mean((before != after).any(axis=1))),
            cast=poll.cast,
        )
        self._set_fitted(crowd, poll.shares(poll.scores(self.weight_)))

    def _estimate(self, numbers: Numbers) -> tuple[Array, Array | None]:
        scale = float(np.sqrt((numbers.spread[numbers.voted] ** 2).mean())) or 1.0
        return self._alternate(
            numbers.median(),
            loss=lambda estimate: numbers.by_worker(self._lost(numbers, estimate)),
            average=lambda weight: self._average(numbers, weight),
            moved=lambda before, after: float(np.abs(after - before).max()) / scale,
            cast=numbers.cast,
        )

    def _alternate(
        self,
        truth: Array,
        *,
        loss: Callable[[Array], Array],
        average: Callable[[Array], Array],
        moved: Callable[[Array, Array], float],
        cast: Array,
    ) -> tuple[Array, Array]:
        """Truth and weights once they agree with each other."""
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        title, voted = type(self).__name__, cast > 0
        weight = np.full(len(cast), np.nan)  # and that is what workers without votes keep
        lost = loss(truth)[voted]
        unit = float(lost.sum() / cast.sum()) or 1.0
        self.n_iter_, self.converged_ = 0, False
        while not self.converged_ and self.n_iter_ < self.max_iter:
            weight[voted] = self._weights(lost, cast[voted], unit)
            before, truth = truth, average(weight)
            lost, change = loss(truth)[voted], moved(before, truth)
            self.n_iter_ += 1
            self.converged_ = change <= self.tol
            progress.report(title, self.n_iter_, self.max_iter, f"moved by {change:.2g}")
        return truth, weight

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return super()._worker_columns() | {"weight": self._check_fitted("weight_")}
