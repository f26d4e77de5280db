"""Labels that are numbers: what the methods that average them have in common.

A task has an estimate instead of a posterior, and a worker has errors instead of a confusion matrix.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class
from wisecrowd.data.alignment import truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import same_kind
from wisecrowd.errors import InputError, UsageError, some

#: Shares of weight nearer than this to one half are one half: the median then lies midway between two labels.
TIE = 1e-8

#: Squares of larger numbers cannot be added up.
LARGEST = 1e150


class NoPosterior(UsageError, AttributeError):
    """Numbers were estimated, so there is no posterior to look at; ``hasattr`` says so, too.

    >>> from wisecrowd import Crowd, Mean
    >>> fitted = Mean().fit(Crowd.from_triples([("t1", "ann", 2.5)], numeric=True))
    >>> hasattr(fitted, "posterior_"), hasattr(fitted, "labels_")
    (False, True)
    """


@dataclass(frozen=True, eq=False)
class Numbers:
    """The votes of a numeric crowd, ready to be averaged again and again with other weights of the workers.

    ``known`` holds the truth of the tasks where it is known and NaN for the others. Weights of votes count like
    repetitions.

    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t1", "cy", 9.0)], numeric=True)
    >>> numbers = Numbers(crowd)
    >>> numbers.mean().tolist(), numbers.median().tolist(), numbers.mean(np.array([2.0, 1.0, 0.0])).round(3).tolist()
    ([4.0], [2.0], [1.333])
    """

    crowd: Crowd
    known: NDArray[np.float64] | None = None

    def by_task(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the votes of each task."""
        return np.asarray(np.bincount(self.crowd.task, value * self.crowd.weight, self.crowd.n_tasks), dtype=np.float64)

    def by_worker(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the votes of each worker."""
        assert self.crowd.worker is not None
        return np.asarray(
            np.bincount(self.crowd.worker, value * self.crowd.weight, self.crowd.n_workers), dtype=np.float64
        )

    @cached_property
    def cast(self) -> NDArray[np.float64]:
        """How many labels each worker gave."""
        return self.by_worker(np.ones(self.crowd.n_votes))

    def error(self, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far each label lies above the estimate of its task."""
        return self.crowd.label - estimate[self.crowd.task]

    def mean(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Mean of every task's labels, workers weighing as given."""
        share = self._shares(weight)
        # From the plain mean, so that labels far from zero lose no digits to the weights.
        centre = self.by_task(self.crowd.label * self._shares(None))
        return self._complete(centre + self.by_task(share * self.error(centre)))

    def median(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Median of every task's labels, workers weighing as given; midway between two labels where both would do."""
        crowd, order = self.crowd, self._order
        share = (self._shares(weight) * crowd.weight)[order]
        # Within a task only: over all tasks a running sum would drift by more than the ties it is to find.
        total = np.cumsum(share)
        before = np.concatenate([[0.0], total])[crowd.offset[:-1]]
        reached = total - before[crowd.task]
        low, high = (
            np.bincount(crowd.task, reached < half, crowd.n_tasks).astype(np.int64) for half in (0.5 - TIE, 0.5 + TIE)
        )
        voted = np.flatnonzero(self.voted)
        first, last = crowd.offset[voted], crowd.offset[voted + 1] - 1
        label = crowd.label[order]
        lower, upper = (label[np.minimum(first + count[voted], last)] for count in (low, high))
        middle = np.zeros(crowd.n_tasks)
        middle[voted] = lower + (upper - lower) / 2
        return self._complete(middle)

    def standard_error(
        self, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Standard error of the weighted mean of every task, from how its labels scatter; NaN for a single label."""
        share = self._shares(weight)
        effective = np.divide(1, self.by_task(share**2), out=np.zeros(len(estimate)), where=self.voted)
        scatter = self.by_task((share * self.error(estimate)) ** 2)
        several = effective > 1 + TIE
        found = np.divide(scatter * effective, effective - 1, out=np.full(len(estimate), np.nan), where=several)
        return self.certain(np.sqrt(found))

    def certain(self, standard_error: NDArray[np.float64]) -> NDArray[np.float64]:
        """Zero where the truth is known."""
        return standard_error if self.known is None else np.where(np.isfinite(self.known), 0.0, standard_error)

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each task's labels."""
        centre = self.by_task(self.crowd.label * self._shares(None))
        return np.sqrt(self.by_task(self._shares(None) * self.error(centre) ** 2))

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Which tasks have labels."""
        return self.crowd.votes_per_task > 0

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.lexsort((self.crowd.label, self.crowd.task))

    def _shares(self, weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """What part of its task each vote decides; equal parts where nobody on the task weighs anything."""
        each = np.ones(self.crowd.n_votes)
        total = self.by_task(each)
        if weight is not None:
            assert self.crowd.worker is not None
            heavy = weight[self.crowd.worker]
            heavier = self.by_task(heavy)
            some_weight = heavier > 0
            each = np.where(some_weight[self.crowd.task], heavy, each)
            total = np.where(some_weight, heavier, total)
        return each / total[self.crowd.task]

    def _complete(self, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Put the known truth in its place, and the mean of the others where nobody voted."""
        voted = self.voted
        if self.known is not None:
            estimate = np.where(np.isfinite(self.known), self.known, estimate)
            voted = voted | np.isfinite(self.known)
        estimate[~voted] = estimate[self.voted].mean()
        return estimate


@method_class
class NumericAggregator(Aggregator):
    """Estimates a number for every task.

    After ``fit``: ``estimates_`` (array by task), ``labels_`` (the same as a Series), ``tasks_`` (estimate, its
    standard error and the number of labels), ``workers_`` (number of labels, weight, and bias, mean absolute and root
    mean square error against the estimates). A task nobody labelled gets the mean of the other estimates. There is no
    posterior and no confusion matrix; asking for them is an error.

    >>> from wisecrowd import Crowd, Mean
    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t2", "bob", 4.0)], numeric=True)
    >>> Mean().fit(crowd, truth={"t2": 3.0}).labels_.to_dict()
    {'t1': 1.5, 't2': 3.0}
    """

    numeric: ClassVar[bool | None] = True

    def fit(self, crowd: Any, X: Any = None, *, truth: Any = None, start: Any = None) -> Self:
        """Estimate every task; ``truth`` holds the known values of some, which they keep and by which workers are judged."""
        votes = self._admit(crowd)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a former fit may have been of the other kind of labels
        if votes.is_numeric:
            if start is not None:
                raise UsageError(f"{type(self).__name__} starts from the labels themselves; leave start out")
            if not (np.abs(votes.label) < LARGEST).all():
                raise InputError(f"numbers must be finite and below {LARGEST:g} in size; drop or rescale the others")
        return super().fit(votes, X, truth=truth, start=start)

    def _known(self, truth: Any, crowd: Any) -> Any:
        return known_numbers(truth, crowd) if crowd.is_numeric else super()._known(truth, crowd)

    def _fit(self, crowd: Crowd, gold: NDArray[Any] | None, *, X: Any, start: Any) -> None:
        numbers = Numbers(crowd, gold)
        estimate, weight = self._estimate(numbers)
        self.estimates_ = estimate
        self.n_votes_ = crowd.n_votes
        self.task_labels_ = numbers.by_task(np.ones(crowd.n_votes))
        self.standard_error_ = self._standard_error(numbers, estimate, weight)
        if crowd.has_workers:
            self.weight_ = np.ones(crowd.n_workers) if weight is None else weight
            self.worker_labels_ = numbers.cast
            error = numbers.error(estimate)
            with np.errstate(invalid="ignore"):  # a worker without votes has no errors: NaN is the honest entry
                self.bias_ = numbers.by_worker(error) / numbers.cast
                self.mae_ = numbers.by_worker(np.abs(error)) / numbers.cast
                self.rmse_ = np.sqrt(numbers.by_worker(error**2) / numbers.cast)

    @abstractmethod
    def _estimate(self, numbers: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """The estimate of every task, and the weight of every worker (None: all alike)."""

    def _standard_error(
        self, numbers: Numbers, estimate: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """How far an estimate may be off: that of the weighted mean, unless the method knows better."""
        return numbers.standard_error(estimate, weight)

    # ------------------------------------------------------------------ what was learnt, for people

    @property
    def labels_(self) -> pd.Series:
        """The estimate of every task."""
        if "estimates_" not in vars(self):
            return super().labels_
        return pd.Series(self.estimates_, index=self.task_index_.rename("task"), name="label")

    @property
    def tasks_(self) -> pd.DataFrame:
        """What was learnt of each task: its estimate, the standard error of it, and the number of labels."""
        columns = {
            "estimate": self._check_fitted("estimates_"),
            "standard_error": self.standard_error_,
            "n_votes": self.task_labels_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    @property
    def workers_(self) -> pd.DataFrame:
        """What was learnt of each worker: number of labels, weight, bias, mean absolute and root mean square error."""
        if "estimates_" not in vars(self):
            return super().workers_
        if self.worker_index_ is None:
            raise UsageError("this crowd had no worker ids, so nothing is known of single workers")
        columns = {
            "n_votes": self.worker_labels_,
            "weight": self.weight_,
            "bias": self.bias_,
            "mae": self.mae_,
            "rmse": self.rmse_,
        }
        return pd.DataFrame(columns, index=self.worker_index_.rename("worker"))

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "estimates_" in vars(self):
            raise self._no_posterior()
        return super()._check_fitted(attribute)

    def _no_posterior(self) -> NoPosterior:
        return NoPosterior(
            f"{type(self).__name__} estimated numbers, so there is no posterior and no confusion matrix; look at labels_, "
            "tasks_ (with standard errors) and workers_ (with errors)"
        )

    if not TYPE_CHECKING:  # a type checker would take it for leave to ask for anything

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "proba_", "confusion_", "tally_") and "estimates_" in vars(self):
                raise self._no_posterior()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def known_numbers(truth: Any, crowd: Crowd) -> NDArray[np.float64]:
    """The value of every task whose truth is known, NaN elsewhere.

    >>> crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t2", "ann", 2.0)], numeric=True)
    >>> known_numbers({"t2": 3}, crowd).tolist()
    [nan, 3.0]
    """
    given = truth_series(truth, crowd)
    if not given.index.is_unique:
        raise InputError(
            f"the truth names some tasks twice: {some(given.index[given.index.duplicated()])}; keep one row each"
        )
    place = crowd.tasks.get_indexer(same_kind(given.index, crowd.tasks))
    if len(given) and not (place >= 0).any():
        raise InputError(
            f"none of the {len(given):,} tasks with truth is in the crowd; the truth starts with {some(given.index)}, "
            f"the crowd with {some(crowd.tasks)}. Check that both use the same ids"
        )
    try:
        value = given.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the truth of numeric labels must be numbers; got {some(given)}") from None
    known = np.full(crowd.n_tasks, np.nan)
    known[place[place >= 0]] = value[place >= 0]
    if np.isinf(known).any():
        raise InputError("the truth of numeric labels must be finite")
    return known
