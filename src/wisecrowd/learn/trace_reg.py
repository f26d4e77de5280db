"""TraceReg: confusion matrices whose trace is kept small, so that the network must be sure (Tanno et al.)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.stochastic_confusion import StochasticLearner
from wisecrowd.nn.vote_tensors import Batch, as_log_probability

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class TraceReg(StochasticLearner):
    """A network, and for every worker a confusion matrix whose trace is held down.

        P(r says l | x) = Σ_k f_k(x) π_r[k, l],   π_r[k, ·] = softmax(A_r[k, ·])
        loss = mean of −log P(y_ir | x_i)  +  lam mean_r trace(π_r)

    The trace is *minimised*: among all ways to explain the votes, the one with the most confused workers leaves the
    surest network, and where workers are right more often than wrong, that is the true one. ``confusion_`` is π.

    A starts from 6 I, with π[k, k] = 0.98 of ten classes, which says that votes are right until they prove otherwise.
    The network so learns their noise first, and is behind others of this family when votes are bad; a start from the votes
    (``start="votes"``) did better on both data sets below. With ``warm_up``, the trace counts only after some epochs.

    The paper sums the trace over all workers at every step. Here it is the mean over the workers of the batch, each once,
    so that a step touches nobody else; a worker is then held down as often as they vote. The rows are a softmax,
    where the paper normalised softplus.

    Test accuracy after the last epoch, five seeds: 66.5 ± 1.5 % on music genres, where Herde et al. (2024) report 66.4 ± 1.4;
    80.9 ± 0.4 % on LabelMe (512 features of VGG-16, 1,188 tasks). From the votes: 71.0 ± 1.2 and 83.0 ± 0.3 %.

    >>> from wisecrowd import TraceReg, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = TraceReg(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("tanno2019learning",)

    lam: float = parameter(default=0.01, help="weight of the mean trace of the workers' matrices")
    warm_up: int = parameter(default=0, help="epochs at first in which the trace does not count")

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        if not (np.isfinite(self.lam) and self.lam >= 0) or self.warm_up < 0:
            raise UsageError(f"lam and warm_up must not be negative; got {self.lam} and {self.warm_up}")

    def _loss(self, batch: Batch) -> Tensor:
        loss = super()._loss(batch)
        nobody = len(batch.worker) == 0
        return loss if nobody or batch.epoch < self.warm_up else loss + self.lam * self._trace(batch)

    def _trace(self, batch: Batch) -> Tensor:
        """The mean over the workers of the batch, each once, of Σ_k π_r[k, k]."""
        pi = as_log_probability(batch.network.rows_of("A", batch.workers)).exp()
        return pi.diagonal(dim1=1, dim2=2).sum(dim=1).mean()
