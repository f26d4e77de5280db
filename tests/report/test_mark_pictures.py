"""Pictures of disputed objects: shapes, colours, windows of texts, and lists."""

from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd import (
    BoxConsensus,
    BoxCrowd,
    PointConsensus,
    PolygonConsensus,
    PolygonCrowd,
    SpanConsensus,
    SpanCrowd,
    simulate_points,
)
from wisecrowd.report.mark_pictures import TaskMarks, describe_objects, draw_frame, draw_text, select_task_marks


@pytest.fixture(scope="module")
def boxes() -> TaskMarks:
    rows = [("i", f"w{number}", 10.0 + number, 20.0, 30.0, 40.0, "cat") for number in range(10)]
    rows.append(("i", "w0", 100.0, 100.0, 10.0, 10.0, "dog"))
    crowd = BoxCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "x", "y", "width", "height", "label"]))
    return select_task_marks(crowd, BoxConsensus().fit(crowd), "i")


def test_every_mark_is_a_shape_in_the_colour_of_its_worker(boxes: TaskMarks) -> None:
    picture = draw_frame(boxes)
    assert len(picture["shapes"]) == 11
    assert {shape["shape"] for shape in picture["shapes"]} == {"rect"}
    assert picture["legend"][0]["style"] == "g1"
    assert picture["legend"][8]["style"] == "g1 pic-dashed"  # colours repeat
    assert picture["shapes"][0]["title"] == "w0: cat"
    assert len(picture["results"]) == 2


def test_the_view_has_all_marks_or_the_image(boxes: TaskMarks) -> None:
    x, y, width, height = map(float, draw_frame(boxes)["view"].split())
    assert x < 10
    assert y < 20
    assert x + width > 110
    assert y + height > 110
    assert draw_frame(boxes, (640, 480), "data:image/png;base64,")["view"] == "0.0 0.0 640.0 480.0"


def test_objects_are_listed_with_their_workers(boxes: TaskMarks) -> None:
    objects = describe_objects(boxes)
    assert [row["number"] for row in objects] == [1, 2]
    by_label = {row["label"]: row for row in objects}
    assert by_label["dog"]["by"] == "1 of 10: w0"
    assert by_label["cat"]["chosen"]
    assert by_label["cat"]["place"] == ""


def test_points_are_circles() -> None:
    crowd = simulate_points(n_tasks=3, n_workers=4, votes_per_task=3, random_state=1).crowd
    model = PointConsensus().fit(crowd)
    picture = draw_frame(select_task_marks(crowd, model, crowd.tasks[0]))
    assert {shape["shape"] for shape in picture["shapes"]} == {"circle"}


def test_polygons_have_their_vertices() -> None:
    rings = ["[[0, 0], [8, 0], [0, 8]]", "[[0, 0], [8, 0], [0, 8]]", "[[90, 90], [98, 90], [90, 98]]"]
    crowd = PolygonCrowd.from_frame({"task": ["i", "i", "i"], "worker": ["ann", "bob", "bob"], "polygon": rings})
    marks = select_task_marks(crowd, PolygonConsensus().fit(crowd), "i")
    picture = draw_frame(marks)
    assert {shape["shape"] for shape in picture["shapes"] + picture["results"]} == {"polygon"}
    assert picture["shapes"][-1]["points"] == "90.0,90.0 98.0,90.0 90.0,98.0"
    assert sorted(sorted(names) for names in marks.workers) == [["ann", "bob"], ["bob"]]
    badges = sorted((shape["badge"]["x"], shape["badge"]["y"]) for shape in picture["results"])
    assert badges[0][0] < 10 < 80 < badges[1][0]  # beside the objects


@pytest.fixture(scope="module")
def spans() -> TaskMarks:
    rows = [("d", "ann", 1, 3, "LOC"), ("d", "bob", 1, 3, "LOC"), ("d", "cy", 2, 4, "PER"), ("d", "cy", 3, 4, "ORG")]
    crowd = SpanCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]))
    return select_task_marks(crowd, SpanConsensus().fit(crowd), "d")


def test_spans_of_tokens_are_marked_in_the_text(spans: TaskMarks) -> None:
    picture = draw_text(spans, ["in", "New", "York", "City", "now"])
    lines = {line["name"]: line["parts"] for line in picture["lines"]}
    assert ["".join(part["text"] for part in parts) for parts in lines.values()] == ["in New York City now"] * 4
    assert [(part["text"], part["label"]) for part in lines["ann"] if part["label"]] == [("New York", "LOC")]
    assert [(part["text"], part["label"]) for part in lines["cy"] if part["label"]] == [
        ("York ", "PER"),
        ("City", "PER, ORG"),
    ]


def test_spans_of_characters_are_marked_in_the_text(spans: TaskMarks) -> None:
    parts = draw_text(spans, "abcdef")["lines"][1]["parts"]
    assert [(part["text"], part["label"]) for part in parts] == [("a", ""), ("bc", "LOC"), ("def", "")]
    assert describe_objects(spans, "abcdef")[0]["place"].startswith("“")


def test_a_long_text_is_a_window_around_the_least_certain_span() -> None:
    rows = [("d", worker, 3000, 3004, "A") for worker in ("ann", "bob")]
    crowd = SpanCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]))
    marks = select_task_marks(crowd, SpanConsensus().fit(crowd), "d")
    picture = draw_text(marks, "x" * 3000 + "word" + "y" * 3000)
    text = "".join(part["text"] for part in picture["lines"][1]["parts"])
    assert picture["has_more"]
    assert len(text) == 900
    assert "xwordy" in text


def test_without_a_text_spans_are_bars(spans: TaskMarks) -> None:
    picture = draw_text(spans)
    assert picture["end"] == 4
    assert [bar["title"] for bar in picture["tracks"][1]["bars"]] == ["ann: 1–3 LOC"]
    assert {row["place"] for row in describe_objects(spans)} >= {"1–3"}
