"""Points are finite."""

from __future__ import annotations

import pytest

from wisecrowd.data.points import PointCrowd
from wisecrowd.errors import InputError


def test_points_are_finite() -> None:
    assert PointCrowd.from_frame({"task": [1], "worker": [1], "x": [-3], "y": [0.5]}).n_marks == 1
    with pytest.raises(InputError, match="invalid point"):
        PointCrowd.from_frame({"task": [1], "worker": [1], "x": [float("inf")], "y": [0.5]})
