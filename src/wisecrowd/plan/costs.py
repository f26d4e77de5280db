"""Who costs what, and whose votes go together: what a plan for people and machines knows beside a crowd."""

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
    costs: Mapping[Any, Any] | None, names: pd.Index, cost: float, crowd: Crowd, model: ConfusionEM | None = None
) -> NDArray[np.float64]:
    """What a vote of each worker costs: as said of the worker, else of the worker's kind, else ``cost``.

    Kinds are those of a model that has some (`Panel`). Prices of others of the crowd do no harm.

    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t1", "cy", 0)])
    >>> vote_costs({"ann": 2.0, "cy": 3.0}, pd.Index(["ann", "bob"]), 1.0, crowd).tolist()
    [2.0, 1.0]
    >>> vote_costs({"robot": 2.0}, pd.Index(["ann"]), 1.0, crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: costs name nobody who is known: 'robot'; the workers are 'ann'...
    """
    result = np.full(len(names), float(cost))
    if costs is None:
        return result
    if not hasattr(costs, "items"):
        raise UsageError(f"costs must be a dict with the price of a vote by worker or kind; got {costs!r}")
    kind_by_worker: Mapping[str, str] = getattr(model, "kinds", None) or {}
    kinds = np.array([kind_by_worker.get(str(name), "") for name in names], dtype=object)
    for key, price in costs.items():
        if isinstance(price, str) or not (np.isfinite(price) and price > 0):
            raise UsageError(f"the cost of {key!r} must be a positive number, the price of a vote; got {price!r}")
    known_names = {
        *names.astype(str),
        *(() if crowd.workers is None else crowd.workers.astype(str)),
        *kind_by_worker.values(),
    }
    unknown = [key for key in costs if str(key) not in known_names]
    if unknown:
        raise UsageError(
            f"costs name nobody who is known: {preview(unknown)}; the workers are {preview(names)}, and kinds (person, machine) are "
            "known by a model that has them: plan(…, model=Panel(groups=…, kinds=…).fit(crowd))"
        )
    for keys in (kinds, names.astype(str)):  # what is said of a worker counts more than what is said of the kind
        for key, price in costs.items():
            result[keys == str(key)] = price
    return result
