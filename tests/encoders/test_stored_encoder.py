"""Encoders from saved arrays."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.encoders.stored_encoder import ENCODERS, restore_encoder


def test_unknown_and_incomplete_encoders_are_refused() -> None:
    with pytest.raises(ValueError, match="no encoder is called 'sound'"):
        restore_encoder({"kind": np.array("sound")})
    with pytest.raises(ValueError, match="no encoder is called"):
        restore_encoder({})
    for kind in ENCODERS:
        with pytest.raises(ValueError, match="of the encoder is missing"):
            restore_encoder({"kind": np.array(kind)})
