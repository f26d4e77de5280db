"""Webhooks of Label Studio.

The name of a question consists of the number of the project and the name of the control, such as ``12:mood``. An annotation
is a source: its current content replaces the previous one.

Servers number projects, tasks and annotations independently. A server may therefore have a name, which is part of sources and
questions (``berlin/12:mood``). Webhooks do not say which server they come from. Their project has a creation time, by which
the store notices two servers of the same name, or without one, whose projects have the same number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from wisecrowd.errors import InputError
from wisecrowd.io.tools.export_files import get_objects, get_part
from wisecrowd.io.tools.exported_answers import ExportedAnswers, normalize_options, parse_id, parse_timestamp
from wisecrowd.io.tools.label_sets import format_label_set
from wisecrowd.io.tools.label_studio import ORIGIN_KEY, SERVER_NAME, parse_results, parse_worker
from wisecrowd.service.events import DeleteTasks, Event, RegisterTasks, Upsert, VoteRecord
from wisecrowd.service.schemas import validate_name

#: Tags of controls that ask about a whole task.
_TASK_CONTROLS = {"choices", "rating"}


@dataclass(frozen=True)
class _ServerProject:
    """Project of a Label Studio server."""

    server: str
    number: str
    origin: str | None
    settings: object

    @property
    def question_prefix(self) -> str:
        return f"{self.server}/{self.number}:" if self.server else f"{self.number}:"

    def build_source(self, annotation: dict[str, Any]) -> str:
        """Return the source of an annotation, which no annotation of another project or named server shares."""
        key = (self.server, self.number, _validate_id(annotation.get("id"), "annotation"))
        return f"label-studio:{json.dumps(key)}"


def parse_webhook(body: dict[str, Any], server: str = "") -> list[Event]:
    """Return the events of a webhook.

    Parameters
    ----------
    body : dict
        JSON body of the webhook.
    server : str, default=""
        Name of the server, if several servers send webhooks.

    Returns
    -------
    list of Upsert, RegisterTasks or DeleteTasks
        Events; none for actions that do not concern votes.

    Raises
    ------
    InputError
        If the body is not a webhook of Label Studio.

    Examples
    --------
    >>> result = {"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}
    >>> annotation = {"id": 5, "task": 7, "completed_by": 1, "result": [result]}
    >>> event, = parse_webhook({"action": "ANNOTATION_CREATED", "annotation": annotation, "project": {"id": 12}})
    >>> event.source, event.records[0].question, event.records[0].label
    ('label-studio:["", "12", "5"]', '12:mood', 'good')
    >>> deleted = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 5}], "project": {"id": 12}}
    >>> parse_webhook(deleted, server="berlin")[0].source
    'label-studio:["berlin", "12", "5"]'
    """
    action = body.get("action")
    if not isinstance(action, str):
        raise InputError("the webhook names no action; send webhooks of Label Studio to this address, and no others")
    if action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"):
        annotation = get_part(body, "annotation", dict, "the webhook")
        return [_annotation_event(annotation, _parse_project(body, server, annotation))]
    if action == "ANNOTATIONS_CREATED":
        annotations = get_objects(body, "annotations", "the webhook")
        return [_annotation_event(annotation, _parse_project(body, server, annotation)) for annotation in annotations]
    if action == "ANNOTATIONS_DELETED":
        project = _parse_project(body, server)
        annotations = get_objects(body, "annotations", "the webhook")
        return [Upsert(project.build_source(annotation), (), project.origin) for annotation in annotations]
    if action in ("TASKS_CREATED", "TASKS_DELETED"):
        tasks = tuple(_validate_id(task.get("id"), "task") for task in get_objects(body, "tasks", "the webhook"))
        project = _parse_project(body, server)
        if action == "TASKS_DELETED":
            return [DeleteTasks(project.question_prefix, tasks, project.origin)]
        names = [_validate_text(f"{project.question_prefix}{name}") for name in _read_controls(project.settings)]
        return [RegisterTasks(name, tasks, project.origin) for name in names]
    return []


def _parse_project(body: dict[str, Any], server: str, annotation: dict[str, Any] | None = None) -> _ServerProject:
    project = get_part(body, "project", dict, "the webhook")
    number = _validate_id(project.get("id", (annotation or {}).get("project")), "project")
    return _ServerProject(server, number, _parse_origin(project.get("created_at")), project.get("label_config"))


def _parse_origin(created_at: object) -> str | None:
    """Return the creation time of a project in one form, or None if it is missing."""
    seconds = parse_timestamp(created_at)
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # NaN, or a year that does not exist
        return None


def parse_exported_task(task: dict[str, Any]) -> list[Event]:
    """Return the events of an exported task, as if its annotations had been posted one by one.

    Parameters
    ----------
    task : dict
        Task of a JSON export of Label Studio, with its project.

    Returns
    -------
    list of Upsert
        Events.

    Examples
    --------
    >>> result = {"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}
    >>> task = {"id": 7, "project": 12, "annotations": [{"id": 5, "completed_by": 1, "result": [result]}]}
    >>> parse_exported_task(task)[0].records[0].task
    '7'
    """
    origin = get_part(task, ORIGIN_KEY, dict, "the task")
    server = origin.get("server", "")
    if not isinstance(server, str) or not (server == "" or SERVER_NAME.fullmatch(server)):
        raise InputError(
            f"{ORIGIN_KEY} names the server {str(server)[:40]!r}; write the file with wisecrowd label-studio pull"
        )
    number = _validate_id(task["project"], "project")
    project = _ServerProject(server, number, _parse_origin(origin.get("project_created_at")), None)
    return [
        _annotation_event({**annotation, "task": task.get("id")}, project)
        for annotation in get_objects(task, "annotations", "the task")
        # Annotations of deleted accounts have no worker and cannot be counted as votes.
        if annotation.get("completed_by") is not None or annotation.get("ground_truth") is True
    ]


def _annotation_event(annotation: dict[str, Any], project: _ServerProject) -> Upsert:
    return Upsert(project.build_source(annotation), tuple(_annotation_records(annotation, project)), project.origin)


def _annotation_records(annotation: dict[str, Any], project: _ServerProject) -> list[VoteRecord]:
    """Return one vote per answered question, without a worker if it is gold; none for a cancelled annotation."""
    if annotation.get("was_cancelled"):
        return []
    task = _validate_id(annotation.get("task"), "task")
    exported = ExportedAnswers()  # parse_results adds the questions to it
    answers = parse_results(get_objects(annotation, "result", "the annotation"), exported)
    worker = (
        None
        if annotation.get("ground_truth") is True
        else parse_worker(annotation.get("completed_by"), "the annotation")
    )
    seconds = parse_timestamp(annotation.get("created_at"))
    time = seconds if seconds == seconds else None  # NaN where the time is missing
    records = []
    for name, answer in answers.items():
        options, kind = normalize_options(answer), exported.get_question(name).control["type"]
        if kind == "number":  # numbers are not classes
            continue
        question = f"{project.question_prefix}{name}"
        if kind == "choices" and _is_multiple(project.settings, name, len(options)):
            records.append(_build_record(question, task, worker, format_label_set(options), time))
        elif options:
            records.append(_build_record(question, task, worker, options[0], time))
    return records


def _build_record(question: str, task: str, worker: str | None, label: str, time: float | None) -> VoteRecord:
    try:
        return VoteRecord(
            validate_name(question),
            validate_name(task),
            None if worker is None else validate_name(worker),
            validate_name(label),
            time,
        )
    except ValueError as error:
        raise InputError(f"the webhook has an invalid question, task, worker or label: {error}") from None


def _is_multiple(settings: object, name: str, n_chosen: int) -> bool:
    """Return whether a control allows several options; without settings, whether the answer has several."""
    control = _read_controls(settings).get(name)
    return n_chosen != 1 if control is None else control.get("choice", "single") == "multiple"


def _read_controls(settings: object) -> dict[str, dict[str, str]]:
    """Return the attributes of the controls that ask about whole tasks; nothing where the settings cannot be read."""
    # Settings of Label Studio declare no entities; refusing them prevents entity expansion attacks.
    if not isinstance(settings, str) or "<!" in settings.replace("<!--", ""):
        return {}
    try:
        root = ElementTree.fromstring(settings)
    except ElementTree.ParseError:
        return {}
    return {
        element.attrib["name"]: dict(element.attrib)
        for element in root.iter()
        if element.tag.lower() in _TASK_CONTROLS and element.get("perRegion") != "true" and "name" in element.attrib
    }


def _validate_text(question: str) -> str:
    try:
        return validate_name(question)
    except ValueError as error:
        raise InputError(f"the webhook has an invalid question: {error}") from None


def _validate_id(value: object, noun: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"the webhook has no {noun} id; send webhooks of Label Studio to this address, and no others")
    try:
        return validate_name(parse_id(value, noun, "the webhook"))
    except ValueError as error:
        raise InputError(f"the webhook has an invalid {noun} id: {error}") from None
