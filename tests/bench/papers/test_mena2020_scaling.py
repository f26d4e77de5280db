"""Time of a pass by the number of workers."""

from __future__ import annotations

from wisecrowd.bench.papers._mena import (
    TEST,
    MenaLearner,
)
from wisecrowd.bench.papers.mena2020_scaling import MEMORY, PASS, Scaling
from wisecrowd.io.datasets import Dataset


def test_scaling_measures_something(small: Dataset) -> None:
    found = Scaling(MenaLearner("cmm", network=False), whole=True)(small, 0)
    assert found[MEMORY] > 0.01
    assert found[PASS] < 5000
    assert found[TEST] > 0.85
