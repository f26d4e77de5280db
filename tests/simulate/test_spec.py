from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate import spec


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("noisy", ("noisy", ())),
        ("noisy()", ("noisy", ())),
        (" noisy ( 0.7 , 1e-1 ) ", ("noisy", (0.7, 0.1))),
        ("one-button(2)", ("one-button", (2.0,))),
    ],
)
def test_parse(text: str, parsed: tuple[str, tuple[float, ...]]) -> None:
    assert spec.parse_spec(text, "kind") == parsed


@pytest.mark.parametrize("text", ["", "noisy(", "noisy(a)", "noisy(1,)", "(1)", "noisy 0.7", "a(1)b"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must read like 'name'"):
        spec.parse_spec(text, "worker kind")


def test_unknown_names_and_too_many_numbers_come_with_advice() -> None:
    with pytest.raises(UsageError, match="Did you mean 'plus'"):
        spec.call_spec({"plus": lambda x: x}, "step", "plsu", 1)
    with pytest.raises(UsageError, match=r"has 2 numbers, but 'plus' takes at most 1 \(by\)"):
        spec.call_spec({"plus": lambda x, by=1.0: x + by}, "step", "plus(1, 2)", 1)
    with pytest.raises(UsageError, match="takes none"):
        spec.call_spec({"same": lambda x: x}, "step", "same(1)", 1)


@pytest.mark.parametrize("values", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], [0.0, 0.0]])
def test_only_distributions_are_let_in(values: list[float]) -> None:
    with pytest.raises(UsageError, match="prior must hold probabilities"):
        spec.check_distributions(values, "prior", (2,))


def test_distributions_are_copies_of_the_wanted_shape() -> None:
    given = np.array([0.5, 0.5])
    spec.check_distributions(given, "prior", (None,))[0] = 9
    assert given.tolist() == [0.5, 0.5]
    with pytest.raises(UsageError, match=r"must have the shape \(any, 3\); got \(1, 2\)"):
        spec.check_distributions([[0.5, 0.5]], "confusion", (None, 3))
