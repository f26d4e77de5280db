"""Votes as tensors, and what a batch of tasks shows a model: only what was said, never tasks x workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.nn.backend import need_torch

if TYPE_CHECKING:
    from torch import Tensor

    from wisecrowd.nn.crowd_network import CrowdNetwork

#: The log of what is impossible, finite so that no gradient is lost in it.
IMPOSSIBLE = math.log(1e-12)


class VoteTensors(NamedTuple):
    """Votes sorted by task, as index tensors.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> vote_tensors = VoteTensors.of(crowd)
    >>> row, worker, label, weight = vote_tensors.on(need_torch().tensor([1, 0, 1]))
    >>> row.tolist(), worker.tolist(), label.tolist()
    ([0, 0, 1, 2, 2], [0, 1, 0, 0, 1], [0, 1, 0, 0, 1])
    """

    offset: Tensor
    """The votes on task i are ``offset[i]:offset[i + 1]``."""
    worker: Tensor
    label: Tensor
    weight: Tensor

    @classmethod
    def of(cls, crowd: Crowd, tasks: NDArray[Any] | None = None, like: Tensor | None = None) -> Self:
        """The votes on some tasks, numbered as they come; a vote that is cast twice is one of twice the weight."""
        torch = need_torch()
        assert crowd.worker is not None
        place = np.arange(crowd.n_tasks) if tasks is None else np.full(crowd.n_tasks, -1)
        if tasks is not None:
            place[tasks] = np.arange(len(tasks))
        n_tasks = crowd.n_tasks if tasks is None else len(tasks)
        task = place[crowd.task]
        chosen = task >= 0
        n_workers, n_classes = max(crowd.n_workers, 1), crowd.n_classes
        vote = (task[chosen] * n_workers + crowd.worker[chosen]) * n_classes + crowd.label[chosen]
        once, which = np.unique(vote, return_inverse=True)
        weight = np.bincount(which, crowd.weight[chosen], minlength=len(once))
        task, rest = np.divmod(once, n_workers * n_classes)
        worker, label = np.divmod(rest, n_classes)
        offset = np.searchsorted(task, np.arange(n_tasks + 1))
        example = torch.zeros(0) if like is None else like

        def tensor(places: NDArray[Any]) -> Tensor:
            found: Tensor = torch.from_numpy(places.astype(np.int64)).to(example.device)
            return found

        return cls(tensor(offset), tensor(worker), tensor(label), torch.from_numpy(weight).to(example))

    def on(self, tasks: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The votes on some tasks: the place of the task among those, the worker, the label, and the weight of each."""
        torch = need_torch()
        start = self.offset[tasks]
        count = self.offset[tasks + 1] - start
        row = torch.repeat_interleave(count)
        before = torch.cumsum(count, 0) - count
        vote = torch.arange(len(row), device=row.device) + (start - before)[row]
        return row, self.worker[vote], self.label[vote], self.weight[vote]


@dataclass
class Batch:
    """A batch of tasks with the votes on them, and what the network makes of their features."""

    network: CrowdNetwork
    inputs: Tensor
    """(tasks, ...) as the network takes them."""
    hidden: Tensor
    """(tasks, units): what the last layer is given."""
    logits: Tensor
    """(tasks, classes)."""
    row: Tensor
    """Of each vote: the task, by its place in the batch."""
    worker: Tensor
    label: Tensor
    weight: Tensor
    known: Tensor | None = None
    """The true class of each task, −1 where it is not known."""
    epoch: int = 0
    """How many epochs were done before this batch."""

    @cached_property
    def log_p(self) -> Tensor:
        """log f_k(x), (tasks, classes); where the truth is known, it is certain."""
        torch = need_torch()
        found: Tensor = torch.log_softmax(self.logits, dim=1)
        if self.known is None:
            return found
        classes = torch.arange(found.shape[1], device=found.device)
        certain = torch.where(self.known[:, None] == classes, 0.0, IMPOSSIBLE).to(found)
        return torch.where(self.known[:, None] >= 0, certain, found)

    @cached_property
    def p(self) -> Tensor:
        """f_k(x), (tasks, classes)."""
        return self.log_p.exp()

    def of_worker(self, name: str) -> Tensor:
        """The rows of a per-worker table that belong to the votes: (votes, ...)."""
        return self.network.rows_of(name, self.worker)

    def own(self, name: str) -> Any:
        """A parameter or layer of the method that all workers share."""
        return getattr(self.network.own, name)

    def mean(self, values: Tensor) -> Tensor:
        """The mean over votes, by weight; nothing where there are none."""
        return (self.weight * values).sum() / self.weight.sum().clamp_min(1e-12)

    @property
    def workers(self) -> Tensor:
        """Who voted, each once."""
        found: Tensor = need_torch().unique(self.worker)
        return found


class PerWorker(NamedTuple):
    """A table with a row (a matrix, a vector) for every worker, of which a batch touches only those who voted.

    Its rows are updated by Adam when they are touched, and their moments rest in between; with ``sparse=False``, of which
    a method with a term over all workers has need, all rows in every batch.
    """

    start: Any
    """(workers, ...), a tensor."""
    sparse: bool = True


def as_log_probability(matrices: Tensor) -> Tensor:
    """Rows of unbounded numbers as logarithms of distributions.

    >>> as_log_probability(need_torch().zeros(1, 2, 2)).exp().tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    found: Tensor = need_torch().log_softmax(matrices, dim=-1)
    return found


def grid(n_tasks: int, workers: Sequence[int] | NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every task with every worker: places of tasks, and workers.

    >>> [side.tolist() for side in grid(2, [5, 7])]
    [[0, 0, 1, 1], [5, 7, 5, 7]]
    """
    return np.repeat(np.arange(n_tasks), len(workers)), np.tile(np.asarray(workers, dtype=np.intp), n_tasks)
