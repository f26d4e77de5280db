"""What a trained network makes of every vote, and its means over the votes of each worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.modules import BLOCK
from wisecrowd.nn.vote_tensors import Batch, VoteTensors

if TYPE_CHECKING:
    from torch import Tensor


def voted_blocks(
    network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, size: int = BLOCK
) -> Iterator[tuple[int, Batch]]:
    """All tasks with the votes on them, block by block, with dropout off: the number of the first task, and the block.

    >>> network = CrowdNetwork("linear", (1,), 2, hidden=1, dropout=0.0)
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (1, "bob", "yes")])
    >>> X = np.array([[-1.0], [1.0]])
    >>> _ = network.rows(X, learn=True)
    >>> [(start, batch.worker.tolist()) for start, seen in voted_blocks(network, X, crowd, size=1)]
    [(0, [0]), (1, [0, 1])]
    """
    torch = need_torch()
    votes = VoteTensors.of(crowd, like=next(network.module.parameters()))
    start = 0
    for inputs, hidden, logits in network.blocks(X, size):
        tasks = torch.arange(start, start + len(inputs), device=inputs.device)
        yield start, Batch(network, inputs, hidden, logits, *votes.on(tasks))
        start += len(inputs)


def mean_by_worker(
    network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, value: Callable[[Batch], Tensor]
) -> NDArray[np.float64]:
    """The mean of ``value(batch)``, a number per vote, over the votes of each worker, by weight; NaN of who has none.

    >>> network = CrowdNetwork("linear", (1,), 2, hidden=1, dropout=0.0)
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (1, "bob", "yes")])
    >>> X = np.array([[-1.0], [1.0]])
    >>> _ = network.rows(X, learn=True)
    >>> mean_by_worker(network, X, crowd, lambda batch: batch.label).tolist()
    [0.5, 1.0]
    """
    total, count = np.zeros(crowd.n_workers), np.zeros(crowd.n_workers)
    for _, batch in voted_blocks(network, X, crowd):
        worker, weight = batch.worker.cpu().numpy(), batch.weight.double().cpu().numpy()
        values = value(batch).double().cpu().numpy()
        total += np.bincount(worker, weight * values, minlength=crowd.n_workers)
        count += np.bincount(worker, weight, minlength=crowd.n_workers)
    return np.divide(total, count, out=np.full(crowd.n_workers, np.nan), where=count > 0)
