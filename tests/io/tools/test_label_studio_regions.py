from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import read_project
from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.label_studio_regions import find_kind, parse_regions

SIZE = {"original_width": 200, "original_height": 100, "image_rotation": 0}


def list_rows(crowd: Any) -> list[list[Any]]:
    frame = crowd.to_frame().astype(object)
    return frame.where(frame.notna(), None).values.tolist()


def span(start: Any, end: Any, label: str = "PER", **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "labels": [label], **more}
    return {"id": f"s{start}", "from_name": "names", "to_name": "text", "type": "labels", "value": value}


def box(x: float, y: float, width: float, height: float, *, rotation: float = 0, **more: Any) -> dict[str, Any]:
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": rotation, "rectanglelabels": ["cat"]}
    names = {"id": "b", "from_name": "objects", "to_name": "image", "type": "rectanglelabels"}
    return {**names, "value": value, **(more or SIZE)}


def write_tasks(folder: Path, *annotations: dict[str, Any]) -> Path:
    path = folder / "export.json"
    path.write_text(json.dumps([{"id": 7, "data": {"text": "Ann left Rome."}, "annotations": list(annotations)}]))
    return path


def test_votes_are_people_who_saw_the_task(tmp_path: Path, making: Any) -> None:
    path = write_tasks(
        tmp_path,
        making.annotation(1, span(0, 3), span(9, 13, "LOC")),
        making.annotation(2),  # saw the task and marked nothing
        making.annotation(3, making.choice("mood", "good")),  # answered another question only
        making.annotation(4, was_cancelled=True),
        making.annotation(None, span(0, 3)),
    )
    names = read_project(path).structured["names"]
    assert list_rows(names.crowd) == [
        ["7", "1", 0, 3, "PER"], ["7", "1", 9, 13, "LOC"], ["7", "2", None, None, None], ["7", "3", None, None, None],
    ]  # fmt: skip
    assert names.excluded == {"cancelled": 1, "of deleted accounts": 1}
    assert wc.read_spans(path, question="names").n_votes == 3
    assert wc.read(path).n_votes == 1  # the only question of classes


def test_percent_become_pixels(tmp_path: Path, making: Any) -> None:
    path = write_tasks(tmp_path, making.annotation(1, box(10, 20, 50, 40)), making.annotation(2))
    crowd = wc.read_boxes(path)
    assert crowd.coordinates.tolist() == [[20, 20, 100, 40]]
    assert crowd.n_votes == 2


def test_without_sizes_places_are_percent(tmp_path: Path, making: Any) -> None:
    path = write_tasks(tmp_path, making.annotation(1, box(10, 20, 50, 40, origin="manual")))
    question = read_project(path).structured["objects"]
    assert isinstance(question.crowd, wc.BoxCrowd)
    assert question.crowd.coordinates.tolist() == [[10, 20, 50, 40]]
    assert "are in percent of the image" in question.notes[0]


def test_sizes_of_some_images_would_mix_units(tmp_path: Path, making: Any) -> None:
    tasks = [
        {"id": number, "data": {}, "annotations": [making.annotation(1, making.choice("mood", "good"), one)]}
        for number, one in enumerate((box(1, 2, 3, 4), box(1, 2, 3, 4, origin="manual")))
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    with pytest.raises(InputError, match=r"1 of 2 images have no size \(task '1'\), so that units would be mixed"):
        wc.read_boxes(tmp_path / "export.json", question="objects")
    assert wc.read(tmp_path / "export.json", question="mood").n_votes == 2  # other questions can be read


def test_predictions_without_sizes_are_left_out(tmp_path: Path, making: Any) -> None:
    prediction = {"model_version": "yolo", "result": [box(1, 2, 3, 4, origin="prediction")]}
    tasks = [
        {"id": 1, "data": {}, "annotations": [making.annotation(1, box(1, 2, 3, 4))], "predictions": [prediction]},
        {"id": 2, "data": {}, "annotations": [], "predictions": [prediction]},  # nobody has marked this image yet
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    question = read_project(tmp_path / "export.json").structured["objects"]
    assert isinstance(question.crowd, wc.BoxCrowd)
    assert question.crowd.to_frame()["worker"].tolist() == ["1", "yolo"]
    assert question.crowd.coordinates.tolist() == [[2, 2, 6, 4]] * 2
    assert question.excluded == {"predictions without image size": 1}


def test_pixels_in_place_of_percent_are_refused(tmp_path: Path, making: Any) -> None:
    path = write_tasks(tmp_path, making.annotation(1, box(150, 20, 30, 40)))
    with pytest.raises(InputError, match=r"1 box outside its image.*the tool writes percent of the image"):
        wc.read_boxes(path)


def test_turned_boxes_become_upright(tmp_path: Path, making: Any) -> None:
    # 20 x 40 pixels at (100, 40), turned by 90 degrees about this corner: 40 pixels to the left, 20 down.
    path = write_tasks(tmp_path, making.annotation(1, box(50, 40, 10, 40, rotation=90)))
    question = read_project(path).structured["objects"]
    assert isinstance(question.crowd, wc.BoxCrowd)
    np.testing.assert_allclose(question.crowd.coordinates, [[60, 40, 40, 20]], atol=1e-4)
    assert question.notes == ["1 turned boxes of 'objects' were replaced by the upright boxes around them"]


def test_web_pages_have_global_offsets(tmp_path: Path, making: Any) -> None:
    value = {
        "start": "/p[1]/text()[1]", "end": "/p[1]/b[1]/text()[1]", "startOffset": 2, "endOffset": 4,
        "globalOffsets": {"start": 2, "end": 9}, "hypertextlabels": ["TERM"],
    }  # fmt: skip
    result = {"id": "h", "from_name": "terms", "to_name": "page", "type": "hypertextlabels", "value": value}
    question = read_project(write_tasks(tmp_path, making.annotation(1, result))).structured["terms"]
    assert question.crowd.to_frame().values.tolist() == [["7", "1", 2, 9, "TERM"]]
    assert question.structure.anchors["7", "end", 9] == ("/p[1]/b[1]/text()[1]", 4)
    del value["globalOffsets"]
    with pytest.raises(InputError, match="has no globalOffsets"):
        wc.read_spans(write_tasks(tmp_path, making.annotation(1, result)))


@pytest.mark.parametrize("place", [(1.5, 3.25), (1, 3, {"channel": 0})])
def test_spans_of_sounds_are_refused(tmp_path: Path, making: Any, place: Any) -> None:
    result = span(*place[:2], **(place[2] if len(place) > 2 else {}))
    with pytest.raises(InputError, match="seconds; only spans of texts"):
        wc.read_spans(write_tasks(tmp_path, making.annotation(1, result)))


def test_several_labels_are_several_marks() -> None:
    export = ExportedAnswers()
    result = span(0, 3)
    result["value"]["labels"] = ["PER", "ORG"]
    assert [mark.label for mark in parse_regions([result], "7", "entry 1", export)["names"]] == ["PER", "ORG"]  # type: ignore[union-attr]


def test_labels_beside_shapes_are_one_question(tmp_path: Path, making: Any) -> None:
    value = {"x": 10, "y": 20, "width": 50, "height": 40, "rotation": 0}
    shape = {"id": "r", "from_name": "shape", "to_name": "image", "type": "rectangle", "value": value, **SIZE}
    label = shape | {"from_name": "kind", "type": "labels", "value": {**value, "labels": ["cat"]}}
    project = read_project(write_tasks(tmp_path, making.annotation(1, shape, label)))
    assert list(project.structured) == ["kind"]
    assert project.structured["kind"].control["shape"] == "shape"


def test_points_and_texts(tmp_path: Path, making: Any) -> None:
    point = {"x": 50, "y": 50, "width": 0.5, "keypointlabels": ["eye"]}
    results = [
        {"id": "p", "from_name": "eyes", "to_name": "image", "type": "keypointlabels", "value": point, **SIZE},
        {
            "id": "t",
            "from_name": "note",
            "to_name": "image",
            "type": "textarea",
            "value": {"text": ["a cat", "asleep"]},
        },
    ]
    path = write_tasks(tmp_path, making.annotation(1, *results), making.annotation(2))
    assert list_rows(wc.read_points(path, question="eyes")) == [
        ["7", "1", 100, 50, "eye"], ["7", "2", None, None, None],
    ]  # fmt: skip
    assert wc.read_texts(path, question="note").text.tolist() == ["a cat\nasleep"]
    with pytest.raises(UsageError, match="there are several questions: 'eyes', 'note'"):
        wc.read_points(path)


def test_kinds_of_results() -> None:
    kinds = {
        "rectanglelabels": {"x": 1, "y": 2, "width": 3, "height": 4}, "keypointlabels": {"x": 1, "y": 2, "width": 3},
        "polygonlabels": {"points": []}, "brushlabels": {"rle": []}, "ellipselabels": {"x": 1, "y": 1, "radiusX": 1},
        "textarea": {"text": ["x"], "start": 0}, "labels": {"ranges": []},
    }  # fmt: skip
    assert [find_kind({"type": kind, "value": value}) for kind, value in kinds.items()] == [
        "boxes", "points", None, None, None, None, None,
    ]  # fmt: skip


def test_json_min_has_regions(tmp_path: Path) -> None:
    record = {"id": 7, "text": "Ann left.", "annotator": 1, "annotation_id": 3, "lead_time": 2.5}
    names = [{"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}]
    boxes = [{"x": 10, "y": 20, "width": 50, "height": 40, "rotation": 0, "rectanglelabels": ["cat"], **SIZE}]
    records = [record | {"names": names, "objects": boxes}, record | {"annotator": 2, "annotation_id": 4}]
    (tmp_path / "min.json").write_text(json.dumps(records))
    assert wc.read_spans(tmp_path / "min.json", question="names").n_votes == 2
    assert wc.read_boxes(tmp_path / "min.json", question="objects").coordinates.tolist() == [[20, 20, 100, 40]]
