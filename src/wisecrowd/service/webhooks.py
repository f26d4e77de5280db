"""What Label Studio posts when somebody annotates, as what the service is told.

A question goes by the number of its project and the name of its control, such as ``12:mood``. An annotation is a source:
whatever it says now replaces what it said before.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from wisecrowd.errors import InputError
from wisecrowd.io.tools.answers import written_set
from wisecrowd.io.tools.exports import entries, part
from wisecrowd.io.tools.gathering import Gathering, identity, moment, options_of
from wisecrowd.io.tools.label_studio import answers_of, worker_of
from wisecrowd.service.events import DeleteTasks, Entry, RegisterTasks, Told, Upsert
from wisecrowd.service.schemas import clean

#: Controls whose answers are about a whole task, as they are written in a project's settings.
_CONTROLS = {"choices", "rating"}


def told_by(body: dict[str, Any]) -> list[Told]:
    """What a webhook tells; nothing where it is of a kind that does not concern votes.

    >>> result = {"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}
    >>> annotation = {"id": 5, "task": 7, "completed_by": 1, "result": [result]}
    >>> told_by({"action": "ANNOTATION_CREATED", "annotation": annotation, "project": {"id": 12}})
    [Upsert(source='label-studio:5', entries=(Entry(question='12:mood', task='7', worker='1', label='good', time=None),))]
    >>> told_by({"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 5}], "project": {"id": 12}})
    [Upsert(source='label-studio:5', entries=())]
    """
    action, project = body.get("action"), part(body, "project", dict, "the webhook")
    if not isinstance(action, str):
        raise InputError("the webhook names no action; is it from Label Studio?")
    if action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"):
        annotation = part(body, "annotation", dict, "the webhook")
        return [Upsert(_source(annotation), tuple(_entries(annotation, project)))]
    if action == "ANNOTATIONS_CREATED":
        return [
            Upsert(_source(each), tuple(_entries(each, project)))
            for each in entries(body, "annotations", "the webhook")
        ]
    if action == "ANNOTATIONS_DELETED":
        return [Upsert(_source(each), ()) for each in entries(body, "annotations", "the webhook")]
    if action in ("TASKS_CREATED", "TASKS_DELETED"):
        tasks = tuple(_identity(each.get("id"), "task") for each in entries(body, "tasks", "the webhook"))
        number = _identity(project.get("id"), "project")
        if action == "TASKS_DELETED":
            return [DeleteTasks(f"{number}:", tasks)]
        return [RegisterTasks(f"{number}:{name}", tasks) for name in _questions(project)]
    return []


def told_of(task: dict[str, Any]) -> list[Told]:
    """What an exported task tells, as if its annotations had been posted one after the other.

    >>> result = {"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}
    >>> told_of({"id": 7, "project": 12, "annotations": [{"id": 5, "completed_by": 1, "result": [result]}]})
    [Upsert(source='label-studio:5', entries=(Entry(question='12:mood', task='7', worker='1', label='good', time=None),))]
    """
    project = {"id": task["project"]}
    return [
        Upsert(_source(each), tuple(_entries({**each, "task": task.get("id")}, project)))
        for each in entries(task, "annotations", "the task")
        # Of accounts that were deleted, nobody knows any more whose votes these are.
        if each.get("completed_by") is not None or each.get("ground_truth") is True
    ]


def _source(annotation: dict[str, Any]) -> str:
    return f"label-studio:{_identity(annotation.get('id'), 'annotation')}"


def _entries(annotation: dict[str, Any], project: dict[str, Any]) -> list[Entry]:
    if annotation.get("was_cancelled"):
        return []
    number = _identity(project.get("id", annotation.get("project")), "project")
    task = _identity(annotation.get("task"), "task")
    gathered = Gathering()
    answers = answers_of(entries(annotation, "result", "the annotation"), gathered)
    worker = (
        None if annotation.get("ground_truth") is True else worker_of(annotation.get("completed_by"), "the annotation")
    )
    at = moment(annotation.get("created_at"))
    time = at if at == at else None
    found = []
    for name, said in answers.items():
        options, kind = options_of(said), gathered.question(name).control["type"]
        if kind == "number":  # which is no class
            continue
        if kind == "choices" and _is_multiple(project, name, len(options)):
            found.append(_entry(f"{number}:{name}", task, worker, written_set(options), time))
        elif options:
            found.append(_entry(f"{number}:{name}", task, worker, options[0], time))
    return found


def _entry(question: str, task: str, worker: str | None, label: str, time: float | None) -> Entry:
    try:
        return Entry(clean(question), clean(task), None if worker is None else clean(worker), clean(label), time)
    except ValueError as error:
        raise InputError(f"the webhook names a question, task, worker or label that is none: {error}") from None


def _is_multiple(project: dict[str, Any], name: str, n_chosen: int) -> bool:
    """Whether several options may be chosen, as the project's settings say; where they do not, whether several were."""
    control = _controls(project).get(name)
    return n_chosen != 1 if control is None else control.get("choice", "single") == "multiple"


def _questions(project: dict[str, Any]) -> list[str]:
    return list(_controls(project))


def _controls(project: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Name -> attributes of what asks about whole tasks in a project's settings; nothing where they cannot be read."""
    settings = project.get("label_config")
    if not isinstance(settings, str) or "<!" in settings.replace("<!--", ""):  # settings declare no entities
        return {}
    try:
        root = ElementTree.fromstring(settings)
    except ElementTree.ParseError:
        return {}
    found = [each for each in root.iter() if each.tag.lower() in _CONTROLS and each.get("perRegion") != "true"]
    return {each.attrib["name"]: dict(each.attrib) for each in found if "name" in each.attrib}


def _identity(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"the webhook names no {what}; is it from Label Studio?")
    try:
        return clean(identity(value, what, "the webhook"))
    except ValueError as error:
        raise InputError(f"the webhook's {what}: {error}") from None
