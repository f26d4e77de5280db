"""Roles of columns: recognition of the names that other tools use. Ambiguous names are reported, not guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wisecrowd.errors import preview, suggest_name
from wisecrowd.io.problems import MissingColumn
from wisecrowd.utils.text import shorten

# Names of columns without case, spaces, dashes and underscores. The first name of each role is ours. General names say what a
# task is (an image) or may mean something else in some table; they count only if there is no specific name.
_TASK = ("task", "taskid", "question", "questionid", "item", "itemid", "example", "exampleid", "object", "objectid",
         "unit", "unitid", "instance", "instanceid", "sample", "sampleid", "document", "documentid", "docid", "hitid")  # fmt: skip
_WORKER = ("worker", "workerid", "annotator", "annotatorid", "rater", "raterid", "user", "userid", "username",
           "performer", "performerid", "judge", "judgeid", "coder", "coderid", "labeler", "labelerid", "labeller",
           "labellerid", "participant", "participantid")  # fmt: skip
_LABEL = ("label", "labels", "answer", "rating", "value", "annotation", "response", "judgment", "judgement", "vote",
          "workerlabel", "choice")  # fmt: skip
_TRUTH = ("truth", "gold", "goldlabel", "truelabel", "true", "groundtruth", "gt", "goldstandard", "goldanswer",
          "trueclass", "correct", "correctanswer", "expert")  # fmt: skip
#: Ids of things that are labelled, also as Labelbox, SageMaker and LightTag name them.
_TASK_IDS = ("imageid", "imgid", "photoid", "pictureid", "videoid", "clipid", "audioid", "fileid", "textid", "sentenceid",
             "paragraphid", "passageid", "tweetid", "postid", "commentid", "reviewid", "messageid", "articleid", "pageid",
             "productid", "recordid", "caseid", "pairid", "promptid", "entityid", "dataid", "datarowid", "externalid",
             "datasetobjectid")  # fmt: skip
#: Things that are labelled, and names of their files.
_TASK_THINGS = ("image", "img", "imagename", "imagefile", "imagepath", "doc", "docname", "documentname", "video", "clip",
                "audio", "file", "filename", "filepath", "record", "case", "entity")  # fmt: skip
_WORKER_GENERAL = ("annotatorname", "workername", "ratername", "reviewer", "reviewerid", "evaluator", "evaluatorid", "assessor",
                   "assessorid", "grader", "graderid", "respondent", "respondentid", "contributor", "contributorid",
                   "crowdworker", "crowdworkerid", "turker", "turkerid", "voter", "voterid", "prolificid", "prolificpid",
                   "annotatedby", "labeledby", "labelledby", "completedby", "createdby", "annotatoremail",
                   "useremail")  # fmt: skip
_LABEL_GENERAL = ("class", "category", "classlabel", "classname", "categoryname", "labelname", "labelvalue", "annotatorlabel",
                  "annotationlabel", "classification", "tag", "grade", "stars", "decision", "selection")  # fmt: skip
#: What classes are about. Tables of other things than votes have such columns, too.
_LABEL_SUBJECTS = ("kind", "sentiment", "mood", "emotion", "polarity", "stance", "intent")
#: Columns beside the id of a task in the CSV of Label Studio, which has a row per annotation.
_LABEL_STUDIO_COLUMNS = {"annotationid", "annotator"}
#: Names of timestamp columns, the most specific first. "time" may also be a duration.
_TIME = (
    "timestamp", "time", "datetime", "submittime", "submittedat", "completedat", "annotatedat", "createdat", "updatedat",
)  # fmt: skip

#: Groups of names by role, in order of preference. Names of one group are equally good.
ROLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "task": (_TASK[:1], _TASK, _TASK_IDS, _TASK_THINGS),
    "worker": (_WORKER[:1], _WORKER, _WORKER_GENERAL),
    "label": (_LABEL[:1], _LABEL, _LABEL_GENERAL, _LABEL_SUBJECTS),
    "truth": (_TRUTH[:1], _TRUTH, (*_LABEL, "class", "category", "target"), _LABEL_GENERAL),
}
#: Options that name the columns of a table of truth. Other tables have options called like the roles.
_TRUTH_OPTIONS = {"task": "gold-task", "truth": "gold-label"}


def role_names(role: str) -> tuple[str, ...]:
    """Return all simplified names of a role.

    Parameters
    ----------
    role : {"task", "worker", "label", "truth"}
        Role.

    Returns
    -------
    tuple of str
        Names as `simplify_name` returns them, in order of preference.

    Examples
    --------
    >>> "annotator" in role_names("worker"), "reviewer" in role_names("worker")
    (True, True)
    """
    return tuple(dict.fromkeys(name for group in ROLES[role] for name in group))


def label_names() -> tuple[str, ...]:
    """Return the simplified names of columns that hold labels, without those that say what the labels are about.

    Returns
    -------
    tuple of str
        Names as `simplify_name` returns them, in order of preference.

    Examples
    --------
    >>> "category" in label_names(), "sentiment" in label_names(), "sentiment" in role_names("label")
    (True, False, True)
    """
    return tuple(dict.fromkeys((*_LABEL, *_LABEL_GENERAL)))


def find_exported_id(names: Iterable[str]) -> str | None:
    """Return the column of task ids in the CSV of Label Studio, which is called ``id``.

    Parameters
    ----------
    names : iterable of str
        Column names.

    Returns
    -------
    str or None
        None if the columns are not those of Label Studio.

    Examples
    --------
    >>> find_exported_id(["annotation_id", "annotator", "id", "mood"]), find_exported_id(["id", "mood"])
    ('id', None)
    """
    listed = list(names)
    is_export = {simplify_name(name) for name in listed} >= _LABEL_STUDIO_COLUMNS
    return "id" if is_export and "id" in listed else None


def specific_names(role: str) -> tuple[str, ...]:
    """Return the simplified names that mean a role in any table.

    Parameters
    ----------
    role : {"task", "worker", "label", "truth"}
        Role.

    Returns
    -------
    tuple of str
        Names as `simplify_name` returns them, in order of preference.

    Examples
    --------
    >>> "annotator" in specific_names("worker"), "reviewer" in specific_names("worker")
    (True, False)
    """
    return ROLES[role][1]


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
    return not (simplified.isdisjoint(role_names("task")) or simplified.isdisjoint(role_names("label")))


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
    candidates: dict[str, str] = {}
    options = {role: _TRUTH_OPTIONS.get(role, role) if "truth" in requested else role for role in requested}
    for role, name in requested.items():
        try:
            column = _find_unique_column(names, role, name, options[role])
            if column is None:
                missing_roles.append(role)
            else:
                columns[role] = column
        except MissingColumn as error:
            problems.append(str(error))
            candidates |= error.candidates
    if missing_roles:
        others = [
            name for name in names if name not in {*columns.values(), *candidates.values()} and not _has_role(name)
        ]
        if len(missing_roles) == len(others) == 1:  # the only column that is left
            candidates[missing_roles[0]] = others[0]
        problems.append(_describe_missing(names, {role: options[role] for role in missing_roles}))
    if problems:
        sentences = [problem if problem.endswith((".", "?")) else f"{problem}." for problem in problems[:-1]]
        text = " ".join([*sentences, problems[-1]])
        raise MissingColumn(text, tuple(role for role in requested if role not in columns), candidates)
    return columns


def _find_unique_column(names: Sequence[str], role: str, column: str | None, option: str) -> str | None:
    match = _match_column(names, role, column, option)
    if list(names).count(str(match)) > 1:
        raise MissingColumn(f"there are several columns called {preview([match])}; give each a name of its own")
    return match


def _match_column(names: Sequence[str], role: str, column: str | None, option: str) -> str | None:
    if column is not None:
        if column not in names:
            raise MissingColumn(
                f"there is no column {preview([column])} to be the {role}; the columns are {preview(names, 12)}."
                f"{suggest_name(column[:100], (name for name in names if len(name) <= 100))}"
            )
        return column
    if role in names:
        return role
    if role == "task" and (exported_id := find_exported_id(names)) is not None:
        return exported_id
    for group in ROLES[role]:
        matches = [name for name in names if simplify_name(name) in group]
        if len(matches) > 1:
            raise MissingColumn(
                f"the {role} column could be {' or '.join(preview([name]) for name in matches[:12])}; say which: "
                f'{role}="{shorten(matches[0])}" (--{option} {shorten(matches[0])})',
                (role,),
                {role: matches[0]},
            )
        if matches:
            return matches[0]
    return None


def _has_role(name: str) -> bool:
    """Return whether a column name means something else than a task, a worker or a label of a name of its own."""
    simplified = simplify_name(name)
    return simplified in (*_TIME, "weight", "observed", "split") or any(
        simplified in role_names(role) for role in ROLES
    )


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


def _describe_missing(names: Sequence[str], roles: Mapping[str, str]) -> str:
    """Return the message for missing columns of some roles, which are mapped to the options that name them."""
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
    is_truth = not set(roles.values()).isdisjoint(_TRUTH_OPTIONS.values())  # a table of truth is not wide
    if not is_truth and not any(simplify_name(name) in role_names(role) for name in names for role in ROLES):
        message += (
            "If the first line is a vote already, put the header task,worker,label above it; if rows are tasks and "
            'columns are workers, say format="wide" (--format wide), or format="mace" (--format mace) without a header. '
        )
    elif {"worker", "label"} <= roles.keys() and "task" not in roles and len(names) > 2:
        message += 'If each further column holds the labels of one worker, say format="wide" (--format wide). '
    keywords, options = (
        ", ".join(f'{role}="NAME"' for role in roles),
        " ".join(f"--{option} NAME" for option in roles.values()),
    )
    message += f"Say which {'they are' if plural else 'it is'}: {keywords} ({options})"
    if "worker" in roles:
        message += ", or worker=False (--no-workers) if the votes have no worker ids"
    return message
