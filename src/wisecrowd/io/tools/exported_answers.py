"""Answers in the export of a labelling tool, before they become votes."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from wisecrowd.data.vocabulary import MIN_INEXACT_FLOAT
from wisecrowd.errors import DataWarning, InputError, preview

if TYPE_CHECKING:
    from wisecrowd.io.tools.exported_structures import ExportedStructure

#: Absolute timestamps from here on are milliseconds: as seconds since 1970 they would be thousands of years away.
_MIN_MILLISECONDS = 1e11
#: Predictions whose model name begins so were written by wisecrowd and are not votes.
OWN_MODEL = "wisecrowd"
# Keys under which wisecrowd stores data in a task of a tool, to read it again when the task comes back.
OWN_PREFIX = "wisecrowd_"
OWN_TASK, OWN_PRIORITY, OWN_LABEL, OWN_CONFIDENCE = (
    f"{OWN_PREFIX}{noun}" for noun in ("task", "priority", "label", "confidence")
)

#: Task, worker, and groups of equal items, the best first.
Ranking: TypeAlias = tuple[str, str, tuple[tuple[str, ...], ...]]


@dataclass(eq=False)
class ExportedQuestion:
    """All answers to one question. The lists of answers have one entry per answer.

    Parameters
    ----------
    name : str
        Name of the question.
    task, worker : list of str
        Task and worker of each answer.
    labels : list of tuple of str
        Options chosen in each answer.
    time : list of float
        Seconds since 1970, NaN if unknown.
    seconds : list of float
        Time that the answer took, NaN if unknown.
    score : list of float
        Confidence of a model, NaN if unknown.
    machine : list of bool
        Whether a model gave the answer.
    multiple : bool, default=False
        Whether the tool allows several options.
    number : bool, default=False
        Whether the tool asks for a number.
    options : dict of str to None
        Options that the tool lists, in their order, including those that nobody chose.
    truth : dict of str to tuple of str
        Answers by task that the tool marks as correct. Contradictory ones are empty.
    consensus : dict of str to (tuple of str, float)
        Labels that wisecrowd wrote into the tool before, with their confidence, by task.
    assumed_text : bool, default=False
        Whether the answers look like free texts in an export that does not say which control they come from.
    control : dict of str to str
        Data that writing answers back into the tool needs, such as the name of the question in the tool.
    excluded : Counter of str
        Number of answers that are not votes, by reason.
    """

    name: str
    task: list[str] = field(default_factory=list)
    worker: list[str] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    machine: list[bool] = field(default_factory=list)
    multiple: bool = False
    number: bool = False
    assumed_text: bool = False
    options: dict[str, None] = field(default_factory=dict)
    truth: dict[str, tuple[str, ...]] = field(default_factory=dict)
    consensus: dict[str, tuple[tuple[str, ...], float]] = field(default_factory=dict)
    control: dict[str, str] = field(default_factory=dict)
    excluded: Counter[str] = field(default_factory=Counter)

    def add_answer(
        self,
        task: str,
        worker: str,
        labels: Iterable[Any],
        *,
        time: object = None,
        seconds: object = None,
        machine: bool = False,
        score: object = None,
    ) -> None:
        """Add the answer of a worker or a model.

        Parameters
        ----------
        task, worker : str
            Ids.
        labels : iterable
            Chosen options.
        time : object, optional
            Timestamp in any form that `parse_timestamp` reads.
        seconds : object, optional
            Time that the answer took.
        machine : bool, default=False
            Whether a model gave the answer.
        score : object, optional
            Confidence of the model.
        """
        try:
            options = normalize_options(labels)
        except InputError as error:
            error.args = (f"{error} (task {preview([task])}, worker {preview([worker])})",)
            raise
        self.task.append(task)
        self.worker.append(worker)
        self.labels.append(options)
        self.time.append(parse_timestamp(time))
        self.seconds.append(parse_duration(seconds))
        self.machine.append(machine)
        self.score.append(parse_number(score))

    def add_gold(self, task: str, labels: Iterable[Any]) -> None:
        """Add an answer that the tool marks as correct. A task with contradictory ones has no truth.

        Parameters
        ----------
        task : str
            Task id.
        labels : iterable
            Correct options.
        """
        options = normalize_options(labels)
        if self.truth.setdefault(task, options) != options:
            self.excluded["contradictory gold"] += 1
            self.truth[task] = ()

    def add_suggestion(self, task: str, model: str, labels: Iterable[Any], score: object = None) -> None:
        """Add the answer of a model. Labels that wisecrowd wrote itself become the consensus and are not votes.

        Parameters
        ----------
        task : str
            Task id.
        model : str
            Name of the model.
        labels : iterable
            Chosen options.
        score : object, optional
            Confidence of the model.
        """
        if model.startswith(OWN_MODEL):
            self.consensus[task] = (normalize_options(labels), parse_number(score))
        else:
            self.add_answer(task, model, labels, machine=True, score=score)


@dataclass(eq=False)
class ExportedAnswers:
    """All questions of an export and the data of its tasks.

    Parameters
    ----------
    questions : dict of str to ExportedQuestion
        Questions by name.
    tasks : dict of str to mapping
        Data of each task, as the tool wrote it.
    excluded : Counter of str
        Number of items that concern no single question, such as skipped tasks and polygons.
    groups : dict of str to str
        Vendor, channel or model of a worker, if the tool exports it.
    notes : list of str
        Remarks for the user.
    warnings : list of str
        Facts that make votes doubtful, such as one person under two ids.
    rankings : dict of str to list of (str, str, tuple of tuple of str)
        Rankings by question: task, worker, and groups of equal items, the best first. They are comparisons, not votes.
    worker_names : dict of str to str
        Name of the person behind a worker id, if the tool exports it.
    task_projects : dict of str to str
        Project of each task, if the tool exports it.
    structures : dict of str to ExportedStructure
        Questions whose answers are spans, boxes, points or texts, by name.
    """

    questions: dict[str, ExportedQuestion] = field(default_factory=dict)
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    excluded: Counter[str] = field(default_factory=Counter)
    groups: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rankings: dict[str, list[Ranking]] = field(default_factory=dict)
    worker_names: dict[str, str] = field(default_factory=dict)
    task_projects: dict[str, str] = field(default_factory=dict)
    structures: dict[str, ExportedStructure] = field(default_factory=dict)

    def issue_warnings(self, file_name: str) -> None:
        """Warn of the facts that make votes doubtful.

        Parameters
        ----------
        file_name : str
            Name of the export, for messages.
        """
        for warning in self.warnings:
            warnings.warn(f"{file_name}: {warning}", DataWarning, stacklevel=3)

    def get_question(self, name: str) -> ExportedQuestion:
        """Return the question of a name. It is created on first use.

        Parameters
        ----------
        name : str
            Name.

        Returns
        -------
        ExportedQuestion
            The question.
        """
        if name not in self.questions:
            self.questions[name] = ExportedQuestion(name)
        return self.questions[name]


def parse_id(value: object, noun: str, location: str = "") -> str:
    """Return an id as text. Tools write the same id as 7 and as "7".

    Parameters
    ----------
    value : object
        Id.
    noun : str
        Thing that the id belongs to, for messages.
    location : str, default=""
        Position in the file, for messages.

    Returns
    -------
    str
        Id.

    Raises
    ------
    InputError
        If the value is neither text nor a whole number, or a float so large that it is not exact.

    Examples
    --------
    >>> parse_id(7, "task"), parse_id("007", "task")
    ('7', '007')
    """
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < MIN_INEXACT_FLOAT:
        return str(int(value))
    position = f" ({location})" if location else ""
    raise InputError(f"the {noun} needs an id, a text or a whole number; got {preview([value])}{position}")


def guess_model_family(model: str) -> str:
    """Guess the model family from the name of a machine judge, which may also contain a version or a prompt.

    The family is the part of the name before the first of the characters ``: / @ # |``; a version after a hyphen stays.
    `wisecrowd.Panel` treats judges of one family as a group. A wrong guess that groups unrelated models does little harm there.

    Parameters
    ----------
    model : str
        Name of a machine judge.

    Returns
    -------
    str
        Name of the family.

    Examples
    --------
    >>> guess_model_family("gpt-4o:prompt-2"), guess_model_family("llama/3-8b"), guess_model_family("bert-1")
    ('gpt-4o', 'llama', 'bert-1')
    """
    return re.split("[:/@#|]", model, maxsplit=1)[0].strip() or model


def normalize_options(labels: Iterable[Any]) -> tuple[str, ...]:
    """Return chosen options as sorted text without repeats, so that equal answers compare equal.

    Parameters
    ----------
    labels : iterable
        Chosen options.

    Returns
    -------
    tuple of str
        Options.
    """
    return tuple(sorted({format_label(label) for label in labels}))


def format_label(value: object) -> str:
    """Return a label as text: true as in JSON, and 4.0 as 4.

    Parameters
    ----------
    value : object
        Text, number or boolean.

    Returns
    -------
    str
        Label.

    Raises
    ------
    InputError
        If the value is of another type.

    Examples
    --------
    >>> format_label(True), format_label(4.0), format_label("four")
    ('true', '4', 'four')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    raise InputError(f"an answer must be text or a number; got {preview([value])}")


def parse_number(value: object) -> float:
    """Return a value as a finite float, or NaN if it is none.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    float
        Number or NaN.

    Examples
    --------
    >>> parse_number("0.5"), parse_number(None)
    (0.5, nan)
    """
    try:
        number = float(value)  # type: ignore[arg-type]  # other types raise
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def parse_duration(value: object) -> float:
    """Return a number of seconds, or NaN if the value is not a duration.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    float
        Seconds or NaN.
    """
    seconds = parse_number(value)
    return seconds if seconds >= 0 else math.nan


def parse_timestamp(value: object) -> float:
    """Return a timestamp as seconds since 1970, or NaN if it cannot be parsed.

    Parameters
    ----------
    value : object
        ISO 8601 text, datetime, seconds or milliseconds since 1970.

    Returns
    -------
    float
        Seconds or NaN.

    Examples
    --------
    >>> parse_timestamp("2024-05-31T14:00:00Z"), parse_timestamp(1717164000000)
    (1717164000.0, 1717164000.0)
    """
    if value is None or isinstance(value, bool):
        return math.nan
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return math.nan
    if isinstance(value, datetime):
        try:
            seconds = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, ValueError):
            return math.nan
    else:
        seconds = parse_number(value)
        seconds = seconds / 1e3 if abs(seconds) >= _MIN_MILLISECONDS else seconds
    # A timestamp thousands of years away is an error.
    return seconds if abs(seconds) < _MIN_MILLISECONDS else math.nan
