"""From a running Label Studio to an export, and answers back into the tasks that it has."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

from wisecrowd.errors import InputError, some
from wisecrowd.io.tools.gathering import OWN, Gathering
from wisecrowd.io.tools.label_studio import ANSWERS, gather_tasks, name_of
from wisecrowd.io.tools.label_studio_server import Doubtful, ServerError
from wisecrowd.io.tools.projects import project_of
from wisecrowd.io.tools.write_back import records_of
from wisecrowd.utils import progress
from wisecrowd.utils.files import atomic_path

__all__ = ["Pushed", "pull", "push"]

#: How often the server is looked at before we believe that it does not keep what it is given.
LOOKS = 4
#: What tells who somebody is, and is not needed: workers go by their numbers.
_PERSONAL = frozenset({"created_username", "created_ago", "user"})
#: What the Data Manager adds to a task: other spellings of what is there, and what it shows in its columns.
_DISPLAY = frozenset(
    {"annotations_results", "predictions_results", "annotations_ids", "predictions_model_versions", "predictions_score"}
    | {"annotators", "avg_lead_time", "updated_by", "comment_authors", "completed_at"}
)

Record = dict[str, Any]


class _Server(Protocol):
    """What is wanted of a server; :class:`wisecrowd.io.tools.label_studio_server.LabelStudio` is one."""

    def project(self, number: int) -> Record:
        """What is known of a project."""

    def tasks(self, project: int) -> Iterator[tuple[Record, int]]:
        """Its tasks, each with how many there are."""

    def add(self, project: int, predictions: list[Record]) -> int:
        """Put predictions into tasks."""

    def change(self, prediction: int, values: Record) -> None:
        """Give a prediction other values."""

    def remove(self, prediction: int) -> None:
        """Remove a prediction."""


@dataclass(frozen=True)
class Pushed:
    """What a push did, or would do: how many predictions were added, changed and removed, and how many were there already.

    >>> Pushed(question="mood", added=2).same
    0
    """

    question: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    same: int = 0
    #: Older predictions of wisecrowd, on tasks of which nothing is said now; they stay.
    stale: int = 0


def pull(server: _Server, project: int, path: str | os.PathLike[str]) -> dict[str, int]:
    """Write all tasks of a project as its export, and say how many tasks, annotations and predictions came.

    Other than in the export that the server itself makes, predictions are whole, and tasks that nobody labelled are there.
    Names and addresses of people are not: they go by their numbers.

    >>> class Studio:
    ...     def project(self, number):
    ...         return {"title": "Reviews"}
    ...     def tasks(self, project):
    ...         yield {"id": 7, "data": {"text": "Hi"}, "annotations": [], "predictions": []}, 1
    >>> pull(Studio(), 1, "export.json")
    {'tasks': 1, 'annotations': 0, 'predictions': 0}
    """
    title = server.project(project).get("title")
    counts = {"tasks": 0, "annotations": 0, "predictions": 0}

    def records() -> Iterator[Record]:
        for task, total in server.tasks(project):
            record = _kept(task)
            counts["tasks"] += 1
            counts["annotations"] += len(record.get("annotations") or ())
            counts["predictions"] += len(record.get("predictions") or ())
            progress.report("pulling tasks", counts["tasks"], max(total, counts["tasks"]))
            yield record
        if not counts["tasks"]:
            raise InputError(f"project {project} ({title!r}) has no tasks; import some into Label Studio first")

    # Half a character, which is no UTF-8, is spelled as JSON spells it.
    with (
        atomic_path(path) as unfinished,
        unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        for place, record in enumerate(records()):
            file.write(",\n" if place else "[\n")
            file.write(json.dumps(record, ensure_ascii=False))
        file.write("\n]\n")
    return counts


def push(
    server: _Server,
    project: int,
    answers: pd.Series[Any] | pd.DataFrame,
    *,
    question: str | None = None,
    model: str = "",
    dry_run: bool = False,
) -> Pushed:
    """Put answers into the tasks of a project as predictions, in place of those that an earlier push put there.

    A prediction is known as ours by its ``model_version``, "wisecrowd" and the method; those of other models, and ours to
    other questions, are not touched. What is there already is not sent again, so that a push that was interrupted can
    be given again, and at the end the server is asked whether it kept everything: it may leave something out without a word.

    >>> class Studio:
    ...     kept = []
    ...     def project(self, number):
    ...         return {"parsed_label_config": {"mood": {"type": "Choices", "to_name": ["text"], "labels": ["good", "bad"]}}}
    ...     def tasks(self, project):
    ...         yield {"id": 7, "data": {"text": "Hi"}, "annotations": [], "predictions": self.kept}, 1
    ...     def add(self, project, predictions):
    ...         self.kept += predictions
    >>> push(Studio(), 1, pd.Series({"7": "good"}), model="majority-vote")
    Pushed(question='mood', added=1, changed=0, removed=0, same=0, stale=0)
    >>> push(Studio(), 1, pd.Series({"7": "good"}), model="majority-vote").same
    1
    """
    seen = _look(server, project)
    _ask_what_nobody_answered(seen.gathered, server.project(project), question)
    held = project_of(seen.gathered, "label-studio", duplicates="keep")
    asked = held.question(question)
    wanted: dict[int, Record] = {}
    for record in records_of(answers, held, question=question, model=model):
        for task in seen.ids[name_of(record)]:
            wanted[task] = {"score": None, **record["predictions"][0]}
    first = todo = _compared(seen.own, wanted, asked.control["from_name"])
    told = Pushed(asked.name, len(todo.add), len(todo.change), len(todo.remove), todo.same, todo.stale)
    if dry_run:
        return told
    for _ in range(LOOKS):
        if not todo:
            return told
        before, doubt = todo, _sent(server, project, todo)
        todo = _compared(_look(server, project).own, wanted, asked.control["from_name"])
        if todo == before and doubt is None:  # it was asked twice
            break
    if not todo:
        return told
    lost = [record["task"] for record in todo.add] or list(todo.change.values())
    raise ServerError(
        f"the server did not keep {len(lost):,} of {len(first.add) + len(first.change):,} predictions ({some(lost)}); are the "
        f"answers options of {asked.name!r} in the labelling interface of project {project}?"
    )


# ---------------------------------------------------------------------- inside


@dataclass(frozen=True)
class _Seen:
    """What is on the server: answers, the ids of tasks by what they go by, and our own predictions by the id of their task."""

    gathered: Gathering
    ids: Mapping[str, list[int]]
    own: Mapping[int, list[Record]]


@dataclass
class _Todo:
    """What is to be sent: new predictions, those to be changed with their new values, and those that are too many."""

    add: list[Record] = field(default_factory=list)
    change: dict[int, Record] = field(default_factory=dict)
    remove: list[int] = field(default_factory=list)
    same: int = 0
    stale: int = 0

    def __bool__(self) -> bool:
        return bool(self.add or self.change or self.remove)


def _look(server: _Server, project: int) -> _Seen:
    ids: dict[str, list[int]] = {}
    own: dict[int, list[Record]] = {}

    def tasks() -> Iterator[Record]:
        for number, (task, total) in enumerate(server.tasks(project), start=1):
            progress.report("looking at tasks", number, max(total, number))
            ids.setdefault(name_of(task), []).append(task["id"])
            ours = [one for one in task.get("predictions") or () if isinstance(one, dict) and _is_own(one)]
            if ours:
                own[task["id"]] = ours
            yield task

    return _Seen(gather_tasks(tasks()), ids, own)


def _is_own(prediction: Record) -> bool:
    version = str(prediction.get("model_version") or "")
    return version == OWN or version.startswith(f"{OWN} ")


def _ask_what_nobody_answered(gathered: Gathering, project: Record, question: str | None) -> None:
    """Questions of the labelling interface that have no answer yet, if one of them is meant."""
    interface = project.get("parsed_label_config")
    heard = set(gathered.asked) | {question}
    for name, control in (interface if isinstance(interface, dict) else {}).items():
        kind, to = str(control.get("type", "")).lower(), control.get("to_name")
        if kind not in ANSWERS or not to or (heard != {None} and name not in heard):
            continue
        asked = gathered.question(name)
        asked.control = {"from_name": name, "to_name": str(to[0]), "type": kind, **asked.control}
        asked.number = asked.number or kind == "number"
        if kind == "choices":  # also those that nobody chose
            asked.options.update(dict.fromkeys(map(str, control.get("labels") or ())))


def _compared(own: Mapping[int, list[Record]], wanted: Mapping[int, Record], name: str) -> _Todo:
    """What must be done for each task to have the prediction that is wanted, and no other of ours to that question."""
    todo = _Todo()
    ours = {task: [one for one in held if _asked(one) == {name}] for task, held in own.items()}
    todo.stale = sum(len(held) for task, held in ours.items() if task not in wanted)
    for task, values in wanted.items():
        held = ours.get(task, [])
        kept = next((one for one in held if _same(one, values)), held[0] if held else None)
        if kept is None:
            todo.add.append({"task": task, **values})
        elif _same(kept, values):
            todo.same += 1
        else:
            todo.change[kept["id"]] = values
        todo.remove += [one["id"] for one in held if one is not kept]
    return todo


def _sent(server: _Server, project: int, todo: _Todo) -> Doubtful | None:
    """Send it; what remains in doubt is returned, and to be looked at."""
    total, done = len(todo.change) + len(todo.remove) + len(todo.add), 0
    for prediction, values in todo.change.items():
        server.change(prediction, values)
        progress.report("pushing answers", done := done + 1, total)
    for prediction in todo.remove:
        server.remove(prediction)
        progress.report("pushing answers", done := done + 1, total)
    try:
        if todo.add:
            server.add(project, todo.add)
    except Doubtful as doubt:
        return doubt
    progress.report("pushing answers", total, total)
    return None


def _asked(prediction: Record) -> set[str]:
    return {str(one.get("from_name")) for one in prediction.get("result") or () if isinstance(one, dict)}


def _same(held: Record, wanted: Record) -> bool:
    def said(prediction: Record) -> list[tuple[Any, ...]]:
        return [
            tuple(one.get(key) for key in ("from_name", "to_name", "type", "value")) for one in prediction["result"]
        ]

    have, want = held.get("score"), wanted.get("score")
    close = have == want if have is None or want is None else math.isclose(have, want, abs_tol=1e-6)
    return close and held.get("model_version") == wanted["model_version"] and said(held) == said(wanted)


def _kept(task: Record) -> Record:
    """A task without what only people who look at it need."""
    record = {key: value for key, value in task.items() if key not in _DISPLAY}
    for part in ("annotations", "predictions", "drafts"):
        held = record.get(part)
        if isinstance(held, list):
            record[part] = [
                {key: value for key, value in one.items() if key not in _PERSONAL} if isinstance(one, dict) else one
                for one in held
            ]
    return record
