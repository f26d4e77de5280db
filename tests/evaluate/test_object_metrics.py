"""Scores of objects: one-to-one matches, labels, thresholds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.object_metrics import score_objects

BOXES = pd.DataFrame({"task": [1, 1, 2], "x": [0, 10, 0], "y": [0, 0, 0], "width": [4, 4, 4], "height": [4, 4, 4]})


def test_equal_objects_match_and_others_do_not() -> None:
    score = score_objects(BOXES, BOXES.iloc[:2], kind="boxes")
    assert (score.precision, score.recall, score.f1) == (2 / 3, 1, 0.8)
    assert score.is_match.tolist() == [True, True, False]


def test_a_true_object_is_matched_once_and_matches_are_as_many_as_possible() -> None:
    near = BOXES.iloc[[0, 0]].assign(x=[0.0, 1.0])
    assert score_objects(near, BOXES.iloc[:1], kind="boxes").precision == 0.5
    # The first object could take either true one, the second only the first: both are matched.
    truth = BOXES.iloc[[0, 0]].assign(x=[0.0, 1.0])
    objects = BOXES.iloc[[0, 0]].assign(x=[0.4, -1.0])
    assert score_objects(objects, truth, kind="boxes").f1 == 1


def test_the_overlap_is_intersection_over_union() -> None:
    objects = BOXES.iloc[:1].assign(x=[1.0])  # 12 / 20 = 0.6
    assert score_objects(objects, BOXES.iloc[:1], kind="boxes", min_iou=0.6).f1 == 1
    assert score_objects(objects, BOXES.iloc[:1], kind="boxes", min_iou=0.61).f1 == 0


def test_spans_are_exact_and_labels_count() -> None:
    truth = pd.DataFrame({"task": ["d"] * 2, "start": [0, 5], "end": [3, 6], "label": ["A", "B"]})
    objects = truth.assign(label=["A", "A"], end=[3, 6])
    assert score_objects(objects, truth, kind="spans").f1 == 0.5
    assert score_objects(objects, truth, kind="spans", match_labels=False).f1 == 1
    assert score_objects(truth.assign(end=[4, 6]), truth, kind="spans").f1 == 0.5
    assert score_objects(truth.assign(end=[4, 6]), truth, kind="spans", min_iou=0.5).f1 == 1


def test_points_match_within_a_radius() -> None:
    truth = pd.DataFrame({"task": [1], "x": [0.0], "y": [0.0]})
    assert score_objects(truth.assign(x=3.0), truth, kind="points", radius=3).f1 == 1
    assert score_objects(truth.assign(x=3.1), truth, kind="points", radius=3).f1 == 0
    with pytest.raises(UsageError, match="positive radius"):
        score_objects(truth, truth, kind="points")


def test_nothing_has_no_score() -> None:
    score = score_objects(BOXES.iloc[:0], BOXES, kind="boxes")
    assert np.isnan(score.precision)
    assert score.recall == score.f1 == 0


def test_missing_columns_and_thresholds_are_refused() -> None:
    with pytest.raises(InputError, match="truth has no column 'width'"):
        score_objects(BOXES, BOXES.drop(columns="width"), kind="boxes")
    with pytest.raises(UsageError, match="min_iou must be above 0"):
        score_objects(BOXES, BOXES, kind="boxes", min_iou=0.0)
