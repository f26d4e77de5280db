"""DSFill: what a worker says follows from what is true and from how they err."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.completer import Answers, Completer
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


@method_class
class DSFill(Completer):
    """What each worker would say, by an aggregator's posterior and its confusion matrices.

        P(r says l of task i) = Σ_k q_i(k) π_r[k, l]

    with the posterior q and the matrices π of ``aggregator``, Dawid–Skene unless another is named. It looks at no features,
    so that an aggregator of the same kind gains nothing by it; but it is the plainest forecast of votes that knows workers,
    and what any other completer must beat on hidden votes.

    >>> from wisecrowd import DSFill, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, workers={"expert(0.9)": 1.0}, votes_per_task=3)
    >>> filled = DSFill().complete(made.crowd)
    >>> filled.n_votes, filled.only_observed() == made.crowd
    (2000, True)
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)

    aggregator: Any = parameter(default="dawid-skene", help="whose posterior and matrices: an aggregator, or its name")

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        kind: Any = find(self.aggregator)() if isinstance(self.aggregator, str) else self.aggregator
        if not isinstance(kind, Aggregator) or kind.numeric:
            raise UsageError(f"aggregator must be one of classes, such as 'dawid-skene'; got {self.aggregator!r}")
        fitted = kind.unfitted().fit(crowd)
        self.posterior_, self.worker_confusion_ = fitted.posterior_, fitted.confusion_

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> Answers:
        matrices = self.worker_confusion_[workers]
        n_classes = matrices.shape[1]
        # One product instead of a sum over three axes: (tasks, k) @ (k, workers x l).
        wide = matrices.transpose(1, 0, 2).reshape(n_classes, -1)
        return Answers((self.posterior_[tasks] @ wide).reshape(len(tasks), len(workers), n_classes))
