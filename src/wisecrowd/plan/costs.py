"""Costs of votes by worker and by kind of worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import UsageError, preview


def vote_costs(
    costs: Mapping[Any, Any] | None, worker_ids: pd.Index, cost: float, crowd: Crowd, model: ConfusionEM | None = None
) -> NDArray[np.float64]:
    """Return the cost of a vote for each worker.

    The cost of a worker takes precedence over the cost of the worker's kind. Workers without either cost ``cost``.

    Parameters
    ----------
    costs : mapping or None
        Costs by worker id or by kind. Kinds are those of a model with ``kinds``, such as `Panel`.
    worker_ids : Index
        Workers to return costs for.
    cost : float
        Default cost.
    crowd : Crowd
        Votes. Costs of other workers of the crowd are ignored.
    model : ConfusionEM, default=None
        Fitted model, which may know the kinds of workers.

    Returns
    -------
    ndarray of shape (n_workers,)

    Raises
    ------
    UsageError
        If a cost is not a positive number, or belongs to no worker and no kind.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t1", "cy", 0)])
    >>> vote_costs({"ann": 2.0, "cy": 3.0}, pd.Index(["ann", "bob"]), 1.0, crowd).tolist()
    [2.0, 1.0]
    >>> vote_costs({"robot": 2.0}, pd.Index(["ann"]), 1.0, crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: costs has unknown workers or kinds: 'robot'. The workers are 'ann'...
    """
    cost_by_worker = np.full(len(worker_ids), float(cost))
    if costs is None:
        return cost_by_worker
    if not hasattr(costs, "items"):
        raise UsageError(f"costs must be a dict of costs per vote by worker or kind; got {costs!r}")
    kind_by_worker: Mapping[str, str] = getattr(model, "kinds", None) or {}
    kinds = np.array([kind_by_worker.get(str(name), "") for name in worker_ids], dtype=object)
    for key, key_cost in costs.items():
        if isinstance(key_cost, str) or not (np.isfinite(key_cost) and key_cost > 0):
            raise UsageError(f"the cost per vote of {key!r} must be a positive number; got {key_cost!r}")
    known_names = {
        *worker_ids.astype(str),
        *(() if crowd.workers is None else crowd.workers.astype(str)),
        *kind_by_worker.values(),
    }
    unknown = [key for key in costs if str(key) not in known_names]
    if unknown:
        raise UsageError(
            f"costs has unknown workers or kinds: {preview(unknown)}. The workers are {preview(worker_ids)}; "
            "costs by kind need a model with kinds, such as model=Panel(groups=…, kinds=…).fit(crowd)"
        )
    for keys in (kinds, worker_ids.astype(str)):  # the cost of a worker overrides the cost of the kind
        for key, key_cost in costs.items():
            cost_by_worker[keys == str(key)] = key_cost
    return cost_by_worker
