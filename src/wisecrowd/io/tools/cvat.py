"""CVAT: tags of images, in XML ("CVAT for images"), plain, in a zip, or several of either in a folder.

CVAT does not tell who set a tag, but to whom a job or task was assigned; where nobody was, a file goes by its own name.
So the answers of several workers come as several files, one for each job. Tags set by a model (``source="auto"``) are
votes of a machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from wisecrowd.errors import InputError
from wisecrowd.io.tables.archives import is_clutter, is_zip, members
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import first_letters, whole_text
from wisecrowd.io.tools.gathering import Gathering

QUESTION = "tag"
#: The worker who is CVAT's own model, and what its file is called in a zip.
AUTO, ANNOTATIONS = "auto", "annotations"
#: Names of files that tell of nobody: CVAT's, and that of datumaro's exports.
_NAMELESS = (ANNOTATIONS, "default")
#: Shapes have a place within the image; a tag is about all of it.
_SHAPES = {"box", "polygon", "polyline", "points", "cuboid", "ellipse", "mask", "skeleton"}


def gather(path: Path) -> Gathering:
    """All that the files tell.

    >>> image = '<image id="0" name="a.jpg"><tag label="cat" source="manual"/></image>'
    >>> _ = Path("ann.xml").write_text(f"<annotations>{image}</annotations>")
    >>> tags = gather(Path("ann.xml")).question("tag")
    >>> tags.task, tags.worker, tags.said
    (['a.jpg'], ['ann'], [('cat',)])
    """
    gathered = Gathering()
    for name, where, text in _files(path):
        try:
            _Document(name, gathered).read(text)
        except InputError as error:
            error.args = (f"{where}: {error}" if where else str(error),)
            raise
    return gathered


def _files(path: Path) -> Iterator[tuple[str, str, str]]:
    """Who annotated, as far as names tell; where in the folder or zip that is told; and the text."""
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if _may_be_ours(file)]
        if not files:
            raise InputError("there is no XML file or zip of CVAT in it")
        for file in files:
            try:
                for name, where, text in _files(file):
                    yield name, f"{file.relative_to(path)}{f', {where}' if where else ''}", text
            except InputError as error:
                error.args = (f"{file.relative_to(path)}: {error}",)
                raise
    elif is_zip(path):
        found = members(path, (".xml",))
        if not found:
            raise InputError("there is no XML file of CVAT in this zip; annotations.xml was wanted")
        for name, text in found:
            stem = Path(name).stem
            yield (path.stem if stem in _NAMELESS else stem), name, text
    else:
        yield (path.resolve().parent.name if path.stem in _NAMELESS else path.stem), "", whole_text(path)


def _may_be_ours(file: Path) -> bool:
    return file.suffix.lower() in (".xml", ".zip") and not is_clutter(str(file)) and file.is_file()


class _Document:
    """One file, read as it comes: what is not a tag of an image is passed over."""

    def __init__(self, name: str, gathered: Gathering) -> None:
        self.name, self.gathered = name, gathered
        self.path: list[str] = []
        self.text = ""
        #: To whom the file was assigned, and each task of a project.
        self.assignee = ""
        self.by_task: dict[str, str] = {}
        self.task_id = ""
        self.image: dict[str, str] = {}
        self.tags: dict[str, list[str]] = {}
        self.parser = expat.ParserCreate()

    def read(self, text: str) -> None:
        """Take in all images."""
        parser = self.parser
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            raise InputError(f"{self.name!r} is not XML: {error}") from None

    def _refuse(self, *_: Any) -> None:
        raise InputError(f"{self.name!r} declares a document type or entities, which CVAT never does; it is not read")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.path and tag != "annotations":
            raise InputError(f"{self.name!r} begins with <{tag}>; <annotations> of CVAT for images was wanted")
        self.path.append(tag)
        self.text = ""
        if tag == "track":
            raise InputError(f"{self.name!r} is of a video; export 'CVAT for images 1.1'")
        if tag == "image" and len(self.path) == 2:
            self.image, self.tags = attributes, {}
        elif tag == "tag" and "image" in self.path:
            self.tags.setdefault(attributes.get("source", "manual"), []).append(attributes.get("label", ""))
        elif tag == "attribute" and self.path[-2:-1] == ["tag"]:
            self.gathered.left_out["attributes of tags"] += 1
        elif tag in _SHAPES and "image" in self.path:
            self.gathered.left_out[tag] += 1

    def _characters(self, text: str) -> None:
        self.text += text

    def _end(self, tag: str) -> None:
        if tag == "id" and self.path[-2] == "task":
            self.task_id = self.text.strip()
        elif tag == "username" and self.path[-2] == "assignee":
            if "project" in self.path and "task" in self.path:
                self.by_task[self.task_id] = self.text.strip()
            else:
                self.assignee = self.text.strip() or self.assignee
        elif tag == "image" and len(self.path) == 2:
            self._image()
        self.path.pop()

    def _image(self) -> None:
        task = self.image.get("name") or self.image.get("id", "")
        if not task:
            raise InputError(f"an image in {self.name!r} has neither a name nor an id")
        self.gathered.tasks.setdefault(task, dict(self.image))
        asked = self.gathered.question(QUESTION)
        if not self.tags:
            asked.left_out["empty"] += 1
        for source, labels in self.tags.items():
            if not all(labels):
                raise InputError(f"a tag of the image {task!r} in {self.name!r} has no label")
            if source == "auto":
                asked.answer(task, AUTO, labels, machine=True)
            elif source == "consensus":
                asked.left_out["merged by CVAT"] += len(labels)
            else:
                asked.answer(
                    task, self.by_task.get(self.image.get("task_id", "")) or self.assignee or self.name, labels
                )


def _sniff(path: Path) -> bool:
    if path.is_dir():
        # A file or zip for each job, or a folder; no deeper, for a folder may hold anything.
        near = [file for file in sorted(path.iterdir()) if _may_be_ours(file)]
        near = near or [folder / f"{ANNOTATIONS}.xml" for folder in sorted(path.iterdir()) if folder.is_dir()]
        near = [file for file in near if file.is_file()]
        near.sort(key=lambda file: file.suffix.lower() != ".xml")
        return bool(near) and _sniff(near[0])
    if is_zip(path):
        try:
            found = members(path, (f"{ANNOTATIONS}.xml",), at_most=1)
        except InputError:
            return False
        return bool(found) and "<annotations>" in found[0][1][:1000]
    return "<annotations>" in first_letters(path)


CVAT = tool_format("cvat", "tags of images by CVAT, in XML", gather, _sniff)
