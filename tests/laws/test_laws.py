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

#: Settings under which slow methods are quick; a law holds with any number of iterations and restarts.
QUICK: dict[str, dict[str, int]] = {
    "ebcc": {"n_init": 4},
    "mace": {"n_init": 3},
    "glad": {"max_iter": 10},
    "rasch": {"max_iter": 10},
    "two-pl": {"max_iter": 10},
    "dewsmv": {"max_iter": 20},
}
#: Methods that write to disk many times in each iteration on shards; two iterations show what a third would.
SLOW_IN_CHUNKS = ("glad", "rasch", "two-pl")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", CATEGORICAL)
def test_every_method_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], crowds: dict[str, Crowd]
) -> None:
    method = methods("aggregate")[name](**QUICK.get(name, {}))
    if law == "chunks_change_nothing" and name in SLOW_IN_CHUNKS:
        method.set_params(max_iter=2)
    obeys(method, law, LAWS, crowds.values())
