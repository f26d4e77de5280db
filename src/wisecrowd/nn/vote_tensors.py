"""Votes as tensors: all votes sorted by task, batches of tasks with their votes, and tables with a row per worker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.nn.backend import import_torch

if TYPE_CHECKING:
    from torch import Tensor

    from wisecrowd.nn.crowd_network import CrowdNetwork

#: Logarithm that stands for probability zero; finite, so that gradients stay finite.
LOG_ZERO = math.log(1e-12)
#: Smallest total weight that a mean is divided by, for batches without votes.
MIN_TOTAL_WEIGHT = 1e-12


class VoteTensors(NamedTuple):
    """Votes sorted by task, as index tensors.

    Attributes
    ----------
    offset : Tensor of shape (n_tasks + 1,)
        The votes on task i are ``offset[i]:offset[i + 1]``.
    worker, label, weight : Tensor of shape (n_votes,)
        Worker code, label code and weight of every vote.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> task, worker, label, weight = VoteTensors.from_crowd(crowd).select_tasks(import_torch().tensor([1, 0, 1]))
    >>> task.tolist(), worker.tolist(), label.tolist()
    ([0, 0, 1, 2, 2], [0, 1, 0, 0, 1], [0, 1, 0, 0, 1])
    """

    offset: Tensor
    worker: Tensor
    label: Tensor
    weight: Tensor

    @classmethod
    def from_crowd(cls, crowd: Crowd, tasks: NDArray[Any] | None = None, like: Tensor | None = None) -> Self:
        """Return the votes on some tasks, which are renumbered in the given order.

        Equal votes of one worker on one task become one vote with the sum of their weights.

        Parameters
        ----------
        crowd : Crowd
            Votes with worker ids.
        tasks : ndarray of int, optional
            Task codes; all tasks by default.
        like : Tensor, optional
            Tensor whose device and floating point type the result has.

        Returns
        -------
        VoteTensors
        """
        torch = import_torch()
        assert crowd.worker is not None
        position = np.arange(crowd.n_tasks) if tasks is None else np.full(crowd.n_tasks, -1)
        if tasks is not None:
            position[tasks] = np.arange(len(tasks))
        n_tasks = crowd.n_tasks if tasks is None else len(tasks)
        task = position[crowd.task]
        is_selected = task >= 0
        n_workers, n_classes = max(crowd.n_workers, 1), crowd.n_classes
        vote = (task[is_selected] * n_workers + crowd.worker[is_selected]) * n_classes + crowd.label[is_selected]
        distinct, inverse = np.unique(vote, return_inverse=True)
        weight = np.bincount(inverse, crowd.weight[is_selected], minlength=len(distinct))
        task, remainder = np.divmod(distinct, n_workers * n_classes)
        worker, label = np.divmod(remainder, n_classes)
        offset = np.searchsorted(task, np.arange(n_tasks + 1))
        example = torch.zeros(0) if like is None else like

        def to_index(codes: NDArray[Any]) -> Tensor:
            index: Tensor = torch.from_numpy(codes.astype(np.int64)).to(example.device)
            return index

        return cls(to_index(offset), to_index(worker), to_index(label), torch.from_numpy(weight).to(example))

    def select_tasks(self, tasks: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the votes on some tasks.

        Parameters
        ----------
        tasks : Tensor of int
            Task codes, possibly repeated.

        Returns
        -------
        task, worker, label, weight : Tensor of shape (n_selected_votes,)
            ``task`` is the position of the task in ``tasks``.
        """
        torch = import_torch()
        start = self.offset.index_select(0, tasks)  # faster than indexing, as is its gradient
        count = self.offset.index_select(0, tasks + 1) - start
        task = torch.repeat_interleave(count)
        before = torch.cumsum(count, 0) - count
        vote = torch.arange(len(task), device=task.device) + (start - before).index_select(0, task)
        return task, *(column.index_select(0, vote) for column in (self.worker, self.label, self.weight))


@dataclass
class Batch:
    """Batch of tasks with the votes on them, and the output of a network for their features.

    Attributes
    ----------
    network : CrowdNetwork
        Network that computed the batch.
    inputs : Tensor of shape (n_tasks, ...)
        Prepared features.
    hidden : Tensor of shape (n_tasks, n_hidden)
        Inputs of the last layer.
    logits : Tensor of shape (n_tasks, n_classes)
        Outputs of the last layer.
    task, worker, label, weight : Tensor of shape (n_votes,)
        Position of the task in the batch, worker code, label code and weight of every vote.
    gold : Tensor of shape (n_tasks,) or None
        True class of each task, −1 where it is unknown.
    epoch : int
        Number of completed epochs.

    Examples
    --------
    >>> torch = import_torch()
    >>> zero = torch.zeros(1, dtype=torch.int64)
    >>> batch = Batch(None, None, None, torch.zeros(1, 2), task=zero, worker=zero, label=zero, weight=torch.ones(1))
    >>> batch.class_probs.tolist()
    [[0.5, 0.5]]
    """

    network: CrowdNetwork
    inputs: Tensor
    hidden: Tensor
    logits: Tensor
    task: Tensor
    worker: Tensor
    label: Tensor
    weight: Tensor
    gold: Tensor | None = None
    epoch: int = 0

    @cached_property
    def class_log_probs(self) -> Tensor:
        """Log f_k(x), of shape (n_tasks, n_classes); a gold class is certain."""
        torch = import_torch()
        log_probs: Tensor = torch.log_softmax(self.logits, dim=1)
        if self.gold is None:
            return log_probs
        classes = torch.arange(log_probs.shape[1], device=log_probs.device)
        certain = torch.where(self.gold[:, None] == classes, 0.0, LOG_ZERO).to(log_probs)
        return torch.where(self.gold[:, None] >= 0, certain, log_probs)

    @cached_property
    def class_probs(self) -> Tensor:
        """Class probabilities f_k(x), of shape (n_tasks, n_classes)."""
        if self.gold is None and "class_log_probs" not in self.__dict__:  # one kernel instead of two
            probs: Tensor = import_torch().softmax(self.logits, dim=1)
            return probs
        return self.class_log_probs.exp()

    def worker_rows(self, name: str) -> Tensor:
        """Return the rows of a worker table that belong to the votes.

        Parameters
        ----------
        name : str
            Name of the table.

        Returns
        -------
        Tensor of shape (n_votes, ...)
        """
        return self.network.worker_rows(name, self.worker)

    def shared(self, name: str) -> Any:
        """Return a parameter or layer that all workers share.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        Tensor or torch.nn.Module
        """
        return getattr(self.network.worker_parameters, name)

    def weighted_mean(self, values: Tensor) -> Tensor:
        """Return the weighted mean over votes, zero for a batch without votes.

        Parameters
        ----------
        values : Tensor of shape (n_votes,)
            One value per vote.

        Returns
        -------
        Tensor
            A scalar.
        """
        return (self.weight @ values) / self.weight.sum().clamp_min(MIN_TOTAL_WEIGHT)

    @property
    def unique_workers(self) -> Tensor:
        """Codes of the workers who voted, each once."""
        workers: Tensor = import_torch().unique(self.worker)
        return workers


class WorkerTable(NamedTuple):
    """Table with a row (a matrix or a vector) for every worker, as a trainable parameter.

    Attributes
    ----------
    initial : Tensor of shape (n_workers, ...)
        Initial values.
    sparse : bool
        Whether a step updates only the rows of workers who voted in its batch. A method with a term over all workers
        needs False.

    Examples
    --------
    >>> tuple(WorkerTable(import_torch().zeros(5, 2, 2)).initial.shape)
    (5, 2, 2)
    """

    initial: Any
    sparse: bool = True


def log_softmax_rows(matrices: Tensor) -> Tensor:
    """Return the logarithms of a softmax over the last axis.

    Parameters
    ----------
    matrices : Tensor of shape (..., n_classes)
        Unbounded numbers.

    Returns
    -------
    Tensor of the same shape

    Examples
    --------
    >>> log_softmax_rows(import_torch().zeros(1, 2, 2)).exp().tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    log_probs: Tensor = import_torch().log_softmax(matrices, dim=-1)
    return log_probs


def cross_tasks_and_workers(
    n_tasks: int, workers: Sequence[int] | NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return every combination of a task and a worker.

    Parameters
    ----------
    n_tasks : int
        Number of tasks.
    workers : sequence of int
        Worker codes.

    Returns
    -------
    task, worker : ndarray of shape (n_tasks * n_workers,)

    Examples
    --------
    >>> [codes.tolist() for codes in cross_tasks_and_workers(2, [5, 7])]
    [[0, 0, 1, 1], [5, 7, 5, 7]]
    """
    return np.repeat(np.arange(n_tasks), len(workers)), np.tile(np.asarray(workers, dtype=np.intp), n_tasks)
