"""DSFill: missing votes by the posterior and the confusion matrices of an aggregator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import POSTERIOR_HELP, fitted, method_class, parameter
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


@method_class
class DSFill(Completer):
    """Completion by the posterior and the confusion matrices of an aggregator.

        P(label l of worker r on task i) = Σ_k q_i(k) π_r[k, l]

    with the posterior q and the matrices π of ``aggregator``. The method uses no features, so a similar aggregator gains nothing
    from the completed crowd. It is the simplest prediction of votes that knows the workers, and the baseline that other
    completers must beat on held-out votes.

    Examples
    --------
    >>> from wisecrowd import DSFill, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, workers={"expert(0.9)": 1.0}, votes_per_task=3)
    >>> filled = DSFill().complete(simulation.crowd)
    >>> filled.n_votes, filled.select_observed() == simulation.crowd
    (2000, True)
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)

    aggregator: Any = parameter(default="dawid-skene", help="Aggregator with confusion matrices, or its name.")

    posterior_: NDArray[Any] = fitted(help=POSTERIOR_HELP, shape=("n_tasks", "n_classes"), finite=True)
    worker_confusion_: NDArray[np.float64] = fitted(
        help="Confusion matrices of the workers.", shape=("n_workers", "n_classes", "n_classes"), finite=True
    )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        aggregator: Any = find(self.aggregator)() if isinstance(self.aggregator, str) else self.aggregator
        expected = "expected an aggregator with confusion matrices, such as 'dawid-skene' (`wisecrowd methods` lists all methods)"
        if not isinstance(aggregator, Aggregator):
            raise UsageError(f"{self.aggregator!r} is not an aggregator; {expected}")
        if "categorical" not in aggregator.answer_types:
            raise UsageError(
                f"{aggregator.name} is an aggregator of {' or '.join(aggregator.answer_types)} labels, not of classes; {expected}"
            )
        aggregator = aggregator.clone_unfitted().fit(crowd)
        self.posterior_, self.worker_confusion_ = aggregator.posterior_, aggregator.confusion_

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        confusion = self.worker_confusion_[workers]
        n_classes = confusion.shape[1]
        # One matrix product instead of a sum over three axes: (tasks, k) @ (k, workers x l).
        wide = confusion.transpose(1, 0, 2).reshape(n_classes, -1)
        return WorkerLabelProbs((self.posterior_[tasks] @ wide).reshape(len(tasks), len(workers), n_classes))
