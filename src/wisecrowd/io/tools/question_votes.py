"""Votes from the answers in the export of a labelling tool."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.errors import InputError, UsageError, preview, suggest_name
from wisecrowd.io.formats import FORMATS, FormatReader
from wisecrowd.io.problems import EmptyInput, display_name
from wisecrowd.io.tools.exported_answers import OWN_PREFIX, ExportedAnswers, ExportedQuestion, parse_number
from wisecrowd.io.tools.label_sets import format_label_set
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.text import shorten

#: Kind of a worker that is a model. It is also the prefix of a model that has the name of a person.
MACHINE = "machine"


def make_tool_reader(
    name: str,
    read_export: Callable[[Path], ExportedAnswers],
    detect: Callable[[Path], bool],
    choose_table_reader: Callable[[Path], FormatReader] | None = None,
) -> FormatReader:
    """Make the reader of a tool's exports.

    Parameters
    ----------
    name : str
        Name of the format.
    read_export : callable
        Function of a path that returns the answers.
    detect : callable
        Function of a path that returns whether it is an export of the tool.
    choose_table_reader : callable, optional
        Function of a path that returns the reader to use if the user names columns of a plain table.

    Returns
    -------
    FormatReader
        Reader that gives the votes of one question.

    Examples
    --------
    >>> reader = make_tool_reader("mturk", lambda path: ExportedAnswers(), lambda path: False)
    >>> reader.read_votes(Path("votes.csv"), ReadOptions())
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.EmptyInput: no question has answers that can be votes: ...
    """

    def read_votes(path: Path, options: ReadOptions) -> VoteTable:
        if not options.names_columns:
            export = read_export(path)
            export.issue_warnings(display_name(path))
            return select_votes(export, options)
        if choose_table_reader is None:
            raise UsageError(
                f"columns of a table were named, but this is {FORMATS[name].description}; name the question instead: "
                "question=NAME (--question NAME)"
            )
        return choose_table_reader(path).read_votes(path, options)

    def read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable | None:
        if choose_table_reader is not None and (task or truth):
            read = choose_table_reader(path).read_truth
            return None if read is None else read(path, task, truth)
        return select_truth(read_export(path))

    return FormatReader(read_votes=read_votes, detect=detect, read_truth=read_truth, read_export=read_export)


def select_votes(export: ExportedAnswers, options: ReadOptions) -> VoteTable:
    """Return the votes on one question.

    Parameters
    ----------
    export : ExportedAnswers
        Answers.
    options : ReadOptions
        ``question`` selects a question, or one option of it as ``"topics=sports"``.

    Returns
    -------
    VoteTable
        Votes, with notes about machines and excluded answers.

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> export.get_question("animal").add_answer("t1", "ann", ["cat"])
    >>> select_votes(export, ReadOptions()).table.to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    if options.question in export.structures:
        kind = export.structures[options.question].kind
        raise UsageError(
            f"the answers to {preview([options.question])} are {kind}, not classes; wisecrowd aggregate, check and diagnose take "
            f"them, and wisecrowd.read_{kind} reads them"
        )
    if not export.questions:
        raise EmptyInput(describe_no_votes(export))
    name, option = _choose_question_or_option(export.questions, options.question)
    question = export.questions[name]
    if option is not None:
        question = _reduce_to_option(question, option)
    workers = name_workers(question)
    rows = find_vote_rows(question)
    notes = [f"read the answers to {name!r}"] if options.question is None else []
    notes += export.notes
    if export.structures and options.question is None:
        listed = ", ".join(f"{preview([name])} ({entry.kind})" for name, entry in export.structures.items())
        notes.append(f"further questions, to be named: {listed}")
    machines = sorted({workers[row] for row in rows if question.machine[row]})
    if machines:
        notes.append(f"the votes of machines are included: {preview(machines)}")
    excluded = count_excluded(question, export, rows)
    notes += describe_left_out(question, export, rows)
    votes = build_votes(question, workers, rows)
    dropped = [name for name, column in (("worker", options.worker), ("time", options.time)) if column is False]
    table = votes.table.select([name for name in votes.table.column_names if name not in dropped])
    return replace(votes, table=table, notes=tuple(notes), left_out=excluded)


def select_truth(export: ExportedAnswers, question: str | None = None) -> TruthTable | None:
    """Return the answers to one question that the tool marks as correct.

    Parameters
    ----------
    export : ExportedAnswers
        Answers.
    question : str, optional
        Question, or one option of it as ``"topics=sports"``.

    Returns
    -------
    DataFrame or None
        Truth by task, if there is any.

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> export.get_question("animal").add_gold("t1", ["cat"])
    >>> select_truth(export).to_dict()
    {'truth': {'t1': 'cat'}}
    """
    if not export.questions:
        return None
    name, option = _choose_question_or_option(export.questions, question)
    chosen = export.questions[name]
    truth = build_truth_series(chosen if option is None else _reduce_to_option(chosen, option))
    return None if truth is None else truth.rename("truth").to_frame()


def read_draw(export: ExportedAnswers, name: str) -> pd.Series[Any] | None:
    """Return a column of the draw of an audit, which `write_queue` stored in the data of tasks of Label Studio.

    Parameters
    ----------
    export : ExportedAnswers
        Export of the tasks that were imported to be checked.
    name : {"weight", "stratum", "draw"}
        Column.

    Returns
    -------
    Series or None
        Value by task; None if no task has it.

    Examples
    --------
    >>> read_draw(ExportedAnswers(tasks={"t1": {"data": {"wisecrowd_weight": 1.5}}}), "weight").to_dict()
    {'t1': 1.5}
    """
    values = {
        task: task_data["data"][f"{OWN_PREFIX}{name}"]
        for task, task_data in export.tasks.items()
        if isinstance(task_data.get("data"), Mapping) and f"{OWN_PREFIX}{name}" in task_data["data"]
    }
    return pd.Series(values, name=name, dtype=object).rename_axis("task") if values else None


def select_checks(export: ExportedAnswers, question: str | None = None) -> pd.Series[Any] | None:
    """Return the truth of tasks that were drawn for an audit and answered in the tool: the answers of people are the truth.

    Parameters
    ----------
    export : ExportedAnswers
        Export of the tasks that were imported to be checked.
    question : str, optional
        Question, or one option of it as ``"topics=sports"``.

    Returns
    -------
    Series or None
        Truth by task; None if no task of the export was drawn.

    Raises
    ------
    InputError
        If people disagree about a task and no answer is marked as correct.

    Examples
    --------
    >>> export = ExportedAnswers(tasks={"t1": {"data": {"wisecrowd_draw": "x"}}, "t2": {"data": {}}})
    >>> for task in ("t1", "t2"):
    ...     export.get_question("animal").add_answer(task, "ann", ["cat"])
    >>> select_checks(export).to_dict()
    {'t1': 'cat'}
    """
    drawn = read_draw(export, "draw")
    if drawn is None or not export.questions:
        return None
    name, option = _choose_question_or_option(export.questions, question)
    chosen = export.questions[name] if option is None else _reduce_to_option(export.questions[name], option)
    kind, answers = find_question_kind(chosen), dict(chosen.truth)
    conflicts: dict[str, None] = {}
    for row in find_vote_rows(chosen):
        task, labels = chosen.task[row], chosen.labels[row]
        if not chosen.machine[row] and not chosen.truth.get(task) and answers.setdefault(task, labels) != labels:
            conflicts[task] = None
    if conflicts:
        raise InputError(
            f"{len(conflicts):,} {'task to check has' if len(conflicts) == 1 else 'tasks to check have'} different answers "
            f"({preview(conflicts)}); keep one annotation of each, or mark the right one as ground truth"
        )
    checks = {task: format_answer(labels, kind) for task, labels in answers.items() if task in drawn.index and labels}
    return pd.Series(checks, name="truth", dtype=object).rename_axis("task")


def choose_question(questions: Mapping[str, Any], name: str | None) -> str:
    """Return the name of the question to read: the requested one, or the only one.

    Parameters
    ----------
    questions : mapping
        Questions of the export by name; at least one.
    name : str or None
        Name that the user gave, if any.

    Returns
    -------
    str
        Key of ``questions``.

    Raises
    ------
    UsageError
        If there is no such question, or if there are several and none is named.
    """
    if name is None:
        if len(questions) == 1:
            return next(iter(questions))
        example = shorten(next(iter(questions)))
        raise UsageError(
            f"there are several questions: {preview(questions, 12)}; name one of them, for example "
            f'question="{example}" (--question {example})'
        )
    if name not in questions:
        raise UsageError(
            f"there is no question {preview([name])}; the export has {preview(questions, 12)}."
            f"{suggest_name(name, questions)}"
        )
    return name


def _choose_question_or_option(
    questions: Mapping[str, ExportedQuestion], requested: str | None
) -> tuple[str, str | None]:
    """Return a question and, for "topics=sports", an option of it."""
    name, equals, option = (requested or "").partition("=")
    if requested in questions or not equals or name not in questions:
        return choose_question(questions, requested), None
    if find_question_kind(questions[name]) != "multiple":
        raise UsageError(f"{name!r} is not a multiple-choice question; use question={name!r} (--question {name})")
    options = list_options(questions[name])
    if option not in options:
        raise UsageError(
            f"{name!r} has no option {option!r}; it has {preview(options, 12)}.{suggest_name(option, options)}"
        )
    return name, option


def _reduce_to_option(question: ExportedQuestion, option: str) -> ExportedQuestion:
    """Return the yes/no question whether an option was chosen."""

    def contains_option(labels: tuple[str, ...]) -> tuple[str, ...]:
        return ("yes",) if option in labels else ("no",)

    return replace(
        question,
        labels=[contains_option(labels) for labels in question.labels],
        options={"no": None, "yes": None},
        truth={task: contains_option(labels) for task, labels in question.truth.items() if labels},
        consensus={},
        multiple=False,
    )


def describe_no_votes(export: ExportedAnswers) -> str:
    """Return the message for an export without votes.

    Parameters
    ----------
    export : ExportedAnswers
        Answers.

    Returns
    -------
    str
        Error message.
    """
    message = "no question has answers that can be votes: expected a choice, a rating or a number"
    if export.structures:
        listed = ", ".join(f"{preview([name])} ({entry.kind})" for name, entry in export.structures.items())
        message += (
            f"; other questions are {listed}, which wisecrowd.read_spans, read_boxes, read_points and read_texts read"
        )
    if export.rankings:
        message += f"; rankings are comparisons, which wisecrowd.read_comparisons reads: {preview(export.rankings)}"
    return f"{message}; left out {format_counts(export.excluded)}" if export.excluded else message


def format_counts(excluded: Mapping[str, int]) -> str:
    """Format the number of excluded answers by reason.

    Parameters
    ----------
    excluded : mapping of str to int
        Counts by reason.

    Returns
    -------
    str
        List for a message.

    Examples
    --------
    >>> format_counts({"drafts": 1200, "empty": 3})
    'drafts (1,200), empty (3)'
    """
    return ", ".join(f"{reason} ({n:,})" for reason, n in excluded.items())


def find_question_kind(question: ExportedQuestion) -> Literal["single", "multiple", "number"]:
    """Return the kind of a question. A question with several options in one answer is a multiple-choice question.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.

    Returns
    -------
    {"single", "multiple", "number"}
        Kind.
    """
    if question.number:
        return "number"
    if question.multiple:
        return "multiple"
    answers = (question.labels, question.truth.values(), (labels for labels, _ in question.consensus.values()))
    return "multiple" if any(len(labels) > 1 for part in answers for labels in part) else "single"


def list_options(question: ExportedQuestion) -> list[str]:
    """Return the options of a question: those that the tool lists, then others that were chosen.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.

    Returns
    -------
    list of str
        Options.
    """
    chosen = {option for labels in (*question.labels, *question.truth.values()) for option in labels}
    return [*question.options, *sorted(chosen - question.options.keys())]


def name_workers(question: ExportedQuestion) -> list[str]:
    """Return the worker of each answer. A model that has the name of a person gets a prefix.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.

    Returns
    -------
    list of str
        Worker ids.
    """
    return name_machines(question.worker, question.machine)


def name_machines(workers: Sequence[str], machine: Sequence[bool]) -> list[str]:
    """Return workers by name. A model that has the name of a person gets a prefix.

    Parameters
    ----------
    workers : sequence of str
        Worker of each answer.
    machine : sequence of bool
        Whether the worker is a model.

    Returns
    -------
    list of str
        Worker ids.

    Examples
    --------
    >>> name_machines(["ann", "ann"], [False, True])
    ['ann', 'machine:ann']
    """
    people = {worker for worker, is_machine in zip(workers, machine, strict=True) if not is_machine}

    @functools.cache
    def name_machine(worker: str) -> str:
        while worker in people:
            worker = f"{MACHINE}:{worker}"
        return worker

    return [name_machine(worker) if is_machine else worker for worker, is_machine in zip(workers, machine, strict=True)]


def find_vote_rows(question: ExportedQuestion) -> list[int]:
    """Return the positions of the answers that are votes. They are in order of time if every time is known.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.

    Returns
    -------
    list of int
        Positions, such that ``duplicates="first"`` and ``"last"`` refer to time.
    """
    rows = list(range(len(question.task)))
    if find_question_kind(question) != "multiple":
        rows = [row for row in rows if len(question.labels[row]) == 1]
    time = np.array([question.time[row] for row in rows])
    if len(rows) and not np.isnan(time).any():
        rows = [rows[position] for position in np.argsort(time, kind="stable")]
    return rows


def count_excluded(question: ExportedQuestion, export: ExportedAnswers, rows: list[int]) -> dict[str, int]:
    """Count the answers that are not votes.

    Parameters
    ----------
    question : ExportedQuestion
        Answers to the question.
    export : ExportedAnswers
        Export that holds the question.
    rows : list of int
        Answers that are votes.

    Returns
    -------
    dict of str to int
        Counts by reason.
    """
    counts = Counter(export.excluded) + question.excluded
    counts["empty"] += len(question.task) - len(rows)
    return {reason: n for reason, n in counts.items() if n}


def describe_left_out(question: ExportedQuestion, export: ExportedAnswers, rows: list[int]) -> list[str]:
    """Return notes about answers that are not votes, and about tasks without votes, which get no label.

    Parameters
    ----------
    question : ExportedQuestion
        Answers to the question.
    export : ExportedAnswers
        Export that holds the question.
    rows : list of int
        Answers that are votes.

    Returns
    -------
    list of str
        Notes.

    Examples
    --------
    >>> export = ExportedAnswers(tasks={"t1": {}, "t2": {}})
    >>> export.get_question("animal").add_answer("t1", "ann", ["cat"])
    >>> describe_left_out(export.questions["animal"], export, [0])
    ["1 of 2 tasks has no vote on 'animal' and gets no label: 't2'"]
    """
    excluded = count_excluded(question, export, rows)
    notes = [f"left out {format_counts(excluded)}"] if excluded else []
    voted = {question.task[row] for row in rows}
    if missing := [task for task in export.tasks if task not in voted]:
        verbs = "has no vote on {} and gets" if len(missing) == 1 else "have no vote on {} and get"
        notes.append(
            f"{len(missing):,} of {len(export.tasks):,} tasks {verbs.format(preview([question.name]))} no label: {preview(missing)}"
        )
    return notes


def build_votes(question: ExportedQuestion, workers: list[str], rows: list[int]) -> VoteTable:
    """Build the table of votes.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.
    workers : list of str
        Worker of each answer.
    rows : list of int
        Answers that are votes.

    Returns
    -------
    VoteTable
        Votes. Labels of a multiple-choice question are sets of options.
    """
    kind = find_question_kind(question)
    answers = [question.labels[row] for row in rows]
    columns: dict[str, Any] = {
        "task": pa.array([question.task[row] for row in rows], pa.string()),
        "worker": pa.array([workers[row] for row in rows], pa.string()),
    }
    if kind == "number":
        numbers = [parse_answer_number(question.labels[row], question, question.task[row]) for row in rows]
        columns["label"] = pa.array(numbers, pa.float64())
    else:
        columns["label"] = pa.array([format_answer(labels, kind) for labels in answers], pa.string())
    time = np.array([question.time[row] for row in rows], dtype=np.float64)
    if len(time) and not np.isnan(time).all():
        columns["time"] = pa.array(time, from_pandas=True)
    classes = list_options(question) if kind == "single" and question.options else None
    return VoteTable(table=pa.table(columns), classes=classes, numeric=kind == "number")


def build_truth_series(question: ExportedQuestion) -> pd.Series[Any] | None:
    """Build the truth by task from answers that the tool marks as correct.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.

    Returns
    -------
    Series or None
        Truth by task, if there is any.
    """
    kind = find_question_kind(question)
    truth: dict[str, Any] = {task: format_answer(labels, kind) for task, labels in question.truth.items() if labels}
    if not truth:
        return None
    if kind == "number":
        truth = {task: parse_answer_number(question.truth[task], question, task) for task in truth}
    return pd.Series(truth, name="truth").rename_axis("task")


def parse_answer_number(labels: tuple[str, ...], question: ExportedQuestion, task: str) -> float:
    """Return the answer to a question that asks for a number.

    Parameters
    ----------
    labels : tuple of str
        Answer.
    question : ExportedQuestion
        Question, for messages.
    task : str
        Task, for messages.

    Returns
    -------
    float
        Number.

    Raises
    ------
    InputError
        If the answer is not one finite number.

    Examples
    --------
    >>> parse_answer_number(("0.5",), ExportedQuestion("length"), "t1")
    0.5
    """
    number = parse_number(labels[0]) if len(labels) == 1 else math.nan
    if math.isnan(number):
        raise InputError(
            f"the answers to {preview([question.name])} are numbers, but one to the task {preview([task])} is "
            f"{preview(labels) or 'empty'}"
        )
    return number


def format_answer(labels: tuple[str, ...], kind: str) -> str:
    """Return an answer as one label: a set of options for a multiple-choice question, else the option.

    Parameters
    ----------
    labels : tuple of str
        Chosen options.
    kind : {"single", "multiple", "number"}
        Kind of the question.

    Returns
    -------
    str
        Label.

    Examples
    --------
    >>> format_answer(("a", "b"), "multiple"), format_answer(("a",), "single")
    ('a|b', 'a')
    """
    return format_label_set(labels) if kind == "multiple" else labels[0]
