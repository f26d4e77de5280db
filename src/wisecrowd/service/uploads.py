"""What a file holds, as what the service is told: votes that were cast before it was started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.errors import InputError
from wisecrowd.service import webhooks as webhooks
from wisecrowd.service.events import Entry, RegisterTasks, Told, Upsert, source_of
from wisecrowd.service.schemas import LONGEST, QUESTION

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd


def told_in(path: Path) -> Iterator[Told]:
    """Votes, gold and tasks in any file that wisecrowd reads; told again, they are the same.

    A table of votes answers the question ``votes``, the export of a labelling tool its own. Of Label Studio, annotations stand
    under their ids and questions under the numbers of their projects, so that webhooks go on where the export ends.

    >>> _ = Path("votes.csv").write_text("task,worker,label\\nt1,ann,good\\n")
    >>> next(told_in(Path("votes.csv")))
    Upsert(source='of:["votes", "t1", "ann"]', entries=(Entry(question='votes', task='t1', worker='ann', label='good', time=None),))
    """
    from wisecrowd.io import read
    from wisecrowd.io.formats import find_format
    from wisecrowd.io.tools.exports import objects
    from wisecrowd.io.tools.projects import read_project

    found = find_format(path, None)
    if found.project is None:
        yield from _of_crowd(QUESTION, read(path, duplicates="last"), None)
        return
    project = read_project(path, duplicates="last")
    tasks = objects(path, found.about) if found.name == "label-studio" else []
    if tasks and all("project" in task for task in tasks):
        for task in tasks:
            yield from webhooks.told_of(task)
        return
    for question in project.questions.values():
        if question.kind != "number":
            yield from _of_crowd(question.name, question.crowd, question.truth)


def _of_crowd(question: str, crowd: Crowd, truth: pd.Series[Any] | None) -> Iterator[Told]:
    if crowd.is_numeric or not crowd.has_workers:
        raise InputError("the service takes votes for classes, of workers who are known; these are others")
    rows = crowd.only_observed().to_frame()
    times = rows["time"] if "time" in rows else [None] * len(rows)
    for task, worker, label, time in zip(rows["task"], rows["worker"], rows["label"], times, strict=True):
        # A time that is not known is NaT, which is not itself.
        at = None if time is None or time != time else time.timestamp()
        yield _put(Entry(question, str(task), str(worker), str(label), at))
    for task, label in {} if truth is None else truth.items():
        yield _put(Entry(question, str(task), None, str(label)))
    empty = tuple(map(str, crowd.tasks[crowd.votes_per_task == 0]))
    if empty:
        yield RegisterTasks(question, empty)


def _put(entry: Entry) -> Upsert:
    if any(len(text or "") > LONGEST for text in entry[:4]):
        raise InputError(
            f"a name of {LONGEST:,} characters at most was wanted; the one of task {entry.task[:40]!r}… has more"
        )
    return Upsert(source_of(entry), (entry,))
