"""Averages by worker over the votes of a crowd, with a trained network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.modules import PREDICTION_BATCH_SIZE
from wisecrowd.nn.vote_tensors import Batch, VoteTensors

if TYPE_CHECKING:
    from torch import Tensor


def iterate_voted_batches(
    network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, size: int = PREDICTION_BATCH_SIZE
) -> Iterator[tuple[int, Batch]]:
    """Yield all tasks with their votes, batch by batch, without dropout and gradients.

    Parameters
    ----------
    network : CrowdNetwork
        Trained network.
    X : ndarray of shape (n_tasks, ...)
        Features.
    crowd : Crowd
        Votes.
    size : int, default 4096
        Tasks per batch.

    Yields
    ------
    start : int
        Code of the first task of the batch.
    batch : Batch

    Examples
    --------
    >>> network = CrowdNetwork("linear", (1,), 2, hidden=1, dropout=0.0)
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (1, "bob", "yes")])
    >>> X = np.array([[-1.0], [1.0]])
    >>> _ = network.prepare_inputs(X, fit=True)
    >>> [(start, batch.worker.tolist()) for start, batch in iterate_voted_batches(network, X, crowd, size=1)]
    [(0, [0]), (1, [0, 1])]
    """
    torch = import_torch()
    votes = VoteTensors.from_crowd(crowd, like=next(network.module.parameters()))
    start = 0
    for inputs, hidden, logits in network.iterate_batches(X, size):
        tasks = torch.arange(start, start + len(inputs), device=inputs.device)
        yield start, Batch(network, inputs, hidden, logits, *votes.select_tasks(tasks))
        start += len(inputs)


def average_by_worker(
    network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, compute_values: Callable[[Batch], Tensor]
) -> NDArray[np.float64]:
    """Return the weighted mean over the votes of each worker.

    Parameters
    ----------
    network : CrowdNetwork
        Trained network.
    X : ndarray of shape (n_tasks, ...)
        Features.
    crowd : Crowd
        Votes.
    compute_values : callable
        Function from a `Batch` to one number per vote.

    Returns
    -------
    ndarray of shape (n_workers,)
        NaN for a worker without votes.

    Examples
    --------
    >>> network = CrowdNetwork("linear", (1,), 2, hidden=1, dropout=0.0)
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (1, "bob", "yes")])
    >>> X = np.array([[-1.0], [1.0]])
    >>> _ = network.prepare_inputs(X, fit=True)
    >>> average_by_worker(network, X, crowd, lambda batch: batch.label).tolist()
    [0.5, 1.0]
    """
    total, count = np.zeros(crowd.n_workers), np.zeros(crowd.n_workers)
    for _, batch in iterate_voted_batches(network, X, crowd):
        worker, weight = batch.worker.cpu().numpy(), batch.weight.cpu().double().numpy()
        values = compute_values(batch).cpu().double().numpy()
        total += np.bincount(worker, weight * values, minlength=crowd.n_workers)
        count += np.bincount(worker, weight, minlength=crowd.n_workers)
    return np.divide(total, count, out=np.full(crowd.n_workers, np.nan), where=count > 0)
