"""Diagnosis of marks: planted workers are flagged, and agreement is the pairwise F1 score."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BoxConsensus, BoxCrowd, diagnose_marks, simulate_boxes, simulate_points, simulate_spans
from wisecrowd.errors import InputError, UsageError


@pytest.fixture(scope="module")
def planted() -> BoxCrowd:
    """Boxes of ten workers; w0 misses most, w1 is silent, w2 draws too large, w3 is imprecise, w4 marks at random."""
    rng = np.random.default_rng(0)
    crowd = simulate_boxes(n_tasks=150, n_workers=10, votes_per_task=6, worker_spread=0.1, random_state=4).crowd
    frame = crowd.to_frame()
    is_hit = frame["x"].notna()
    dropped = ((frame["worker"] == "w0") & (rng.random(len(frame)) < 0.8)) | (frame["worker"] == "w1")
    frame.loc[dropped, ["x", "y", "width", "height", "label"]] = None
    large = (frame["worker"] == "w2") & is_hit
    frame.loc[large, ["x", "y"]] -= 0.15 * frame.loc[large, ["width", "height"]].to_numpy()
    frame.loc[large, ["width", "height"]] *= 1.3
    rough = (frame["worker"] == "w3") & is_hit
    frame.loc[rough, ["x", "y"]] += (
        0.15 * rng.standard_normal((rough.sum(), 2)) * frame.loc[rough, ["width", "height"]].to_numpy()
    )
    noise = (frame["worker"] == "w4") & is_hit
    frame.loc[noise, ["x", "y"]] = rng.uniform(0, 800, (noise.sum(), 2))
    return BoxCrowd.from_frame(frame)


def test_planted_workers_are_flagged(planted: BoxCrowd) -> None:
    workers = diagnose_marks(planted).workers
    flags = workers["flags"]
    assert flags["w0"] == "misses"
    assert flags["w1"] == "silent"
    assert "too-large" in flags["w2"]
    assert "imprecise" in flags["w3"]
    assert "false-alarms" in flags["w4"]
    assert (flags.drop(["w0", "w1", "w2", "w3", "w4"]) == "").all()
    assert "of the objects" in workers["why"]["w0"]


def test_agreement_is_the_pairwise_f1_score() -> None:
    spans = pd.DataFrame(
        [("d", "x", 0, 2), ("d", "x", 5, 6), ("d", "y", 0, 2), ("e", "x", 0, 1), ("e", "y", 3, 4)],
        columns=["task", "worker", "start", "end"],
    )
    from wisecrowd import SpanCrowd

    result = diagnose_marks(SpanCrowd.from_frame(spans))
    assert result.overview["agreement"] == pytest.approx(2 * 1 / (3 + 2))
    assert result.workers["agreement"].tolist() == pytest.approx([0.4, 0.4])


@pytest.mark.parametrize("simulate", [simulate_boxes, simulate_points, simulate_spans])
def test_all_kinds_have_an_overview(simulate: object) -> None:
    crowd = simulate(n_tasks=40, n_workers=6, random_state=1).crowd  # type: ignore[operator]  # a function
    result = diagnose_marks(crowd)
    assert 0.5 < result.overview["agreement"] < 1
    assert result.tasks["expected_f1"].is_monotonic_increasing
    assert "pairwise F1" in repr(result)
    assert "worker" in result._repr_html_()


def test_models_and_votes_of_other_types_are_refused() -> None:
    crowd = simulate_boxes(n_tasks=10, n_workers=5).crowd
    assert diagnose_marks(crowd, model=BoxConsensus().fit(crowd)).overview["tasks"] == 10
    with pytest.raises(UsageError, match="must infer objects"):
        diagnose_marks(crowd, model="dawid-skene")
    with pytest.raises(InputError, match="expected a BoxCrowd"):
        diagnose_marks({"task": [1]})  # type: ignore[arg-type]  # the mistake
