"""The machine: settings, unanimity, and the majority model."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregate.structured._geometry import BoxGeometry
from wisecrowd.aggregate.structured._machine import ConsensusSettings, find_consensus
from wisecrowd.errors import UsageError
from wisecrowd.simulate.marks import simulate_boxes

SETTINGS = ConsensusSettings("detection", 0.5, 2, 10.0, 500, 1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "quorum"}, "model"),
        ({"min_similarity": 0.0}, "min_similarity must be above 0"),
        ({"n_rounds": 0}, "n_rounds must be 1 or more"),
        ({"shrinkage": -1.0}, "shrinkage must be 0 or more"),
    ],
)
def test_invalid_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SETTINGS._replace(**change).check()  # type: ignore[arg-type]  # the mistake


def test_shares_of_workers_are_the_probabilities_of_the_majority_model() -> None:
    crowd = simulate_boxes(n_tasks=20, n_workers=6, votes_per_task=4, n_classes=2, random_state=1).crowd
    inference = find_consensus(crowd, BoxGeometry(), SETTINGS._replace(model="majority"))
    objects = inference.objects
    assert objects.class_probs.sum(axis=1) == pytest.approx(objects.n_marks / 4)
    assert objects.n_marks.sum() == crowd.n_marks
    assert inference.n_iter == 0
    assert np.nanmax(inference.workers.detection_rate) <= 1


def test_workers_who_draw_too_large_are_seen() -> None:
    simulation = simulate_boxes(n_tasks=100, n_workers=5, boundary_error=0.02, random_state=2)
    frame = simulation.crowd.to_frame()
    is_large = frame["worker"] == "w3"
    for side, corner in (("width", "x"), ("height", "y")):
        frame.loc[is_large, corner] -= 0.1 * frame.loc[is_large, side]
        frame.loc[is_large, side] *= 1.2
    ratio = find_consensus(type(simulation.crowd).from_frame(frame), BoxGeometry(), SETTINGS).workers.size_ratio
    assert ratio.argmax() == 3
    assert ratio[3] == pytest.approx(1.44, abs=0.15)
    assert np.delete(ratio, 3) == pytest.approx(np.ones(4), abs=0.15)
