"""Confusion matrices that depend on worker and task, computed from an embedding of each (Herde, Huseljic and Sick)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.softmax_confusion import mix_label_log_probs
from wisecrowd.nn.vote_tensors import Batch, WorkerTable, log_softmax_rows
from wisecrowd.nn.worker_averages import iterate_voted_batches

if TYPE_CHECKING:
    from torch import Tensor, nn

#: Cells of confusion matrices that are computed at once outside training, to bound memory.
MAX_CELLS = 2**22

#: Texts of the parameters that methods with such matrices share.
EMBEDDING_HELP = "Number of dimensions of the embedding of a worker, and of a task."
DIAGONAL_HELP = "Probability that a worker is right before training."


@dataclass(frozen=True)
class PerTaskConfusion:
    """A K x K confusion matrix π_ir for every worker r on every task i.

        π_ir = softmax of rows of V h(a_r, t_i) + b I,    P(r gives l | x_i) = Σ_k f_k(x_i) π_ir[k, l]

    a_r is an embedding of the worker, t_i one of the inputs of the network's last layer, and h are layers of the
    method. All workers start with the same embedding and V at zero. With b = log η(K − 1)/(1 − η), every worker is
    right with probability η before training.

    Attributes
    ----------
    embedding : int
        Number of dimensions of an embedding.
    diagonal : float
        Initial probability η of a right label.
    make_layers : callable
        Function that returns the layers of h by name.
    combine : callable
        Function h of (network, worker embeddings, task embeddings), each (n_votes, embedding).
    detaches_tasks : bool
        Whether task embeddings send no gradient into the network.

    Examples
    --------
    >>> confusion = PerTaskConfusion(4, 0.8, dict, lambda network, worker, task: worker + task)
    >>> sorted(confusion.make_parameters(ModelSizes(n_workers=5, n_classes=2, n_hidden=3)))
    ['everybody', 'matrix', 'task', 'worker']
    """

    embedding: int
    diagonal: float
    make_layers: Callable[[], dict[str, nn.Module]]
    combine: Callable[[CrowdNetwork, Tensor, Tensor], Tensor]
    detaches_tasks: bool = False

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid.

        Raises
        ------
        UsageError
            If ``embedding`` or ``diagonal`` is out of range.
        """
        if self.embedding < 1 or not 0 < self.diagonal < 1:
            raise UsageError(
                "embedding must be 1 or more, and diagonal a probability between 0 and 1; "
                f"got {self.embedding} and {self.diagonal}"
            )

    def make_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        """Return embeddings and layers.

        Parameters
        ----------
        sizes : ModelSizes
            Sizes of the model.

        Returns
        -------
        dict
        """
        torch, n_classes = import_torch(), sizes.n_classes
        last = torch.nn.Linear(self.embedding, n_classes**2)
        torch.nn.init.zeros_(last.weight)
        log_odds = math.log(self.diagonal * (n_classes - 1) / (1 - self.diagonal))
        with torch.no_grad():
            last.bias.copy_(log_odds * torch.eye(n_classes).flatten())
        return {
            "worker": WorkerTable(torch.zeros(sizes.n_workers, self.embedding)),
            "everybody": torch.zeros(self.embedding),
            "task": torch.nn.Linear(sizes.n_hidden, self.embedding),
            **self.make_layers(),
            "matrix": last,
        }

    def embed_workers(self, network: CrowdNetwork, workers: Tensor) -> Tensor:
        """Return a_r: an embedding that all workers share plus that of the worker.

        Parameters
        ----------
        network : CrowdNetwork
            Network.
        workers : Tensor of int
            Worker codes.

        Returns
        -------
        Tensor of shape (n_selected_workers, embedding)
        """
        return network.worker_rows("worker", workers) + network.worker_parameters.everybody

    def log_matrices(self, network: CrowdNetwork, worker_embeddings: Tensor, hidden: Tensor) -> Tensor:
        """Return log π_ir.

        Parameters
        ----------
        network : CrowdNetwork
            Network.
        worker_embeddings : Tensor of shape (n_votes, embedding)
            Embedding of the worker of each vote.
        hidden : Tensor of shape (n_votes, n_hidden)
            Inputs of the network's last layer for the task of each vote.

        Returns
        -------
        Tensor of shape (n_votes, n_classes, n_classes)
        """
        parameters = network.worker_parameters
        task_embeddings = parameters.task(hidden.detach() if self.detaches_tasks else hidden)
        combined = self.combine(network, worker_embeddings, task_embeddings)
        return log_softmax_rows(parameters.matrix(combined).view(-1, network.n_classes, network.n_classes))

    def label_log_probs(self, batch: Batch) -> Tensor:
        """Return log Σ_k f_k(x) π_ir[k, l] of every vote.

        Parameters
        ----------
        batch : Batch
            Tasks and votes.

        Returns
        -------
        Tensor of shape (n_votes, n_classes)
        """
        torch, network, n_votes = import_torch(), batch.network, len(batch.task)
        # In training, batch norms need all votes at once. In prediction, votes are independent, and there may be many.
        size = max(1, n_votes if network.module.training else MAX_CELLS // network.n_classes**2)
        log_probs = []
        for start in range(0, max(1, n_votes), size):
            task, worker = batch.task[start : start + size], batch.worker[start : start + size]
            log_matrices = self.log_matrices(
                network, self.embed_workers(network, worker), batch.hidden.index_select(0, task)
            )
            log_probs.append(mix_label_log_probs(batch.class_log_probs.index_select(0, task), log_matrices))
        joined: Tensor = torch.cat(log_probs)
        return joined

    def average_matrices(
        self, network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, class_probs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the mean of every worker's matrices over the tasks that they labelled.

        Each true class is weighted by its probability: π_r[k] = Σ_i f_k(x_i) π_ir[k] / Σ_i f_k(x_i). A worker without
        votes on a class gets the mean over all workers.

        Parameters
        ----------
        network : CrowdNetwork
            Trained network.
        X : ndarray of shape (n_tasks, ...)
            Features.
        crowd : Crowd
            Votes.
        class_probs : ndarray of shape (n_tasks, n_classes)
            Class probabilities f_k(x_i).

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        n_workers, n_classes = crowd.n_workers, crowd.n_classes
        sums, totals = np.zeros((n_workers, n_classes, n_classes)), np.zeros((n_workers, n_classes))
        votes_per_task = crowd.n_votes // max(1, crowd.n_tasks) + 1
        size = max(1, MAX_CELLS // (votes_per_task * n_classes**2))
        for start, batch in iterate_voted_batches(network, X, crowd, size=size):
            embeddings = self.embed_workers(network, batch.worker)
            log_pi = (
                self.log_matrices(network, embeddings, batch.hidden.index_select(0, batch.task)).cpu().double().numpy()
            )
            task, worker, weight = (tensor.cpu().numpy() for tensor in (batch.task, batch.worker, batch.weight))
            mass = weight[:, None] * class_probs[start + task]
            np.add.at(totals, worker, mass)
            np.add.at(sums, worker, mass[:, :, None] * np.exp(log_pi))
        return _divide_by_class(sums, totals)


def apply_batch_layers(layers: nn.Module, network: CrowdNetwork, rows: Tensor) -> Any:
    """Apply layers with batch norms; a single row is normalised by the running moments.

    Parameters
    ----------
    layers : torch.nn.Module
        Layers.
    network : CrowdNetwork
        Network whose mode (training or evaluation) the layers take.
    rows : Tensor of shape (n_rows, n_inputs)
        Inputs.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> torch = import_torch()
    >>> network = CrowdNetwork("linear", (2,), 2, hidden=1, dropout=0.0)
    >>> _ = network.module.train()
    >>> apply_batch_layers(torch.nn.BatchNorm1d(2), network, torch.zeros(1, 2)).tolist()
    [[0.0, 0.0]]
    """
    return layers.train(network.module.training and len(rows) > 1)(rows)


def _divide_by_class(sums: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means of matrices by worker and class; those of the crowd for workers without votes on a class."""
    crowd_sum, crowd_total = sums.sum(axis=0), totals.sum(axis=0)[:, None]
    uniform = np.full_like(crowd_sum, 1 / len(crowd_sum))
    crowd_mean = np.divide(crowd_sum, crowd_total, out=uniform, where=crowd_total > 0)
    means: NDArray[np.float64] = np.where(totals[:, :, None] > 0, sums, crowd_mean)
    means /= means.sum(axis=2, keepdims=True)
    return means
