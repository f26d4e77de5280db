"""Every learner against every law: those of aggregators, and those of learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wisecrowd.base.laws import find_broken_laws, get_laws
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import methods
from wisecrowd.data.crowd import Crowd


@pytest.fixture(scope="module")
def crowds(crowd_of: Callable[..., Crowd]) -> dict[str, Crowd]:
    return {"sparse": crowd_of(0, 40, 10, 3, 0.3), "dense": crowd_of(1, 20, 6, 2, 0.9)}


LAWS = get_laws(Learner)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", methods("learn"))
def test_every_learner_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], crowds: dict[str, Crowd], quick: Callable[[str], Learner]
) -> None:
    """A law holds wherever an iteration stops."""
    obeys(quick(name), law, LAWS, crowds.values())


def test_a_learner_that_peeks_at_its_neighbours_is_caught(crowds: dict[str, Crowd]) -> None:
    class Peeking(methods("learn")["raykar"]):  # type: ignore[misc]  # a class found by name
        def _predict_proba(self, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return super()._predict_proba(X - X.mean(axis=0))

    assert "rows_are_predicted_one_by_one" in find_broken_laws(Peeking(), crowds["dense"])
