"""How a method is tried under a law."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from wisecrowd.base import Inference
from wisecrowd.crowd import Crowd
from wisecrowd.errors import MissingExtra


@pytest.fixture(scope="session")
def obeys() -> Callable[..., None]:
    """Try a method under a law on several crowds, unless it says that it breaks the law, or needs what is not there."""

    def try_it(
        method: Inference, law: str, laws: dict[str, Callable[[Any, Crowd], None]], crowds: Iterable[Crowd]
    ) -> None:
        if law in method.breaks:
            pytest.skip(f"{method.name} breaks this law by design: {method.breaks[law]}")
        for crowd in crowds:
            try:
                laws[law](method, crowd)
            except MissingExtra as missing:
                pytest.skip(str(missing))

    return try_it
