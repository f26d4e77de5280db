"""Every completer against every law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wisecrowd.completion import Answers, Completer
from wisecrowd.completion_laws import COMPLETER_LAWS
from wisecrowd.crowd import Crowd
from wisecrowd.registry import methods


def crowd_of(seed: int, n_tasks: int, n_workers: int, n_classes: int, density: float) -> Crowd:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    truth = rng.integers(n_classes, size=n_tasks)
    right = rng.random(len(task)) < rng.uniform(0.5, 0.9, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(n_classes, size=len(task)))
    return Crowd(task, worker, label, tasks=[f"t{i:03d}" for i in range(n_tasks)],
                 workers=[f"w{i:02d}" for i in range(n_workers)], classes=[f"c{i}" for i in range(n_classes)])  # fmt: skip


CROWDS = {"sparse": crowd_of(0, 40, 10, 3, 0.3), "dense": crowd_of(1, 20, 6, 2, 0.8)}


@pytest.mark.parametrize("law", COMPLETER_LAWS)
@pytest.mark.parametrize("name", methods("complete"))
def test_every_completer_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], quick: Callable[[str], Completer]
) -> None:
    obeys(quick(name), law, COMPLETER_LAWS, CROWDS.values())


@pytest.mark.parametrize("name", methods("complete"))
def test_what_is_broken_by_design_has_a_name_and_a_reason(name: str) -> None:
    breaks = getattr(methods("complete")[name], "breaks", {})
    assert set(breaks) <= set(COMPLETER_LAWS)
    assert all(len(reason) > 15 for reason in breaks.values())


def test_a_completer_that_prefers_the_first_class_is_caught() -> None:
    class First(methods("complete")["gmv"]):  # type: ignore[misc]  # a class found by name
        def _said(self, tasks: np.ndarray[Any, Any], workers: np.ndarray[Any, Any]) -> Answers:
            said = np.zeros((len(tasks), len(workers), len(self.classes_)))
            said[:, :, 0] = 1
            return Answers(said)

    with pytest.raises(AssertionError, match="renaming classes"):
        COMPLETER_LAWS["class_names_do_not_matter"](First(), CROWDS["dense"])
