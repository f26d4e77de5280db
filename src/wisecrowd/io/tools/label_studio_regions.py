"""Regions and texts in the results of Label Studio: spans, boxes, points and text areas.

Places in images are percent of the image. They become pixels if the export has the sizes of the images
(``original_width``, ``original_height``), which Label Studio writes for all regions that people drew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import compress
from typing import Any

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tools.exported_answers import ExportedAnswers, format_label, parse_id, parse_number
from wisecrowd.io.tools.exported_structures import (
    ExportedMark,
    ExportedStructure,
    StructuredAnswer,
    StructureKind,
    get_structure,
    parse_place,
)

_Record = dict[str, Any]

#: Types of results with marks, by the key of their labels. The kind of "labels" depends on the place.
LABEL_KEYS = {
    "labels": "labels",
    "hypertextlabels": "hypertextlabels",
    "rectanglelabels": "rectanglelabels",
    "rectangle": "",
    "keypointlabels": "keypointlabels",
    "keypoint": "",
}
TEXT_AREA = "textarea"
#: Types of shapes without labels. A result of type "labels" with the same id may have them.
_SHAPES = ("rectangle", "keypoint")
#: Width of a point in percent of the image, with which Label Studio draws it.
POINT_WIDTH = 0.5
#: Decimals of pixels. Conversion from percent and back would otherwise change the last digits.
_PIXEL_DECIMALS = 6


def parse_regions(
    results: list[_Record], task: str, location: str, export: ExportedAnswers
) -> dict[str, list[ExportedMark] | str]:
    """Parse the spans, boxes, points and texts of an annotation. Other results are ignored.

    Parameters
    ----------
    results : list of dict
        Results.
    task : str
        Task id.
    location : str
        Position in the file, for messages.
    export : ExportedAnswers
        Export to which questions are added.

    Returns
    -------
    dict of str to list of ExportedMark, or to str
        Answers by question.

    Examples
    --------
    >>> value = {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}
    >>> parse_regions([{"from_name": "ner", "type": "labels", "value": value}], "1", "entry 1", ExportedAnswers())
    {'ner': [ExportedMark(place=(0.0, 3.0), label='PER', score=nan)]}
    """
    labelled = {str(result.get("id")) for result in results if result.get("type") == "labels"} - {"None"}
    shape_names = {
        str(result.get("id")): str(result.get("from_name")) for result in results if result.get("type") in _SHAPES
    }
    answers: dict[str, list[ExportedMark] | str] = {}
    for result in results:
        kind = find_kind(result)
        if kind is None or (result["type"] in _SHAPES and str(result.get("id")) in labelled):
            continue
        name = parse_id(result.get("from_name"), "question", "from_name of a result")
        question = get_structure(export, name, kind, "characters" if kind in ("spans", "texts") else "percent")
        control = {"from_name": name, "to_name": str(result.get("to_name", "")), "type": str(result["type"])}
        if result["type"] == "labels" and (shape := shape_names.get(str(result.get("id")))):
            control["shape"] = shape
        question.control.update(control)
        value = result["value"]
        try:
            if kind == "texts":
                text = _parse_texts(value["text"])
                answers[question.name] = f"{answers[question.name]}\n{text}" if question.name in answers else text
            else:
                marks = answers.setdefault(question.name, [])
                assert isinstance(marks, list)
                marks += _parse_marks(result, value, kind, task, location, question)
        except InputError as error:  # other questions can be read
            question.problems.append(str(error))
    return answers


def find_kind(result: _Record) -> StructureKind | None:
    """Return the kind of a result, or None if it has neither a mark that can be read nor a text about the whole task.

    Parameters
    ----------
    result : dict
        Result.

    Returns
    -------
    {"spans", "boxes", "points", "texts"} or None

    Examples
    --------
    >>> find_kind({"type": "labels", "value": {"start": 0, "end": 3}}), find_kind({"type": "brushlabels", "value": {}})
    ('spans', None)
    """
    kind, value = result.get("type"), result.get("value")
    if not isinstance(value, dict) or not isinstance(kind, str):
        return None
    if kind == TEXT_AREA:
        return "texts" if set(value) == {"text"} else None
    if kind not in LABEL_KEYS:
        return None
    if "start" in value and "end" in value:
        return "spans" if kind in ("labels", "hypertextlabels") else None
    if "sequence" in value or "x" not in value or "y" not in value or "points" in value or "radiusX" in value:
        return None  # a video, a polygon or an ellipse
    return "boxes" if "height" in value else "points"


def _parse_texts(value: object) -> str:
    """Return a text. A text area with several submissions has a list."""
    texts = value if isinstance(value, list) else [value]
    return "\n".join(format_label(text) for text in texts)


def _parse_marks(
    result: _Record, value: _Record, kind: StructureKind, task: str, location: str, question: ExportedStructure
) -> list[ExportedMark]:
    """Return a mark for every label of a region."""
    place = _parse_place(result, value, kind, task, location, question)
    labels = value.get(LABEL_KEYS[str(result["type"])])
    score = parse_number(result.get("score"))
    labels = labels if isinstance(labels, list) and labels else [None]
    return [ExportedMark(place, None if label is None else format_label(label), score) for label in labels]


def _parse_place(
    result: _Record, value: _Record, kind: StructureKind, task: str, location: str, question: ExportedStructure
) -> tuple[float, ...]:
    if kind == "spans":
        return _parse_span(value, task, location, question)
    question.set_size(task, result.get("original_width"), result.get("original_height"))
    if kind == "points":
        return parse_place((value["x"], value["y"]), "point", location)
    x, y, width, height = parse_place((value.get(key) for key in ("x", "y", "width", "height")), "box", location)
    angle = parse_number(value.get("rotation", 0))
    if angle % 360 and angle == angle:
        question.excluded["rotations of boxes"] += 1
        return _enclose(x, y, width, height, angle, question.sizes.get(task, (1.0, 1.0)))
    return x, y, width, height


def _parse_span(value: _Record, task: str, location: str, question: ExportedStructure) -> tuple[float, ...]:
    offsets = value.get("globalOffsets")
    if isinstance(offsets, dict):  # a web page: the other offsets count from nodes
        start, end = parse_place((offsets.get("start"), offsets.get("end")), "span", location)
        for side, offset in (("start", start), ("end", end)):
            node, local = value.get(side), value.get(f"{side}Offset")
            if isinstance(node, str) and isinstance(local, int) and offset == int(offset):
                question.anchors[task, side, int(offset)] = (node, local)
        question.control["offsets"] = "global"
        return start, end
    if isinstance(value["start"], str) or isinstance(value["end"], str):
        raise InputError(
            f"a span of {location} begins at {preview([value['start']])}, a node of a web page, and has no globalOffsets, which "
            "count characters; export with a Label Studio of version 1.0 or later"
        )
    start, end = parse_place((value["start"], value["end"]), "span", location)
    if "channel" in value or start != int(start) or end != int(end):
        raise InputError(
            f"a span of {location} lasts from {start:g} to {end:g} seconds; only spans of texts can be read, with offsets in "
            "whole characters"
        )
    return start, end


def _enclose(
    x: float, y: float, width: float, height: float, angle: float, size: tuple[float, float]
) -> tuple[float, float, float, float]:
    """Return the upright box around a box that is turned about its upper left corner."""
    cos, sin, aspect = math.cos(math.radians(angle)), math.sin(math.radians(angle)), size[0] / size[1]
    # Percent of the width and of the height differ in length, so that the rotation is computed in units of the height.
    corners = [(cos * u * aspect - sin * v, sin * u * aspect + cos * v) for u in (0, width) for v in (0, height)]
    right, down = [corner[0] / aspect for corner in corners], [corner[1] for corner in corners]
    left, top = max(x + min(right), 0.0), max(y + min(down), 0.0)
    return left, top, min(x + max(right), 100.0) - left, min(y + max(down), 100.0) - top


def convert_to_pixels(export: ExportedAnswers) -> None:
    """Convert places from percent to pixels in all questions of images whose sizes the export has.

    Without any size, places stay in percent. If only some tasks have one, the question cannot be read.

    Parameters
    ----------
    export : ExportedAnswers
        Export, after all annotations were added.
    """
    for question in export.structures.values():
        if question.excluded.get("rotations of boxes"):
            n = question.excluded.pop("rotations of boxes")
            question.notes.append(
                f"{n:,} turned boxes of {preview([question.name])} were replaced by the upright boxes around them"
            )
        if question.unit != "percent":
            continue
        marked = {task for task, answer in zip(question.task, question.answers, strict=True) if answer}
        marked |= {task for task, answer in question.truth.items() if answer}
        if not question.sizes:
            if marked:
                question.notes.append(
                    f"{question.kind} of {preview([question.name])} are in percent of the image, because the export has no image "
                    "sizes (original_width, original_height)"
                )
            continue
        _drop_unsized_predictions(question)
        rows = zip(question.task, question.answers, question.machine, strict=True)
        marked_by_people = {task for task, answer, machine in rows if answer and not machine}
        marked_by_people |= {task for task, answer in question.truth.items() if answer}
        absent = sorted(marked_by_people - question.sizes.keys())
        if absent:
            question.problems.append(
                f"{len(absent):,} of {len(marked_by_people):,} images have no size (task {preview(absent)}), so that units would "
                "be mixed; "
                "expected original_width and original_height in a region of every image. Export again, or add them"
            )
            continue
        _scale_answers(question)


def _drop_unsized_predictions(question: ExportedStructure) -> None:
    """Leave out predictions on images whose size is unknown: models often omit it, and nobody has marked the image yet."""
    has_place = [
        not machine or not answer or task in question.sizes
        for task, answer, machine in zip(question.task, question.answers, question.machine, strict=True)
    ]
    if all(has_place):
        return
    question.excluded["predictions without image size"] += len(has_place) - sum(has_place)
    question.task = list(compress(question.task, has_place))
    question.worker = list(compress(question.worker, has_place))
    question.answers = list(compress(question.answers, has_place))
    question.time = list(compress(question.time, has_place))
    question.machine = list(compress(question.machine, has_place))


def _scale_answers(question: ExportedStructure) -> None:
    def scale(task: str, answer: StructuredAnswer) -> StructuredAnswer:
        size = question.sizes.get(task)
        return answer if isinstance(answer, str) or size is None else tuple(_scale_marks(answer, size))

    question.answers = [scale(task, answer) for task, answer in zip(question.task, question.answers, strict=True)]
    question.truth = {task: scale(task, answer) for task, answer in question.truth.items()}
    question.consensus = {task: (scale(task, answer), score) for task, (answer, score) in question.consensus.items()}
    question.unit = "pixels"
    question.control["percent"] = "yes"


def _scale_marks(marks: Iterable[ExportedMark], size: tuple[float, float]) -> Iterable[ExportedMark]:
    for mark in marks:
        place = tuple(round(value * size[axis % 2] / 100, _PIXEL_DECIMALS) for axis, value in enumerate(mark.place))
        yield mark._replace(place=place)
