"""Fixtures that check a method against a law, with shared fits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from wisecrowd.base.method import Method
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import MissingExtra

#: Laws about repeated fits, which therefore share none.
LAWS_OF_FITS = {"input_is_unchanged", "same_seed_same_bits"}
#: Law that makes its own crowds, the same for every crowd that it is given.
LAW_WITHOUT_CROWD = "degenerate_crowds_are_handled"


class SharedFits:
    """Fits of the crowds of a test module, which most laws compare with another fit."""

    def __init__(self) -> None:
        self._fits: dict[tuple[object, ...], Any] = {}

    def wrap(self, fit: Callable[..., Any], crowds: list[Crowd]) -> Callable[..., Any]:
        """Return a function that fits each method once to each of these crowds, and always to any other crowd."""

        def fit_once(method: Method, crowd: Crowd, X: Any = None, **options: Any) -> Any:
            if X is not None or not any(crowd is shared for shared in crowds):
                return fit(method, crowd, X, **options)
            key = (type(method), str(method.get_params()), str(options), id(crowd))
            if key not in self._fits:
                self._fits[key] = fit(method, crowd, **options)
            return self._fits[key]

        return fit_once


@pytest.fixture(scope="module")
def obeys(pytestconfig: pytest.Config) -> Callable[..., None]:
    """Try a method under a law on several crowds, unless it says that it breaks the law, or needs what is not there.

    The fast tier tries the first crowd only.
    """
    shared, is_fast = SharedFits(), pytestconfig.getoption("--fast")

    def try_it(
        method: Method, law: str, laws: dict[str, Callable[[Any, Crowd], None]], crowds: Iterable[Crowd]
    ) -> None:
        if law in method.breaks:
            pytest.skip(f"{method.name} breaks this law by design: {method.breaks[law]}")
        crowd_list = list(crowds)
        module = sys.modules[laws[law].__module__]
        with pytest.MonkeyPatch.context() as patch:
            if law not in LAWS_OF_FITS:
                patch.setattr(module, "_fit", shared.wrap(vars(module)["_fit"], crowd_list))
            for crowd in crowd_list[:1] if is_fast or law == LAW_WITHOUT_CROWD else crowd_list:
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
