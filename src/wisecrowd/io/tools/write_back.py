"""Answers back into the tool that the votes came from: consensus to look at, and tasks to label again.

| tool | consensus | queue |
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

from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.tools.answers import set_of, written_set
from wisecrowd.io.tools.gathering import OWN, OWN_CONFIDENCE, OWN_LABEL, OWN_PRIORITY, OWN_TASK, number, spelled
from wisecrowd.io.tools.label_studio import ANSWERS
from wisecrowd.io.tools.projects import Project, Question
from wisecrowd.utils.files import atomic_path

__all__ = ["write_answers", "write_queue"]

Record = dict[str, Any]


@dataclass(frozen=True)
class _Answer:
    """What is to be said of a task."""

    chosen: tuple[str, ...]
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
    """Write what was inferred of a question in the form that the project's tool imports.

    ``answers`` are labels by task, with a column ``confidence`` where it is known; ``model`` names the method, and the tool shows
    it. The tool's reader will know them again, and never takes them for votes.

    >>> from wisecrowd.io import read_project
    >>> record = '{"id": "r1", "fields": {"text": "Hi"}, "suggestions": {}, "responses": {"mood": [{"value": "good", "user_id": "ann"}]}}'
    >>> _ = Path("records.json").write_text(f"[{record}]")
    >>> answers = pd.DataFrame({"label": ["good"], "confidence": [0.9]}, index=["r1"])
    >>> write_answers(answers, read_project("records.json"), "suggestions.json", model="dawid-skene")
    >>> json.loads(Path("suggestions.json").read_text())[0]["suggestions"]
    {'mood': {'value': 'good', 'score': 0.9, 'agent': 'wisecrowd dawid-skene'}}
    """  # noqa: E501
    records = records_of(answers, project, question=question, model=model)
    _write(_finished(records, _tool(project)), Path(path), as_list=_tool(project).as_list)


def records_of(
    answers: pd.Series[Any] | pd.DataFrame, project: Project, *, question: str | None = None, model: str = ""
) -> Iterator[Record]:
    """What :func:`write_answers` writes, task by task; answers that do not fit the project are refused before the first.

    >>> from wisecrowd.io.tools.label_studio import gather_tasks
    >>> from wisecrowd.io.tools.projects import project_of
    >>> result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    >>> tasks = [{"id": 7, "data": {}, "annotations": [{"completed_by": 1, "result": [result]}]}]
    >>> project = project_of(gather_tasks(tasks), "label-studio")
    >>> [record["id"] for record in records_of(pd.Series({"7": "good"}), project)]
    [7]
    """
    tool, asked = _tool(project), project.question(question)
    table = answers.rename("label").to_frame() if isinstance(answers, pd.Series) else answers
    if "label" not in table:
        raise InputError(f"answers need a column 'label'; there are {some(table.columns, 8)}")
    sure = table["confidence"] if "confidence" in table else pd.Series(math.nan, index=table.index)
    said = {
        str(task): _Answer(_options(label, asked), _rounded(confidence), f"{OWN} {model}".strip())
        for task, label, confidence in zip(table.index, table["label"], sure, strict=True)
    }
    _refuse_unknown(said, project)
    _refuse_strange(said.values(), asked)
    return (tool.answer(task, project.tasks[task], asked, said[task]) for task in project.tasks if task in said)


def doubts(project: Project) -> list[str]:
    """What to know before something is written for the tool of a project.

    >>> from wisecrowd.io import read_project
    >>> record = '{"id": "r1", "text": "Hi", "page": 3, "mood.responses": ["good"], "mood.responses.users": ["ann"]}'
    >>> _ = Path("flat.jsonl").write_text(record + "\\n")
    >>> doubts(read_project("flat.jsonl"))[0].partition(",")[0]
    'to_datasets does not tell metadata from fields'
    """
    if project.format != "argilla" or all("metadata" in held for held in project.tasks.values()):
        return []
    fields = dict.fromkeys(name for held in project.tasks.values() for name in held.get("fields", ()))
    return [
        f"to_datasets does not tell metadata from fields, so that all of it is written as fields: {some(fields, 6)}. If some of "
        "it is metadata, give what records.to_json writes as the project instead"
    ]


def _refuse_strange(answers: Iterable[_Answer], asked: Question) -> None:
    """Answers to another question would pass for answers to this one; a tool would drop half a star, or take it for something."""
    chosen = [answer.chosen for answer in answers]
    if asked.control.get("ranked"):
        raise InputError(
            f"the answers to {asked.name!r} have the same options in differing orders, as rankings do, and the consensus has no "
            "order; rankings cannot be written back"
        )
    if asked.control.get("type") == "rating" or asked.control.get("value") == "number":
        halves = [one for (one,) in chosen if not number(one).is_integer() and not math.isnan(number(one))]
        if halves:
            raise InputError(
                f"{asked.name!r} takes whole numbers, and {len(halves):,} of {len(chosen):,} answers are none: {some(halves)}; "
                "aggregate it as classes (leave --numeric out), or round the labels in a table of task and label"
            )
        return  # any number of stars is an answer
    known = asked.crowd.classes
    if known is None:
        return
    told = (written_set(one) if asked.kind == "multiple" else one[0] for one in chosen)
    strange = sorted(set(told) - set(map(str, known)))
    if strange:
        raise InputError(
            f"{some(strange)} is no answer that anybody gave to {asked.name!r}, to which they said {some(known, 6)}; "
            "give answers to that very question"
        )


def write_queue(queue: pd.DataFrame | Iterable[Any], project: Project, path: str | os.PathLike[str]) -> None:
    """Write tasks that deserve more votes in the form that the project's tool imports, the most urgent first.

    ``queue`` lists the tasks in that order: the ``asks`` of a :func:`wisecrowd.plan`, a table with a column ``task``, or
    ids. A task that is there several times is written once.

    >>> from wisecrowd.io import read_project
    >>> record = '{"text": "Hi", "_input_hash": 1, "_session_id": "demo-ann", "accept": ["good"], "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> write_queue(["1"], read_project("answers.jsonl"), "again.jsonl")
    >>> json.loads(Path("again.jsonl").read_text())
    {'text': 'Hi', '_input_hash': 1, 'wisecrowd_task': '1', 'wisecrowd_priority': 1}
    """
    tool = _tool(project)
    if isinstance(queue, pd.DataFrame) and "task" not in queue:
        raise InputError(f"a queue needs a column 'task'; there are {some(queue.columns, 8)}")
    tasks = dict.fromkeys(str(task) for task in (queue["task"] if isinstance(queue, pd.DataFrame) else queue))
    if not tasks:
        raise InputError("there is nothing in the queue")
    _refuse_unknown(tasks, project)
    unanswered = tool.unanswered(project)
    records = (tool.again(task, project.tasks[task], place) | unanswered for place, task in enumerate(tasks, start=1))
    _write(_finished(records, tool), Path(path), as_list=tool.as_list)


# ---------------------------------------------------------------------- Label Studio


def _label_studio(task: str, held: Mapping[str, Any], question: Question, said: _Answer) -> Record:
    control = question.control
    if not control.get("to_name"):
        raise InputError(
            f"the export does not tell to what {question.name!r} belongs (to_name), which predictions must say; export "
            "Label Studio's JSON rather than JSON_MIN"
        )
    kind = control["type"]
    value: Any = list(said.chosen)
    if kind != "choices":
        value = said.chosen[0] if kind == "pairwise" else _number(said.chosen[0])
    result = {
        # Results need an id; that of the same answer is always the same.
        "id": hashlib.sha256(f"{task}\0{question.name}".encode(errors="surrogatepass")).hexdigest()[:10],
        "from_name": control["from_name"],
        "to_name": control["to_name"],
        "type": kind,
        "value": {ANSWERS[kind]: value},
    }
    prediction: Record = {"model_version": said.model, "result": [result]}
    if said.confidence is not None:
        prediction["score"] = said.confidence
    return {**held, "predictions": [prediction]}


def _label_studio_again(task: str, held: Mapping[str, Any], place: int) -> Record:
    return {"data": {**held.get("data", {}), OWN_TASK: task, OWN_PRIORITY: place}}


# ---------------------------------------------------------------------- Argilla


def _argilla(task: str, held: Mapping[str, Any], question: Question, said: _Answer) -> Record:
    as_number = question.control.get("value") == "number"
    order = list(set_of(question.control.get("order", "")))  # that of an answer which all gave alike, such as a ranking
    chosen = order if set(order) == set(said.chosen) else said.chosen
    values = [_number(one) if as_number else one for one in chosen]
    several = question.kind == "multiple"
    score = [said.confidence] * len(values) if several and said.confidence is not None else said.confidence
    suggestion = {"value": values if several else values[0], "score": score, "agent": said.model}
    return _record(task, held) | {"suggestions": {question.name: suggestion}}


def _argilla_again(task: str, held: Mapping[str, Any], place: int) -> Record:
    record = _record(task, held)
    return record | {"metadata": {**(record["metadata"] or {}), OWN_PRIORITY: place}}


def _record(task: str, held: Mapping[str, Any]) -> Record:
    fields, metadata = held.get("fields") or {}, held.get("metadata") or {}
    return {"id": task, "fields": fields, "metadata": metadata, "suggestions": {}, "responses": {}, "vectors": {}}


# ---------------------------------------------------------------------- doccano


def _doccano(task: str, held: Mapping[str, Any], question: Question, said: _Answer) -> Record:
    chosen = _columns(question) | {question.control.get("column", "label"): list(said.chosen)}
    return _example(task, held) | chosen | {OWN_CONFIDENCE: said.confidence}


def _doccano_again(task: str, held: Mapping[str, Any], place: int) -> Record:
    return _example(task, held) | {OWN_PRIORITY: place}


def _doccano_unanswered(project: Project) -> Record:
    return {key: value for question in project.questions.values() for key, value in _columns(question).items()}


def _columns(question: Question) -> Record:
    """The columns that doccano looks for in what it imports, with nothing in them: beside intents it wants entities."""
    column = question.control.get("column", "label")
    return {column: []} | ({"entities": []} if column == "cats" else {})


def _example(task: str, held: Mapping[str, Any]) -> Record:
    """doccano gives ids of its own to what it imports, and keeps other keys."""
    return {key: value for key, value in held.items() if key != "id"} | {OWN_TASK: task}


# ---------------------------------------------------------------------- Prodigy


def _prodigy(task: str, held: Mapping[str, Any], question: Question, said: _Answer) -> Record:
    record = {**held, OWN_TASK: task, OWN_CONFIDENCE: said.confidence}
    if "label" in question.control:
        return record | {"label": question.control["label"], OWN_LABEL: said.chosen[0]}
    # An option goes by its id, which may be a number.
    ids = {spelled(one["id"]): one["id"] for one in held.get("options", ()) if isinstance(one, dict) and "id" in one}
    return record | {"accept": [ids.get(one, one) for one in said.chosen]}


def _prodigy_again(task: str, held: Mapping[str, Any], place: int) -> Record:
    return {**held, OWN_TASK: task, OWN_PRIORITY: place}


# ---------------------------------------------------------------------- inside


@dataclass(frozen=True)
class _Tool:
    """How a tool wants an answer, and a task that is asked about again; whether in one list or on lines."""

    answer: Callable[[str, Mapping[str, Any], Question, _Answer], Record]
    again: Callable[[str, Mapping[str, Any], int], Record]
    as_list: bool
    #: What is said of the questions of a task that is asked about again.
    unanswered: Callable[[Project], Record] = lambda project: {}
    #: Whether all records must have the same keys, and a value under each.
    alike: bool = False


TOOLS = {
    "label-studio": _Tool(_label_studio, _label_studio_again, as_list=True),
    "label-studio-min": _Tool(_label_studio, _label_studio_again, as_list=True),
    "argilla": _Tool(_argilla, _argilla_again, as_list=True),
    "doccano": _Tool(_doccano, _doccano_again, as_list=False, unanswered=_doccano_unanswered, alike=True),
    "prodigy": _Tool(_prodigy, _prodigy_again, as_list=False),
}


def _tool(project: Project) -> _Tool:
    if project.format not in TOOLS:
        raise UsageError(
            f"nothing is written for {project.format}; answers go back into {', '.join(TOOLS)}. Tables of answers are what "
            "wisecrowd aggregate writes"
        )
    return TOOLS[project.format]


def _options(label: Any, question: Question) -> tuple[str, ...]:
    if label is None or label != label:
        raise InputError("an answer is missing; leave out tasks without a label")
    text = spelled(label.item() if hasattr(label, "item") else label)
    return set_of(text) if question.kind == "multiple" else (text,)


def _rounded(confidence: Any) -> float | None:
    found = number(confidence)
    return None if math.isnan(found) else round(found, 6)


def _number(text: str) -> float | int:
    found = number(text)
    if math.isnan(found):
        raise InputError(f"a number was wanted as the answer to this question; got {some([text])}")
    return int(found) if found.is_integer() else found


def _refuse_unknown(tasks: Iterable[str], project: Project) -> None:
    unknown = [task for task in tasks if task not in project.tasks]
    if unknown:
        several = f"{len(unknown):,} tasks are" if len(unknown) > 1 else "1 task is"
        raise InputError(
            f"{several} not in the project: {some(unknown)}; its {len(project.tasks):,} tasks start with "
            f"{some(project.tasks)}. Give the export that the votes were read from"
        )


def _finished(records: Iterator[Record], tool: _Tool) -> Iterator[Record]:
    """doccano makes a table of what it imports, and cannot store the holes in it; an empty text is none."""
    if not tool.alike:
        yield from records
        return
    found = list(records)
    keys = dict.fromkeys(key for record in found for key in record)
    for record in found:
        yield {key: "" if record.get(key) is None else record[key] for key in keys}


def _write(records: Iterator[Record], path: Path, *, as_list: bool) -> None:
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for place, record in enumerate(records):
            if as_list:
                file.write(",\n" if place else "[\n")
            file.write(_spelled_out(record))
            if not as_list:
                file.write("\n")
        if as_list:
            file.write("\n]\n")


def _spelled_out(record: Record) -> str:
    try:
        # In ASCII: doccano guesses the encoding, and Argilla takes that of the system.
        return json.dumps(record, allow_nan=False, default=str)
    except (ValueError, RecursionError) as error:
        raise InputError(f"a task holds what JSON has no word for: {error}") from None
