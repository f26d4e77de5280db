"""Identity of tasks: whether a task id means the same task in two exports, by its content and its project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from wisecrowd.errors import preview
from wisecrowd.io.tools.exported_answers import OWN_PREFIX

#: Keys of a task under which tools write its content.
_CONTENT_KEYS = ("data", "fields")


class TaskSource(Protocol):
    """Export with the data of its tasks, and the project of each if the tool exports it."""

    @property
    def tasks(self) -> Mapping[str, Mapping[str, Any]]:
        """Data of each task, as the tool wrote it."""

    @property
    def task_projects(self) -> Mapping[str, str]:
        """Project of each task."""


def select_content(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a task, without what wisecrowd added to it.

    Parameters
    ----------
    task : mapping
        Task as the tool wrote it.

    Returns
    -------
    dict
        Content by field; empty if the tool does not separate content from other data.

    Examples
    --------
    >>> select_content({"id": 7, "data": {"text": "Hi", "wisecrowd_task": "3"}})
    {'text': 'Hi'}
    """
    content: Mapping[str, Any] = next((task[key] for key in _CONTENT_KEYS if isinstance(task.get(key), Mapping)), {})
    return {key: value for key, value in content.items() if not str(key).startswith(OWN_PREFIX)}


def are_different_tasks(
    one: Mapping[str, Any], other: Mapping[str, Any], *, projects: tuple[str | None, str | None] = (None, None)
) -> bool:
    """Return whether two tasks with the same id have different contents.

    A task that was queued again has the content of the original in a new project. Tasks of one project are the same task, also if
    somebody edited its text.

    Parameters
    ----------
    one, other : mapping
        Contents by field.
    projects : tuple of str or None, default=(None, None)
        Project of each task, if it is known.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_different_tasks({"text": "Hi"}, {"text": "Ho"}), are_different_tasks({"text": "Hi"}, {"text": "Hi", "day": 1})
    (True, False)
    >>> are_different_tasks({"text": "Hi"}, {"text": "Ho"}, projects=("2", "2"))
    False
    """
    if (projects[0] == projects[1] and projects[0] is not None) or not one or not other:
        return False
    common = one.keys() & other.keys()
    # The signature of an address changes with every export.
    return not common or any(_drop_query(one[key]) != _drop_query(other[key]) for key in common)


def _drop_query(value: Any) -> Any:
    return value.partition("?")[0] if isinstance(value, str) and "://" in value[:10] else value


def describe_different_tasks(one: TaskSource, other: TaskSource, tasks: Iterable[str] | None = None) -> str | None:
    """Describe the tasks that have the same id and different contents in two exports.

    Parameters
    ----------
    one, other : ExportedAnswers or Project
        Exports.
    tasks : iterable of str, optional
        Tasks to compare. By default, all that both have.

    Returns
    -------
    str or None
        Part of a sentence; None if there are no such tasks.

    Examples
    --------
    >>> from wisecrowd.io.tools.exported_answers import ExportedAnswers
    >>> one = ExportedAnswers(tasks={"4": {"data": {"text": "Hi"}}}, task_projects={"4": "2"})
    >>> other = ExportedAnswers(tasks={"4": {"data": {"text": "Ho"}}}, task_projects={"4": "77"})
    >>> describe_different_tasks(one, other)
    "task 4 has two different texts, of projects 2 and 77: 'Hi', 'Ho'"
    """
    different: list[str] = []
    for task in dict.fromkeys(one.tasks if tasks is None else tasks):
        if task in one.tasks and task in other.tasks:
            contents = select_content(one.tasks[task]), select_content(other.tasks[task])
            projects = one.task_projects.get(task), other.task_projects.get(task)
            if are_different_tasks(*contents, projects=projects):
                different.append(task)
    if not different:
        return None
    first = different[0]
    contents = select_content(one.tasks[first]), select_content(other.tasks[first])
    projects = one.task_projects.get(first), other.task_projects.get(first)
    return describe_difference(first, contents, projects, n_further=len(different) - 1)


def describe_difference(
    task: str,
    contents: tuple[Mapping[str, Any], Mapping[str, Any]],
    projects: tuple[str | None, str | None],
    *,
    n_further: int = 0,
) -> str:
    """Describe one task that has different contents in two exports.

    Parameters
    ----------
    task : str
        Task id.
    contents : tuple of mapping
        Contents by field.
    projects : tuple of str or None
        Project of each content, if it is known.
    n_further : int, default=0
        Number of further such tasks.

    Returns
    -------
    str
        Part of a sentence.

    Examples
    --------
    >>> describe_difference("4", ({"text": "Hi"}, {"text": "Ho"}), (None, None), n_further=2)
    "task 4 has two different texts: 'Hi', 'Ho', and 2 further tasks likewise"
    """
    named = "" if None in projects else f", of projects {projects[0]} and {projects[1]}"
    shown = preview([" ".join(map(str, content.values())) for content in contents])
    noun = "task" if n_further == 1 else "tasks"
    more = f", and {n_further:,} further {noun} likewise" if n_further else ""
    return f"task {task} has two different texts{named}: {shown}{more}"
