"""Boxes: figures on real boxes, calibrated confidence and recovered workers on simulated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BoxConsensus, BoxCrowd, simulate_boxes
from wisecrowd.evaluate.object_metrics import score_objects


@pytest.fixture(scope="module")
def real_boxes(answer_types_folder: Path) -> tuple[BoxCrowd, pd.DataFrame]:
    folder = answer_types_folder / "boxes_praznat"
    tables = {name: pd.read_parquet(folder / f"{name}.parquet") for name in ("boxes", "assignments", "truth_boxes")}
    return BoxCrowd.from_frame(tables["boxes"], assignments=tables["assignments"]), tables["truth_boxes"]


@pytest.mark.data
def test_real_boxes_reach_what_no_quorum_reaches(real_boxes: tuple[BoxCrowd, pd.DataFrame]) -> None:
    """The best of all quorums, chosen with the truth, has an F1 score of 0.783 in the reference figures."""
    crowd, truth = real_boxes
    assert score_objects(BoxConsensus().fit(crowd).objects_, truth, kind="boxes").f1 >= 0.785
    majority = BoxConsensus(model="majority", threshold="half").fit(crowd).objects_
    assert score_objects(majority, truth, kind="boxes").f1 < 0.75


@pytest.mark.data
@pytest.mark.parametrize("min_similarity", [0.4, 0.6])
def test_the_similarity_from_which_boxes_are_one_hardly_matters(
    real_boxes: tuple[BoxCrowd, pd.DataFrame], min_similarity: float
) -> None:
    crowd, truth = real_boxes
    objects = BoxConsensus(min_similarity=min_similarity).fit(crowd).objects_
    assert score_objects(objects, truth, kind="boxes").f1 >= 0.785


@pytest.mark.parametrize("options", [{}, {"votes_per_task": 3}, {"difficult_share": 0.4}, {"n_classes": 3}], ids=str)
@pytest.mark.slow
def test_confidence_is_calibrated_and_workers_are_recovered(options: dict[str, float]) -> None:
    simulation = simulate_boxes(n_tasks=400, random_state=1, **options)  # type: ignore[arg-type]  # mixed types
    fitted = BoxConsensus().fit(simulation.crowd)
    candidates = fitted.candidates_
    score = score_objects(candidates, simulation.truth, kind="boxes")
    confidence = candidates["confidence"].to_numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.abs(np.bincount(bins, confidence - score.is_match, minlength=10))
    assert gaps.sum() / len(confidence) <= 0.05
    workers = fitted.workers_
    for name, tolerance in (("detection_rate", 0.06), ("boundary_error", 0.02)):
        error = np.abs(workers[name] - simulation.workers[name]).mean()
        assert error <= tolerance, name
    assert np.corrcoef(workers["false_alarms"], simulation.workers["false_alarms"])[0, 1] > 0.6


def test_a_worker_who_marks_at_random_does_not_make_objects() -> None:
    simulation = simulate_boxes(n_tasks=200, n_workers=6, votes_per_task=4, random_state=2)
    rng = np.random.default_rng(0)
    n = 800
    noise = pd.DataFrame(
        {
            "task": rng.choice(simulation.crowd.tasks, n), "worker": "spam",
            "x": rng.uniform(0, 900, n), "y": rng.uniform(0, 900, n),
            "width": 60.0, "height": 60.0, "label": "box",
        }
    )  # fmt: skip
    crowd = BoxCrowd.from_frame(pd.concat([simulation.crowd.to_frame(), noise]))
    fitted = BoxConsensus().fit(crowd)
    assert score_objects(fitted.objects_, simulation.truth, kind="boxes").f1 > 0.95
    assert fitted.workers_["false_alarms"].idxmax() == "spam"
    assert fitted.workers_["detection_rate"].idxmin() == "spam"
