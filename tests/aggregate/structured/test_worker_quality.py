"""Quality of workers by comparison with objects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.aggregate.structured import _worker_quality
from wisecrowd.aggregate.structured._worker_quality import assess_span_workers
from wisecrowd.base.mark_aggregator import InferredObjects
from wisecrowd.data.spans import SpanCrowd


def test_rates_are_shares_of_probable_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_worker_quality, "SHRINKAGE", 1e-9)
    rows = [("d", "x", 0, 2, "A"), ("d", "x", 4, 6, "B"), ("d", "x", 8, 9, "A"), ("d", "y", 0, 3, "B")]
    crowd = SpanCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]))
    # Two probable objects, and one that is not.
    objects = InferredObjects(
        np.zeros(3, np.int64),
        np.array([[0.0, 2], [4, 6], [8, 9]]),
        np.array([[1.0, 0], [0, 1.0], [0.1, 0]]),
        np.ones(3),
        np.ones(3),
    )
    quality = assess_span_workers(crowd, objects)
    assert quality.detection_rate == pytest.approx([1.0, 0.5])
    assert quality.false_alarms == pytest.approx([1.0, 0.0], abs=1e-6)
    assert quality.accuracy == pytest.approx([1.0, 0.0], abs=1e-6)
    assert quality.boundary_error == pytest.approx([0.0, 1.0], abs=1e-6)
    assert quality.size_ratio == pytest.approx([1.0, 1.5])
