"""Synchronization with a running Label Studio: pull tasks as an export, and push labels as predictions."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

from wisecrowd.errors import InputError, preview
from wisecrowd.io.tools.consensus_export import build_records
from wisecrowd.io.tools.exported_answers import OWN_MODEL, ExportedAnswers
from wisecrowd.io.tools.exported_structures import StructureKind, get_structure
from wisecrowd.io.tools.label_studio import ANSWER_KEYS, ORIGIN_KEY, check_server_name, get_task_id, parse_tasks
from wisecrowd.io.tools.label_studio_regions import LABEL_KEYS, TEXT_AREA
from wisecrowd.io.tools.label_studio_server import ServerError, UnconfirmedWrite
from wisecrowd.io.tools.projects import Project, build_project
from wisecrowd.io.tools.structured_export import build_object_records, build_text_records
from wisecrowd.utils import progress
from wisecrowd.utils.files import atomic_path

__all__ = ["PredictionServer", "PushSummary", "pull", "push", "push_objects", "push_texts"]

#: Number of times that changes are sent and checked before the server is assumed to drop them.
MAX_ROUNDS = 4
#: Keys that identify a person. They are not needed, because workers go by their ids.
_PERSONAL_KEYS = frozenset({"created_username", "created_ago", "user"})
#: Keys that the Data Manager adds to a task for display.
_DISPLAY_KEYS = frozenset(
    {"annotations_results", "predictions_results", "annotations_ids", "predictions_model_versions", "predictions_score"}
    | {"annotators", "avg_lead_time", "updated_by", "comment_authors", "completed_at"}
)

Record = dict[str, Any]


class PredictionServer(Protocol):
    """Server that `pull` and `push` work with, such as `LabelStudioClient`."""

    def get_project(self, number: int) -> Record:
        """Return a project.

        Parameters
        ----------
        number : int
            Project id.

        Returns
        -------
        dict
            Project as the server describes it.
        """

    def iter_tasks(self, project: int) -> Iterator[tuple[Record, int]]:
        """Yield the tasks of a project.

        Parameters
        ----------
        project : int
            Project id.

        Yields
        ------
        task : dict
            Task.
        total : int
            Number of tasks.
        """

    def add_predictions(self, project: int, predictions: list[Record]) -> int:
        """Add predictions to tasks.

        Parameters
        ----------
        project : int
            Project id.
        predictions : list of dict
            Predictions, each with the id of its ``task``.

        Returns
        -------
        int
            Number of predictions that the server accepted.
        """

    def update_prediction(self, prediction: int, values: Record) -> None:
        """Update a prediction.

        Parameters
        ----------
        prediction : int
            Prediction id.
        values : dict
            New values.
        """

    def delete_prediction(self, prediction: int) -> None:
        """Delete a prediction.

        Parameters
        ----------
        prediction : int
            Prediction id.
        """


@dataclass(frozen=True)
class PushSummary:
    """Number of predictions that a push changed, or would change.

    Parameters
    ----------
    question : str
        Name of the question.
    added, changed, removed : int, default=0
        Predictions that were added, updated and deleted.
    same : int, default=0
        Predictions that were on the server already.
    stale : int, default=0
        Predictions of an earlier push on tasks without a label now. They stay.

    Examples
    --------
    >>> PushSummary(question="mood", added=2).same
    0
    """

    question: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    same: int = 0
    stale: int = 0


def pull(server: PredictionServer, project: int, path: str | os.PathLike[str], *, name: str = "") -> dict[str, int]:
    """Write all tasks of a project to a file like its export.

    Unlike the server's own export, the file holds complete predictions and tasks without annotations, but no names or
    addresses of people.

    Parameters
    ----------
    server : PredictionServer
        Server.
    project : int
        Project id.
    path : path-like
        JSON file to write.
    name : str, default=""
        Name of the server, if the service (``wisecrowd serve``) takes votes from several; the same as in the address of its
        webhooks.

    Returns
    -------
    dict of str to int
        Number of tasks, annotations and predictions.

    Examples
    --------
    >>> class Studio:
    ...     def get_project(self, number):
    ...         return {"title": "Reviews"}
    ...     def iter_tasks(self, project):
    ...         yield {"id": 7, "data": {"text": "Hi"}, "annotations": [], "predictions": []}, 1
    >>> pull(Studio(), 1, "export.json")
    {'tasks': 1, 'annotations': 0, 'predictions': 0}
    """
    if name:
        check_server_name(name)
    description = server.get_project(project)
    title = description.get("title")
    origin = {"server": name, "project_created_at": description.get("created_at")}
    counts = {"tasks": 0, "annotations": 0, "predictions": 0}

    def iter_records() -> Iterator[Record]:
        for task, total in server.iter_tasks(project):
            record = _remove_display_data(task)
            counts["tasks"] += 1
            counts["annotations"] += len(_get_records(record, "annotations"))
            counts["predictions"] += len(_get_records(record, "predictions"))
            progress.report("pulling tasks", counts["tasks"], max(total, counts["tasks"]))
            yield {**record, ORIGIN_KEY: origin}
        if not counts["tasks"]:
            raise InputError(f"project {project} ({title!r}) has no tasks; import some into Label Studio first")

    # Lone surrogates, which are not valid UTF-8, are escaped as in JSON.
    with (
        atomic_path(path) as partial_path,
        partial_path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        for position, record in enumerate(iter_records()):
            file.write(",\n" if position else "[\n")
            file.write(json.dumps(record, ensure_ascii=False))
        file.write("\n]\n")
    return counts


def push(
    server: PredictionServer,
    project: int,
    answers: pd.Series[Any] | pd.DataFrame,
    *,
    question: str | None = None,
    model: str = "",
    dry_run: bool = False,
) -> PushSummary:
    """Write labels into the tasks of a project as predictions, replacing those of an earlier push.

    Predictions of wisecrowd have a ``model_version`` of "wisecrowd" and the method. Predictions of other models and to other
    questions are not changed. Predictions that are on the server already are not sent again, so an interrupted push can be
    repeated. At the end, the server is read again, because it may drop predictions silently.

    Parameters
    ----------
    server : PredictionServer
        Server.
    project : int
        Project id.
    answers : Series or DataFrame
        Labels by task, optionally with a column ``confidence``.
    question : str, optional
        Question that the labels answer. A project with one question needs none.
    model : str, default=""
        Name of the method.
    dry_run : bool, default=False
        Compute the summary without changing anything.

    Returns
    -------
    PushSummary
        Number of predictions by change.

    Raises
    ------
    ServerError
        If the server does not keep the predictions.

    Examples
    --------
    >>> class Studio:
    ...     predictions = []
    ...     def get_project(self, number):
    ...         return {"parsed_label_config": {"mood": {"type": "Choices", "to_name": ["text"], "labels": ["good", "bad"]}}}
    ...     def iter_tasks(self, project):
    ...         yield {"id": 7, "data": {"text": "Hi"}, "annotations": [], "predictions": self.predictions}, 1
    ...     def add_predictions(self, project, predictions):
    ...         self.predictions += [{"id": 1, **prediction} for prediction in predictions]
    >>> push(Studio(), 1, pd.Series({"7": "good"}), model="majority-vote")
    PushSummary(question='mood', added=1, changed=0, removed=0, same=0, stale=0)
    >>> push(Studio(), 1, pd.Series({"7": "good"}), model="majority-vote").same
    1
    """

    def build(local_project: Project) -> tuple[str, set[str], Iterator[Record]]:
        target = local_project.get_question(question)
        records = build_records(answers, local_project, question=question, model=model)
        return target.name, {target.control["from_name"]}, records

    return _push_records(server, project, question, build, dry_run=dry_run)


def push_objects(
    server: PredictionServer,
    project: int,
    objects: pd.DataFrame,
    *,
    tasks: pd.DataFrame | None = None,
    question: str | None = None,
    model: str = "",
    dry_run: bool = False,
) -> PushSummary:
    """Write spans, boxes or points into the tasks of a project as predictions, replacing those of an earlier push.

    Parameters
    ----------
    server : PredictionServer
        Server.
    project : int
        Project id.
    objects : DataFrame
        Objects as ``objects_`` of a method has them: task, coordinates, label, confidence.
    tasks : DataFrame, optional
        All tasks, as ``tasks_`` has them. Predictions of an earlier push on tasks without objects are deleted.
    question : str, optional
        Question that the objects answer. A project with one question of marks needs none.
    model : str, default=""
        Name of the method.
    dry_run : bool, default=False
        Compute the summary without changing anything.

    Returns
    -------
    PushSummary
        Number of predictions by change.

    Raises
    ------
    ServerError
        If the server does not keep the predictions.
    """

    def build(local_project: Project) -> tuple[str, set[str], Iterator[Record]]:
        target = local_project.get_structured(question)
        names = {target.control[key] for key in ("from_name", "shape") if key in target.control}
        records = build_object_records(objects, local_project, tasks=tasks, question=question, model=model)
        return target.name, names, records

    return _push_records(server, project, question, build, dry_run=dry_run)


def push_texts(
    server: PredictionServer,
    project: int,
    texts: pd.Series[Any] | pd.DataFrame,
    *,
    question: str | None = None,
    model: str = "",
    dry_run: bool = False,
) -> PushSummary:
    """Write texts into the tasks of a project as predictions, replacing those of an earlier push.

    Parameters
    ----------
    server : PredictionServer
        Server.
    project : int
        Project id.
    texts : Series or DataFrame
        Texts by task, or ``tasks_`` of a method with the columns text and confidence.
    question : str, optional
        Question that the texts answer. A project with one question of texts needs none.
    model : str, default=""
        Name of the method.
    dry_run : bool, default=False
        Compute the summary without changing anything.

    Returns
    -------
    PushSummary
        Number of predictions by change.

    Raises
    ------
    ServerError
        If the server does not keep the predictions.
    """

    def build(local_project: Project) -> tuple[str, set[str], Iterator[Record]]:
        target = local_project.get_structured(question)
        records = build_text_records(texts, local_project, question=question, model=model)
        return target.name, {target.control["from_name"]}, records

    return _push_records(server, project, question, build, dry_run=dry_run)


def _push_records(
    server: PredictionServer,
    project: int,
    question: str | None,
    build: Callable[[Project], tuple[str, set[str], Iterator[Record]]],
    *,
    dry_run: bool,
) -> PushSummary:
    """Send the predictions that ``build`` makes, with the name of the question and of its controls, and verify them."""
    state = _read_state(server, project)
    _add_unanswered_questions(state.export, server.get_project(project), question)
    local_project = build_project(state.export, "label-studio", duplicates="keep")
    name, controls, records = build(local_project)
    new_predictions: dict[int, Record | None] = {}
    for record in records:
        prediction = next(iter(record["predictions"]), None)  # none if nothing was found in the task
        for task in state.ids[get_task_id(record)]:
            new_predictions[task] = None if prediction is None else {"score": None, **prediction}
    first = pending = _compare(state.own, new_predictions, controls)
    summary = PushSummary(name, len(pending.add), len(pending.update), len(pending.delete), pending.same, pending.stale)
    if dry_run:
        return summary
    for _ in range(MAX_ROUNDS):
        if not pending:
            return summary
        previous, unconfirmed = pending, _send(server, project, pending)
        pending = _compare(_read_state(server, project).own, new_predictions, controls)
        if pending == previous and unconfirmed is None:  # the server drops them
            break
    if not pending:
        return summary
    lost = [record["task"] for record in pending.add] or list(pending.update.values())
    raise ServerError(
        f"the server did not keep {len(lost):,} of {len(first.add) + len(first.update):,} predictions ({preview(lost)}); are "
        f"the labels options of {name!r} in the labelling interface of project {project}?"
    )


# ---------------------------------------------------------------------- state of the server


@dataclass(frozen=True)
class _ServerState:
    """Answers on the server, ids of its tasks by task name, and wisecrowd's own predictions by task id."""

    export: ExportedAnswers
    ids: Mapping[str, list[int]]
    own: Mapping[int, list[Record]]


@dataclass
class _PendingChanges:
    """Predictions to add, updates by prediction id, and predictions to delete."""

    add: list[Record] = field(default_factory=list)
    update: dict[int, Record] = field(default_factory=dict)
    delete: list[int] = field(default_factory=list)
    same: int = 0
    stale: int = 0

    def __bool__(self) -> bool:
        return bool(self.add or self.update or self.delete)


def _read_state(server: PredictionServer, project: int) -> _ServerState:
    ids: dict[str, list[int]] = {}
    own: dict[int, list[Record]] = {}

    def iter_tasks() -> Iterator[Record]:
        for number, (task, total) in enumerate(server.iter_tasks(project), start=1):
            progress.report("reading tasks", number, max(total, number))
            ids.setdefault(get_task_id(task), []).append(task["id"])
            predictions = [item for item in _get_records(task, "predictions") if _is_own(item)]
            if predictions:
                own[task["id"]] = predictions
            yield task

    return _ServerState(parse_tasks(iter_tasks()), ids, own)


def _get_records(owner: Record, key: str) -> list[Record]:
    """Return the objects in a list of an object, and none if it is not a list."""
    items = owner.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_own(prediction: Record) -> bool:
    version = str(prediction.get("model_version") or "")
    is_ours = version == OWN_MODEL or version.startswith(f"{OWN_MODEL} ")
    return is_ours and isinstance(prediction.get("id"), int)


def _add_unanswered_questions(export: ExportedAnswers, project: Record, question: str | None) -> None:
    """Add questions of the labelling interface without answers, if one of them is requested."""
    interface = project.get("parsed_label_config")
    requested = {*export.questions, *export.structures, question}
    for name, control in (interface if isinstance(interface, dict) else {}).items():
        if not isinstance(control, dict):
            continue
        kind, to_names = str(control.get("type", "")).lower(), control.get("to_name")
        structure = _find_control_kind(control)
        if (kind not in ANSWER_KEYS and structure is None) or not isinstance(to_names, list) or not to_names:
            continue
        if requested != {None} and name not in requested:
            continue
        if structure is not None:
            _add_unanswered_structure(export, name, control, structure)
            continue
        entry = export.get_question(name)
        entry.control = {"from_name": name, "to_name": str(to_names[0]), "type": kind, **entry.control}
        entry.number = entry.number or kind == "number"
        if kind == "choices":  # including options that nobody chose
            labels = control.get("labels")
            entry.options.update(dict.fromkeys(map(str, labels if isinstance(labels, list | dict) else ())))


def _find_control_kind(control: Record) -> StructureKind | None:
    """Return the kind of marks or texts that a control of the labelling interface takes, or None if it takes others."""
    kind = str(control.get("type", "")).lower()
    if kind == TEXT_AREA:
        return "texts"
    if kind not in LABEL_KEYS:
        return None
    if kind.startswith(("rectangle", "keypoint")):
        return "boxes" if kind.startswith("rectangle") else "points"
    inputs = [str(item.get("type", "")).lower() for item in _get_records(control, "inputs")]
    return "spans" if {"text", "hypertext"} & set(inputs) else None


def _add_unanswered_structure(export: ExportedAnswers, name: str, control: Record, kind: StructureKind) -> None:
    entry = get_structure(export, name, kind, "characters" if kind in ("spans", "texts") else "percent")
    to_names = {"from_name": name, "to_name": str(control["to_name"][0]), "type": str(control["type"]).lower()}
    entry.control = {**to_names, **entry.control}
    labels = control.get("labels")
    entry.options.update(dict.fromkeys(map(str, labels if isinstance(labels, list | dict) else ())))


def _compare(
    own: Mapping[int, list[Record]], new_predictions: Mapping[int, Record | None], controls: set[str]
) -> _PendingChanges:
    """Return the changes after which every task has the new prediction and no other one of ours to that question."""
    pending = _PendingChanges()
    current = {task: [item for item in items if _get_questions(item) == controls] for task, items in own.items()}
    pending.stale = sum(len(items) for task, items in current.items() if task not in new_predictions)
    for task, values in new_predictions.items():
        candidates = current.get(task, [])
        if values is None:
            pending.delete += [item["id"] for item in candidates]
            continue
        match = next((item for item in candidates if _is_same(item, values)), candidates[0] if candidates else None)
        if match is None:
            pending.add.append({"task": task, **values})
        elif _is_same(match, values):
            pending.same += 1
        else:
            pending.update[match["id"]] = values
        pending.delete += [item["id"] for item in candidates if item is not match]
    return pending


def _send(server: PredictionServer, project: int, pending: _PendingChanges) -> UnconfirmedWrite | None:
    """Send changes. An error is returned if the outcome of a write is unknown."""
    total, n_sent = len(pending.update) + len(pending.delete) + len(pending.add), 0
    for prediction, values in pending.update.items():
        server.update_prediction(prediction, values)
        progress.report("pushing answers", n_sent := n_sent + 1, total)
    for prediction in pending.delete:
        server.delete_prediction(prediction)
        progress.report("pushing answers", n_sent := n_sent + 1, total)
    try:
        if pending.add:
            server.add_predictions(project, pending.add)
    except UnconfirmedWrite as error:
        return error
    progress.report("pushing answers", total, total)
    return None


def _get_questions(prediction: Record) -> set[str]:
    return {str(item.get("from_name")) for item in _get_records(prediction, "result")}


def _is_same(current: Record, new: Record) -> bool:
    def get_answers(prediction: Record) -> list[tuple[Any, ...]]:
        keys = ("from_name", "to_name", "type", "value")
        return [tuple(item.get(key) for key in keys) for item in _get_records(prediction, "result")]

    old_score, new_score = current.get("score"), new.get("score")
    if not isinstance(old_score, int | float) or not isinstance(new_score, int | float):
        is_close = old_score == new_score
    else:
        is_close = math.isclose(old_score, new_score, abs_tol=1e-6)
    same_version = current.get("model_version") == new["model_version"]
    return is_close and same_version and get_answers(current) == get_answers(new)


def _remove_display_data(task: Record) -> Record:
    """Return a task without data for display and without data about people."""
    record = {key: value for key, value in task.items() if key not in _DISPLAY_KEYS}
    for part in ("annotations", "predictions", "drafts"):
        items = record.get(part)
        if isinstance(items, list):
            record[part] = [
                {key: value for key, value in item.items() if key not in _PERSONAL_KEYS}
                if isinstance(item, dict)
                else item
                for item in items
            ]
    return record
