"""Roles of columns: recognition of the names that other tools use. Ambiguous names are reported, not guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wisecrowd.errors import preview, suggest_name
from wisecrowd.io.problems import MissingColumn
from wisecrowd.utils.text import shorten

# Names of columns without case, spaces, dashes and underscores. The first name of each role is ours.
_TASK = ("task", "taskid", "question", "questionid", "item", "itemid", "example", "exampleid", "object", "objectid",
         "unit", "unitid", "instance", "instanceid", "sample", "sampleid", "document", "documentid", "docid", "hitid")  # fmt: skip
_WORKER = ("worker", "workerid", "annotator", "annotatorid", "rater", "raterid", "user", "userid", "username",
           "performer", "performerid", "judge", "judgeid", "coder", "coderid", "labeler", "labelerid", "labeller",
           "labellerid", "participant", "participantid")  # fmt: skip
_LABEL = ("label", "labels", "answer", "rating", "value", "annotation", "response", "judgment", "judgement", "vote",
          "workerlabel", "choice")  # fmt: skip
_TRUTH = ("truth", "gold", "goldlabel", "truelabel", "true", "groundtruth", "gt", "goldstandard", "goldanswer",
          "trueclass", "correct", "correctanswer", "expert")  # fmt: skip
#: Names of timestamp columns, the most specific first. "time" may also be a duration.
_TIME = (
    "timestamp", "time", "datetime", "submittime", "submittedat", "completedat", "annotatedat", "createdat", "updatedat",
)  # fmt: skip

#: Groups of names by role, in order of preference. Names of one group are equally good.
ROLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "task": (_TASK[:1], _TASK),
    "worker": (_WORKER[:1], _WORKER),
    "label": (_LABEL[:1], _LABEL),
    "truth": (_TRUTH[:1], _TRUTH, (*_LABEL, "class", "category", "target")),
}


def role_names(role: str) -> set[str]:
    """Return all simplified names of a role.

    Parameters
    ----------
    role : {"task", "worker", "label", "truth"}
        Role.

    Returns
    -------
    set of str
        Names as `simplify_name` returns them.

    Examples
    --------
    >>> "annotator" in role_names("worker")
    True
    """
    return {name for group in ROLES[role] for name in group}


def names_votes(names: Iterable[str]) -> bool:
    """Return whether column names include a task and a label.

    Parameters
    ----------
    names : iterable of str
        Column names.

    Returns
    -------
    bool
        Whether a table with these columns may hold votes or truth.

    Examples
    --------
    >>> names_votes(["Item ID", "answer"]), names_votes(["name", "age"])
    (True, False)
    """
    simplified = {simplify_name(name) for name in names}
    return bool(simplified & role_names("task")) and bool(simplified & role_names("label"))


def find_time_column(names: Sequence[str]) -> str | None:
    """Return the column that seems to hold timestamps. The time is optional, so the best match is used.

    Parameters
    ----------
    names : sequence of str
        Column names.

    Returns
    -------
    str or None
        Column, if there is one.

    Examples
    --------
    >>> find_time_column(["task", "updated_at", "created_at"])
    'created_at'
    """
    return next((name for time_name in _TIME for name in names if simplify_name(name) == time_name), None)


def find_column(names: Sequence[str], role: str, column: str | None = None) -> str:
    """Return the column of a role.

    Parameters
    ----------
    names : sequence of str
        Column names.
    role : str
        Role, such as ``"task"``.
    column : str, optional
        Name that the user gave. Without it, the column called like the role or the only one with a similar name.

    Returns
    -------
    str
        Column.

    Raises
    ------
    MissingColumn
        If the column is missing or ambiguous.

    Examples
    --------
    >>> find_column(["question", "worker", "answer"], "task")
    'question'
    >>> find_column(["item", "unit_id"], "task")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MissingColumn: the task column could be 'item' or 'unit_id'; say which: task="item" (--task item)
    """
    return find_columns(names, {role: column})[role]


def find_columns(names: Sequence[str], requested: Mapping[str, str | None]) -> dict[str, str]:
    """Return the columns of several roles. One error reports all that are missing.

    Parameters
    ----------
    names : sequence of str
        Column names.
    requested : mapping of str to str or None
        Roles, with the names that the user gave.

    Returns
    -------
    dict of str to str
        Column of each role.

    Raises
    ------
    MissingColumn
        If a column is missing or ambiguous.

    Examples
    --------
    >>> find_columns(["question", "who", "answer"], {"task": None, "worker": "who"})
    {'task': 'question', 'worker': 'who'}
    """
    columns: dict[str, str] = {}
    missing_roles: list[str] = []
    problems: list[str] = []
    for role, name in requested.items():
        try:
            column = _find_unique_column(names, role, name)
            if column is None:
                missing_roles.append(role)
            else:
                columns[role] = column
        except MissingColumn as error:
            problems.append(str(error))
    if missing_roles:
        problems.append(_describe_missing(names, missing_roles))
    if problems:
        raise MissingColumn(". ".join(problems), tuple(role for role in requested if role not in columns))
    return columns


def _find_unique_column(names: Sequence[str], role: str, column: str | None) -> str | None:
    match = _match_column(names, role, column)
    if list(names).count(str(match)) > 1:
        raise MissingColumn(f"there are several columns called {preview([match])}; give each a name of its own")
    return match


def _match_column(names: Sequence[str], role: str, column: str | None) -> str | None:
    if column is not None:
        if column not in names:
            raise MissingColumn(
                f"there is no column {preview([column])} to be the {role}; the columns are {preview(names, 12)}."
                f"{suggest_name(column[:100], (name for name in names if len(name) <= 100))}"
            )
        return column
    if role in names:
        return role
    for group in ROLES[role]:
        matches = [name for name in names if simplify_name(name) in group]
        if len(matches) > 1:
            raise MissingColumn(
                f"the {role} column could be {' or '.join(preview([name]) for name in matches[:12])}; say which: "
                f'{role}="{shorten(matches[0])}" (--{role} {shorten(matches[0])})'
            )
        if matches:
            return matches[0]
    return None


def simplify_name(name: str) -> str:
    """Return a column name without case, spaces, dashes and underscores.

    Parameters
    ----------
    name : str
        Column name.

    Returns
    -------
    str
        Letters and digits only, in lower case.

    Examples
    --------
    >>> simplify_name("Task_ID ")
    'taskid'
    """
    return "".join(char for char in name.casefold() if char.isalnum())


def _describe_missing(names: Sequence[str], roles: Sequence[str]) -> str:
    listed = " and ".join(", ".join(roles).rsplit(", ", 1))
    plural = len(roles) > 1
    message = (
        f"there {'are' if plural else 'is'} no {listed} column{'s' * plural}; the columns are {preview(names, 12)}. "
    )
    separators = [mark for mark in ";\t|, " if len(names) == 1 and mark in names[0].strip()]
    if separators:
        return (
            message + f"It is one column, perhaps because {separators[0]!r} separates the values: use a comma or a tab"
        )
    if not any(simplify_name(name) in role_names(role) for name in names for role in ROLES):
        message += (
            "If the first line is a vote already, put the header task,worker,label above it; if rows are tasks and "
            'columns are workers, say format="mace" (--format mace). '
        )
    keywords, options = (", ".join(f'{role}="NAME"' for role in roles), " ".join(f"--{role} NAME" for role in roles))
    message += f"Say which {'they are' if plural else 'it is'}: {keywords} ({options})"
    if "worker" in roles:
        message += ", or worker=False (--no-workers) if the votes have no worker ids"
    return message
