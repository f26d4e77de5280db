"""Which column is which: other tools' names are recognised, and two that could both be meant are not guessed at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wisecrowd.errors import did_you_mean, some
from wisecrowd.io.problems import MissingColumn

#: Names under which others keep the same thing, without case, spaces, dashes and underscores; the first names are ours.
_TASK = ("task", "taskid", "question", "questionid", "item", "itemid", "example", "exampleid", "object", "objectid",
         "unit", "unitid", "instance", "instanceid", "sample", "sampleid", "document", "documentid", "docid", "hitid")  # fmt: skip
_WORKER = ("worker", "workerid", "annotator", "annotatorid", "rater", "raterid", "user", "userid", "username",
           "performer", "performerid", "judge", "judgeid", "coder", "coderid", "labeler", "labelerid", "labeller",
           "labellerid", "participant", "participantid")  # fmt: skip
_LABEL = ("label", "labels", "answer", "rating", "value", "annotation", "response", "judgment", "judgement", "vote",
          "workerlabel", "choice")  # fmt: skip
_TRUTH = ("truth", "gold", "goldlabel", "truelabel", "true", "groundtruth", "gt", "goldstandard", "goldanswer",
          "trueclass", "correct", "correctanswer", "expert")  # fmt: skip
#: Columns that say when a vote was cast, the plainest first; "time" alone may as well say how long it took.
_TIME = (
    "timestamp",
    "time",
    "datetime",
    "submittime",
    "submittedat",
    "completedat",
    "annotatedat",
    "createdat",
    "updatedat",
)

#: For each role, groups of names in order of preference; within a group no name is better than another.
ROLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "task": (_TASK[:1], _TASK),
    "worker": (_WORKER[:1], _WORKER),
    "label": (_LABEL[:1], _LABEL),
    "truth": (_TRUTH[:1], _TRUTH, (*_LABEL, "class", "category", "target")),
}


def time_column(names: Sequence[str]) -> str | None:
    """The column that seems to say when votes were cast, if there is one: nobody is asked for it, so one is preferred.

    >>> time_column(["task", "updated_at", "created_at"])
    'created_at'
    """
    found = [name for plainest in _TIME for name in names if plain(name) == plainest]
    return found[0] if found else None


def find_column(names: Sequence[str], role: str, given: str | None = None) -> str:
    """The column that plays a role: the one given, the one of that name, or the only one with a name like it.

    >>> find_column(["question", "worker", "answer"], "task")
    'question'
    >>> find_column(["item", "unit_id"], "task")
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.MissingColumn: the task column could be 'item' or 'unit_id'; say which: task="item" (--task item)
    """
    return find_columns(names, {role: given})[role]


def find_columns(names: Sequence[str], wanted: Mapping[str, str | None]) -> dict[str, str]:
    """The columns that play several roles, where names may be given; all that are missing are told at once.

    >>> find_columns(["question", "who", "answer"], {"task": None, "worker": "who"})
    {'task': 'question', 'worker': 'who'}
    """
    found: dict[str, str] = {}
    absent: list[str] = []
    problems: list[str] = []
    for role, given in wanted.items():
        try:
            column = _find(names, role, given)
            if column is None:
                absent.append(role)
            else:
                found[role] = column
        except MissingColumn as error:
            problems.append(str(error))
    if absent:
        problems.append(_missing(names, absent))
    if problems:
        raise MissingColumn(". ".join(problems), tuple(role for role in wanted if role not in found))
    return found


def _find(names: Sequence[str], role: str, given: str | None) -> str | None:
    found = _named(names, role, given)
    if list(names).count(str(found)) > 1:
        raise MissingColumn(f"there are several columns called {some([found])}; give each a name of its own")
    return found


def _named(names: Sequence[str], role: str, given: str | None) -> str | None:
    if given is not None:
        if given not in names:
            raise MissingColumn(
                f"there is no column {some([given])} to be the {role}; the columns are {some(names, 12)}."
                f"{did_you_mean(given[:100], (name for name in names if len(name) <= 100))}"
            )
        return given
    if role in names:
        return role
    for group in ROLES[role]:
        found = [name for name in names if plain(name) in group]
        if len(found) > 1:
            raise MissingColumn(
                f"the {role} column could be {' or '.join(map(repr, found))}; say which: "
                f'{role}="{found[0]}" (--{role} {found[0]})'
            )
        if found:
            return found[0]
    return None


def plain(name: str) -> str:
    """A column name without what people vary: case, spaces, dashes, underscores.

    >>> plain("Task_ID ")
    'taskid'
    """
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _missing(names: Sequence[str], roles: Sequence[str]) -> str:
    listed = " and ".join(", ".join(roles).rsplit(", ", 1))
    several = len(roles) > 1
    message = (
        f"there {'are' if several else 'is'} no {listed} column{'s' * several}; the columns are {some(names, 12)}. "
    )
    separators = [mark for mark in ";\t|, " if len(names) == 1 and mark in names[0].strip()]
    if separators:
        return (
            message + f"It is one column, perhaps because {separators[0]!r} separates the values: use a comma or a tab"
        )
    if not any(plain(name) in group for name in names for groups in ROLES.values() for group in groups):
        message += (
            "If the first line is a vote already, put the header task,worker,label above it; if rows are tasks and "
            'columns are workers, say format="mace" (--format mace). '
        )
    keywords, options = (", ".join(f'{role}="NAME"' for role in roles), " ".join(f"--{role} NAME" for role in roles))
    message += f"Say which {'they are' if several else 'it is'}: {keywords} ({options})"
    if "worker" in roles:
        message += ", or worker=False (--no-workers) if nobody knows who said what"
    return message
