"""CVAT: tags of images in XML ("CVAT for images"), as a file, a zip file, or a folder of either.

CVAT does not record who set a tag, only the assignee of a job or task. Without an assignee, the file name is the worker. The
answers of several workers are therefore several files, one per job. Tags set by a model (``source="auto"``) are votes of a
machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tables.archives import is_system_file, is_zip, peek_zip_texts, read_zip_texts
from wisecrowd.io.tables.text_files import read_text
from wisecrowd.io.tools.export_files import peek_text
from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.question_votes import make_tool_reader
from wisecrowd.utils.text import shorten

QUESTION = "tag"
#: Name of the worker that stands for CVAT's models.
AUTO = "auto"
#: Name of the file in CVAT's zip files.
ANNOTATIONS = "annotations"
#: File names that do not identify a worker: that of CVAT, and that of datumaro's exports.
_GENERIC_NAMES = (ANNOTATIONS, "default")
#: Elements whose text is used.
_TEXT_ELEMENTS = ("id", "username")
#: Elements with a position within the image. A tag is about the whole image.
_SHAPES = {"box", "polygon", "polyline", "points", "cuboid", "ellipse", "mask", "skeleton"}


def read_export(path: Path) -> ExportedAnswers:
    """Read all tags of images.

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
    for name, location, text in _iter_files(path):
        try:
            _DocumentParser(name, export).parse(text)
        except InputError as error:
            error.args = (f"{location}: {error}" if location else str(error),)
            raise
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
    """Streaming parser of one XML file. Elements other than tags of images are skipped."""

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

    def parse(self, text: str) -> None:
        """Add the tags of all images in an XML text to the export."""
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._refuse_declaration
        parser.EntityDeclHandler = self._refuse_declaration
        parser.StartElementHandler, parser.EndElementHandler = self._start_element, self._end_element
        parser.CharacterDataHandler, parser.buffer_text = self._add_text, True
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            raise InputError(f"{self.name!r} is not XML: {error}") from None

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
            self.image, self.tags = attributes, {}
        elif tag == "tag" and self.n_open["image"]:
            self.tags.setdefault(attributes.get("source", "manual"), []).append(attributes.get("label", ""))
        elif tag == "attribute" and self.path[-2:-1] == ["tag"]:
            self.export.excluded["attributes of tags"] += 1
        elif tag in _SHAPES and self.n_open["image"]:
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
        question = self.export.get_question(QUESTION)
        if not self.tags:
            question.excluded["empty"] += 1
        for source, labels in self.tags.items():
            if not all(labels):
                raise InputError(f"a tag of the image {preview([task])} in {self.name!r} has no label")
            if source == "auto":
                question.add_answer(task, AUTO, labels, machine=True)
            elif source == "consensus":
                question.excluded["merged by CVAT"] += len(labels)
            else:
                assignee = self.assignee_by_task.get(self.image.get("task_id", "")) or self.assignee
                question.add_answer(task, assignee or self.name, labels)


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
