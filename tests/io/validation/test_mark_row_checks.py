"""Checks of tables of marks: impossible rows, and marks outside of images and documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd import BoxCrowd, PointCrowd, PolygonCrowd, SpanCrowd, check_votes
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.validation.mark_row_checks import check_documents, check_images, check_mark_rows

BOXES = """task,worker,x,y,width,height,label
i1,ann,10,10,20,20,cat
i1,bob,10,10,-20,20,cat
i1,cy,10,,20,20,cat
i2,ann,ten,10,20,20,cat
i2,,10,10,20,20,cat
i2,bob,10,10,20,20,
i2,cy,,,,,
i2,dan,10,10,20,20,cat
i2,dan,10,10,20,20,cat
i3,ann,1e300,10,20,20,cat
i3,bob,10,10,20,20,cat
"""


def names(report: Any) -> dict[str, int]:
    return {finding.name: finding.count for finding in report.findings}


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    path = tmp_path / "boxes.csv"
    path.write_text(BOXES)
    return path


def test_one_report_lists_all_problems_of_boxes(boxes: Path) -> None:
    report = check_votes(boxes)
    found = names(report)
    for problem in (
        "negative-sizes",
        "partial-coordinates",
        "no-numbers",
        "missing-ids",
        "missing-labels",
        "repeated-marks",
        "extreme-coordinates",
    ):
        assert found[problem] == 1, problem
    assert {finding.name for finding in report.errors} == set(found) & {
        "negative-sizes", "partial-coordinates", "no-numbers", "missing-ids", "missing-labels", "extreme-coordinates",
    }  # fmt: skip
    assert "BoxCrowd(3 boxes" in report.summary  # the rest is checked, too


def test_rows_are_named(boxes: Path) -> None:
    finding = next(finding for finding in check_votes(boxes).errors if finding.name == "negative-sizes")
    assert finding.examples == (1,)
    assert finding.message == "1 box with a width or height of 0 or less (row 1)"


def test_spans_are_reversed_negative_or_fractional() -> None:
    table = {"task": ["d"] * 5, "worker": list("abcde"), "start": [3, -1, 0.5, 0, 2], "end": [3, 2, 2, 2, 4]}
    findings, is_sound = check_mark_rows(SpanCrowd, pa.table(table), {name: name for name in table})
    assert {finding.name: finding.examples for finding in findings} == {
        "reversed-spans": (0,),
        "negative-offsets": (1,),
        "fractional-offsets": (2,),
    }
    assert is_sound.tolist() == [False, False, False, True, True]


def test_polygons_need_points_that_enclose_an_area(tmp_path: Path) -> None:
    square = "[[0, 0], [4, 0], [4, 4], [0, 4]]"
    cells = [
        square,
        "[[0, 0], [4, 0]]",
        "a square",
        "[0, 0, 1, 1, 2, 2]",
        "[0, 0, 1e300, 0, 0, 4]",
        None,
        square,
        square,
    ]
    table = {"task": list("iiiiijjj"), "worker": list("abcdeabb"), "polygon": cells}
    findings, is_sound = check_mark_rows(PolygonCrowd, pa.table(table), {name: name for name in table})
    assert {finding.name: finding.examples for finding in findings if finding.severity == "error"} == {
        "no-polygons": (1, 2),
        "extreme-coordinates": (4,),
        "flat-polygons": (3,),
    }
    assert is_sound.tolist() == [True, False, False, False, False, True, True, True]
    assert findings[-1].name == "repeated-marks"
    lists = pa.table({"task": ["i"] * 2, "worker": ["a"] * 2, "polygon": [[[0, 0], [4, 0], [0, 4]]] * 2})
    assert [
        finding.name for finding in check_mark_rows(PolygonCrowd, lists, {n: n for n in lists.column_names})[0]
    ] == ["repeated-marks"]
    pd.DataFrame(table).to_csv(tmp_path / "polygons.csv", index=False)
    report = check_votes(tmp_path / "polygons.csv", images={"task": ["i", "j"], "width": [2, 9], "height": [9, 9]})
    assert names(report)["no-polygons"] == 2
    assert names(report)["beyond-image-edge"] == 1
    assert "PolygonCrowd(2 polygons in 3 votes" in report.summary


def test_points_have_no_size() -> None:
    table = {"task": ["i"], "worker": ["a"], "x": [-3.0], "y": [2.0]}
    assert check_mark_rows(PointCrowd, pa.table(table), {name: name for name in table})[0] == []


def test_boxes_outside_and_beyond_the_edge_of_images(boxes: Path) -> None:
    frame = {
        "task": ["i1", "i1", "i2"],
        "worker": list("abc"),
        "x": [90, 70, 0],
        "y": [5, 5, 0],
        "width": [9] * 3,
        "height": [9] * 3,
    }
    sizes = pd.DataFrame({"task": ["i1"], "image_width": [75], "image_height": [60]})
    findings = {finding.name: finding for finding in check_images(BoxCrowd.from_frame(frame), sizes)}
    assert findings["outside-image"].count == findings["beyond-image-edge"].count == 1
    assert findings["outside-image"].severity == "error"
    assert "x=90, y=5, width=9, height=9 of worker 'a' on task 'i1'" in findings["outside-image"].message
    assert findings["unknown-images"].examples == ("i2",)
    sizes_file = boxes.with_name("sizes.csv")
    pd.DataFrame({"task": ["i1", "i2", "i3"], "width": [5] * 3, "height": [5] * 3}).to_csv(sizes_file, index=False)
    assert names(check_votes(boxes, images=sizes_file))["outside-image"] == 3


@pytest.mark.parametrize("content", [{"text": ["a cat"]}, {"tokens": [["a", "c", "a", "t", "s"]]}])
def test_spans_beyond_documents(content: dict[str, Any]) -> None:
    spans = SpanCrowd.from_frame({"task": ["d", "d", "e"], "worker": list("abc"), "start": [0, 1, 0], "end": [5, 6, 1]})
    findings = {finding.name: finding for finding in check_documents(spans, {"task": ["d"], **content})}
    assert findings["beyond-document"].count == 1
    assert findings["unknown-documents"].examples == ("e",)


def test_files_of_a_folder_are_used(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"task": ["i", "i"], "worker": ["a", "b"], "x": [9, 1], "y": [1, 1], "width": [1, 1], "height": [1, 1]}
    )
    table.to_parquet(tmp_path / "boxes.parquet")
    pd.DataFrame({"task": ["i"], "width": [4], "height": [4]}).to_parquet(tmp_path / "images.parquet")
    assert names(check_votes(tmp_path))["outside-image"] == 1


def test_ids_of_sizes_may_have_another_type() -> None:
    points = PointCrowd.from_frame({"task": [1], "worker": ["a"], "x": [9], "y": [1]})
    assert [finding.name for finding in check_images(points, {"task": ["1"], "width": [4], "height": [4]})] == [
        "outside-image"
    ]


def test_tables_without_columns_and_of_other_answers_are_refused() -> None:
    spans = SpanCrowd.from_frame({"task": ["d"], "worker": ["a"], "start": [0], "end": [1]})
    with pytest.raises(InputError, match="expected task, and tokens"):
        list(check_documents(spans, {"task": ["d"]}))
    with pytest.raises(InputError, match="expected task, width and height"):
        list(check_images(spans, {"task": ["d"]}))
    with pytest.raises(UsageError, match="apply to boxes, points and polygons only"):
        check_votes(spans, images={"task": ["d"], "width": [1], "height": [1]})
    with pytest.raises(UsageError, match="apply to boxes, points, polygons and spans"):
        check_votes({"task": ["t"], "worker": ["a"], "text": ["x"]}, documents={"task": ["t"], "text": ["x"]})
    with pytest.raises(UsageError, match="apply to boxes, points, polygons and spans"):
        check_votes({"task": ["t"], "worker": ["a"], "label": ["x"]}, documents={"task": ["t"], "text": ["x"]})


def test_repeated_texts_are_an_error_with_a_fix() -> None:
    texts = {"task": ["t", "t", "t", None], "worker": ["a", "a", "b", "c"], "text": ["x", "y", "x", "z"]}
    report = check_votes(texts)
    assert names(report)["duplicate-votes"] == names(report)["missing-ids"] == 1
    assert {"duplicates": "last"} in [finding.options for finding in report.errors]
    assert "duplicate-votes" not in [finding.name for finding in check_votes(texts, duplicates="last").errors]
