"""Agreement on marks: F1 scores by hand, and alpha for unitizing against alpha of single positions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BoxCrowd, SpanCrowd, krippendorff_alpha, simulate_points, simulate_spans
from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.mark_agreement import HALF_IOU, compute_alpha_u, compute_pairwise_agreement


def test_f1_scores_depend_on_the_similarity() -> None:
    frame = {"task": ["d"] * 4, "worker": ["x", "x", "y", "y"], "start": [0, 5, 0, 5], "end": [3, 6, 2, 6]}
    crowd = SpanCrowd.from_frame(frame)
    assert compute_pairwise_agreement(crowd).f1 == 1
    assert compute_pairwise_agreement(crowd, min_similarity=1.0).f1 == 0.5
    assert compute_pairwise_agreement(crowd, min_similarity=1.0).worker_f1.tolist() == [0.5, 0.5]


def test_mean_iou_and_half_iou_of_boxes() -> None:
    frame = {"task": [1, 1], "worker": [1, 2], "x": [0, 0], "y": [0, 0], "width": [2, 1], "height": [2, 2]}
    agreement = compute_pairwise_agreement(BoxCrowd.from_frame(frame), min_similarity=HALF_IOU)
    assert (agreement.f1, agreement.mean_iou) == (1, pytest.approx(0.5))


def test_points_have_no_iou_and_a_single_worker_no_agreement() -> None:
    crowd = simulate_points(n_tasks=20, n_workers=5, random_state=0).crowd
    agreement = compute_pairwise_agreement(crowd, radius=15.0)
    assert agreement.f1 > 0.5
    assert np.isnan(agreement.mean_iou)
    assert np.isnan(compute_pairwise_agreement(crowd.take(crowd.worker == 0), radius=15.0).f1)


def test_alpha_u_is_alpha_of_positions() -> None:
    crowd = simulate_spans(n_tasks=12, n_workers=5, votes_per_task=3, n_classes=1, random_state=2).crowd
    lengths = np.full(crowd.n_tasks, 150)
    rows = []
    for number in range(crowd.n_votes):
        marked = np.zeros(150, dtype=int)
        for start, end in crowd.coordinates[crowd.offset[number] : crowd.offset[number + 1]].astype(int):
            marked[start:end] = 1
        rows += [(crowd.task[number] * 150 + place, crowd.worker[number], value) for place, value in enumerate(marked)]
    votes = pd.DataFrame(rows, columns=["task", "worker", "label"])
    expected = float(krippendorff_alpha(Crowd.from_frame(votes)))
    assert compute_alpha_u(crowd, lengths) == pytest.approx(expected, abs=1e-9)


def test_alpha_u_counts_overlapping_spans_of_a_worker_once() -> None:
    frame = {"task": ["d"] * 3, "worker": ["x", "x", "y"], "start": [0, 1, 0], "end": [3, 5, 5]}
    assert compute_alpha_u(SpanCrowd.from_frame(frame), np.array([20])) == pytest.approx(1)


def test_alpha_u_is_undefined_without_comparable_texts() -> None:
    crowd = SpanCrowd.from_frame({"task": ["d", "e"], "worker": ["x", "y"], "start": [0, 0], "end": [2, 2]})
    assert np.isnan(compute_alpha_u(crowd))


def test_other_classes_disagree() -> None:
    frame = {"task": ["d"] * 2, "worker": ["x", "y"], "start": [0, 0], "end": [2, 2], "label": ["A", "B"]}
    assert compute_alpha_u(SpanCrowd.from_frame(frame), np.array([10])) < 0
