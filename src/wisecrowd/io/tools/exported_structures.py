"""Spans, boxes, points and texts in the export of a labelling tool, before they become votes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tools.exported_answers import OWN_MODEL, ExportedAnswers, format_label, parse_number, parse_timestamp

#: Kinds of structured answers. They are answer types, too.
StructureKind: TypeAlias = Literal["spans", "boxes", "points", "texts"]
#: Unit of the places of marks.
Unit: TypeAlias = Literal["characters", "pixels", "percent"]


class ExportedMark(NamedTuple):
    """Mark of a worker: a span, a box or a point.

    Parameters
    ----------
    place : tuple of float
        Start and end of a span; x, y, width and height of a box; x and y of a point.
    label : str or None
        Class; None for a mark without one.
    score : float, default=nan
        Confidence of a model.
    """

    place: tuple[float, ...]
    label: str | None
    score: float = math.nan


#: Answer of a worker to a question about a task: marks, or a text.
StructuredAnswer: TypeAlias = tuple[ExportedMark, ...] | str


@dataclass(eq=False)
class ExportedStructure:
    """All answers to one question whose answers are marks or texts. The lists have one entry per answer.

    Parameters
    ----------
    name : str
        Name of the question.
    kind : {"spans", "boxes", "points", "texts"}
        Type of the answers.
    unit : {"characters", "pixels", "percent"}
        Unit of places.
    task, worker : list of str
        Task and worker of each answer.
    answers : list of tuple of ExportedMark, or of str
        Marks of each answer, none if the worker saw the task and marked nothing; or the text.
    time : list of float
        Seconds since 1970, NaN if unknown.
    machine : list of bool
        Whether a model gave the answer.
    options : dict of str to None
        Classes that the tool lists, in their order.
    truth : dict of str to answer
        Answers by task that the tool marks as correct.
    consensus : dict of str to (answer, float)
        Answers that wisecrowd wrote into the tool before, with their confidence, by task.
    control : dict of str to str
        Data that writing answers back into the tool needs.
    excluded : Counter of str
        Number of answers that are not votes, by reason.
    notes : list of str
        Remarks for the user about this question.
    problems : list of str
        Reasons why the question cannot be read. Other questions of the export can.
    sizes : dict of str to (float, float)
        Width and height of the image of a task in pixels.
    lengths : dict of str to int
        Length of the text of a task.
    anchors : dict of (str, str, int) to (str, int)
        Node and offset of an end of a span in a web page, by task, "start" or "end", and offset in its text.
    """

    name: str
    kind: StructureKind
    unit: Unit = "characters"
    task: list[str] = field(default_factory=list)
    worker: list[str] = field(default_factory=list)
    answers: list[StructuredAnswer] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    machine: list[bool] = field(default_factory=list)
    options: dict[str, None] = field(default_factory=dict)
    truth: dict[str, StructuredAnswer] = field(default_factory=dict)
    consensus: dict[str, tuple[StructuredAnswer, float]] = field(default_factory=dict)
    control: dict[str, str] = field(default_factory=dict)
    excluded: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sizes: dict[str, tuple[float, float]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    anchors: dict[tuple[str, str, int], tuple[str, int]] = field(default_factory=dict)

    def add_answer(
        self,
        task: str,
        worker: str,
        answer: Iterable[ExportedMark] | str,
        *,
        time: object = None,
        machine: bool = False,
    ) -> None:
        """Add the answer of a worker or a model.

        Parameters
        ----------
        task, worker : str
            Ids.
        answer : iterable of ExportedMark, or str
            Marks, or the text.
        time : object, optional
            Timestamp in any form that `parse_timestamp` reads.
        machine : bool, default=False
            Whether a model gave the answer.
        """
        self.task.append(task)
        self.worker.append(worker)
        self.answers.append(answer if isinstance(answer, str) else tuple(answer))
        self.time.append(parse_timestamp(time))
        self.machine.append(machine)

    def add_suggestion(self, task: str, model: str, answer: Iterable[ExportedMark] | str, score: object = None) -> None:
        """Add the answer of a model. Answers that wisecrowd wrote itself become the consensus and are not votes.

        Parameters
        ----------
        task : str
            Task id.
        model : str
            Name of the model.
        answer : iterable of ExportedMark, or str
            Marks, or the text.
        score : object, optional
            Confidence of the model in the whole answer.
        """
        if model.startswith(OWN_MODEL):
            self.consensus[task] = (answer if isinstance(answer, str) else tuple(answer), parse_number(score))
        else:
            self.add_answer(task, model, answer, machine=True)

    def parse_marks(self, parse: Callable[[Any], ExportedMark | None], entries: Iterable[Any]) -> list[ExportedMark]:
        """Parse the marks of an answer. Invalid ones are problems of this question only, so that others can be read.

        Parameters
        ----------
        parse : callable
            Function of an entry that returns a mark, or None for an entry to skip.
        entries : iterable
            Marks as the tool wrote them.

        Returns
        -------
        list of ExportedMark
        """
        marks = []
        for entry in entries:
            try:
                mark = parse(entry)
            except InputError as error:
                self.problems.append(str(error))
                continue
            if mark is not None:
                marks.append(mark)
        return marks

    def set_text(self, task: str, text: object) -> None:
        """Note the length of the text of a task.

        Parameters
        ----------
        task : str
            Task id.
        text : object
            Text; other values are ignored.
        """
        length = count_text_units(text)
        if length is not None:
            self.lengths[task] = length

    def set_size(self, task: str, width: object, height: object) -> None:
        """Note the size of the image of a task. Contradictory sizes are a problem.

        Parameters
        ----------
        task : str
            Task id.
        width, height : object
            Size in pixels; values that are no positive numbers are ignored.
        """
        size = parse_number(width), parse_number(height)
        if not (size[0] > 0 and size[1] > 0):
            return
        if self.sizes.setdefault(task, size) != size:
            known = self.sizes[task]
            self.problems.append(
                f"the image of task {preview([task])} is {known[0]:g} x {known[1]:g} pixels for one worker and {size[0]:g} x "
                f"{size[1]:g} for another; show all workers the same image"
            )


@dataclass
class AnswerSheet:
    """Answers of a worker, a model or a gold annotation to all structured questions about a task.

    Parameters
    ----------
    task, worker : str
        Ids.
    answers : dict of str to answer
        Answers by question. A question of marks that is absent was seen, and nothing was marked.
    time : object, default=None
        Timestamp.
    machine : bool, default=False
        Whether a model gave the answers.
    score : object, default=None
        Confidence of the model.
    is_gold : bool, default=False
        Whether the tool marks the answers as correct.
    is_empty : bool, default=False
        Whether there are no answers to other questions either.
    """

    task: str
    worker: str
    answers: Mapping[str, list[ExportedMark] | str]
    time: object = None
    machine: bool = False
    score: object = None
    is_gold: bool = False
    is_empty: bool = False


def get_structure(
    export: ExportedAnswers, name: str, kind: StructureKind, unit: Unit = "characters"
) -> ExportedStructure:
    """Return the structured question of a name. It is created on first use.

    A tool may have one question with marks of several kinds. They become several questions, such as "objects" and
    "objects.points".

    Parameters
    ----------
    export : ExportedAnswers
        Export.
    name : str
        Name in the tool.
    kind : {"spans", "boxes", "points", "texts"}
        Type of the answers.
    unit : {"characters", "pixels", "percent"}, default="characters"
        Unit of places.

    Returns
    -------
    ExportedStructure

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> get_structure(export, "objects", "boxes").name, get_structure(export, "objects", "points").name
    ('objects', 'objects.points')
    """
    key = name
    if (key in export.structures and export.structures[key].kind != kind) or key in export.questions:
        key = f"{name}.{kind}"
    if key not in export.structures:
        export.structures[key] = ExportedStructure(key, kind, unit)
    return export.structures[key]


def add_sheets(export: ExportedAnswers, sheets: Iterable[AnswerSheet]) -> None:
    """Add the answers of sheets to the structured questions of an export.

    Every sheet of a person is a vote on all questions of marks: without marks, the person saw the task and marked nothing. A model
    votes on the questions that it answers for some task. A text that is absent is not a vote.

    Parameters
    ----------
    export : ExportedAnswers
        Export with all its structured questions.
    sheets : iterable of AnswerSheet
        Answers.

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> names = get_structure(export, "names", "spans")
    >>> add_sheets(export, [AnswerSheet("t1", "ann", {"names": [ExportedMark((0, 3), "PER")]}), AnswerSheet("t1", "bob", {})])
    >>> names.worker, [len(marks) for marks in names.answers]
    (['ann', 'bob'], [1, 0])
    """
    sheets = list(sheets)
    questions_of_models = {(name, sheet.worker) for sheet in sheets if sheet.machine for name in sheet.answers}
    for name, question in export.structures.items():
        for sheet in sheets:
            answer = sheet.answers.get(name)
            is_absent = answer is None
            if answer is None:
                answer = []
            if sheet.is_gold:
                if not is_absent or (sheet.is_empty and question.kind != "texts"):
                    _add_gold(question, sheet.task, answer)
            elif is_absent and question.kind == "texts":
                question.excluded["empty"] += not sheet.machine
            elif not sheet.machine:
                question.add_answer(sheet.task, sheet.worker, answer, time=sheet.time)
            elif not is_absent or (
                (name, sheet.worker) in questions_of_models and not sheet.worker.startswith(OWN_MODEL)
            ):
                question.add_suggestion(sheet.task, sheet.worker, answer, sheet.score)


def _add_gold(question: ExportedStructure, task: str, answer: list[ExportedMark] | str) -> None:
    """Add an answer that the tool marks as correct. The last one of a task counts."""
    question.excluded["gold"] += 1
    question.truth[task] = answer if isinstance(answer, str) else tuple(answer)


def parse_span(start: object, end: object, label: object, location: str, score: object = None) -> ExportedMark:
    """Return a span with offsets in characters.

    Parameters
    ----------
    start, end : object
        Offsets; the end is exclusive.
    label : object
        Class, or None.
    location : str
        Position in the file, for messages.
    score : object, default=None
        Confidence of a model.

    Returns
    -------
    ExportedMark

    Examples
    --------
    >>> parse_span(0, 3, "PER", "line 1").place
    (0.0, 3.0)
    """
    place = parse_place((start, end), "span", location)
    return ExportedMark(place, None if label is None else format_label(label), parse_number(score))


def count_text_units(text: object) -> int | None:
    """Return the largest offset that a span of a text may have, or None if it is not a text.

    Offsets of tools that run in a browser count characters beyond the basic plane, such as emojis, twice.

    Parameters
    ----------
    text : object
        Text.

    Returns
    -------
    int or None

    Examples
    --------
    >>> count_text_units("Köln 🍜")
    7
    """
    return len(text) + sum(character > "\uffff" for character in text) if isinstance(text, str) else None


def parse_place(values: Iterable[object], noun: str, location: str) -> tuple[float, ...]:
    """Return coordinates as numbers.

    Parameters
    ----------
    values : iterable
        Coordinates.
    noun : str
        Kind of mark, for messages.
    location : str
        Position in the file, for messages.

    Returns
    -------
    tuple of float

    Raises
    ------
    InputError
        If a value is not a finite number.

    Examples
    --------
    >>> parse_place([3, 7.0], "span", "task 1")
    (3.0, 7.0)
    """
    values = tuple(values)
    if any(
        isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) for value in values
    ):
        raise InputError(f"the place of a {noun} of {location} must be numbers; got {preview(values, 4)}")
    return tuple(float(value) for value in values)  # type: ignore[arg-type]  # numbers, as checked above
