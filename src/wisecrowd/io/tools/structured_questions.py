"""Questions of labelling tools whose answers are spans, boxes, points or texts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.answer_tables import MARK_CROWDS, build_answers
from wisecrowd.io.problems import convert_errors
from wisecrowd.io.tools.exported_answers import ExportedAnswers
from wisecrowd.io.tools.exported_structures import ExportedMark, ExportedStructure, StructuredAnswer
from wisecrowd.io.tools.question_votes import MACHINE, format_counts, name_machines
from wisecrowd.utils.text import count_noun

log = logging.getLogger("wisecrowd.io")

#: Pixels, and percent of an image, by which tools round places over its edge.
_EDGE_TOLERANCE = {"pixels": 1.0, "percent": 0.5}
#: Kind of a worker that is not a machine.
_PERSON = "person"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StructuredQuestion:
    """Question of a project whose answers are spans, boxes, points or texts.

    Parameters
    ----------
    name : str
        Name.
    kind : {"spans", "boxes", "points", "texts"}
        Type of the answers.
    structure : ExportedStructure
        Answers as the tool exported them.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for several answers of a worker about a task. The marks of all of them are united by the last two.
    excluded : mapping of str to int
        Number of answers that are not votes, by reason.

    Examples
    --------
    >>> structure = ExportedStructure("names", "spans")
    >>> structure.add_answer("t1", "ann", [ExportedMark((0, 3), "PER")])
    >>> question = StructuredQuestion(name="names", kind="spans", structure=structure)
    >>> question
    StructuredQuestion('names', spans, 1 answer)
    >>> question.crowd
    SpanCrowd(1 span in 1 vote: 1 task x 1 worker, 1 class)
    """

    name: str
    kind: str
    structure: ExportedStructure
    duplicates: str = "error"
    excluded: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def crowd(self) -> MarkCrowd | TextCrowd:
        """Votes of people and machines; places in pixels, or in percent if the export has no image sizes."""
        return build_structured_crowd(self.structure, duplicates=self.duplicates)

    @cached_property
    def kinds(self) -> pd.Series[Any]:
        """``"person"`` or ``"machine"``, by worker."""
        names = name_machines(self.structure.worker, self.structure.machine)
        kinds = dict(zip(names, self.structure.machine, strict=True))
        index = pd.Index(sorted(kinds), name="worker", dtype=object)
        values = [MACHINE if kinds[name] else _PERSON for name in index]
        return pd.Series(values, index=index, name="kind", dtype=object)

    @property
    def machines(self) -> list[str]:
        """Workers that are machines."""
        return list(self.kinds.index[self.kinds == MACHINE])

    @property
    def labels(self) -> list[str]:
        """Classes: those that the tool lists, then others that were used."""
        return list_classes(self.structure)

    @cached_property
    def truth(self) -> pd.DataFrame | None:
        """Answers that the tool marks as correct: a table of objects, or of texts by task."""
        answers = self.structure.truth
        return build_answer_frame(self.structure, answers.items()) if answers else None

    @cached_property
    def consensus(self) -> pd.DataFrame | None:
        """Objects, or texts by task, with confidence, that wisecrowd wrote into the tool before. They are not votes."""
        if not self.structure.consensus:
            return None
        answers = {task: answer for task, (answer, _) in self.structure.consensus.items()}
        frame = build_answer_frame(self.structure, answers.items())
        if self.kind == "texts":
            frame["confidence"] = [self.structure.consensus[task][1] for task in frame.index]
        return frame

    @property
    def control(self) -> Mapping[str, str]:
        """Data that writing answers back into the tool needs."""
        return self.structure.control

    @property
    def notes(self) -> list[str]:
        """Remarks about the answers."""
        return self.structure.notes

    def __repr__(self) -> str:
        return f"StructuredQuestion({self.name!r}, {self.kind}, {count_noun(len(self.structure.task), 'answer')})"


def build_structured_questions(export: ExportedAnswers, *, duplicates: str = "error") -> dict[str, StructuredQuestion]:
    """Build the structured questions of an export. Their votes are checked when they are used.

    Parameters
    ----------
    export : ExportedAnswers
        Answers.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for several answers of a worker about a task.

    Returns
    -------
    dict of str to StructuredQuestion
        Questions by name.

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> build_structured_questions(export)
    {}
    """
    return {
        name: StructuredQuestion(
            name=name,
            kind=structure.kind,
            structure=structure,
            duplicates=duplicates,
            excluded=MappingProxyType(count_structured_excluded(structure, export)),
        )
        for name, structure in export.structures.items()
    }


def count_structured_excluded(structure: ExportedStructure, export: ExportedAnswers) -> dict[str, int]:
    """Count the answers to a structured question that are not votes.

    Parameters
    ----------
    structure : ExportedStructure
        Question.
    export : ExportedAnswers
        Export that has it.

    Returns
    -------
    dict of str to int
        Counts by reason. An annotation without results is a vote: its worker marked nothing.
    """
    counts = {reason: n for reason, n in export.excluded.items() if reason != "empty"}
    for reason, n in structure.excluded.items():
        counts[reason] = counts.get(reason, 0) + n
    return {reason: n for reason, n in counts.items() if n}


def build_structured_crowd(structure: ExportedStructure, *, duplicates: str = "error") -> MarkCrowd | TextCrowd:
    """Build the votes of a structured question.

    Parameters
    ----------
    structure : ExportedStructure
        Answers.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for several answers of a worker about a task. The last two unite the marks; texts cannot be united.

    Returns
    -------
    MarkCrowd or TextCrowd

    Raises
    ------
    InputError
        If marks lie outside their image or text, units are mixed, or a worker has several answers about a task.

    Examples
    --------
    >>> structure = ExportedStructure("objects", "boxes", unit="pixels", sizes={"a.jpg": (100, 80)})
    >>> structure.add_answer("a.jpg", "ann", [ExportedMark((90, 10, 50, 20), "cat")])
    >>> build_structured_crowd(structure)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: question 'objects': 1 box outside its image, for example x=90, y=10, width=50, height=20 of ...
    """
    try:
        with convert_errors():
            table = build_structured_table(structure, duplicates=duplicates)
            columns = {name: name for name in table.column_names}
            crowd = build_answers(structure.kind, table, columns)
    except InputError as error:
        error.args = (f"question {preview([structure.name])}: {error}",)
        raise
    assert isinstance(crowd, MarkCrowd | TextCrowd)
    return crowd


def build_structured_table(structure: ExportedStructure, *, duplicates: str = "error") -> pa.Table:
    """Build the table of a structured question: one row per mark, and one per answer without marks; or one per text.

    Parameters
    ----------
    structure : ExportedStructure
        Answers.
    duplicates : str, default="error"
        Rule for several answers of a worker about a task.

    Returns
    -------
    pyarrow.Table
        Columns task, worker, coordinates and label; or task, worker and text.

    Raises
    ------
    InputError
        If answers are invalid.

    Examples
    --------
    >>> structure = ExportedStructure("note", "texts")
    >>> structure.add_answer("t1", "ann", "a cat")
    >>> build_structured_table(structure).to_pylist()
    [{'task': 't1', 'worker': 'ann', 'text': 'a cat'}]
    """
    if structure.problems:
        more = f" (and {len(structure.problems) - 1:,} more problems)" if len(structure.problems) > 1 else ""
        raise InputError(f"{structure.problems[0]}{more}")
    workers = name_machines(structure.worker, structure.machine)
    rows = _resolve_repeats(structure, workers, duplicates)
    tasks, names = [structure.task[row] for row in rows], [workers[row] for row in rows]
    if structure.kind == "texts":
        texts = [structure.answers[row] for row in rows]
        columns = {"task": tasks, "worker": names, "text": texts}
        return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return _build_mark_table(structure, tasks, names, [structure.answers[row] for row in rows])


def _resolve_repeats(structure: ExportedStructure, workers: Sequence[str], duplicates: str) -> list[int]:
    """Return the rows of the answers to use, in order of time if every time is known."""
    rows = list(range(len(structure.task)))
    time = np.array(structure.time)
    if len(rows) and not np.isnan(time).any():
        rows = [int(row) for row in np.argsort(time, kind="stable")]
    by_pair: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        by_pair.setdefault((structure.task[row], workers[row]), []).append(row)
    if len(by_pair) == len(rows):
        return rows
    if duplicates == "error" or (duplicates in ("keep", "distinct") and structure.kind == "texts"):
        (task, worker) = next(pair for pair, members in by_pair.items() if len(members) > 1)
        raise InputError(
            f"worker {preview([worker])} has several answers about task {preview([task])}; choose one with "
            'duplicates="last" or "first" (--duplicates last)'
        )
    if duplicates in ("first", "last"):
        return [members[0 if duplicates == "first" else -1] for members in by_pair.values()]
    if duplicates not in ("keep", "distinct"):
        raise UsageError(
            f"duplicates must be one of error, first, last, distinct, keep for {structure.kind}; got {duplicates!r}"
        )
    return rows


def _build_mark_table(
    structure: ExportedStructure, tasks: list[str], workers: list[str], answers: Sequence[StructuredAnswer]
) -> pa.Table:
    crowd_class = MARK_CROWDS[structure.kind]
    row_of_mark, marks = _flatten(answers)
    places = np.array([mark.place for mark in marks], dtype=np.float64).reshape(-1, len(crowd_class.coordinate_names))
    places = _check_places(
        structure,
        places,
        [tasks[row] for row in row_of_mark],
        lambda mark: f"worker {preview([workers[row_of_mark[mark]]])} on task {preview([tasks[row_of_mark[mark]]])}",
    )
    empty = [row for row, answer in enumerate(answers) if not answer]
    rows = [*row_of_mark, *empty]
    missing = [None] * len(empty)
    columns: dict[str, Any] = {
        "task": pa.array([tasks[row] for row in rows], pa.string()),
        "worker": pa.array([workers[row] for row in rows], pa.string()),
    }
    for name, column in zip(crowd_class.coordinate_names, places.T, strict=True):
        columns[name] = pa.array([*column.tolist(), *missing], pa.float64())
    labels = [crowd_class.noun if mark.label is None else mark.label for mark in marks]
    columns["label"] = pa.array([*labels, *missing], pa.string())
    return pa.table(columns)


def _flatten(answers: Iterable[StructuredAnswer]) -> tuple[list[int], list[ExportedMark]]:
    """Return the row and the mark of every mark of some answers."""
    pairs = [(row, mark) for row, answer in enumerate(answers) for mark in answer if isinstance(mark, ExportedMark)]
    return [row for row, _ in pairs], [mark for _, mark in pairs]


def _check_places(
    structure: ExportedStructure, places: NDArray[np.float64], tasks: list[str], describe: Any
) -> NDArray[np.float64]:
    """Raise if marks lie outside their image or text; return places without the rounding at edges."""
    crowd_class = MARK_CROWDS[structure.kind]

    def refuse(is_outside: NDArray[np.bool_], where: str, limit: Any, advice: str) -> None:
        if not is_outside.any():
            return
        mark = int(np.flatnonzero(is_outside)[0])
        values = ", ".join(
            f"{name}={value:g}" for name, value in zip(crowd_class.coordinate_names, places[mark], strict=True)
        )
        n = int(is_outside.sum())
        raise InputError(
            f"{n:,} {crowd_class.noun if n == 1 else crowd_class.plural} outside {where}, for example {values} of "
            f"{describe(mark)}, {limit(mark)}. {advice}"
        )

    if structure.kind == "spans":
        lengths = np.array([structure.lengths.get(task, np.inf) for task in tasks])
        refuse(
            np.asarray(places[:, 1] > lengths),
            "the text",
            lambda mark: f"whose text has {lengths[mark]:g} characters",
            "Export texts and spans together, with offsets in characters",
        )
        return places
    if structure.unit == "percent":
        size = np.full((len(tasks), 2), 100.0)
    else:
        size = np.array([structure.sizes.get(task, (np.inf, np.inf)) for task in tasks]).reshape(-1, 2)
    tolerance = _EDGE_TOLERANCE[structure.unit]
    low = places[:, :2]
    high = low + places[:, 2:] if structure.kind == "boxes" else low
    is_outside = np.asarray(((low < -tolerance) | (high > size + tolerance)).any(axis=1))
    refuse(
        is_outside,
        "its image" if is_outside.sum() == 1 else "their images",
        lambda mark: f"whose image is {size[mark, 0]:g} x {size[mark, 1]:g} {structure.unit}",
        "Correct or remove them, and check the unit: the tool writes "
        + ("percent of the image" if structure.unit == "percent" or "percent" in structure.control else "pixels"),
    )
    low, high = np.clip(low, 0, size), np.clip(high, 0, size)
    return np.hstack([low, high - low]) if structure.kind == "boxes" else low


def list_classes(structure: ExportedStructure) -> list[str]:
    """Return the classes of a question: those that the tool lists, then others that were used.

    Parameters
    ----------
    structure : ExportedStructure
        Answers.

    Returns
    -------
    list of str
    """
    used = {
        mark.label
        for answer in (*structure.answers, *structure.truth.values())
        for mark in answer
        if isinstance(mark, ExportedMark) and mark.label is not None
    }
    return [*structure.options, *sorted(used - structure.options.keys())]


def build_answer_frame(structure: ExportedStructure, answers: Iterable[tuple[str, StructuredAnswer]]) -> pd.DataFrame:
    """Build a table of objects, or of texts by task, from answers by task.

    Parameters
    ----------
    structure : ExportedStructure
        Question.
    answers : iterable of (str, answer)
        Answers by task.

    Returns
    -------
    DataFrame
        Columns task, coordinates, label and confidence; for texts the index is the task.
    """
    pairs = list(answers)
    tasks, values = [task for task, _ in pairs], [answer for _, answer in pairs]
    if structure.kind == "texts":
        return pd.DataFrame({"text": values}, index=pd.Index(tasks, name="task", dtype=object))
    crowd_class = MARK_CROWDS[structure.kind]
    row_of_mark, marks = _flatten(values)
    places = np.array([mark.place for mark in marks], dtype=np.float64).reshape(-1, len(crowd_class.coordinate_names))
    frame = pd.DataFrame({"task": pd.Series([tasks[row] for row in row_of_mark], dtype=object)})
    for name, column in zip(crowd_class.coordinate_names, crowd_class.format_coordinates(places), strict=True):
        frame[name] = column
    labels = [crowd_class.noun if mark.label is None else mark.label for mark in marks]
    frame["label"] = pd.Series(labels, dtype=object)
    frame["confidence"] = [mark.score for mark in marks]
    return frame


def log_notes(structure: ExportedStructure, export: ExportedAnswers, name: str) -> None:
    """Log what the user should know about the answers to a question.

    Parameters
    ----------
    structure : ExportedStructure
        Question.
    export : ExportedAnswers
        Export that has it.
    name : str
        Name of the file.
    """
    for note in _iter_notes(structure, export):
        log.info("%s: %s", name, note)


def _iter_notes(structure: ExportedStructure, export: ExportedAnswers) -> Iterator[str]:
    yield from structure.notes
    machines = sorted({name for name, machine in zip(structure.worker, structure.machine, strict=True) if machine})
    if machines:
        yield f"the votes of machines are included: {preview(machines)}"
    excluded = count_structured_excluded(structure, export)
    if excluded:
        yield f"left out {format_counts(excluded)}"
