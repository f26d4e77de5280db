"""GeoCrowdNet: CCEM with a volume regulariser (Ibrahim, Nguyen and Fu)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.softmax_confusion import START_HELP, SURE_HELP, SoftmaxConfusion
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor

#: Added to the diagonal of a mean outer product, whose determinant may be zero.
RIDGE = 1e-6


@method_class
class GeoCrowdNet(DeepLearner):
    """Network and confusion matrices as in `CCEM`, with a term that enlarges the volume of predictions or of matrices.

        P(r gives l | x) = Σ_k f_k(x) π_r[k, l],   π_r[k, ·] = softmax(A_r[k, ·])
        loss = mean of −log P(y_ir | x_i) − lam log det(Σ_i f(x_i) f(x_i)ᵀ)        regulariser "F": predictions of the batch
        loss = mean of −log P(y_ir | x_i) − lam log det(Σ_r π_r π_rᵀ)              regulariser "W": matrices of the batch's workers

    A confident network with confused workers may explain the votes as well as an uncertain network with better
    workers. The paper shows that a large volume of F or W selects the true model under milder conditions than those
    of `CCEM`: "F" if all classes have certain tasks, "W" if there are expert workers.

    "F" rewards confident predictions whether or not the votes agree. If lam is too large, the classes lose their
    meaning. Check it with held-out votes (``validation=0.2``) before raising it above the default.

    The term is the log-determinant of the mean outer product plus a small ridge. A batch with fewer tasks than
    classes has no such term, so that many classes need large batches. The published program sums over all workers in
    every step; here the sum is over the workers of the batch, so that the cost of a step does not depend on the
    number of workers.

    Benchmark: ``wisecrowd bench show all-learners``.

    Examples
    --------
    >>> from wisecrowd import GeoCrowdNet, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = GeoCrowdNet(regulariser="W", epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("ibrahim2023deep",)

    start: Literal["identity", "votes"] = parameter(default="votes", help=START_HELP)
    sure: float = parameter(default=1.0, help=SURE_HELP)
    regulariser: Literal["F", "W"] = parameter(
        default="F", help="Quantity with a large volume: predictions 'F', or confusion matrices 'W'."
    )
    lam: float = parameter(default=0.01, help="Weight of the log-determinant.")

    @property
    def _confusion(self) -> SoftmaxConfusion:
        return SoftmaxConfusion(self.start, self.sure)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        self._confusion.check_parameters()
        check_choice("regulariser", self.regulariser, ("F", "W"))
        if not (np.isfinite(self.lam) and self.lam >= 0):
            raise UsageError(f"lam must be finite and not negative; got {self.lam}")

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return self._confusion.make_parameters(sizes)

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        self._confusion.initialize(network, crowd)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        return self._confusion.label_log_probs(batch)

    def _loss(self, batch: Batch) -> Tensor:
        return super()._loss(batch) - self.lam * self._log_volume(batch)

    def _log_volume(self, batch: Batch) -> Tensor:
        """Return the log-determinant of the mean outer product of predictions, or of columns of matrices."""
        torch, n_classes = import_torch(), batch.logits.shape[1]
        vectors = batch.class_probs
        if self.regulariser == "W":
            vectors = self._confusion.batch_matrices(batch).transpose(1, 2).reshape(-1, n_classes)
        if len(vectors) < n_classes:
            return 0 * batch.logits.sum()
        product = vectors.T @ vectors / len(vectors) + RIDGE * torch.eye(n_classes).to(vectors)
        log_volume: Tensor = torch.linalg.slogdet(product).logabsdet
        return log_volume

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
