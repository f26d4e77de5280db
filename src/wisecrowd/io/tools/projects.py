"""Projects in the exports of labelling tools: several questions, each with its own crowd."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.formats import FORMATS
from wisecrowd.io.problems import EmptyInput, MissingColumn, prefix_errors
from wisecrowd.io.tables.columns import find_columns
from wisecrowd.io.tables.parquet import read_schema
from wisecrowd.io.tables.text_files import read_head_lines, read_text
from wisecrowd.io.tools.answer_questions import build_label_sets
from wisecrowd.io.tools.export_files import parse_objects
from wisecrowd.io.tools.exported_answers import ExportedAnswers, ExportedQuestion
from wisecrowd.io.tools.label_sets import format_label_set, parse_label_set
from wisecrowd.io.tools.question_votes import (
    MACHINE,
    build_truth_series,
    build_votes,
    choose_question,
    count_excluded,
    describe_no_votes,
    find_question_kind,
    find_vote_rows,
    format_answer,
    list_options,
    name_workers,
    parse_answer_number,
)
from wisecrowd.io.tools.structured_questions import StructuredQuestion, build_structured_questions
from wisecrowd.io.vote_source import VoteSource
from wisecrowd.io.vote_table import ReadOptions

__all__ = ["Project", "Question", "build_project", "format_label_set", "parse_label_set", "read_project"]

#: Rules for repeated sets of a worker. Sets that differ are united if all are kept.
_SET_RULES = {"error": "error", "first": "first", "last": "last", "distinct": "union", "keep": "union"}
#: Kind of a worker that is not a machine.
PERSON = "person"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Question:
    """One question of a project.

    Parameters
    ----------
    name : str
        Name.
    kind : {"single", "multiple", "number"}
        One option, several options, or a number.
    crowd : Crowd
        Votes of people and machines. The classes of a multiple-choice question are sets of options.
    kinds : Series
        ``"person"`` or ``"machine"``, by worker.
    truth : Series, optional
        Answers that the tool marks as correct, by task.
    groups : Series, optional
        Model, vendor or channel by worker, if the tool exports it.
    scores : DataFrame
        Confidence of machines: task, worker, label, score.
    seconds : DataFrame
        Time that answers took: task, worker, seconds.
    excluded : mapping of str to int
        Number of answers that are not votes, by reason.
    options : mapping of str to Crowd
        For a multiple-choice question, a crowd of "no" and "yes" by option.
    label_sets : LabelSetCrowd, optional
        For a multiple-choice question, its answers as sets of labels.
    consensus : DataFrame, optional
        Label and confidence that wisecrowd wrote into the tool before, by task. They are not votes.
    control : mapping of str to str
        Data that writing answers back into the tool needs.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "gpt", "dog")])
    >>> question = Question(name="animal", kind="single", crowd=crowd, kinds=pd.Series({"ann": "person", "gpt": "machine"}))
    >>> question
    Question('animal', single, Crowd(2 votes: 1 task x 2 workers, 2 classes, 2.0 votes/task), 1 machine)
    >>> question.people
    Crowd(1 vote: 1 task x 1 worker, 2 classes, 1.0 votes/task)
    """

    name: str
    kind: Literal["single", "multiple", "number"]
    crowd: Crowd
    kinds: pd.Series[Any]
    truth: pd.Series[Any] | None = None
    groups: pd.Series[Any] | None = None
    scores: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame({"task": [], "worker": [], "label": [], "score": []})
    )
    seconds: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"task": [], "worker": [], "seconds": []}))
    excluded: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, Crowd] = field(default_factory=lambda: MappingProxyType({}))
    label_sets: LabelSetCrowd | None = None
    consensus: pd.DataFrame | None = None
    control: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def joint(self) -> Crowd:
        """Crowd whose classes are sets of options, written "a|b"."""
        return self.crowd

    @property
    def machines(self) -> list[str]:
        """Workers that are machines."""
        return list(self.kinds.index[self.kinds == MACHINE])

    @property
    def people(self) -> Crowd:
        """Votes of people, with all tasks and classes."""
        machines = set(self.machines)
        return self.crowd.select_workers([worker for worker in self.kinds.index if worker not in machines])

    def __repr__(self) -> str:
        n = len(self.machines)
        machines = f", {n} machine{'s' * (n > 1)}" if n else ""
        return f"Question({self.name!r}, {self.kind}, {self.crowd!r}{machines})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Project:
    """All questions of an export, and its tasks as the tool wrote them.

    Parameters
    ----------
    format : str
        Name of the format, such as ``"label-studio"``.
    questions : mapping of str to Question
        Questions by name.
    tasks : mapping of str to mapping
        Data of the tool by task.
    excluded : mapping of str to int
        Number of items that concern no single question, such as polygons and skipped tasks.
    notes : tuple of str, default=()
        Remarks about the export, for example that it does not mark drafts.
    worker_names : mapping of str to str
        Name of the person behind a worker id, if the tool exports it.
    structured : mapping of str to StructuredQuestion
        Questions whose answers are spans, boxes, points or texts, by name.
    task_projects : mapping of str to str
        Project of each task, if the tool exports it.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> animal = Question(name="animal", kind="single", crowd=crowd, kinds=pd.Series({"ann": "person"}))
    >>> project = Project(format="prodigy", questions={"animal": animal})
    >>> project
    Project(prodigy: 'animal')
    >>> project.get_question().name
    'animal'
    """

    format: str
    questions: Mapping[str, Question]
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    excluded: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    worker_names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    structured: Mapping[str, StructuredQuestion] = field(default_factory=lambda: MappingProxyType({}))
    task_projects: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def get_structured(self, name: str | None = None) -> StructuredQuestion:
        """Return the question of a name, whose answers are spans, boxes, points or texts.

        Parameters
        ----------
        name : str, optional
            Name. A project with one such question needs none.

        Returns
        -------
        StructuredQuestion
            The question.

        Raises
        ------
        UsageError
            If there is no such question.
        """
        if not self.structured:
            raise UsageError(
                f"no question of this {self.format} project has spans, boxes, points or texts as answers; the questions are "
                f"{preview(self.questions, 12)}"
            )
        return self.structured[choose_question(self.structured, name)]

    def get_question(self, name: str | None = None) -> Question:
        """Return the question of a name.

        Parameters
        ----------
        name : str, optional
            Name. A project with one question needs none.

        Returns
        -------
        Question
            The question.

        Raises
        ------
        UsageError
            If there is no such question, or the name is one option of a question.
        """
        base, equals, _ = (name or "").partition("=")
        if equals and name not in self.questions and base in self.questions:
            raise UsageError(
                f"{name!r} is one option of {base!r}, but a tool takes answers to the whole question, which are sets of "
                f"options: use question={base!r} (wisecrowd aggregate --question {base})"
            )
        if not self.questions:
            raise UsageError(
                f"the questions of this {self.format} project are {preview(self.structured, 12)}, whose answers are spans, boxes, "
                "points or texts and not classes; give the export with the question of the classes, or results of these questions"
            )
        return self.questions[choose_question(self.questions, name)]

    def __repr__(self) -> str:
        return f"Project({self.format}: {preview([*self.questions, *self.structured], 6)})"


def read_project(
    path: str | os.PathLike[str] | VoteSource,
    format: str | None = None,
    *,
    duplicates: Duplicates = "error",
    max_unpacked: int | str | None = None,
) -> Project:
    """Read all questions in the export of a labelling tool.

    Parameters
    ----------
    path : path-like or VoteSource
        File or folder.
    format : str, optional
        Name of the format. Without it, the content decides.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for repeated answers of a worker to a question about a task, as for :func:`wisecrowd.read`. The first and the
        last answer refer to time if it is known.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, such as ``"16GB"``, as for :func:`wisecrowd.read`.

    Returns
    -------
    Project
        Questions and tasks.

    Raises
    ------
    InputError
        If the file is not the export of a labelling tool.

    Examples
    --------
    >>> from pathlib import Path
    >>> record = '{"text": "Hi", "_input_hash": 1, "_session_id": "demo-ann", "_view_id": "choice", "accept": ["good"], "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> read_project("answers.jsonl").get_question().crowd.to_frame().to_dict("records")
    [{'task': '1', 'worker': 'demo-ann', 'label': 'good'}]
    """  # noqa: E501
    with limit_unpacked(max_unpacked):
        source = VoteSource.detect(path, format)
        if not source.format.is_tool:
            with prefix_errors(source.path):
                description = _describe_other_file(source)
            tools = ", ".join(entry.name for entry in FORMATS.values() if entry.is_tool)
            raise InputError(
                f"{source.path} is {description}. If a labelling tool exported it, say which, for example "
                f'format="label-studio" (--format label-studio). There are {tools}'
            )
        with prefix_errors(source.path):
            return build_project(source.read_export(), source.format.name, duplicates=duplicates)


def build_project(export: ExportedAnswers, format: str, *, duplicates: Duplicates = "error") -> Project:
    """Build a project from the answers of an export or a server.

    Parameters
    ----------
    export : ExportedAnswers
        Answers.
    format : str
        Name of the format.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for repeated answers.

    Returns
    -------
    Project
        Questions and tasks.

    Raises
    ------
    EmptyInput
        If there are no questions.

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> export.get_question("animal").add_answer("t1", "ann", ["cat"])
    >>> build_project(export, "label-studio")
    Project(label-studio: 'animal')
    """
    questions = {name: _build_question(entry, export, duplicates) for name, entry in export.questions.items()}
    if not questions and not export.structures:
        raise EmptyInput(describe_no_votes(export))
    return Project(
        format=format,
        questions=MappingProxyType(questions),
        tasks=MappingProxyType(export.tasks),
        excluded=MappingProxyType(dict(export.excluded)),
        notes=tuple(export.notes),
        worker_names=MappingProxyType(export.worker_names),
        task_projects=MappingProxyType(export.task_projects),
        structured=MappingProxyType(build_structured_questions(export, duplicates=duplicates)),
    )


def _describe_other_file(source: VoteSource) -> str:
    """Describe a file that is not an export. Raise an error if it is not even a valid table."""
    path, format = source.path, source.format
    if format.name == "parquet":
        read_schema(path)
    elif format.name in ("json", "jsonl"):
        text = read_text(path)
        records = parse_objects(text, "a list of tasks as a labelling tool exports them")
        keys = f"whose keys are {preview(records[0], 8)}" if records[0] else "with nothing in it"
        if format.name == "json" and len(records) == 1 and not text.lstrip().startswith("["):
            raise InputError(
                f"it is one JSON object, {keys}; expected a list of tasks as a labelling tool exports them. "
                "If it is an error message, export again"
            )
        try:
            find_columns(list(records[0]), {"task": None, "label": None})
        except MissingColumn:
            return f"{format.description}, {keys}: neither votes nor a known export"
    elif format.is_table:
        read_head_lines(path)
    return f"{format.description}, with a single question; wisecrowd.read gives its votes"


def _build_question(question: ExportedQuestion, export: ExportedAnswers, duplicates: Duplicates) -> Question:
    kind, names, rows = find_question_kind(question), name_workers(question), find_vote_rows(question)
    votes = build_votes(question, names, rows)
    try:
        crowd = votes.to_crowd(ReadOptions(duplicates=duplicates)) if rows else _make_empty_crowd(question, kind)
    except InputError as error:
        error.args = (f"question {preview([question.name])}: {error}",)
        raise
    is_machine = {name: question.machine[row] for row, name in enumerate(names)}
    workers: list[str] = [] if crowd.workers is None else crowd.workers.tolist()
    original_names = dict(zip(names, question.worker, strict=True))
    groups = {name: export.groups[original_names[name]] for name in workers if original_names[name] in export.groups}
    index = pd.Index(workers, name="worker", dtype=object)
    group_series = pd.Series([groups.get(name) for name in workers], index=index, name="group", dtype=object)
    kinds = [MACHINE if is_machine[name] else PERSON for name in workers]
    return Question(
        name=question.name,
        kind=kind,
        crowd=crowd,
        kinds=pd.Series(kinds, index=index, name="kind", dtype=object),
        truth=build_truth_series(question),
        groups=group_series if groups else None,
        scores=_build_value_table(question.score, "score", question, names, rows, kind),
        seconds=_build_value_table(question.seconds, "seconds", question, names, rows),
        excluded=MappingProxyType(count_excluded(question, export, rows)),
        options=_OptionCrowds(list_options(question), crowd) if kind == "multiple" else MappingProxyType({}),
        label_sets=build_label_sets(question, duplicates=_SET_RULES[duplicates])
        if kind == "multiple" and rows
        else None,
        consensus=_build_consensus(question, kind),
        control=MappingProxyType(question.control),
    )


def _make_empty_crowd(question: ExportedQuestion, kind: str) -> Crowd:
    classes = None if kind == "number" else list_options(question) if kind == "single" else []
    return Crowd.from_codes([], [], [], tasks=[], workers=[], classes=classes)


def _build_value_table(
    values: list[float],
    name: str,
    question: ExportedQuestion,
    workers: list[str],
    rows: list[int],
    kind: str | None = None,
) -> pd.DataFrame:
    """Build the table of a value per answer where it is known, with the label if ``kind`` is given."""
    rows = [row for row in rows if values[row] == values[row]]
    columns: dict[str, Any] = {"task": [question.task[row] for row in rows], "worker": [workers[row] for row in rows]}
    if kind == "number":
        labels = [parse_answer_number(question.labels[row], question, question.task[row]) for row in rows]
        columns["label"] = np.array(labels, dtype=np.float64)
    elif kind is not None:
        columns["label"] = [format_answer(question.labels[row], kind) for row in rows]
    frame = pd.DataFrame(
        {
            key: pd.Series(column, dtype=None if kind == "number" and key == "label" else object)
            for key, column in columns.items()
        }
    )
    frame[name] = np.array([values[row] for row in rows], dtype=np.float64)
    return frame


class _OptionCrowds(Mapping[str, Crowd]):
    """Crowds of "no" and "yes" by option, built when they are asked for: together they have votes times options rows."""

    def __init__(self, options: list[str], joint: Crowd) -> None:
        self.joint = joint
        self.codes: dict[str, list[int]] = {option: [] for option in options}
        for code, name in enumerate(() if joint.classes is None else joint.classes):
            for option in parse_label_set(str(name)):
                self.codes[option].append(code)

    def __getitem__(self, option: str) -> Crowd:
        joint, is_chosen = self.joint, np.zeros(self.joint.n_classes, dtype=np.int32)
        is_chosen[self.codes[option]] = 1
        return Crowd.from_codes(
            joint.task,
            joint.worker,
            is_chosen[joint.label],
            tasks=joint.tasks,
            workers=joint.workers,
            classes=["no", "yes"],
            time=joint.time if joint.has_times else None,
            duplicates="keep",
            has_task_order=joint.has_task_order,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.codes)

    def __len__(self) -> int:
        return len(self.codes)


def _build_consensus(question: ExportedQuestion, kind: str) -> pd.DataFrame | None:
    if not question.consensus:
        return None
    rows = {
        task: (
            parse_answer_number(labels, question, task)
            if kind == "number"
            else format_answer(labels if kind == "multiple" else labels or ("",), kind),
            score,
        )
        for task, (labels, score) in question.consensus.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["label", "confidence"]).rename_axis("task")
