"""Points: simulated objects are found, and the radius is estimated or given."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import PointConsensus, simulate_points
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.object_metrics import score_objects


def test_points_are_found_with_calibrated_confidence() -> None:
    simulation = simulate_points(n_tasks=300, random_state=1)
    fitted = PointConsensus().fit(simulation.crowd)
    assert score_objects(fitted.objects_, simulation.truth, kind="points", radius=15).f1 > 0.97
    candidates = fitted.candidates_
    score = score_objects(candidates, simulation.truth, kind="points", radius=15)
    confidence = candidates["confidence"].to_numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    assert np.abs(np.bincount(bins, confidence - score.is_match)).sum() / len(bins) <= 0.05


def test_false_alarms_do_not_widen_the_radius() -> None:
    # Less than half of the nearest points of two workers are the same object.
    simulation = simulate_points(n_tasks=100, false_alarms=1.0, detection_rate=0.6, random_state=0)
    fitted = PointConsensus().fit(simulation.crowd)
    assert fitted.radius_ < 40
    assert score_objects(fitted.objects_, simulation.truth, kind="points", radius=15).f1 > 0.85


@pytest.mark.slow
def test_the_radius_can_be_given() -> None:
    crowd = simulate_points(n_tasks=50, random_state=2).crowd
    assert PointConsensus(radius=20).fit(crowd).radius_ == 20
    narrow = PointConsensus(radius=0.5).fit(crowd)
    assert len(narrow.candidates_) > 2 * len(PointConsensus().fit(crowd).candidates_)
    with pytest.raises(UsageError, match="radius must be positive"):
        PointConsensus(radius=0.0).fit(crowd)
