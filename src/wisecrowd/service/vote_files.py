"""Import of votes from files into the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from wisecrowd.errors import InputError
from wisecrowd.service.events import Event, RegisterTasks, Upsert, VoteRecord, build_source
from wisecrowd.service.schemas import DEFAULT_QUESTION, MAX_NAME_CHARACTERS
from wisecrowd.service.webhooks import parse_exported_task
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd
    from wisecrowd.data.rows import Duplicates
    from wisecrowd.io.tools.projects import Project, Question
    from wisecrowd.io.tools.structured_questions import StructuredQuestion
    from wisecrowd.io.vote_source import SourceLike


def read_events(
    path: SourceLike,
    *,
    duplicates: Duplicates = "last",
    on_note: Callable[[str], object] | None = None,
    **options: Any,
) -> Iterator[Event]:
    """Read votes, gold labels and tasks from any file that wisecrowd reads.

    A table of votes answers the question ``votes``; the export of a labelling tool has its own questions. Annotations of Label
    Studio keep their ids and the numbers of their projects, so webhooks continue where the export ends.

    Parameters
    ----------
    path : path-like or VoteSource
        Table or export.
    duplicates : {"first", "last", "distinct", "keep"}, default="last"
        Rule for repeated votes of a worker on a task.
    on_note : callable, default=None
        Function to call with a phrase about the answers that are left out.
    **options : object
        Further options of :func:`wisecrowd.read` for tables, such as the names of columns.

    Yields
    ------
    Upsert or RegisterTasks
        Events. Importing a file twice has no effect.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("votes.csv").write_text("task,worker,label\\nt1,ann,good\\n")
    >>> next(read_events(Path("votes.csv"))).records[0].worker
    'ann'
    """
    from wisecrowd.io import VoteSource, read
    from wisecrowd.io.problems import prefix_errors
    from wisecrowd.io.tools.export_files import read_objects
    from wisecrowd.io.tools.projects import read_project

    source = VoteSource.detect(path, options.pop("format", None))
    if not source.format.is_tool:
        crowd = read(source, duplicates=duplicates, **options)
        with prefix_errors(source.path):
            yield from _crowd_events(DEFAULT_QUESTION, crowd, None)
        return
    project = read_project(source, duplicates=duplicates)
    with prefix_errors(source.path):
        if not any(question.kind != "number" for question in project.questions.values()):
            kinds = ", ".join(_list_other_kinds(project)) or "no answers"
            raise InputError(
                f"only votes on classes can be served; this export has {kinds}. Aggregate it with wisecrowd aggregate"
            )
        tasks = read_objects(source.path, source.format.description) if source.format.name == "label-studio" else []
        continues = bool(tasks) and all("project" in task for task in tasks)
        omissions = _list_other_kinds(project)
        if continues and (n_predictions := sum(len(task.get("predictions") or ()) for task in tasks)):
            omissions.append(f"{count_noun(n_predictions, 'prediction')} of models, which webhooks do not bring")
        if omissions and on_note is not None:
            on_note(f"left out {', '.join(omissions)}")
        if continues:
            for task in tasks:
                yield from parse_exported_task(task)
            return
        for question in project.questions.values():
            if question.kind != "number":
                yield from _crowd_events(question.name, question.crowd, question.truth)


def _list_other_kinds(project: Project) -> list[str]:
    """Return the names and kinds of the questions that are not answered with classes."""
    questions: list[Question | StructuredQuestion] = [*project.questions.values(), *project.structured.values()]
    kinds = {"number": "numbers"}
    return [
        f"{question.name} ({kinds.get(question.kind, question.kind)})"
        for question in questions
        if question.kind not in ("single", "multiple")
    ]


def _crowd_events(question: str, crowd: Crowd, truth: pd.Series[Any] | None) -> Iterator[Event]:
    if crowd.is_numeric or not crowd.has_workers:
        raise InputError(
            "the service stores categorical votes with worker ids; this file has numeric votes or no workers"
        )
    votes = crowd.select_observed().to_frame()
    times = votes["time"] if "time" in votes else [None] * len(votes)
    for task, worker, label, time in zip(votes["task"], votes["worker"], votes["label"], times, strict=True):
        is_missing = time is None or time != time  # NaT is not equal to itself
        seconds = None if is_missing else time.timestamp()
        yield _record_event(VoteRecord(question, str(task), str(worker), str(label), seconds))
    for task, label in {} if truth is None else truth.items():
        yield _record_event(VoteRecord(question, str(task), None, str(label)))
    tasks_without_votes = tuple(map(str, crowd.tasks[crowd.votes_per_task == 0]))
    if tasks_without_votes:
        yield RegisterTasks(question, tasks_without_votes)


def _record_event(record: VoteRecord) -> Upsert:
    if any(len(name or "") > MAX_NAME_CHARACTERS for name in record[:4]):
        raise InputError(
            f"names have {MAX_NAME_CHARACTERS:,} characters at most; a name in the vote on task {record.task[:40]!r}… is longer"
        )
    return Upsert(build_source(record), (record,))
