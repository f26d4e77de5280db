"""Files to import into the tool that the votes came from: inferred labels, and tasks to label again.

| tool | labels | queue |
| --- | --- | --- |
| Label Studio | tasks with ``predictions``, to import | tasks to import, with ``wisecrowd_priority`` among their data |
| Argilla | records with ``suggestions``, for ``records.from_json`` | records with ``wisecrowd_priority`` among their metadata |
| doccano | examples with labels, to import | examples to import, the most urgent first |
| Prodigy | examples in which the options are chosen already | examples, the most urgent first |
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.tools.exported_answers import (
    OWN_CONFIDENCE,
    OWN_LABEL,
    OWN_MODEL,
    OWN_PREFIX,
    OWN_PRIORITY,
    OWN_TASK,
    format_label,
    parse_number,
)
from wisecrowd.io.tools.label_sets import parse_label_set
from wisecrowd.io.tools.label_studio import ANSWER_KEYS
from wisecrowd.io.tools.projects import Project, Question
from wisecrowd.io.tools.question_votes import format_answer
from wisecrowd.utils.files import atomic_path

__all__ = ["build_records", "find_export_warnings", "write_answers", "write_gold", "write_queue"]

Record = dict[str, Any]
#: Name of the review in place of a method.
REVIEW = "review"


@dataclass(frozen=True)
class _InferredLabel:
    """Label of a task with its confidence and the model that inferred it."""

    options: tuple[str, ...]
    confidence: float | None
    model: str


def write_answers(
    answers: pd.Series[Any] | pd.DataFrame,
    project: Project,
    path: str | os.PathLike[str],
    *,
    question: str | None = None,
    model: str = "",
) -> None:
    """Write inferred labels to a file that the project's tool imports.

    When the tool exports them again, wisecrowd recognises them and does not read them as votes.

    Parameters
    ----------
    answers : Series or DataFrame
        Labels by task, optionally with a column ``confidence``.
    project : Project
        Export that the votes were read from.
    path : path-like
        File to write.
    question : str, optional
        Question that the labels answer. A project with one question needs none.
    model : str, default=""
        Name of the method, which the tool displays.

    Examples
    --------
    >>> from wisecrowd.io import read_project
    >>> record = '{"id": "r1", "fields": {"text": "Hi"}, "suggestions": {}, "responses": {"mood": [{"value": "good", "user_id": "ann"}]}}'
    >>> _ = Path("records.json").write_text(f"[{record}]")
    >>> answers = pd.DataFrame({"label": ["good"], "confidence": [0.9]}, index=["r1"])
    >>> write_answers(answers, read_project("records.json"), "suggestions.json", model="dawid-skene")
    >>> json.loads(Path("suggestions.json").read_text())[0]["suggestions"]
    {'mood': {'value': 'good', 'score': 0.9, 'agent': 'wisecrowd dawid-skene'}}
    """  # noqa: E501
    records = build_records(answers, project, question=question, model=model)
    tool = _get_tool(project)
    write_records(complete_records(records, needs_equal_keys=tool.needs_equal_keys), Path(path), as_list=tool.as_list)


def write_gold(
    gold: pd.Series[Any], project: Project, path: str | os.PathLike[str], *, question: str | None = None
) -> None:
    """Write true labels, as reviewers decided them, to a file that the project's tool imports.

    Label Studio has annotations that are marked as ground truth. The other tools have no such mark, so that the labels have the
    confidence 1 there.

    Parameters
    ----------
    gold : Series
        True labels by task.
    project : Project
        Export that the votes were read from.
    path : path-like
        File to write.
    question : str, optional
        Question that the labels answer. A project with one question needs none.

    Raises
    ------
    InputError
        If labels do not fit the project.

    Examples
    --------
    >>> from wisecrowd.io import read_project
    >>> record = '{"text": "Hi", "_input_hash": 1, "_session_id": "demo-ann", "accept": ["good"], "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> write_gold(pd.Series({"1": "good"}), read_project("answers.jsonl"), "gold.jsonl")
    >>> json.loads(Path("gold.jsonl").read_text())["accept"]
    ['good']
    """
    answers = pd.DataFrame({"label": gold, "confidence": 1.0})
    tool = _get_tool(project)
    records = map(tool.mark_gold, build_records(answers, project, question=question, model=REVIEW))
    write_records(complete_records(records, needs_equal_keys=tool.needs_equal_keys), Path(path), as_list=tool.as_list)


def build_records(
    answers: pd.Series[Any] | pd.DataFrame, project: Project, *, question: str | None = None, model: str = ""
) -> Iterator[Record]:
    """Build the records that `write_answers` writes. All answers are checked before the first record.

    Parameters
    ----------
    answers : Series or DataFrame
        Labels by task, optionally with a column ``confidence``.
    project : Project
        Export that the votes were read from.
    question : str, optional
        Question that the labels answer.
    model : str, default=""
        Name of the method.

    Returns
    -------
    iterator of dict
        One record per task.

    Raises
    ------
    InputError
        If answers do not fit the project.

    Examples
    --------
    >>> from wisecrowd.io.tools.label_studio import parse_tasks
    >>> from wisecrowd.io.tools.projects import build_project
    >>> result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    >>> tasks = [{"id": 7, "data": {}, "annotations": [{"completed_by": 1, "result": [result]}]}]
    >>> project = build_project(parse_tasks(tasks), "label-studio")
    >>> [record["id"] for record in build_records(pd.Series({"7": "good"}), project)]
    [7]
    """
    tool, target = _get_tool(project), project.get_question(question)
    table = answers.rename("label").to_frame() if isinstance(answers, pd.Series) else answers
    if "label" not in table:
        raise InputError(f"answers need a column 'label'; there are {preview(table.columns, 8)}")
    confidences = table["confidence"] if "confidence" in table else pd.Series(math.nan, index=table.index)
    if (is_missing := table["label"].isna()).any():
        raise InputError(
            f"{int(is_missing.sum()):,} of {len(table):,} answers have no label, for example for task "
            f"{preview(table.index[is_missing], 1)}; leave out tasks without a label"
        )
    labels = {
        str(task): _InferredLabel(
            _parse_options(label, target), round_confidence(confidence), f"{OWN_MODEL} {model}".strip()
        )
        for task, label, confidence in zip(table.index, table["label"], confidences, strict=True)
    }
    check_tasks(labels, project)
    _check_labels([label.options for label in labels.values()], target)
    return (
        tool.build_answer(task, project.tasks[task], target, labels[task]) for task in project.tasks if task in labels
    )


def find_export_warnings(project: Project) -> list[str]:
    """Return what the user should know before a file is written for the tool of a project.

    Parameters
    ----------
    project : Project
        Export that the votes were read from.

    Returns
    -------
    list of str
        Warnings.

    Examples
    --------
    >>> from wisecrowd.io import read_project
    >>> record = '{"id": "r1", "text": "Hi", "page": 3, "mood.responses": ["good"], "mood.responses.users": ["ann"]}'
    >>> _ = Path("flat.jsonl").write_text(record + "\\n")
    >>> find_export_warnings(read_project("flat.jsonl"))[0].partition(",")[0]
    'to_datasets does not distinguish metadata from fields'
    """
    if project.format != "argilla" or all("metadata" in task for task in project.tasks.values()):
        return []
    fields = dict.fromkeys(name for task in project.tasks.values() for name in task.get("fields", ()))
    return [
        f"to_datasets does not distinguish metadata from fields, so all of it is written as fields: {preview(fields, 6)}. If "
        "some of it is metadata, give the file of records.to_json as the project instead"
    ]


def _check_labels(answers: list[tuple[str, ...]], question: Question) -> None:
    """Raise an error if labels are not options of the question: the tool would drop or misread them."""
    if question.control.get("ranked"):
        raise InputError(
            f"the answers to {question.name!r} have the same options in different orders, as rankings do, but inferred "
            "labels have no order; rankings cannot be written back"
        )
    if question.control.get("type") == "rating" or question.control.get("value") == "number":
        numbers = [(label, parse_number(label)) for (label,) in answers]
        fractions = [label for label, number in numbers if not number.is_integer() and not math.isnan(number)]
        if fractions:
            raise InputError(
                f"{question.name!r} takes whole numbers, but {len(fractions):,} of {len(answers):,} answers are fractions: "
                f"{preview(fractions)}; aggregate it as classes (without --numeric), or round the labels in a table of task "
                "and label"
            )
        return  # any number of stars is valid
    # Inferred sets may combine options as nobody did.
    classes = list(question.options) if question.kind == "multiple" else question.crowd.classes
    if classes is None:
        return
    labels = (
        {option for options in answers for option in options}
        if question.kind == "multiple"
        else {format_answer(options, question.kind) for options in answers}
    )
    unknown = sorted(labels - set(map(str, classes)))
    if unknown:
        raise InputError(
            f"{preview(unknown)} is not an answer to {question.name!r}, whose answers are {preview(classes, 6)}; give answers "
            "to that question"
        )


def write_queue(
    queue: pd.DataFrame | Iterable[Any],
    project: Project,
    path: str | os.PathLike[str],
    *,
    draw: pd.DataFrame | None = None,
) -> None:
    """Write tasks that need more votes to a file that the project's tool imports, the most urgent first.

    Parameters
    ----------
    queue : DataFrame or iterable
        Tasks in order of urgency: the ``asks`` of a plan, a table with a column ``task``, or task ids. A task that occurs
        several times is written once.
    project : Project
        Export that the votes were read from.
    path : path-like
        File to write.
    draw : DataFrame, optional
        Weight, stratum and draw of an audit by task. Label Studio keeps them in the data of the tasks, so that they come back with
        the answers (see `read_draw`).

    Examples
    --------
    >>> from wisecrowd.io import read_project
    >>> record = '{"text": "Hi", "_input_hash": 1, "_session_id": "demo-ann", "accept": ["good"], "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> write_queue(["1"], read_project("answers.jsonl"), "again.jsonl")
    >>> json.loads(Path("again.jsonl").read_text())
    {'text': 'Hi', '_input_hash': 1, 'wisecrowd_task': '1', 'wisecrowd_priority': 1}
    """
    tool = _get_tool(project)
    if isinstance(queue, pd.DataFrame) and "task" not in queue:
        raise InputError(f"a queue needs a column 'task'; there are {preview(queue.columns, 8)}")
    tasks = dict.fromkeys(str(task) for task in (queue["task"] if isinstance(queue, pd.DataFrame) else queue))
    if not tasks:
        raise InputError("the queue is empty; give at least one task")
    check_tasks(tasks, project)
    empty_answers = tool.build_empty_answers(project)
    drawn: dict[str, dict[str, Any]] = {}
    if draw is not None and tool is _LABEL_STUDIO:
        drawn = {
            str(task): {f"{OWN_PREFIX}{name}": value for name, value in row.items()}
            for task, row in draw.to_dict("index").items()
        }
    records = (
        _add_draw(tool.build_queued_task(task, project.tasks[task], priority) | empty_answers, drawn.get(task, {}))
        for priority, task in enumerate(tasks, start=1)
    )
    write_records(complete_records(records, needs_equal_keys=tool.needs_equal_keys), Path(path), as_list=tool.as_list)


# ---------------------------------------------------------------------- Label Studio


def _add_draw(record: Record, drawn: Record) -> Record:
    """Return a task of Label Studio with the columns of a draw among its data."""
    return record | {"data": record["data"] | drawn} if drawn else record


def _label_studio_answer(task: str, data: Mapping[str, Any], question: Question, label: _InferredLabel) -> Record:
    control = question.control
    if not control.get("to_name"):
        raise InputError(
            f"the export does not hold the to_name of {question.name!r}, which predictions need; export Label Studio's JSON "
            "rather than JSON_MIN"
        )
    kind = control["type"]
    value: Any = list(label.options)
    if kind != "choices":
        value = label.options[0] if kind == "pairwise" else _parse_required_number(label.options[0])
    result = {
        # Results need an id. It is derived from the task and question, so that it is reproducible.
        "id": hashlib.sha256(f"{task}\0{question.name}".encode(errors="surrogatepass")).hexdigest()[:10],
        "from_name": control["from_name"],
        "to_name": control["to_name"],
        "type": kind,
        "value": {ANSWER_KEYS[kind]: value},
    }
    prediction: Record = {"model_version": label.model, "result": [result]}
    if label.confidence is not None:
        prediction["score"] = label.confidence
    return {**data, "predictions": [prediction]}


def _label_studio_gold(record: Record) -> Record:
    """Turn a prediction into an annotation that is marked as ground truth."""
    [prediction] = record["predictions"]
    annotation = {"result": prediction["result"], "ground_truth": True}
    return {key: value for key, value in record.items() if key != "predictions"} | {"annotations": [annotation]}


def _label_studio_task(task: str, data: Mapping[str, Any], priority: int) -> Record:
    return {"data": {**data.get("data", {}), OWN_TASK: task, OWN_PRIORITY: priority}}


# ---------------------------------------------------------------------- Argilla


def _argilla_answer(task: str, data: Mapping[str, Any], question: Question, label: _InferredLabel) -> Record:
    is_number = question.control.get("value") == "number"
    order = parse_label_set(question.control.get("order", ""))  # the order of options in all answers, if they agree
    options = order if set(order) == set(label.options) else label.options
    values = [_parse_required_number(option) if is_number else option for option in options]
    is_multiple = question.kind == "multiple"
    score: Any = label.confidence
    if is_multiple and label.confidence is not None:
        score = [label.confidence] * len(values)
    suggestion = {"value": values if is_multiple else values[0], "score": score, "agent": label.model}
    return build_argilla_record(task, data) | {"suggestions": {question.name: suggestion}}


def _argilla_task(task: str, data: Mapping[str, Any], priority: int) -> Record:
    record = build_argilla_record(task, data)
    return record | {"metadata": {**(record["metadata"] or {}), OWN_PRIORITY: priority}}


def build_argilla_record(task: str, data: Mapping[str, Any]) -> Record:
    """Return a record of Argilla without suggestions.

    Parameters
    ----------
    task : str
        Record id.
    data : mapping
        Record as it was exported.

    Returns
    -------
    dict
    """
    fields, metadata = data.get("fields") or {}, data.get("metadata") or {}
    return {"id": task, "fields": fields, "metadata": metadata, "suggestions": {}, "responses": {}, "vectors": {}}


# ---------------------------------------------------------------------- doccano


def _doccano_answer(task: str, data: Mapping[str, Any], question: Question, label: _InferredLabel) -> Record:
    columns = _doccano_columns(question) | {question.control.get("column", "label"): list(label.options)}
    return build_doccano_example(task, data) | columns | {OWN_CONFIDENCE: label.confidence}


def _doccano_task(task: str, data: Mapping[str, Any], priority: int) -> Record:
    return build_doccano_example(task, data) | {OWN_PRIORITY: priority}


def _doccano_empty_answers(project: Project) -> Record:
    return {key: value for question in project.questions.values() for key, value in _doccano_columns(question).items()}


def _doccano_columns(question: Question) -> Record:
    """Return the columns that doccano requires in an import, without labels. Intents require entities as well."""
    column = question.control.get("column", "label")
    return {column: []} | ({"entities": []} if column == "cats" else {})


def build_doccano_example(task: str, data: Mapping[str, Any]) -> Record:
    """Return an example without its id. doccano assigns new ids on import and keeps other keys.

    Parameters
    ----------
    task : str
        Task id.
    data : mapping
        Example as it was exported.

    Returns
    -------
    dict
    """
    return {key: value for key, value in data.items() if key != "id"} | {OWN_TASK: task}


# ---------------------------------------------------------------------- Prodigy


def _prodigy_answer(task: str, data: Mapping[str, Any], question: Question, label: _InferredLabel) -> Record:
    record = {**data, OWN_TASK: task, OWN_CONFIDENCE: label.confidence}
    if "label" in question.control:
        return record | {"label": question.control["label"], OWN_LABEL: label.options[0]}
    # The id of an option may be a number.
    ids = {
        format_label(option["id"]): option["id"]
        for option in data.get("options", ())
        if isinstance(option, dict) and "id" in option
    }
    return record | {"accept": [ids.get(option, option) for option in label.options]}


def _prodigy_task(task: str, data: Mapping[str, Any], priority: int) -> Record:
    return {**data, OWN_TASK: task, OWN_PRIORITY: priority}


# ---------------------------------------------------------------------- all tools


@dataclass(frozen=True)
class _ToolFormat:
    """Functions that build the records of a tool, and the layout of its files."""

    build_answer: Callable[[str, Mapping[str, Any], Question, _InferredLabel], Record]
    build_queued_task: Callable[[str, Mapping[str, Any], int], Record]
    #: Whether records are in one JSON list rather than on lines.
    as_list: bool
    #: Function that returns the keys of unanswered questions in a queued task.
    build_empty_answers: Callable[[Project], Record] = lambda project: {}
    #: Whether all records must have the same keys, without null.
    needs_equal_keys: bool = False
    #: Function that turns an inferred label into a true one.
    mark_gold: Callable[[Record], Record] = lambda record: record


_LABEL_STUDIO = _ToolFormat(_label_studio_answer, _label_studio_task, as_list=True, mark_gold=_label_studio_gold)
TOOLS: Mapping[str, _ToolFormat] = {
    "label-studio": _LABEL_STUDIO,
    "label-studio-min": _LABEL_STUDIO,
    "argilla": _ToolFormat(_argilla_answer, _argilla_task, as_list=True),
    "doccano": _ToolFormat(
        _doccano_answer,
        _doccano_task,
        as_list=False,
        build_empty_answers=_doccano_empty_answers,
        needs_equal_keys=True,
    ),
    "prodigy": _ToolFormat(_prodigy_answer, _prodigy_task, as_list=False),
}


def _get_tool(project: Project) -> _ToolFormat:
    if project.format not in TOOLS:
        raise UsageError(
            f"answers cannot be written for {project.format}; the tools are {', '.join(TOOLS)}. wisecrowd aggregate writes "
            "answers as tables"
        )
    return TOOLS[project.format]


def _parse_options(label: Any, question: Question) -> tuple[str, ...]:
    text = format_label(label.item() if hasattr(label, "item") else label)
    return parse_label_set(text) if question.kind == "multiple" else (text,)


def round_confidence(confidence: Any) -> float | None:
    """Return a confidence with six decimals, or None if it is not a number.

    Parameters
    ----------
    confidence : object
        Any value.

    Returns
    -------
    float or None

    Examples
    --------
    >>> round_confidence(0.12345678), round_confidence(math.nan)
    (0.123457, None)
    """
    number = parse_number(confidence)
    return None if math.isnan(number) else round(number, 6)


def _parse_required_number(text: str) -> float | int:
    number = parse_number(text)
    if math.isnan(number):
        raise InputError(f"the answer to this question must be a number; got {preview([text])}")
    return int(number) if number.is_integer() else number


def check_tasks(tasks: Iterable[str], project: Project) -> None:
    """Raise an error if tasks are not in a project.

    Parameters
    ----------
    tasks : iterable of str
        Task ids.
    project : Project
        Export that the votes were read from.

    Raises
    ------
    InputError
        If a task is unknown.
    """
    unknown = [task for task in tasks if task not in project.tasks]
    if unknown:
        subject = f"{len(unknown):,} tasks are" if len(unknown) > 1 else "1 task is"
        raise InputError(
            f"{subject} not in the project: {preview(unknown)}; its {len(project.tasks):,} tasks start with "
            f"{preview(project.tasks)}. Give the export that the votes were read from"
        )


def complete_records(records: Iterable[Record], *, needs_equal_keys: bool) -> Iterator[Record]:
    """Give all records the same keys if the tool needs it. doccano reads a table and cannot store missing cells.

    Parameters
    ----------
    records : iterable of dict
        Records.
    needs_equal_keys : bool
        Whether all records must have the same keys, without null.

    Yields
    ------
    dict
        Record.
    """
    if not needs_equal_keys:
        yield from records
        return
    all_records = list(records)
    keys = dict.fromkeys(key for record in all_records for key in record)
    for record in all_records:
        yield {key: "" if record.get(key) is None else record[key] for key in keys}


def write_records(records: Iterable[Record], path: Path, *, as_list: bool) -> None:
    """Write records to a file, completely or not at all.

    Parameters
    ----------
    records : iterable of dict
        Records.
    path : Path
        File.
    as_list : bool
        Whether records are in one JSON list rather than on lines.
    """
    with atomic_path(path) as partial_path, partial_path.open("w", encoding="utf-8", newline="\n") as file:
        for position, record in enumerate(records):
            if as_list:
                file.write(",\n" if position else "[\n")
            file.write(_format_record(record))
            if not as_list:
                file.write("\n")
        if as_list:
            file.write("\n]\n")


def _format_record(record: Record) -> str:
    try:
        # In ASCII: doccano guesses the encoding, and Argilla uses that of the system.
        return json.dumps(record, allow_nan=False, default=str)
    except (ValueError, RecursionError) as error:
        raise InputError(f"a task cannot be represented in JSON: {error}") from None
