from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project

IMAGE = {"id": 7, "file_name": "a.jpg", "width": 100, "height": 80, "annotators": ["ann", "bob"]}
CATEGORIES = [{"id": 3, "name": "cat", "keypoints": ["nose", "tail"]}]


def list_rows(crowd: Any) -> list[list[Any]]:
    frame = crowd.to_frame().astype(object)
    return frame.where(frame.notna(), None).values.tolist()


def annotate(annotator: str | None = "ann", **more: Any) -> dict[str, Any]:
    annotation = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [5, 6, 30, 20], "iscrowd": 0}
    return annotation | ({} if annotator is None else {"annotator": annotator}) | more


def write(path: Path, *annotations: dict[str, Any], image: dict[str, Any] = IMAGE, **more: Any) -> Path:
    document = {"info": {}, "images": [image], "annotations": list(annotations), "categories": CATEGORIES, **more}
    path.write_text(json.dumps(document))
    return path


def test_boxes_with_annotators(tmp_path: Path) -> None:
    path = write(tmp_path / "coco.json", annotate("ann"), annotate("cy", id=2, annotator_id=9))
    project = read_project(path)
    assert project.format == "coco"
    boxes = wc.read_boxes(path)
    assert list_rows(boxes) == [
        ["a.jpg", "ann", 5, 6, 30, 20, "cat"], ["a.jpg", "bob", None, None, None, None, None], ["a.jpg", "cy", 5, 6, 30, 20, "cat"],
    ]  # fmt: skip


def test_assignments_are_listed_beside_images(tmp_path: Path) -> None:
    image = {key: value for key, value in IMAGE.items() if key != "annotators"}
    assignments = [{"image_id": 7, "annotator": "dan"}]
    path = write(tmp_path / "coco.json", annotate(), image=image, assignments=assignments)
    assert wc.read_boxes(path).workers.tolist() == ["ann", "dan"]
    question = read_project(write(tmp_path / "coco.json", annotate(), image=image)).get_structured()
    assert "does not say who saw which image" in question.notes[0]


def test_a_folder_has_a_file_per_annotator(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    write(folder / "ann.json", annotate(None))
    write(folder / "bob.json", image=IMAGE | {"id": 1})  # other ids for the same images
    crowd = wc.read_boxes(folder)
    assert (crowd.n_votes, crowd.n_marks, crowd.workers.tolist()) == (2, 1, ["ann", "bob"])


def test_keypoints_are_points(tmp_path: Path) -> None:
    path = write(tmp_path / "coco.json", annotate(keypoints=[10, 12, 2, 0, 0, 0]))
    points = wc.read_points(path, question="keypoints")
    assert points.to_frame().dropna().values.tolist() == [["a.jpg", "ann", 10, 12, "nose"]]


def test_groups_and_outlines_are_left_out(tmp_path: Path) -> None:
    outline = annotate(id=3, bbox=None, segmentation=[[1, 2, 3]])
    project = read_project(write(tmp_path / "coco.json", annotate(), annotate(id=2, iscrowd=1), outline))
    assert project.excluded == {"groups of objects (iscrowd)": 1, "annotations without bbox": 1}


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (
            annotate(image_id=8),
            r"an annotation is about the image '8', which is not among the 1 images of the file \('7'\)",
        ),
        (annotate(None), "annotation 1 names no annotator; expected one of annotator, annotator_id"),
        (annotate(category_id=4), "annotation 1 has the category '4'; the categories are '3'"),
        (annotate(bbox=[1, 2, 3]), "bbox of annotation 1 should be"),
        (annotate(bbox=[1, 2, 3, "x"]), "the place of a box of annotation 1 must be numbers"),
        (annotate(keypoints=[1, 2]), "should be triples of x, y and visibility"),
        (annotate(bbox=[90, 6, 30, 20]), "1 box outside its image"),
        (annotate(bbox=[5, 6, -3, 20]), "1 invalid box.*a positive width and height"),
    ],
)
def test_invalid_annotations_are_refused(tmp_path: Path, annotation: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wc.read_boxes(write(tmp_path / "coco.json", annotation), question="boxes")


def test_other_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"images": 3}')
    with pytest.raises(InputError, match="it is not COCO"):
        read_project(tmp_path / "x.json", "coco")
