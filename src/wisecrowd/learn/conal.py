"""CoNAL: common and individual confusion of workers (Chu, Ma and Wang)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob
from wisecrowd.nn.vote_tensors import Batch, WorkerTable
from wisecrowd.nn.worker_averages import average_by_worker

if TYPE_CHECKING:
    from torch import Tensor

#: Units between the features of a task and its embedding; the paper's.
EMBEDDING_UNITS = 128
#: Initial diagonal of all matrices; the paper's.
INITIAL_DIAGONAL = 2.0


@method_class
class CoNAL(DeepLearner):
    """Network with a confusion that all workers share, one of each worker's own, and a gate between the two.

        s_ir = ω_ir Cᵀ f(x_i) + (1 − ω_ir) W_rᵀ f(x_i),   P(r gives l | x_i) = softmax(s_ir)_l
        ω_ir = sigmoid(v_i · u_r),   v_i = V₂ V₁ x_i / ‖V₂ V₁ x_i‖,   u_r also has length 1
        loss = mean over votes of −log P(r gives y | x) − λ Σ_r ‖W_r − C‖

    The model learns a mistake that many workers share (such as street for inside city) once, from all votes, so that
    a worker with few votes needs no matrix for it. C and W are not confusion matrices, since f is a distribution
    before them and a softmax follows, as in `CrowdLayer`. ``confusion_`` is estimated from the class probabilities
    and the votes. ``common_`` shows C as label probabilities, and ``gate_`` the mean of ω over the votes of a worker.
    ω is between 0.27 and 0.73, since v and u have length 1, and is meaningful by comparison.

    Choose it when mistakes are shared and workers have few votes. `CrowdLayer` is the same model with ω = 0.

    The paper sums the last term over all workers in every step. Here it is over the workers of the batch, so that a
    step costs time in proportion to the votes. The program of the authors creates a new Adam optimiser in every
    epoch; here its moments are kept. The defaults are the paper's: Adam with step size 0.01, and batches of 100
    tasks.

    The accuracy of 84.1 % on Music in the paper was selected on the test set. In the benchmark of Herde et al.
    (2024), as published, C and W are given to the optimiser as slices without a gradient, and keep their initial
    values.

    Examples
    --------
    >>> from wisecrowd import CoNAL, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CoNAL(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.common_.shape, model.gate_.shape
    (True, (2, 2), (10,))
    """

    references: ClassVar[tuple[str, ...]] = ("chu2021learning",)
    breaks: ClassVar[dict[str, str]] = DeepLearner.breaks | {
        "worker_names_do_not_matter": "embeddings of workers are drawn by position, and names decide on the order of workers"
    }

    batch_size: int = parameter(default=100, help="Number of tasks per step.")
    learning_rate: float = parameter(default=1e-2, help="Step size.")
    separation: float = parameter(
        default=1e-5, help="Weight λ of the distance between the workers' matrices and the common one."
    )
    embedding: int = parameter(default=20, help="Number of dimensions of the embedding of a task, and of a worker.")

    gate_: NDArray[np.float64] = fitted(
        help="Mean share ω of the common confusion in a worker's votes.", shape=("n_workers",)
    )

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        if self.embedding < 1 or not 0 <= self.separation < math.inf:
            raise UsageError(
                "embedding must be 1 or more, and separation finite and not negative; "
                f"got {self.embedding} and {self.separation}"
            )

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        torch = import_torch()
        nn, matrix = torch.nn, INITIAL_DIAGONAL * torch.eye(sizes.n_classes)
        n_inputs = math.prod(sizes.input_shape)
        return {
            "C": matrix,
            "W": WorkerTable(matrix.repeat(sizes.n_workers, 1, 1)),
            "v": nn.Sequential(
                nn.Flatten(), nn.Linear(n_inputs, EMBEDDING_UNITS), nn.Linear(EMBEDDING_UNITS, self.embedding)
            ),
            "u": WorkerTable(torch.randn(sizes.n_workers, self.embedding)),
        }

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch, f, gate = import_torch(), batch.class_probs, self._gate(batch)[:, None]
        common = (f @ batch.shared("C")).index_select(0, batch.task)
        individual = torch.bmm(f[batch.task, None], batch.worker_rows("W"))[:, 0]
        log_probs: Tensor = torch.log_softmax(gate * common + (1 - gate) * individual, dim=1)
        return log_probs

    def _gate(self, batch: Batch) -> Tensor:
        """Return ω of every vote."""
        torch = import_torch()
        normalize = torch.nn.functional.normalize
        v, u = normalize(batch.shared("v")(batch.inputs)), normalize(batch.worker_rows("u"))
        gate: Tensor = torch.sigmoid((v.index_select(0, batch.task) * u).sum(dim=1))
        return gate

    def _loss(self, batch: Batch) -> Tensor:
        loss = super()._loss(batch)
        if self.separation == 0:
            return loss
        difference = batch.network.worker_rows("W", batch.unique_workers) - batch.shared("C")
        return loss - self.separation * difference.flatten(1).norm(dim=1).sum()

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        self.gate_ = average_by_worker(trained.networks[0], X, crowd, self._gate)

    @property
    def common_(self) -> NDArray[np.float64]:
        """Label probabilities by the common confusion alone, (n_classes, n_classes); rows sum to one."""
        self._check_fitted("posterior_")
        matrix = self.network_.worker_parameters.C.detach().cpu().double()
        return np.asarray(import_torch().softmax(matrix, dim=1).cpu().numpy())
