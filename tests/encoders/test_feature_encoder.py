"""All encoders have the same interface."""

from __future__ import annotations

import pytest

from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.encoders.stored_encoder import ENCODERS


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_implement_the_interface(kind: str) -> None:
    assert issubclass(ENCODERS[kind], FeatureEncoder)
    assert ENCODERS[kind].kind == kind
    assert not ENCODERS[kind].__abstractmethods__
