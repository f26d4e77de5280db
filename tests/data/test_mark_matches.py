"""Matches between marks and objects."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd
from wisecrowd import BoxCrowd, PointCrowd, PolygonCrowd, SpanCrowd
from wisecrowd.data.mark_matches import find_mark_pairs, find_overlaps, match_marks
from wisecrowd.data.polygon_rings import parse_polygons

FRAME = {"task": ["d"] * 3, "worker": ["ann", "ann", "bob"], "start": [0, 3, 0], "end": [2, 4, 4]}


def test_a_mark_goes_to_its_most_similar_object() -> None:
    crowd = SpanCrowd.from_frame(FRAME)
    matches = match_marks(crowd, np.zeros(2, int), np.array([[0.0, 2], [0.0, 4]]))
    places = {
        tuple(crowd.coordinates[mark]): int(target) for mark, target in zip(matches.mark, matches.target, strict=True)
    }
    assert places == {(0, 2): 0, (0, 4): 1}  # (3, 4) has a Dice coefficient of 0.4 with the second


def test_a_worker_has_one_mark_per_object() -> None:
    frame = {"task": ["d"] * 2, "worker": ["ann"] * 2, "start": [0, 0], "end": [3, 4]}
    matches = match_marks(SpanCrowd.from_frame(frame), np.zeros(1, int), np.array([[0.0, 4]]))
    assert matches.similarity.tolist() == [1.0]


def test_objects_of_other_tasks_do_not_match() -> None:
    crowd = SpanCrowd.from_frame(FRAME | {"task": ["d", "e", "e"]})
    assert crowd.mark_task[match_marks(crowd, np.array([1]), np.array([[0.0, 4]])).mark].tolist() == [1]


def test_overlaps_have_all_objects_of_a_mark() -> None:
    crowd = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [0], "end": [10]})
    overlaps = find_overlaps(crowd, np.zeros(3, int), np.array([[0.0, 1], [4.0, 5], [10.0, 11]]))
    assert overlaps.target.tolist() == [0, 1]


def test_boxes_and_points_match_by_their_own_similarity() -> None:
    boxes = BoxCrowd.from_frame({"task": [1], "worker": [1], "x": [0], "y": [0], "width": [2], "height": [2]})
    assert match_marks(boxes, np.zeros(1, int), np.array([[1.0, 0, 2, 2]])).similarity.tolist() == [0.5]
    points = PointCrowd.from_frame({"task": [1], "worker": [1], "x": [0], "y": [0]})
    near = match_marks(points, np.zeros(1, int), np.array([[3.0, 4]]), radius=5.0)
    assert near.similarity == pytest.approx([0.5])
    assert not len(match_marks(points, np.zeros(1, int), np.array([[3.0, 4]]), radius=4.0).mark)
    assert len(find_mark_pairs("boxes", np.zeros(2, int), np.array([[0.0, 0, 2, 2], [1.0, 0, 2, 2]])).first) == 1


def test_polygons_match_by_their_areas_and_not_by_their_boxes() -> None:
    upper, lower = [0, 0, 8, 0, 0, 8], [8, 8, 8, 0, 0, 8]  # two triangles with the same box
    crowd = PolygonCrowd.from_frame({"task": [1, 1], "worker": [1, 2], "polygon": [str(upper), str(lower)]})
    rings = parse_polygons([lower, upper])
    places = np.column_stack([rings.boxes, rings.area, [0.0, 1]])
    matches = match_marks(crowd, np.zeros(2, int), places, object_rings=rings)
    shape = {tuple(ring): number for number, ring in enumerate([tuple(map(tuple, r)) for r in rings.to_lists()])}
    own = [shape[tuple(map(tuple, ring))] for ring in crowd.get_rings().to_lists()]
    assert matches.target.tolist() == own
    assert matches.similarity.min() > 0.9
    nothing = match_marks(crowd, np.empty(0, int), np.empty((0, 6)), object_rings=parse_polygons([]))
    assert len(nothing.mark) == 0


def test_nothing_matches_nothing() -> None:
    crowd = SpanCrowd.from_frame(FRAME)
    assert len(match_marks(crowd, np.empty(0, int), np.empty((0, 2))).mark) == 0


@pytest.mark.parametrize("kind", ["boxes", "points", "polygons", "spans"])
def test_pairs_with_objects_are_those_among_all_pairs(kind: str) -> None:
    crowd = getattr(wisecrowd, f"simulate_{kind}")(n_tasks=6, n_workers=6, random_state=0).crowd
    task, half = np.asarray(crowd.mark_task), crowd.n_marks // 2
    words = (kind, task, crowd.coordinates, 8.0, crowd.get_rings())
    pairs, mixed = find_mark_pairs(*words), find_mark_pairs(*words, n_marks=half)
    is_mixed = (pairs.first < half) & (pairs.second >= half)
    for every, some in zip(pairs, mixed, strict=True):
        np.testing.assert_array_equal(every[is_mixed], some)
