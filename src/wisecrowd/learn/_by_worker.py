"""Numbers that a model has for every vote, as means of the votes of each worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wisecrowd._torch import need_torch
from wisecrowd.crowd import Crowd
from wisecrowd.learn._ballots import Ballots, Seen
from wisecrowd.learn._crowd_network import CrowdNetwork

if TYPE_CHECKING:
    from torch import Tensor


def mean_by_worker(
    network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, value: Callable[[Seen], Tensor]
) -> NDArray[np.float64]:
    """The mean of ``value(seen)``, a number per vote, over the votes of each worker, by weight; NaN of who has none.

    >>> network = CrowdNetwork("linear", (1,), 2, hidden=1, dropout=0.0)
    >>> crowd = Crowd.from_triples([(0, "ann", "no"), (1, "ann", "yes"), (1, "bob", "yes")])
    >>> X = np.array([[-1.0], [1.0]])
    >>> _ = network.rows(X, learn=True)
    >>> mean_by_worker(network, X, crowd, lambda seen: seen.label).tolist()
    [0.5, 1.0]
    """
    torch = need_torch()
    votes = Ballots.of(crowd, like=next(network.module.parameters()))
    total, count = np.zeros(crowd.n_workers), np.zeros(crowd.n_workers)
    done = 0
    for inputs, hidden, logits in network.blocks(X):
        tasks = torch.arange(done, done + len(inputs), device=inputs.device)
        seen = Seen(network, inputs, hidden, logits, *votes.on(tasks))
        worker, weight = seen.worker.cpu().numpy(), seen.weight.double().cpu().numpy()
        values = value(seen).double().cpu().numpy()
        total += np.bincount(worker, weight * values, minlength=crowd.n_workers)
        count += np.bincount(worker, weight, minlength=crowd.n_workers)
        done += len(inputs)
    return np.divide(total, count, out=np.full(crowd.n_workers, np.nan), where=count > 0)
