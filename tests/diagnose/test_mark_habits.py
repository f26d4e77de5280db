"""Habits of workers: planted shifts, splits, merges and confusions."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import BoxCrowd, PointCrowd, PolygonCrowd, SpanCrowd
from wisecrowd.data.polygon_rings import parse_polygons
from wisecrowd.diagnose.mark_habits import describe_habits

OBJECTS = np.array([[0.0, 0, 100, 50], [200.0, 0, 40, 40], [245.0, 0, 40, 40]])


def make_boxes(*boxes: tuple[float, float, float, float], label: str = "cat") -> BoxCrowd:
    x, y, width, height = zip(*boxes, strict=True)
    n = len(boxes)
    frame = {"task": ["t"] * n, "worker": ["ann"] * n, "x": x, "y": y, "width": width, "height": height}
    return BoxCrowd.from_frame(frame | {"label": [label] * n}, classes=["cat", "dog"])


def describe(crowd: BoxCrowd) -> dict[str, object]:
    return describe_habits(crowd, np.zeros(3, int), OBJECTS, np.zeros(3, int)).iloc[0].to_dict()


def test_two_parts_of_an_object_are_a_split() -> None:
    habits = describe(make_boxes((0, 0, 60, 50), (62, 0, 36, 50)))
    assert (habits["splits"], habits["merges"]) == (1, 0)


def test_parts_and_shifts_of_polygons() -> None:
    objects = parse_polygons([[0, 0, 100, 0, 100, 50, 0, 50]])
    places = np.column_stack([objects.boxes, objects.area, [0.0]])
    halves = ["[0, 0, 60, 0, 60, 50, 0, 50]", "[62, 0, 98, 0, 98, 50, 62, 50]", "[10, 0, 110, 0, 110, 50, 10, 50]"]
    crowd = PolygonCrowd.from_frame({"task": ["t"] * 3, "worker": ["ann", "ann", "bob"], "polygon": halves})
    habits = describe_habits(crowd, np.zeros(1, int), places, np.zeros(1, int), object_rings=objects)
    assert habits["splits"].tolist() == [1, 0]
    assert habits.loc["bob", "shift_x"] == pytest.approx(0.1)


def test_a_box_around_two_objects_is_a_merge() -> None:
    habits = describe(make_boxes((198, 0, 90, 42)))
    assert (habits["splits"], habits["merges"]) == (0, 1)


def test_an_object_inside_of_another_is_neither() -> None:
    objects = np.array([[0.0, 0, 100, 100], [10.0, 10, 20, 20]])
    crowd = make_boxes((0, 0, 100, 100), (10, 10, 20, 20))
    habits = describe_habits(crowd, np.zeros(2, int), objects, np.zeros(2, int)).iloc[0]
    assert (habits["splits"], habits["merges"]) == (0, 0)


def test_shifts_are_relative_to_the_size() -> None:
    habits = describe(make_boxes((10, 5, 100, 50), (204, 4, 40, 40)))
    assert habits["shift_x"] == pytest.approx(0.1)
    assert habits["shift_y"] == pytest.approx(0.1)
    assert habits["shift_x_error"] == pytest.approx(0)


def test_confusions_name_the_most_frequent_one() -> None:
    habits = describe(make_boxes(tuple(OBJECTS[0]), tuple(OBJECTS[1]), label="dog"))
    assert habits["confused_share"] == 1
    assert habits["confuses"] == "cat → dog 100%"
    assert describe(make_boxes(tuple(OBJECTS[0])))["confuses"] == ""


def test_points_and_spans_have_shifts_in_their_own_unit() -> None:
    points = PointCrowd.from_frame({"task": [1], "worker": [1], "x": [3], "y": [4]})
    habits = describe_habits(points, np.zeros(1, int), np.zeros((1, 2)), np.zeros(1, int), radius=10.0).iloc[0]
    assert (habits["shift_x"], habits["shift_y"]) == (3, 4)
    assert "splits" not in habits
    spans = SpanCrowd.from_frame({"task": [1], "worker": [1], "start": [3], "end": [8]})
    assert describe_habits(spans, np.zeros(1, int), np.array([[2.0, 7]]), np.zeros(1, int))["shift"].tolist() == [1]
