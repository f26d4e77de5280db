"""Every aggregator against every law, on several crowds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wisecrowd.crowd import Crowd
from wisecrowd.laws import LAWS
from wisecrowd.registry import methods


def crowd_of(seed: int, n_tasks: int, n_workers: int, n_classes: int, density: float, accuracy: float) -> Crowd:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    truth = rng.integers(n_classes, size=n_tasks)
    right = rng.random(len(task)) < accuracy + rng.uniform(-0.2, 0.2, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(n_classes, size=len(task)))
    return Crowd(task, worker, label, tasks=[f"t{i:03d}" for i in range(n_tasks)],
                 workers=[f"w{i:02d}" for i in range(n_workers)], classes=[f"c{i}" for i in range(n_classes)])  # fmt: skip


CROWDS = {
    "sparse": crowd_of(0, 60, 12, 3, 0.25, 0.7),
    "dense": crowd_of(1, 20, 7, 2, 0.9, 0.6),
    "many classes": crowd_of(2, 40, 15, 6, 0.3, 0.8),
}


#: Methods that average numbers have laws of their own.
CATEGORICAL = [name for name, method in methods("aggregate").items() if not method.numeric]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", CATEGORICAL)
def test_every_method_obeys_every_law(name: str, law: str, obeys: Callable[..., None]) -> None:
    method = methods("aggregate")[name]()
    obeys(method, law, LAWS, CROWDS.values())
