"""Every aggregator against every law, on several crowds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wisecrowd.base.laws import LAWS
from wisecrowd.base.registry import methods
from wisecrowd.data.crowd import Crowd


@pytest.fixture(scope="module")
def crowds(crowd_of: Callable[..., Crowd]) -> dict[str, Crowd]:
    return {
        "sparse": crowd_of(0, 60, 12, 3, 0.25, 0.5, 0.9),
        "dense": crowd_of(1, 20, 7, 2, 0.9, 0.4, 0.8),
        "many classes": crowd_of(2, 40, 15, 6, 0.3, 0.6, 1.0),
    }


#: Methods that average numbers have laws of their own.
CATEGORICAL = [name for name, method in methods("aggregate").items() if "categorical" in method.answer_types]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", CATEGORICAL)
def test_every_method_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], crowds: dict[str, Crowd]
) -> None:
    method = methods("aggregate")[name]()
    obeys(method, law, LAWS, crowds.values())
