"""Boxes have positive sides."""

from __future__ import annotations

import pytest

from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.errors import InputError


@pytest.mark.parametrize("width", [0, -2, float("inf")])
def test_sides_are_positive(width: float) -> None:
    with pytest.raises(InputError, match="invalid box"):
        BoxCrowd.from_frame({"task": [1], "worker": [1], "x": [0], "y": [0], "width": [width], "height": [1]})


def test_boxes_without_a_class_are_boxes() -> None:
    crowd = BoxCrowd.from_frame({"task": [1], "worker": [1], "x": [-3], "y": [0], "width": [1], "height": [1]})
    assert crowd.classes.tolist() == ["box"]
