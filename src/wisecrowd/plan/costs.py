"""Who costs what, and whose votes go together: what a plan for people and machines knows beside a crowd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import UsageError, some


def prices(
    costs: Mapping[Any, Any] | None, names: pd.Index, cost: float, crowd: Crowd, model: ConfusionEM | None = None
) -> NDArray[np.float64]:
    """What a vote of each worker costs: as said of the worker, else of the worker's kind, else ``cost``.

    Kinds are those of a model that has some (`Panel`). Prices of others of the crowd do no harm.

    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t1", "cy", 0)])
    >>> prices({"ann": 2.0, "cy": 3.0}, pd.Index(["ann", "bob"]), 1.0, crowd).tolist()
    [2.0, 1.0]
    >>> prices({"robot": 2.0}, pd.Index(["ann"]), 1.0, crowd)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: costs name nobody who is known: 'robot'; the workers are 'ann'...
    """
    found = np.full(len(names), float(cost))
    if costs is None:
        return found
    if not hasattr(costs, "items"):
        raise UsageError(f"costs must be a dict with the price of a vote by worker or kind; got {costs!r}")
    kind_of: Mapping[str, str] = getattr(model, "kinds", None) or {}
    kinds = np.array([kind_of.get(str(name), "") for name in names], dtype=object)
    for key, price in costs.items():
        if isinstance(price, str) or not (np.isfinite(price) and price > 0):
            raise UsageError(f"the cost of {key!r} must be a positive number, the price of a vote; got {price!r}")
    known = {*names.astype(str), *(() if crowd.workers is None else crowd.workers.astype(str)), *kind_of.values()}
    unknown = [key for key in costs if str(key) not in known]
    if unknown:
        raise UsageError(
            f"costs name nobody who is known: {some(unknown)}; the workers are {some(names)}, and kinds (person, machine) are "
            "known by a model that has them: plan(…, model=Panel(groups=…, kinds=…).fit(crowd))"
        )
    for of in (kinds, names.astype(str)):  # what is said of a worker counts more than what is said of the kind
        for key, price in costs.items():
            found[of == str(key)] = price
    return found


def has_groups(model: Any) -> bool:
    """Whether a model takes the votes of some workers to depend on each other, and says how (`Panel.expected_answers`).

    >>> has_groups(None)
    False
    """
    return bool(getattr(model, "group_names_", ()))


@dataclass(frozen=True, eq=False)
class Together:
    """What a plan wants of `WorkerDiagnosis`, of a model whose workers do not err independently.

    Matrices are the model's own. Nobody is left out for a spammer: what they would say is expected to tell nothing.

    >>> from wisecrowd import Panel
    >>> from wisecrowd.simulate import simulate_panel
    >>> made = simulate_panel(n_tasks=60)
    >>> Together(made.crowd, Panel(groups=made.groups).fit(made.crowd)).confusion_of([0, 12]).shape
    (2, 3, 3)
    """

    crowd: Crowd
    model: Any

    def __post_init__(self) -> None:
        if not self.crowd.tasks.equals(self.model.task_index_) or self.crowd.n_votes != self.model.n_votes_:
            raise UsageError("give the crowd that the model was fitted on, or fit the model to these votes")

    @property
    def kinds(self) -> NDArray[np.float64]:
        """Nobody is known to be a spammer."""
        return np.tile([1.0, 0.0, 0.0], (self.crowd.n_workers, 1))

    @property
    def confusion(self) -> NDArray[np.float64]:
        """What the crowd as a whole says when each class is true, (true, said)."""
        return np.asarray(self.model.confusion_.mean(axis=0))

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Matrices of some workers, by position."""
        return np.asarray(self.model.confusion_of(workers))
