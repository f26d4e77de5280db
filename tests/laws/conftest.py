"""How a method is tried under a law."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from wisecrowd.base.method import Method
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import MissingExtra


@pytest.fixture(scope="session")
def obeys() -> Callable[..., None]:
    """Try a method under a law on several crowds, unless it says that it breaks the law, or needs what is not there."""

    def try_it(
        method: Method, law: str, laws: dict[str, Callable[[Any, Crowd], None]], crowds: Iterable[Crowd]
    ) -> None:
        if law in method.breaks:
            pytest.skip(f"{method.name} breaks this law by design: {method.breaks[law]}")
        for crowd in crowds:
            try:
                laws[law](method, crowd)
            except MissingExtra as missing:
                pytest.skip(str(missing))

    return try_it


@pytest.fixture(scope="session")
def crowd_of() -> Callable[..., Crowd]:
    """Make a small crowd whose workers are right as often as numbers between ``low`` and ``high`` say."""

    def make(
        seed: int, n_tasks: int, n_workers: int, n_classes: int, density: float, low: float = 0.5, high: float = 0.9
    ) -> Crowd:
        rng = np.random.default_rng(seed)
        task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
        truth = rng.integers(n_classes, size=n_tasks)
        right = rng.random(len(task)) < rng.uniform(low, high, n_workers)[worker]
        label = np.where(right, truth[task], rng.integers(n_classes, size=len(task)))
        return Crowd.from_codes(task, worker, label, tasks=[f"t{i:03d}" for i in range(n_tasks)],
                     workers=[f"w{i:02d}" for i in range(n_workers)], classes=[f"c{i}" for i in range(n_classes)])  # fmt: skip

    return make
