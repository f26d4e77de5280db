"""TraceReg: confusion matrices with a trace penalty (Tanno et al.)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.softmax_confusion import START_HELP, SURE_HELP, SoftmaxConfusion
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class TraceReg(DeepLearner):
    """Network and one confusion matrix per worker with a penalty on its trace.

        P(r gives l | x) = Σ_k f_k(x) π_r[k, l],   π_r[k, ·] = softmax(A_r[k, ·])
        loss = mean of −log P(y_ir | x_i)  +  lam mean_r trace(π_r)

    The trace is *minimised*: of all models that explain the votes, the one with the most confused workers has the
    most confident network, and it is the true one if workers are right more often than wrong. ``confusion_`` is π.

    A starts from 6 I, where π[k, k] = 0.98 with ten classes. The network then learns the noise of the votes first,
    which costs accuracy if the votes are bad; ``start="votes"`` avoids it. With ``warm_up``, the trace counts only
    after some epochs.

    The paper sums the trace over all workers in every step. Here it is the mean over the workers of the batch, so
    that a step changes no other worker. The rows are a softmax, where the paper normalises a softplus.

    Benchmark: ``wisecrowd bench show all-learners``.

    Examples
    --------
    >>> from wisecrowd import TraceReg, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = TraceReg(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("tanno2019learning",)

    start: Literal["identity", "votes"] = parameter(default="identity", help=START_HELP)
    sure: float = parameter(default=6.0, help=SURE_HELP)
    lam: float = parameter(default=0.01, help="Weight of the mean trace of the confusion matrices.")
    warm_up: int = parameter(default=0, help="Number of epochs at the start without the trace penalty.")

    @property
    def _confusion(self) -> SoftmaxConfusion:
        return SoftmaxConfusion(self.start, self.sure)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        self._confusion.check_parameters()
        if not (np.isfinite(self.lam) and self.lam >= 0) or self.warm_up < 0:
            raise UsageError(f"lam and warm_up must not be negative; got {self.lam} and {self.warm_up}")

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return self._confusion.make_parameters(sizes)

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        self._confusion.initialize(network, crowd)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        return self._confusion.label_log_probs(batch)

    def _loss(self, batch: Batch) -> Tensor:
        loss = super()._loss(batch)
        if len(batch.worker) == 0 or batch.epoch < self.warm_up:
            return loss
        return loss + self.lam * self._mean_trace(batch)

    def _mean_trace(self, batch: Batch) -> Tensor:
        """Return the mean of Σ_k π_r[k, k] over the workers of the batch, each once."""
        return self._confusion.batch_matrices(batch).diagonal(dim1=1, dim2=2).sum(dim=1).mean()

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the trained confusion matrices π of some workers.

        Parameters
        ----------
        workers : iterable of int
            Positions of workers in ``worker_index_``.

        Returns
        -------
        ndarray of shape (len(workers), n_classes, n_classes)
        """
        self._check_fitted("posterior_")
        return self._confusion.matrices(self.network_, self._check_positions(workers))
