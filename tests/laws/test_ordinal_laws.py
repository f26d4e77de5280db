"""Every aggregator of ordered classes against every law, on several crowds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wisecrowd.base.laws import LAWS
from wisecrowd.base.registry import methods
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.simulate.ratings import simulate_ratings

#: Methods that take ordered classes only; the others are checked in `test_laws`, where classes have no order.
ORDINAL = [
    name
    for name, method in methods("aggregate").items()
    if "ordinal" in method.answer_types and "categorical" not in method.answer_types
]


@pytest.fixture(scope="module")
def crowds(crowd_of: Callable[..., Crowd]) -> dict[str, Crowd]:
    return {
        "ratings": simulate_ratings(n_tasks=40, n_workers=10, n_classes=5, votes_per_task=4).crowd,
        "two classes": crowd_of(1, 20, 7, 2, 0.9, 0.4, 0.8).replace_fields(ordered=True),
        "random errors": crowd_of(2, 40, 15, 6, 0.3, 0.6, 1.0).replace_fields(ordered=True),
    }


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "ordinal-dawid-skene" else [pytest.mark.slow]) for name in ORDINAL]
)
def test_every_method_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], crowds: dict[str, Crowd]
) -> None:
    obeys(methods("aggregate")[name](), law, LAWS, crowds.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDINAL)
def test_the_direction_of_the_order_is_irrelevant(name: str, crowds: dict[str, Crowd]) -> None:
    method = methods("aggregate")[name]
    for crowd in crowds.values():
        assert crowd.classes is not None
        backwards = crowd.replace_fields(label=crowd.n_classes - 1 - crowd.label, classes=crowd.classes[::-1])
        with ignore_fit_warnings():
            fitted, other = (method().fit(votes) for votes in (crowd, backwards))  # type: ignore[attr-defined]
        assert np.allclose(other.posterior_[:, ::-1], fitted.posterior_, atol=1e-6)


def test_all_ordinal_methods_are_here() -> None:
    assert {"graded-response", "ordinal-dawid-skene", "rater-mean"} <= set(ORDINAL)
