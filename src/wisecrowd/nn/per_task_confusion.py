"""Confusion matrices that depend on worker and task, made from an embedding of each (Herde, Huseljic and Sick)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.trainer import OptimiserName, ScheduleName
from wisecrowd.nn.vote_tensors import Batch, PerWorker, as_log_probability
from wisecrowd.nn.worker_tables import voted_blocks

if TYPE_CHECKING:
    from torch import Tensor, nn

#: Cells of matrices that are made at once, outside training.
CELLS = 2**22


@method_class
class PerTaskConfusion(DeepLearner):
    """A network f, and a matrix π_ir of K x K for every worker r on every task i.

        π_ir = softmax of rows of V h(a_r, t_i) + b I,    P(r says l | x_i) = Σ_k f_k(x_i) π_ir[k, l]

    with a_r an embedding of the worker, t_i one of what the network's last layer is given, and h layers that a method
    says. Workers start alike, and V at zero, so that with b = log η(K − 1)/(1 − η) everybody is right with
    probability η at first, whatever the task.

    By default they are trained as their authors train on features: RAdam, with a step of 0.01 that falls along a cosine, for
    50 epochs. A matrix for every task and worker can explain anything: with few hundred tasks that is far too long.

    ``confusion_`` is the mean of a worker's matrices over the tasks that he voted on, each true class weighted by how
    probable it is: π_r[k] = Σ_i f_k(x_i) π_ir[k] / Σ_i f_k(x_i).

    >>> from wisecrowd import MaDL
    >>> issubclass(MaDL, PerTaskConfusion)
    True
    """

    breaks: ClassVar[dict[str, str]] = DeepLearner.breaks

    embedding: int = parameter(default=16, help="numbers by which a worker, and a task, is described")
    diagonal: float = parameter(default=0.8, help="how often a worker is right before anything was learnt")

    optimiser: OptimiserName = parameter(default="radam", help="of the network: 'adam', 'adamw', 'radam' or 'sgd'")
    epochs: int | Literal["auto"] | None = parameter(
        default=50, help="times through all tasks: a number, or 'auto', by hidden votes"
    )
    learning_rate: float = parameter(default=1e-2, help="step size")
    schedule: ScheduleName = parameter(
        default="cosine", help="of the step size: 'constant', 'cosine', 'onecycle' or 'step'"
    )

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        if self.embedding < 1 or not 0 < self.diagonal < 1:
            raise UsageError(
                "embedding must be 1 or more, and diagonal a probability between 0 and 1; "
                f"got {self.embedding} and {self.diagonal}"
            )

    # ------------------------------------------------------------------ what a method says

    def _joint(self) -> dict[str, Any]:
        """The layers of `_meet`, by name."""
        raise NotImplementedError

    def _meet(self, network: CrowdNetwork, worker: Tensor, task: Tensor) -> Tensor:
        """h: what comes of embeddings of workers and tasks, (votes, embedding) both and the result."""
        raise NotImplementedError

    # ------------------------------------------------------------------ the model

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, (n_workers, n_classes, n_hidden) = need_torch(), sizes
        last = torch.nn.Linear(self.embedding, n_classes**2)
        torch.nn.init.zeros_(last.weight)
        odds = math.log(self.diagonal * (n_classes - 1) / (1 - self.diagonal))
        with torch.no_grad():
            last.bias.copy_(odds * torch.eye(n_classes).flatten())
        return {
            "worker": PerWorker(torch.zeros(n_workers, self.embedding)),
            "everybody": torch.zeros(self.embedding),
            "task": torch.nn.Linear(n_hidden, self.embedding),
            **self._joint(),
            "matrix": last,
        }

    def _embedded(self, network: CrowdNetwork, worker: Tensor) -> Tensor:
        """a_r, as what is everybody's and what is the worker's own."""
        return network.rows_of("worker", worker) + network.own.everybody

    def _log_matrices(self, network: CrowdNetwork, worker: Tensor, hidden: Tensor) -> Tensor:
        """log π_ir, (votes, true, said), of embeddings of workers and what the last layer is given of their tasks."""
        met = self._meet(network, worker, network.own.task(hidden))
        return as_log_probability(network.own.matrix(met).view(-1, network.n_classes, network.n_classes))

    def _label_log_probs(self, batch: Batch) -> Tensor:
        torch, network, n_votes = need_torch(), batch.network, len(batch.row)
        # Norms look at all votes of a batch in training; answers are given vote by vote, however many there are.
        size = max(1, n_votes if network.module.training else CELLS // network.n_classes**2)
        found = []
        for start in range(0, max(1, n_votes), size):
            row, worker = batch.row[start : start + size], batch.worker[start : start + size]
            log_matrices = self._log_matrices(network, self._embedded(network, worker), batch.hidden[row])
            found.append(label_log_probs_of(batch.log_p[row], log_matrices))
        whole: Tensor = torch.cat(found)
        return whole

    # ------------------------------------------------------------------ what was learnt

    def _conclude(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        super()._conclude(X, crowd, gold)
        self.matrices_ = self._mean_matrices(X, crowd, apply_gold(self._predict_proba(X), gold))

    def _mean_matrices(self, X: NDArray[np.float64], crowd: Crowd, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of every worker's matrices over the tasks that they labelled: (workers, true, said)."""
        network, n_workers, n_classes = self.network_, self.n_workers_, crowd.n_classes
        said, met = np.zeros((n_workers, n_classes, n_classes)), np.zeros((n_workers, n_classes))
        per_task = crowd.n_votes // max(1, crowd.n_tasks) + 1
        for start, batch in voted_blocks(network, X, crowd, size=max(1, CELLS // (per_task * n_classes**2))):
            log_matrices = self._log_matrices(network, self._embedded(network, batch.worker), batch.hidden[batch.row])
            log_pi = log_matrices.double().cpu().numpy()
            row, worker, weight = (each.cpu().numpy() for each in (batch.row, batch.worker, batch.weight))
            mass = weight[:, None] * share[start + row]
            np.add.at(met, worker, mass)
            np.add.at(said, worker, mass[:, :, None] * np.exp(log_pi))
        return _means(said, met)

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Mean confusion matrices of some workers, by position: (chosen workers, true, said)."""
        self._check_fitted("posterior_")
        return self.matrices_[self._chosen(workers)]


def label_log_probs_of(log_p: Tensor, log_matrices: Tensor) -> Tensor:
    """log Σ_k f_k π[k, l], (votes, classes).

    >>> torch = need_torch()
    >>> matrix = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]])
    >>> [round(p, 3) for p in label_log_probs_of(torch.tensor([[0.5, 0.5]]).log(), matrix.log()).exp()[0].tolist()]
    [0.55, 0.45]
    """
    found: Tensor = need_torch().logsumexp(log_p[:, :, None] + log_matrices, dim=1)
    return found


def trained_together(layers: nn.Module, network: CrowdNetwork, rows: Tensor) -> Any:
    """What layers with norms make of rows; one that is alone is normalised by what was seen before it.

    >>> from wisecrowd.nn.crowd_network import CrowdNetwork
    >>> torch = need_torch()
    >>> network = CrowdNetwork("linear", (2,), 2, hidden=1, dropout=0.0)
    >>> _ = network.module.train()
    >>> trained_together(torch.nn.BatchNorm1d(2), network, torch.zeros(1, 2)).tolist()
    [[0.0, 0.0]]
    """
    return layers.train(network.module.training and len(rows) > 1)(rows)


def _means(said: NDArray[np.float64], met: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over a worker's tasks as means, by class; who has not voted is like everybody."""
    total, weight = said.sum(axis=0), met.sum(axis=0)
    everybody = np.divide(total, weight[:, None], out=np.full_like(total, 1 / len(total)), where=weight[:, None] > 0)
    whole: NDArray[np.float64] = np.where(met[:, :, None] > 0, said, everybody)
    whole /= whole.sum(axis=2, keepdims=True)
    return whole
