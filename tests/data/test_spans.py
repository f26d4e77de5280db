"""Spans have whole offsets in order."""

from __future__ import annotations

import pytest

from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import InputError


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 2), (3, 1), (0.5, 2)])
def test_offsets_are_whole_and_in_order(start: float, end: float) -> None:
    with pytest.raises(InputError, match="0 ≤ start < end"):
        SpanCrowd.from_frame({"task": [1], "worker": [1], "start": [start], "end": [end]})


def test_spans_may_nest() -> None:
    crowd = SpanCrowd.from_frame({"task": [1, 1], "worker": [1, 1], "start": [0, 1], "end": [5, 2]})
    assert crowd.to_frame()[["start", "end"]].to_numpy().tolist() == [[0, 5], [1, 2]]
