"""CVAT: tags, boxes and points of images in XML ("CVAT for images"), as a file, a zip file, or a folder of either.

CVAT does not record who set a tag or drew a box, only the assignee of a job or task. Without an assignee, the file name is the
worker. The answers of several workers are therefore several files, one per job. What a model set (``source="auto"``) is a vote of a
machine. An image without boxes is a vote on the question of boxes: its worker marked nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.archives import is_system_file, is_zip, peek_zip_texts, read_zip_texts
from wisecrowd.io.tables.text_files import read_text
from wisecrowd.io.tools.export_files import peek_text
from wisecrowd.io.tools.exported_answers import OWN_MODEL, ExportedAnswers, parse_number
from wisecrowd.io.tools.exported_structures import AnswerSheet, ExportedMark, add_sheets, get_structure
from wisecrowd.io.tools.question_votes import make_tool_reader
from wisecrowd.utils.text import shorten

QUESTION = "tag"
#: Names of the questions of marks.
BOXES, POINTS = "boxes", "points"
#: Source of shapes that CVAT merged from several jobs, and of those that wisecrowd wrote.
MERGED = "consensus"
#: Name of the worker that stands for CVAT's models.
AUTO = "auto"
#: Name of the file in CVAT's zip files.
ANNOTATIONS = "annotations"
#: File names that do not identify a worker: that of CVAT, and that of datumaro's exports.
_GENERIC_NAMES = (ANNOTATIONS, "default")
#: Elements whose text is used.
_TEXT_ELEMENTS = ("id", "username")
#: Elements with a position within the image that are not read.
_OTHER_SHAPES = {"polygon", "polyline", "cuboid", "ellipse", "mask", "skeleton"}


def read_export(path: Path) -> ExportedAnswers:
    """Read all tags, boxes and points of images.

    Parameters
    ----------
    path : Path
        XML file, zip file, or a folder of either.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> image = '<image id="0" name="a.jpg"><tag label="cat" source="manual"/></image>'
    >>> _ = Path("ann.xml").write_text(f"<annotations>{image}</annotations>")
    >>> tags = read_export(Path("ann.xml")).get_question("tag")
    >>> tags.task, tags.worker, tags.labels
    (['a.jpg'], ['ann'], [('cat',)])
    """
    export = ExportedAnswers()
    sheets: list[AnswerSheet] = []
    for name, location, text in _iter_files(path):
        try:
            parser = _DocumentParser(name, export)
            parser.parse(text)
            sheets += parser.sheets
        except InputError as error:
            error.args = (f"{location}: {error}" if location else str(error),)
            raise
    add_sheets(export, sheets)
    tags = export.questions.get(QUESTION)
    if export.structures and tags is not None and not tags.task:
        del export.questions[QUESTION]  # a project without tags
    return export


def _iter_files(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the worker according to the file name, the position in the folder or zip file, and the text."""
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if _may_be_export(file)]
        if not files:
            raise InputError("there is no XML file or zip of CVAT in it")
        for file in files:
            try:
                for name, location, text in _iter_files(file):
                    yield name, ", ".join(filter(None, (str(file.relative_to(path)), location))), text
            except InputError as error:
                error.args = (f"{file.relative_to(path)}: {error}",)
                raise
    elif is_zip(path):
        members = read_zip_texts(path, (".xml",))
        if not members:
            raise InputError("there is no XML file of CVAT in this zip; expected annotations.xml")
        for name, text in members:
            stem = Path(name).stem
            yield (path.stem if stem in _GENERIC_NAMES else stem), name, text
    else:
        yield (path.resolve().parent.name if path.stem in _GENERIC_NAMES else path.stem), "", read_text(path)


def _may_be_export(file: Path) -> bool:
    return file.suffix.lower() in (".xml", ".zip") and not is_system_file(str(file)) and file.is_file()


class _DocumentParser:
    """Streaming parser of one XML file. Elements other than tags, boxes and points of images are skipped."""

    def __init__(self, name: str, export: ExportedAnswers) -> None:
        self.name, self.export = name, export
        self.path: list[str] = []
        #: Number of open elements by name.
        self.n_open: Counter[str] = Counter()
        #: Pieces of the text of the innermost element, if its text is used.
        self.text: list[str] = []
        self.assignee = ""
        self.assignee_by_task: dict[str, str] = {}  # in the export of a project
        self.task_id = ""
        self.image: dict[str, str] = {}
        self.tags: dict[str, list[str]] = {}
        #: Marks of the image by source and question.
        self.marks: dict[str, dict[str, list[ExportedMark]]] = {}
        self.sheets: list[AnswerSheet] = []

    def parse(self, text: str) -> None:
        """Add the tags of all images in an XML text to the export, and collect their marks."""
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._refuse_declaration
        parser.EntityDeclHandler = self._refuse_declaration
        parser.StartElementHandler, parser.EndElementHandler = self._start_element, self._end_element
        parser.CharacterDataHandler, parser.buffer_text = self._add_text, True
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            raise InputError(f"{self.name!r} is not XML: {error}") from None
        # A model has seen all images of a job, or none.
        if not any(sheet.worker == AUTO and sheet.answers for sheet in self.sheets):
            self.sheets = [sheet for sheet in self.sheets if sheet.worker != AUTO]

    def _refuse_declaration(self, *_: Any) -> None:
        """Refuse document types and entities, which CVAT never writes, because they can expand without bound."""
        raise InputError(f"{self.name!r} declares a document type or entities, which CVAT never does; it is not read")

    def _start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.path and tag != "annotations":
            raise InputError(f"{self.name!r} begins with <{shorten(tag)}>; expected <annotations> of CVAT for images")
        self.path.append(tag)
        self.n_open[tag] += 1
        self.text.clear()
        if tag == "track":
            raise InputError(f"{self.name!r} is of a video; export 'CVAT for images 1.1'")
        if tag == "image" and len(self.path) == 2:
            self.image, self.tags, self.marks = attributes, {}, {}
        elif tag == "tag" and self.n_open["image"]:
            self.tags.setdefault(attributes.get("source", "manual"), []).append(attributes.get("label", ""))
        elif tag == "attribute" and self.path[-2:-1] == ["tag"]:
            self.export.excluded["attributes of tags"] += 1
        elif tag in ("box", "points") and self.path[-2] == "image":
            self._add_marks(tag, attributes)
        elif tag in _OTHER_SHAPES and self.n_open["image"]:
            self.export.excluded[tag] += 1

    def _add_text(self, text: str) -> None:
        if self.path and self.path[-1] in _TEXT_ELEMENTS:
            self.text.append(text)

    def _end_element(self, tag: str) -> None:
        parent = self.path[-2] if len(self.path) > 1 else ""
        if tag == "id" and parent == "task":
            self.task_id = "".join(self.text).strip()
        elif tag == "username" and parent == "assignee":
            username = "".join(self.text).strip()
            if self.n_open["project"] and self.n_open["task"]:
                self.assignee_by_task[self.task_id] = username
            else:
                self.assignee = username or self.assignee
        elif tag == "image" and len(self.path) == 2:
            self._add_image()
        self.path.pop()
        self.n_open[tag] -= 1

    def _add_image(self) -> None:
        task = self.image.get("name") or self.image.get("id", "")
        if not task:
            raise InputError(f"an image in {self.name!r} has neither a name nor an id")
        self.export.tasks.setdefault(task, dict(self.image))
        self._add_sheets(task)
        question = self.export.get_question(QUESTION)
        if not self.tags:
            question.excluded["empty"] += 1
        for source, labels in self.tags.items():
            if not all(labels):
                raise InputError(f"a tag of the image {preview([task])} in {self.name!r} has no label")
            if source == "auto":
                question.add_answer(task, AUTO, labels, machine=True)
            elif source == MERGED:
                question.excluded["merged by CVAT"] += len(labels)
            else:
                question.add_answer(task, self._find_worker(), labels)

    def _find_worker(self) -> str:
        return self.assignee_by_task.get(self.image.get("task_id", "")) or self.assignee or self.name

    def _add_marks(self, tag: str, attributes: dict[str, str]) -> None:
        """Collect a box, or the points of a shape."""
        name = BOXES if tag == "box" else POINTS
        label, score = attributes.get("label"), parse_number(attributes.get("score"))
        if tag == "box":
            corners = [parse_number(attributes.get(key)) for key in ("xtl", "ytl", "xbr", "ybr")]
            places = [_turn_box(corners, parse_number(attributes.get("rotation", 0)))]
        else:
            pairs = [pair.split(",") for pair in attributes.get("points", "").split(";")]
            places = [tuple(map(parse_number, pair)) for pair in pairs]
        question = get_structure(self.export, name, "boxes" if tag == "box" else "points", "pixels")
        if any(len(place) != (4 if tag == "box" else 2) or any(map(math.isnan, place)) for place in places):
            question.problems.append(
                f"{tag} of the image {preview([self.image.get('name', '')])} in {self.name!r} has no valid place; expected "
                + ("xtl, ytl, xbr and ybr" if tag == "box" else 'points="x,y;x,y"')
            )
            return
        if tag == "box" and parse_number(attributes.get("rotation", 0)):
            note = "turned boxes were replaced by the upright boxes around them"
            question.notes = list(dict.fromkeys([*question.notes, note]))
        by_question = self.marks.setdefault(attributes.get("source", "manual"), {})
        by_question.setdefault(name, []).extend(ExportedMark(place, label, score) for place in places)

    def _add_sheets(self, task: str) -> None:
        """Add a sheet of the worker, and one of each other source of marks on the image."""
        worker = self._find_worker()
        answers: dict[str, list[ExportedMark]] = {}
        for source, by_question in self.marks.items():
            for name, marks in by_question.items():
                question = self.export.structures[name]
                question.set_size(task, self.image.get("width"), self.image.get("height"))
                if source == MERGED and not worker.startswith(OWN_MODEL):
                    question.excluded["merged by CVAT"] += len(marks)
                elif source != "auto":
                    answers.setdefault(name, []).extend(marks)
        is_own = worker.startswith(OWN_MODEL)
        self.sheets.append(AnswerSheet(task, worker, answers, machine=is_own))
        self.sheets.append(AnswerSheet(task, AUTO, self.marks.get("auto", {}), machine=True))


def _turn_box(corners: list[float], angle: float) -> tuple[float, ...]:
    """Return x, y, width and height of the upright box around a box that is turned about its centre."""
    left, top, right, bottom = corners
    width, height = right - left, bottom - top
    if angle and angle == angle:
        cos, sin = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
        width, height = width * cos + height * sin, width * sin + height * cos
        left, top = (left + right - width) / 2, (top + bottom - height) / 2
    return left, top, width, height


def _detect(path: Path) -> bool:
    if path.is_dir():
        # A file, zip file or folder per job. Deeper levels are not searched: a folder may hold anything.
        files = [file for file in sorted(path.iterdir()) if _may_be_export(file)]
        files = files or [folder / f"{ANNOTATIONS}.xml" for folder in sorted(path.iterdir()) if folder.is_dir()]
        files = [file for file in files if file.is_file()]
        files.sort(key=lambda file: file.suffix.lower() != ".xml")
        return bool(files) and _detect(files[0])
    if is_zip(path):
        members = peek_zip_texts(path, (f"{ANNOTATIONS}.xml",))
        return bool(members) and "<annotations>" in members[0][1][:1000]
    return "<annotations>" in peek_text(path)


CVAT = make_tool_reader("cvat", read_export, _detect)
