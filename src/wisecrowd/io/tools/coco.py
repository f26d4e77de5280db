"""COCO: boxes and keypoints in JSON with the ids of annotators, as one file, or as a folder of files, one per annotator.

COCO has no annotators. An annotation names its annotator under one of `ANNOTATOR_KEYS`, such as ``"annotator": "ann"``. The
annotators who saw an image are listed in ``"annotators"`` of the image, or in a list ``"assignments"`` of the file, with objects
``{"image_id": 7, "annotator": "ann"}``. In a folder, the name of a file is its annotator, who saw all images of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.archives import is_system_file
from wisecrowd.io.tables.json_text import parse_json
from wisecrowd.io.tables.text_files import read_text
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object
from wisecrowd.io.tools.exported_answers import OWN_MODEL, ExportedAnswers, format_label, parse_id, parse_number
from wisecrowd.io.tools.exported_structures import AnswerSheet, ExportedMark, add_sheets, get_structure, parse_place
from wisecrowd.io.tools.question_votes import make_tool_reader

#: Keys of an annotation that name its annotator.
ANNOTATOR_KEYS = ("annotator", "annotator_id", "worker", "worker_id", "user", "user_id", "created_by")
#: Names of the questions.
BOXES, KEYPOINTS = "boxes", "keypoints"

_Record = dict[str, Any]
#: Marks by task and worker, and by question.
_MarksByAssignment = dict[tuple[str, str], dict[str, list[ExportedMark]]]


def read_export(path: Path) -> ExportedAnswers:
    """Read all boxes and keypoints.

    Parameters
    ----------
    path : Path
        JSON file, or folder of JSON files.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> document = {
    ...     "images": [{"id": 7, "file_name": "a.jpg", "width": 100, "height": 80, "annotators": ["ann", "bob"]}],
    ...     "categories": [{"id": 1, "name": "cat"}],
    ...     "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [5, 6, 30, 20], "annotator": "ann"}],
    ... }
    >>> _ = Path("coco.json").write_text(json.dumps(document))
    >>> boxes = read_export(Path("coco.json")).structures["boxes"]
    >>> boxes.worker, [len(marks) for marks in boxes.answers]
    (['ann', 'bob'], [1, 0])
    """
    export = ExportedAnswers()
    marks: _MarksByAssignment = {}
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.suffix == ".json" and not is_system_file(file.name)]
        for file in files:
            try:
                _Document(_load(file), export, marks, file.stem).add()
            except InputError as error:
                error.args = (f"{file.name}: {error}",)
                raise
    else:
        _Document(_load(path), export, marks, "").add()
    add_sheets(
        export,
        [
            AnswerSheet(task, worker, answers, machine=worker.startswith(OWN_MODEL))
            for (task, worker), answers in marks.items()
        ],
    )
    return export


def _load(path: Path) -> _Record:
    document = parse_json(read_text(path))
    if not isinstance(document, dict) or not isinstance(document.get("images"), list):
        raise InputError("it is not COCO: expected an object with the lists images, annotations and categories")
    return document


class _Document:
    """One file of COCO."""

    def __init__(self, document: _Record, export: ExportedAnswers, marks: _MarksByAssignment, worker: str) -> None:
        self.document, self.export, self.marks, self.worker = document, export, marks, worker
        self.categories: dict[str, _Record] = {}
        self.task_by_image: dict[str, str] = {}
        self.images: dict[str, _Record] = {}

    def add(self) -> None:
        """Add the images, assignments and annotations of the file to the export."""
        for number, category in enumerate(get_objects(self.document, "categories", "the file"), start=1):
            self.categories[parse_id(category.get("id"), "category", f"category {number:,}")] = category
        has_assignments = False
        for number, image in enumerate(get_objects(self.document, "images", "the file"), start=1):
            location = f"image {number:,}"
            # Ids of images differ between files of one project.
            task = parse_id(image.get("file_name") or image.get("id"), "image", location)
            self.task_by_image[parse_id(image.get("id"), "image", location)] = task
            self.images[task] = image
            self.export.tasks.setdefault(task, {key: image[key] for key in image if key != "annotators"})
            annotators = [self.worker] if self.worker else get_part(image, "annotators", list, location)
            for name in annotators:
                self._assign(task, parse_id(name, "annotator", location))
            has_assignments = has_assignments or bool(annotators)
        for entry in get_objects(self.document, "assignments", "the file"):
            task = self._find_task(entry, "assignment")
            self._assign(task, _find_annotator(entry, "an assignment"))
            has_assignments = True
        for number, annotation in enumerate(get_objects(self.document, "annotations", "the file"), start=1):
            self._add_annotation(annotation, f"annotation {number:,}")
        if not has_assignments:
            note = (
                "the file does not say who saw which image, so that workers who marked nothing are missing; list them in "
                '"annotators" of each image'
            )
            for question in self.export.structures.values():
                question.notes.append(note)

    def _assign(self, task: str, worker: str) -> dict[str, list[ExportedMark]]:
        """Return the marks of a worker on a task by question, and note that the worker saw the task."""
        return self.marks.setdefault((task, worker), {})

    def _find_task(self, entry: _Record, noun: str) -> str:
        image = parse_id(entry.get("image_id"), "image", f"image_id of an {noun}")
        if image not in self.task_by_image:
            raise InputError(
                f"an {noun} is about the image {preview([image])}, which is not among the {len(self.task_by_image):,} images of "
                f"the file ({preview(self.task_by_image)}); add the image, or remove the {noun}"
            )
        return self.task_by_image[image]

    def _add_annotation(self, annotation: _Record, location: str) -> None:
        if annotation.get("iscrowd"):
            self.export.excluded["groups of objects (iscrowd)"] += 1
            return
        task = self._find_task(annotation, "annotation")
        worker = self.worker or _find_annotator(annotation, location)
        marks = self._assign(task, worker)
        category_id = parse_id(annotation.get("category_id"), "category", location)
        category = self.categories.get(category_id)
        if category is None:
            raise InputError(
                f"{location} has the category {preview([category_id])}; the categories are "
                f"{preview(self.categories, 6)}. Add it to categories"
            )
        label = format_label(category.get("name", category.get("id")))
        score = parse_number(annotation.get("score"))
        place = get_part(annotation, "bbox", list, location)
        names = [name for name in get_part(category, "keypoints", list, location) if isinstance(name, str)]
        keypoints = get_part(annotation, "keypoints", list, location)
        if place:
            if len(place) != 4:
                raise InputError(f"bbox of {location} should be [x, y, width, height]; got {preview([place])}")
            self._add_mark(task, marks, BOXES, ExportedMark(parse_place(place, "box", location), label, score))
        for name, point in _iter_keypoints(keypoints, names, location):
            self._add_mark(task, marks, KEYPOINTS, ExportedMark(point, name, score))
        if not place and not keypoints:
            self.export.excluded["annotations without bbox"] += 1

    def _add_mark(self, task: str, marks: dict[str, list[ExportedMark]], name: str, mark: ExportedMark) -> None:
        question = get_structure(self.export, name, "boxes" if name == BOXES else "points", "pixels")
        if name == BOXES and "categories" not in question.control:
            names = {format_label(one.get("name", key)): one.get("id") for key, one in self.categories.items()}
            question.control["categories"] = json.dumps(names)
            question.options.update(dict.fromkeys(names))
        image = self.images[task]
        question.set_size(task, image.get("width"), image.get("height"))
        marks.setdefault(question.name, []).append(mark)


def _iter_keypoints(values: list[Any], names: list[str], location: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the name and place of keypoints that are labelled (visibility 1 or 2)."""
    if len(values) % 3:
        raise InputError(f"keypoints of {location} should be triples of x, y and visibility; got {len(values)} numbers")
    for number in range(len(values) // 3):
        x, y, visibility = values[3 * number : 3 * number + 3]
        if visibility:
            name = names[number] if number < len(names) else f"keypoint {number + 1}"
            yield name, parse_place((x, y), "keypoint", location)


def _find_annotator(entry: _Record, location: str) -> str:
    key = next((key for key in ANNOTATOR_KEYS if entry.get(key) is not None), None)
    if key is None:
        raise InputError(
            f"{location} names no annotator; expected one of {', '.join(ANNOTATOR_KEYS)}. Or put one file per annotator into a "
            "folder, named after the annotator"
        )
    return parse_id(entry[key], "annotator", location)


def _detect(path: Path) -> bool:
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if not is_system_file(file.name)]
        if not files or not all(file.suffix == ".json" and file.is_file() for file in files):
            return False
        return _detect(files[0])
    keys = peek_object(path).keys()
    if "images" in keys and bool(keys & {"annotations", "categories", "file_name"}):
        return True
    return {"annotations", "image_id"} <= keys


COCO = make_tool_reader("coco", read_export, _detect)
