"""Every learner against every law: those of aggregators, and those of learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wisecrowd.base import Learner
from wisecrowd.crowd import Crowd
from wisecrowd.laws import broken_by, laws_of
from wisecrowd.registry import methods


def crowd_of(seed: int, n_tasks: int, n_workers: int, n_classes: int, density: float) -> Crowd:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    truth = rng.integers(n_classes, size=n_tasks)
    right = rng.random(len(task)) < rng.uniform(0.5, 0.9, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(n_classes, size=len(task)))
    return Crowd(task, worker, label, tasks=[f"t{i:03d}" for i in range(n_tasks)],
                 workers=[f"w{i:02d}" for i in range(n_workers)], classes=[f"c{i}" for i in range(n_classes)])  # fmt: skip


CROWDS = {"sparse": crowd_of(0, 40, 10, 3, 0.3), "dense": crowd_of(1, 20, 6, 2, 0.9)}

LAWS = laws_of(Learner)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", methods("learn"))
def test_every_learner_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], quick: Callable[[str], Learner]
) -> None:
    """A law holds wherever an iteration stops."""
    obeys(quick(name), law, LAWS, CROWDS.values())


@pytest.mark.parametrize("name", methods("learn"))
def test_what_is_broken_by_design_has_a_name_and_a_reason(name: str) -> None:
    breaks = getattr(methods("learn")[name], "breaks", {})
    assert set(breaks) <= set(LAWS)
    assert all(len(reason) > 15 for reason in breaks.values())


def test_a_learner_that_peeks_at_its_neighbours_is_caught() -> None:
    class Peeking(methods("learn")["raykar"]):  # type: ignore[misc]  # a class found by name
        def _predict_proba(self, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return super()._predict_proba(X - X.mean(axis=0))

    assert "rows_are_predicted_one_by_one" in broken_by(Peeking(), CROWDS["dense"])
