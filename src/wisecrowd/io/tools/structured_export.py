"""Files to import into the tool that spans, boxes, points or texts came from: the inferred ones.

| tool | content |
| --- | --- |
| Label Studio | tasks with ``predictions``, one region per object, each with its ``score`` |
| Argilla | records with ``suggestions`` of spans or texts |
| doccano | examples with spans |
| Prodigy | examples with ``spans`` |
| CVAT | XML for images with boxes or points |
| COCO | images, categories and annotations with ``score`` |
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pandas as pd

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.answer_tables import MARK_CROWDS
from wisecrowd.io.tools.consensus_export import (
    Record,
    build_argilla_record,
    build_doccano_example,
    check_tasks,
    complete_records,
    round_confidence,
    write_records,
)
from wisecrowd.io.tools.exported_answers import OWN_CONFIDENCE, OWN_MODEL, OWN_TASK
from wisecrowd.io.tools.exported_structures import ExportedMark, ExportedStructure
from wisecrowd.io.tools.label_studio_regions import LABEL_KEYS, POINT_WIDTH, TEXT_AREA
from wisecrowd.io.tools.projects import Project
from wisecrowd.io.tools.structured_questions import StructuredQuestion
from wisecrowd.utils.files import atomic_path

__all__ = ["build_object_records", "build_text_records", "write_objects", "write_texts"]

#: Decimals of coordinates in CVAT's XML and in COCO.
_DECIMALS = 2


@dataclass(frozen=True)
class _InferredAnswer:
    """Objects or text of a task, with the confidence in the whole answer and the model that inferred it."""

    answer: tuple[ExportedMark, ...] | str
    confidence: float | None
    model: str

    @property
    def marks(self) -> tuple[ExportedMark, ...]:
        assert not isinstance(self.answer, str)
        return self.answer


_Answers = dict[str, _InferredAnswer]


def write_objects(
    objects: pd.DataFrame,
    project: Project,
    path: str | os.PathLike[str],
    *,
    tasks: pd.DataFrame | None = None,
    question: str | None = None,
    model: str = "",
) -> None:
    """Write inferred spans, boxes or points to a file that the project's tool imports.

    When the tool exports them again, wisecrowd recognises them and does not read them as votes.

    Parameters
    ----------
    objects : DataFrame
        Objects as ``objects_`` of a method has them: task, coordinates, label, confidence.
    project : Project
        Export that the votes were read from.
    path : path-like
        File to write.
    tasks : DataFrame, optional
        All tasks, as ``tasks_`` has them, with ``expected_f1``, which becomes the score of a task. Tasks without objects are known
        only by this table.
    question : str, optional
        Question that the objects answer. A project with one question needs none.
    model : str, default=""
        Name of the method, which the tool displays.

    Raises
    ------
    InputError
        If objects do not fit the project.

    Examples
    --------
    >>> from wisecrowd.io import read_project
    >>> record = {"text": "Ann left.", "_input_hash": 1, "_session_id": "x-bob", "_view_id": "ner_manual", "answer": "accept",
    ...           "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    >>> _ = Path("spans.jsonl").write_text(json.dumps(record) + "\\n")
    >>> objects = pd.DataFrame({"task": ["1"], "start": [0], "end": [3], "label": ["PER"], "confidence": [0.9]})
    >>> write_objects(objects, read_project("spans.jsonl"), "back.jsonl")
    >>> json.loads(Path("back.jsonl").read_text())["spans"]
    [{'start': 0, 'end': 3, 'label': 'PER', 'score': 0.9}]
    """
    target = project.get_structured(question)
    _write(_collect_objects(objects, tasks, project, target, model), project, target, Path(path))


def write_texts(
    texts: pd.Series[Any] | pd.DataFrame,
    project: Project,
    path: str | os.PathLike[str],
    *,
    question: str | None = None,
    model: str = "",
) -> None:
    """Write inferred texts to a file that the project's tool imports.

    Parameters
    ----------
    texts : Series or DataFrame
        Texts by task, or ``tasks_`` of a method with the columns text and confidence.
    project : Project
        Export that the votes were read from.
    path : path-like
        File to write.
    question : str, optional
        Question that the texts answer. A project with one question needs none.
    model : str, default=""
        Name of the method, which the tool displays.

    Raises
    ------
    InputError
        If texts do not fit the project.
    """
    target = _get_text_question(project, question)
    _write(_collect_texts(texts, project, target, model), project, target, Path(path))


def build_object_records(
    objects: pd.DataFrame,
    project: Project,
    *,
    tasks: pd.DataFrame | None = None,
    question: str | None = None,
    model: str = "",
) -> Iterator[Record]:
    """Build the records that `write_objects` writes. All objects are checked before the first record.

    Parameters
    ----------
    objects : DataFrame
        Objects.
    project : Project
        Export that the votes were read from.
    tasks : DataFrame, optional
        All tasks.
    question : str, optional
        Question that the objects answer.
    model : str, default=""
        Name of the method.

    Returns
    -------
    iterator of dict
        One record per task.
    """
    target = project.get_structured(question)
    return _build_records(_collect_objects(objects, tasks, project, target, model), project, target)


def build_text_records(
    texts: pd.Series[Any] | pd.DataFrame, project: Project, *, question: str | None = None, model: str = ""
) -> Iterator[Record]:
    """Build the records that `write_texts` writes.

    Parameters
    ----------
    texts : Series or DataFrame
        Texts by task.
    project : Project
        Export that the votes were read from.
    question : str, optional
        Question that the texts answer.
    model : str, default=""
        Name of the method.

    Returns
    -------
    iterator of dict
        One record per task.
    """
    target = _get_text_question(project, question)
    return _build_records(_collect_texts(texts, project, target, model), project, target)


def _get_text_question(project: Project, name: str | None) -> StructuredQuestion:
    """Return a question of texts. Tools that do not tell texts from classes have it among the questions of classes."""
    if name in project.structured or not project.questions:
        return project.get_structured(name)
    question = project.get_question(name)
    structure = ExportedStructure(question.name, "texts", control=dict(question.control))
    return StructuredQuestion(name=question.name, kind="texts", structure=structure)


def _collect_objects(
    objects: pd.DataFrame, tasks: pd.DataFrame | None, project: Project, question: StructuredQuestion, model: str
) -> _Answers:
    if question.kind == "texts":
        raise UsageError(f"the answers to {question.name!r} are texts; write them with write_texts")
    table = objects if "task" in objects else objects.rename_axis("task").reset_index()
    names = MARK_CROWDS[question.kind].coordinate_names  # type: ignore[index]  # a kind of marks
    absent = [name for name in ("task", *names, "label") if name not in table]
    if absent:
        raise InputError(
            f"the objects have no column {preview(absent)}; {question.kind}, the answers to {question.name!r}, need task, "
            f"{', '.join(names)} and label"
        )
    scores = table["confidence"] if "confidence" in table else pd.Series(math.nan, index=table.index)
    by_task: dict[str, list[ExportedMark]] = {} if tasks is None else {str(task): [] for task in tasks.index}
    rows = zip(*(table[name] for name in ("task", "label", *names)), scores, strict=True)
    for task, label, *place, score in rows:
        by_task.setdefault(str(task), []).append(ExportedMark(tuple(map(float, place)), str(label), float(score)))
    check_tasks(by_task, project)
    _check_classes(by_task, question)
    expected = (
        {}
        if tasks is None or "expected_f1" not in tasks
        else dict(zip(tasks.index.map(str), tasks["expected_f1"], strict=True))
    )
    full_name = f"{OWN_MODEL} {model}".strip()
    return {
        task: _InferredAnswer(tuple(marks), round_confidence(expected.get(task, _mean_score(marks))), full_name)
        for task, marks in by_task.items()
    }


def _mean_score(marks: list[ExportedMark]) -> float:
    return sum(mark.score for mark in marks) / len(marks) if marks else math.nan


def _check_classes(by_task: Mapping[str, list[ExportedMark]], question: StructuredQuestion) -> None:
    """Raise if classes are not those of the question: the tool would drop such objects."""
    classes = question.labels
    noun = MARK_CROWDS[question.kind].noun  # type: ignore[index]  # a kind of marks
    unknown = {str(mark.label) for marks in by_task.values() for mark in marks} - {*classes, noun}
    if unknown:
        raise InputError(
            f"{preview(sorted(unknown))} is not a label of {question.name!r}, whose labels are {preview(classes, 6)}; give answers "
            "to that question"
        )


def _collect_texts(
    texts: pd.Series[Any] | pd.DataFrame, project: Project, question: StructuredQuestion, model: str
) -> _Answers:
    if question.kind != "texts":
        raise UsageError(f"the answers to {question.name!r} are {question.kind}; write them with write_objects")
    table = texts.rename("text").to_frame() if isinstance(texts, pd.Series) else texts
    if "text" not in table:
        raise InputError(f"texts need a column 'text'; there are {preview(table.columns, 8)}")
    scores = table["confidence"] if "confidence" in table else pd.Series(math.nan, index=table.index)
    full_name = f"{OWN_MODEL} {model}".strip()
    answers = {
        str(task): _InferredAnswer(str(text), round_confidence(score), full_name)
        for task, text, score in zip(table.index, table["text"], scores, strict=True)
    }
    check_tasks(answers, project)
    return answers


# ---------------------------------------------------------------------- Label Studio


def _label_studio_answer(
    task: str, data: Mapping[str, Any], question: StructuredQuestion, one: _InferredAnswer
) -> Record:
    control = question.control
    if not control.get("to_name"):
        raise InputError(
            f"the export does not hold the to_name of {question.name!r}, which predictions need; export Label Studio's JSON "
            "rather than JSON_MIN"
        )
    if isinstance(one.answer, str):
        if control["type"] != TEXT_AREA:
            raise InputError(
                f"{question.name!r} takes {control['type']} and not texts; give the question of a TextArea"
            )
        results = [_label_studio_result(task, question, 0, TEXT_AREA, {"text": [one.answer]})]
    else:
        results = [
            result
            for number, mark in enumerate(one.marks)
            for result in _label_studio_regions(task, question, number, mark)
        ]
    if not results:
        return {**data, "predictions": []}
    prediction: Record = {"model_version": one.model, "result": results}
    if one.confidence is not None:
        prediction["score"] = one.confidence
    return {**data, "predictions": [prediction]}


def _label_studio_regions(task: str, question: StructuredQuestion, number: int, mark: ExportedMark) -> Iterator[Record]:
    """Yield the result of a region. A control of labels beside a control of shapes needs one for each."""
    kind = question.control["type"]
    more: Record = {}
    if question.kind == "spans":
        value = _label_studio_span(task, question, mark)
    else:
        value, more = _label_studio_place(task, question, mark)
    if (score := round_confidence(mark.score)) is not None:
        more["score"] = score
    shape = question.control.get("shape")
    if shape:
        shape_type = "rectangle" if question.kind == "boxes" else "keypoint"
        yield _label_studio_result(task, question, number, shape_type, dict(value), **more) | {"from_name": shape}
    if LABEL_KEYS[kind] and mark.label in question.labels:
        value[LABEL_KEYS[kind]] = [mark.label]
    yield _label_studio_result(task, question, number, kind, value, **more)


def _label_studio_span(task: str, question: StructuredQuestion, mark: ExportedMark) -> Record:
    start, end = int(mark.place[0]), int(mark.place[1])
    if question.control.get("offsets") != "global":
        return {"start": start, "end": end}
    anchors = question.structure.anchors
    first, last = anchors.get((task, "start", start)), anchors.get((task, "end", end))
    if first is None or last is None:
        raise InputError(
            f"the span from {start} to {end} of task {preview([task])} begins or ends where no span of the export does, so its "
            "place in the web page is unknown; aggregate the spans of this export"
        )
    return {
        "start": first[0],
        "end": last[0],
        "startOffset": first[1],
        "endOffset": last[1],
        "globalOffsets": {"start": start, "end": end},
    }


def _label_studio_place(task: str, question: StructuredQuestion, mark: ExportedMark) -> tuple[Record, Record]:
    """Return the place in percent, and the size of the image."""
    size, place = question.structure.sizes.get(task), mark.place
    if question.structure.unit == "pixels":
        if size is None:
            raise InputError(
                f"the size of the image of task {preview([task])} is unknown, so that pixels cannot become percent; give the "
                "export that the votes were read from"
            )
        place = tuple(min(100 * value / size[axis % 2], 100.0) for axis, value in enumerate(place))
    more = (
        {} if size is None else {"original_width": int(size[0]), "original_height": int(size[1]), "image_rotation": 0}
    )
    if question.kind == "points":
        return {"x": place[0], "y": place[1], "width": POINT_WIDTH}, more
    return dict(zip(("x", "y", "width", "height"), place, strict=True)) | {"rotation": 0}, more


def _label_studio_result(
    task: str, question: StructuredQuestion, number: int, kind: str, value: Record, **more: Any
) -> Record:
    # Results need an id. It is derived from the task and question, so that it is reproducible.
    digest = hashlib.sha256(f"{task}\0{question.name}\0{number}".encode(errors="surrogatepass")).hexdigest()
    control = question.control
    names = {"from_name": control["from_name"], "to_name": control["to_name"]}
    return {"id": digest[:10], **names, "type": kind, "value": value, **more}


# ---------------------------------------------------------------------- Argilla, doccano, Prodigy


def _argilla_answer(task: str, data: Mapping[str, Any], question: StructuredQuestion, one: _InferredAnswer) -> Record:
    record = build_argilla_record(task, data)
    if isinstance(one.answer, str):
        suggestion: Record = {"value": one.answer, "score": one.confidence, "agent": one.model}
    elif not one.marks:
        return record
    else:
        value = [_span_offsets(mark) for mark in one.marks]
        scores = [round_confidence(mark.score) for mark in one.marks]
        suggestion = {"value": value, "score": None if None in scores else scores, "agent": one.model}
    return record | {"suggestions": {question.control["question"]: suggestion}}


def _span_offsets(mark: ExportedMark) -> Record:
    return {"start": int(mark.place[0]), "end": int(mark.place[1]), "label": mark.label}


def _doccano_answer(task: str, data: Mapping[str, Any], question: StructuredQuestion, one: _InferredAnswer) -> Record:
    example = build_doccano_example(task, data) | {OWN_CONFIDENCE: one.confidence}
    spans = [_span_offsets(mark) for mark in one.marks]
    column = "entities" if question.control.get("column") == "entities" else "label"
    entities: list[Any] = [[span["start"], span["end"], span["label"]] for span in spans]
    if column == "entities" and question.control.get("entries") == "objects":
        entities = [
            {"id": number, "label": span["label"], "start_offset": span["start"], "end_offset": span["end"]}
            for number, span in enumerate(spans)
        ]
    further: Record = {} if column == "label" else {"cats": []} if question.control.get("cats") else {"relations": []}
    return example | {column: entities, **further}


def _prodigy_answer(task: str, data: Mapping[str, Any], question: StructuredQuestion, one: _InferredAnswer) -> Record:
    record = {**data, OWN_TASK: task, OWN_CONFIDENCE: one.confidence}
    if isinstance(one.answer, str):
        return record | {question.control["field"]: one.answer}
    build = _prodigy_span if question.kind == "spans" else _prodigy_box
    return record | {"spans": [build(mark, data) for mark in one.marks]}


def _prodigy_span(mark: ExportedMark, data: Mapping[str, Any]) -> Record:
    span = _span_offsets(mark)
    tokens = data.get("tokens")
    if isinstance(tokens, list):  # the interface shows tokens
        first = next((token.get("id") for token in tokens if token.get("start") == span["start"]), None)
        last = next((token.get("id") for token in tokens if token.get("end") == span["end"]), None)
        if first is not None and last is not None:
            span |= {"token_start": first, "token_end": last}
    return span | _prodigy_score(mark)


def _prodigy_box(mark: ExportedMark, data: Mapping[str, Any]) -> Record:  # noqa: ARG001  # the same signature as for spans
    x, y, width, height = mark.place
    points = [[x, y], [x, y + height], [x + width, y + height], [x + width, y]]
    box = {
        "x": x,
        "y": y,
        "width": width,
        "height": height,
        "center": [x + width / 2, y + height / 2],
        "points": points,
    }
    return {"label": mark.label, "type": "rect", **box} | _prodigy_score(mark)


def _prodigy_score(mark: ExportedMark) -> Record:
    score = round_confidence(mark.score)
    return {} if score is None else {"score": score}


# ---------------------------------------------------------------------- CVAT and COCO


def _format_cvat(answers: _Answers, project: Project, question: StructuredQuestion) -> str:
    """Return XML for images. Shapes have the source of merged annotations, so that they are never read as votes."""
    model = escape(next((one.model for one in answers.values()), OWN_MODEL))
    labels = "".join(f"<label><name>{escape(label)}</name></label>" for label in question.labels)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "  <version>1.1</version>"]
    person = f"<assignee><username>{model}</username></assignee>"
    lines.append(f"  <meta><task><name>{model}</name><labels>{labels}</labels>{person}</task></meta>")
    for task in (task for task in project.tasks if task in answers):
        attributes = {"id": "0", "name": task} | {key: str(value) for key, value in project.tasks[task].items()}
        names = [name for name in ("id", "name", "width", "height") if name in attributes]
        shapes = [_cvat_shape(mark, question.kind) for mark in answers[task].marks]
        begin = "  <image " + " ".join(f"{name}={quoteattr(attributes[name])}" for name in names)
        lines += [f"{begin}>", *shapes, "  </image>"] if shapes else [f"{begin}></image>"]
    return "\n".join([*lines, "</annotations>", ""])


def _cvat_shape(mark: ExportedMark, kind: str) -> str:
    score = round_confidence(mark.score)
    further = "" if score is None else f' score="{score}"'
    begin = f'label={quoteattr(str(mark.label))} source={quoteattr("consensus")} occluded="0"'
    if kind == "points":
        x, y = mark.place
        return f'    <points {begin} points="{x:.{_DECIMALS}f},{y:.{_DECIMALS}f}" z_order="0"{further}></points>'
    x, y, width, height = mark.place
    corners = zip(("xtl", "ytl", "xbr", "ybr"), (x, y, x + width, y + height), strict=True)
    place = " ".join(f'{name}="{value:.{_DECIMALS}f}"' for name, value in corners)
    return f'    <box {begin} {place} z_order="0"{further}></box>'


def _format_coco(answers: _Answers, project: Project, question: StructuredQuestion) -> str:
    categories: dict[str, Any] = json.loads(question.control["categories"])
    for label in question.labels:
        categories.setdefault(label, max([0, *(one for one in categories.values() if isinstance(one, int))]) + 1)
    images: list[Record] = []
    annotations: list[Record] = []
    for task in (task for task in project.tasks if task in answers):
        image = project.tasks[task]
        images.append({**image, "annotators": [answers[task].model]})
        for mark in answers[task].marks:
            x, y, width, height = (round(value, _DECIMALS) for value in mark.place)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": categories[str(mark.label)],
                    "bbox": [x, y, width, height],
                    "area": round(width * height, _DECIMALS),
                    "iscrowd": 0,
                    "score": round_confidence(mark.score),
                    "annotator": answers[task].model,
                }
            )
    listed = [{"id": number, "name": name} for name, number in categories.items()]
    return json.dumps({"images": images, "categories": listed, "annotations": annotations}, indent=1) + "\n"


# ---------------------------------------------------------------------- all tools


@dataclass(frozen=True)
class _StructuredFormat:
    """Functions that build the records or the document of a tool, and the kinds of answers that it takes."""

    kinds: tuple[str, ...]
    build_answer: Callable[[str, Mapping[str, Any], StructuredQuestion, _InferredAnswer], Record] | None = None
    format_document: Callable[[_Answers, Project, StructuredQuestion], str] | None = None
    #: Whether records are in one JSON list rather than on lines.
    as_list: bool = False
    #: Whether all records must have the same keys, without null.
    needs_equal_keys: bool = False


_LABEL_STUDIO = _StructuredFormat(("spans", "boxes", "points", "texts"), _label_studio_answer, as_list=True)
STRUCTURED_TOOLS: Mapping[str, _StructuredFormat] = {
    "label-studio": _LABEL_STUDIO,
    "label-studio-min": _LABEL_STUDIO,
    "argilla": _StructuredFormat(("spans", "texts"), _argilla_answer, as_list=True),
    "doccano": _StructuredFormat(("spans",), _doccano_answer, needs_equal_keys=True),
    "prodigy": _StructuredFormat(("spans", "boxes", "texts"), _prodigy_answer),
    "cvat": _StructuredFormat(("boxes", "points"), format_document=_format_cvat),
    "coco": _StructuredFormat(("boxes",), format_document=_format_coco),
}


def _get_tool(project: Project, question: StructuredQuestion) -> _StructuredFormat:
    tool = STRUCTURED_TOOLS.get(project.format)
    if tool is None or question.kind not in tool.kinds:
        able = ", ".join(name for name, other in STRUCTURED_TOOLS.items() if question.kind in other.kinds)
        raise UsageError(
            f"{question.kind} cannot be written for {project.format}; the tools are {able}. wisecrowd aggregate writes tables"
        )
    return tool


def _build_records(answers: _Answers, project: Project, question: StructuredQuestion) -> Iterator[Record]:
    build = _get_tool(project, question).build_answer
    if build is None:
        raise UsageError(f"{project.format} has no records; write a file with write_objects")
    return (build(task, data, question, answers[task]) for task, data in project.tasks.items() if task in answers)


def _write(answers: _Answers, project: Project, question: StructuredQuestion, path: Path) -> None:
    tool = _get_tool(project, question)
    if tool.format_document is not None:
        text = tool.format_document(answers, project, question)
        with atomic_path(path) as partial_path:
            partial_path.write_text(text, encoding="utf-8")
        return
    records = _build_records(answers, project, question)
    write_records(complete_records(records, needs_equal_keys=tool.needs_equal_keys), path, as_list=tool.as_list)
