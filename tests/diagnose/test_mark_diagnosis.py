"""Diagnosis of marks: planted workers are flagged, and agreement is the pairwise F1 score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import (
    BoxConsensus,
    BoxCrowd,
    PolygonConsensus,
    diagnose_marks,
    simulate_boxes,
    simulate_points,
    simulate_polygons,
    simulate_spans,
)
from wisecrowd.diagnose.mark_agreement import compute_pairwise_agreement
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


@pytest.fixture(scope="module")
def habits() -> BoxCrowd:
    """Boxes of ten workers; w0 draws to the right, w1 halves objects, w2 boxes pairs of neighbours, w3 exchanges classes."""
    rng = np.random.default_rng(1)
    rows = []
    for task in range(80):
        left = rng.uniform(0, 400, 2)
        boxes = [(*left, 60.0, 40.0, "cat"), (left[0] + 64, left[1], 60.0, 40.0, "dog")]
        for worker in rng.choice(10, 6, replace=False):
            for x, y, width, height, label in boxes:
                noisy = (x + rng.normal(0, 1), y + rng.normal(0, 1), width, height, label)
                if worker == 0:
                    rows.append((task, "w0", noisy[0] + 12, *noisy[1:]))
                elif worker == 1:
                    rows += [
                        (task, "w1", *noisy[:2], 28.0, height, label),
                        (task, "w1", noisy[0] + 30, noisy[1], 28.0, height, label),
                    ]
                elif worker == 3:
                    rows.append((task, "w3", *noisy[:4], "dog" if label == "cat" else "cat"))
                elif worker != 2:
                    rows.append((task, f"w{worker}", *noisy))
            if worker == 2:
                rows.append((task, "w2", *left, 124.0, 40.0, "cat"))
    return BoxCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "x", "y", "width", "height", "label"]))


def test_shifts_parts_and_confusions_are_flagged(habits: BoxCrowd) -> None:
    workers = diagnose_marks(habits).workers
    flags = workers["flags"]
    assert "shifted" in flags["w0"]
    assert "to the right" in workers["why"]["w0"]
    assert "splits" in flags["w1"]
    assert "merges" in flags["w2"]
    assert "confuses" in flags["w3"]
    assert workers["confuses"]["w3"] in ("cat → dog 100%", "dog → cat 100%")
    assert (flags.drop(["w0", "w1", "w2", "w3"]) == "").all()


def test_expected_scores_are_those_of_the_confidence(habits: BoxCrowd) -> None:
    result = diagnose_marks(habits)
    candidates = result.model.candidates_
    chosen = candidates["chosen"]
    hits = candidates["confidence"][chosen].sum()
    assert result.expected_scores["precision"] == pytest.approx(hits / chosen.sum())
    assert result.expected_scores["recall"] == pytest.approx(hits / candidates["confidence"].sum())
    assert result.overview["expected_recall"] == pytest.approx(result.expected_scores["recall"], abs=1e-4)


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


def test_polygons_are_compared_once_with_each_other_and_once_with_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.data import mark_matches

    crowd = simulate_polygons(n_tasks=8, n_workers=6, random_state=0).crowd
    model = PolygonConsensus().fit(crowd)
    calls: list[int | None] = []
    find_pairs = mark_matches.find_polygon_pairs

    def count_calls(*words: Any, n_marks: int | None = None) -> Any:
        calls.append(n_marks)
        return find_pairs(*words, n_marks=n_marks)

    monkeypatch.setattr(mark_matches, "find_polygon_pairs", count_calls)
    diagnosis = diagnose_marks(crowd, model=model)
    assert diagnosis.overview["workers"] == 6
    assert sorted(calls, key=str) == [crowd.n_marks, None]
    assert diagnosis.agreement.f1 == compute_pairwise_agreement(crowd).f1
