"""MaDL: confusion matrices by worker and task, and less weight for similar workers (Herde et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold
from wisecrowd.errors import check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob
from wisecrowd.nn.per_task_confusion import DIAGONAL_HELP, EMBEDDING_HELP, PerTaskConfusion, apply_batch_layers
from wisecrowd.nn.schedules import ScheduleName
from wisecrowd.nn.trainer import OptimiserName
from wisecrowd.nn.vote_loss import compute_vote_nll
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor

#: Units of the layer that combines worker and task; the paper's.
COMBINING_UNITS = 128
#: Shape and rate of the gamma prior on the bandwidth; its mode is 1, the initial bandwidth.
BANDWIDTH_SHAPE, BANDWIDTH_RATE = 1.25, 0.25


@method_class
class MaDL(DeepLearner):
    """Network with confusion matrices that depend on worker and task, and less weight for similar workers.

        π_ir = softmax of rows of V h_ir + b I,   h_ir = relu(a_r + g(a_r, t_i, W (a_r + t_i) ⊗ (a_r + t_i)))
        loss = mean over votes of w_r · −log Σ_k f_k(x_i) π_ir[k, y_ir]  −  log Gamma(γ; 1.25, 0.25)
        w_r ∝ 1 / Σ_s exp(−γ |a_r − a_s|²),  with a mean of one

    a_r is an embedding of the worker, t_i one of the inputs of the network's last layer, and g a layer of 128 units
    with norms. Workers with similar answers get similar embeddings and share the weight of one worker, so that ten
    copies of a spammer count little more than one. The bandwidth γ is trained with a prior that keeps it near 1.

    ``confusion_`` is the mean of a worker's matrices over the tasks that they labelled, with every class weighted by
    f. ``posterior_`` uses one matrix per worker, estimated from f and the votes.

    The paper's sum over s covers all workers, at a cost of workers² in every step. Here it covers the workers of the
    batch (``weigh="batch"``); ``weigh="all"`` is the paper's way, and ``weigh="none"`` omits weights. All embeddings
    start at zero, where the authors draw them, so that the order of workers does not matter.

    The defaults are the authors' settings for features: RAdam with a step size of 0.01 on a cosine schedule, for 50
    epochs. Matrices by task and worker can explain any votes; with a few hundred tasks, train for fewer epochs.
    Tables of workers warm up as RAdam does, since embeddings that learn faster than the network explain the votes
    before it does.

    Choose it where workers are good at some tasks and bad at others, or where some copy others. Benchmark:
    ``wisecrowd bench show annotmix2024``.

    Examples
    --------
    >>> from wisecrowd import MaDL, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = MaDL(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.embedding_.shape
    (True, (10, 16))
    """

    references: ClassVar[tuple[str, ...]] = ("herde2023madl",)

    weigh: Literal["batch", "all", "none"] = parameter(
        default="batch",
        help="Workers that a weight compares with: those of the 'batch', 'all', or 'none' (no weights).",
    )
    embedding: int = parameter(default=16, help=EMBEDDING_HELP)
    diagonal: float = parameter(default=0.8, help=DIAGONAL_HELP)
    optimiser: OptimiserName = parameter(
        default="radam", help="Optimiser of the network: 'adam', 'adamw', 'radam' or 'sgd'."
    )
    epochs: int | Literal["auto"] | None = parameter(
        default=50, help="Number of epochs; 'auto' chooses it by hidden votes, None by the number of tasks."
    )
    learning_rate: float = parameter(default=1e-2, help="Step size.")
    schedule: ScheduleName = parameter(
        default="cosine", help="Schedule of the step size: 'constant', 'cosine', 'onecycle' or 'step'."
    )

    matrices_: NDArray[np.float64] = fitted(
        help="Mean confusion matrices.", shape=("n_workers", "n_classes", "n_classes"), finite=True
    )

    @property
    def _confusion(self) -> PerTaskConfusion:
        return PerTaskConfusion(self.embedding, self.diagonal, self._make_layers, self._combine)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        self._confusion.check_parameters()
        check_choice("weigh", self.weigh, ("batch", "all", "none"))

    def _make_layers(self) -> dict[str, Any]:
        """Return the layers of h."""
        nn, size = import_torch().nn, self.embedding
        product = nn.Bilinear(size, size, size, bias=False)
        nn.init.xavier_uniform_(product.weight)
        dense = (nn.Linear(3 * size, COMBINING_UNITS), nn.BatchNorm1d(COMBINING_UNITS), nn.ReLU())
        combining = nn.Sequential(*dense, nn.Linear(COMBINING_UNITS, size), nn.BatchNorm1d(size))
        return {"product": product, "combining": combining}

    def _combine(self, network: CrowdNetwork, worker: Tensor, task: Tensor) -> Tensor:
        """Return h of worker and task embeddings."""
        torch, both, layers = import_torch(), worker + task, network.worker_parameters
        inputs = torch.cat([worker, task, layers.product(both, both)], dim=1)
        combined: Tensor = torch.relu(worker + apply_batch_layers(layers.combining, network, inputs))
        return combined

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return self._confusion.make_parameters(sizes) | {"log_bandwidth": import_torch().zeros(())}

    def _label_log_probs(self, batch: Batch) -> Tensor:
        return self._confusion.label_log_probs(batch)

    def _loss(self, batch: Batch) -> Tensor:
        nll = compute_vote_nll(batch, self._label_log_probs(batch))
        if self.weigh == "none":
            return batch.weighted_mean(nll)
        torch, embeddings = import_torch(), batch.network.worker_table("worker")
        log_bandwidth: Tensor = batch.shared("log_bandwidth")
        workers, position = torch.unique(batch.worker, return_inverse=True)
        if self.weigh == "all":
            workers, position = torch.arange(len(embeddings), device=batch.worker.device), batch.worker
        weight = compute_uniqueness_weights(embeddings[workers].detach(), log_bandwidth.exp())
        log_prior = (BANDWIDTH_SHAPE - 1) * log_bandwidth - BANDWIDTH_RATE * log_bandwidth.exp()
        return batch.weighted_mean(weight[position] * nll) - log_prior

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        class_probs = apply_gold(self._predict_with(trained.networks, X), gold)
        self.matrices_ = self._confusion.average_matrices(trained.networks[0], X, crowd, class_probs)

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the mean confusion matrices of some workers.

        Parameters
        ----------
        workers : iterable of int
            Positions of workers in ``worker_index_``.

        Returns
        -------
        ndarray of shape (len(workers), n_classes, n_classes)
        """
        self._check_fitted("posterior_")
        return self.matrices_[self._check_positions(workers)]

    @property
    def embedding_(self) -> NDArray[Any]:
        """Embeddings of the workers, (n_workers, embedding)."""
        self._check_fitted("posterior_")
        network = self.network_
        embeddings = network.worker_table("worker") + network.worker_parameters.everybody
        return np.asarray(embeddings.detach().cpu().numpy())

    @property
    def bandwidth_(self) -> float:
        """Bandwidth γ of the similarity of workers."""
        self._check_fitted("posterior_")
        return float(self.network_.worker_parameters.log_bandwidth.detach().exp())


def compute_uniqueness_weights(embedding: Tensor, bandwidth: Tensor) -> Tensor:
    """Return 1 / Σ_s exp(−γ |a_r − a_s|²) of each worker, scaled to a mean of one.

    Parameters
    ----------
    embedding : Tensor of shape (n_workers, n_dimensions)
        Embeddings a of workers.
    bandwidth : Tensor
        Bandwidth γ.

    Returns
    -------
    Tensor of shape (n_workers,)

    Examples
    --------
    >>> torch = import_torch()
    >>> compute_uniqueness_weights(torch.tensor([[0.0], [0.0], [100.0]]), torch.tensor(1.0)).tolist()
    [0.75, 0.75, 1.5]
    """
    torch = import_torch()
    weights: Tensor = 1 / torch.exp(-bandwidth * torch.cdist(embedding, embedding) ** 2).sum(dim=1)
    return weights / weights.mean()
