"""Option ``--members``: which workers are machines, which belong to one group, and the tables that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._console import print_note, shorten_id, warn
from wisecrowd.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._reading import Reading
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io import VoteSource
    from wisecrowd.io.tools.projects import Question

JUDGES, CONFUSION, GROUPS, CALIBRATION = "judges.csv", "judge_confusion.csv", "groups.csv", "calibration.csv"
#: Method for votes of machines, beside those of people or without them.
PANEL = "panel"
#: Judges and groups shown in the summary; the files contain all.
SHOWN = 6

MembersFile = Annotated[
    Path | None,
    typer.Option(
        "--members",
        metavar="FILE",
        show_default=False,
        help="Table with the column worker and the columns kind (person or machine), group, or both. Not needed for what the "
        "export of a labelling tool says.",
    ),
]


@dataclass(frozen=True, eq=False)
class Members:
    """Kinds, groups and scores of workers; None where they are unknown."""

    kinds: dict[str, str] | None = None
    groups: dict[str, str] | None = None
    #: Scores that machines gave: task, worker, label, score.
    scores: pd.DataFrame | None = None

    @property
    def has_machines(self) -> bool:
        """True if at least one worker is a machine."""
        return "machine" in (self.kinds or {}).values()

    @property
    def are_known(self) -> bool:
        """True if at least one worker is a machine, or two share a group."""
        return self.has_machines or self.has_groups

    @property
    def has_groups(self) -> bool:
        """True if at least two workers share a group."""
        names = list((self.groups or {}).values())
        return len(set(names)) < len(names)


def check_members_option(method: Any, path: Path | None) -> None:
    """Raise an error if ``--members`` and parameters of the method say the same.

    Parameters
    ----------
    method : object
        Unfitted method.
    path : Path or None
        File that ``--members`` names.
    """
    if path is not None and _has_parameters(method):
        raise UsageError("--members and -p groups=… or -p kinds=… contradict each other; leave one of them out")


def takes_members(method: Any) -> bool:
    """Return whether a method uses kinds and groups of workers."""
    return {"groups", "kinds"} <= {field.name for field in parameter_fields(method)}


def set_members(method: Any, members: Members) -> None:
    """Set kinds and groups of a method unless its parameters have them already.

    Parameters
    ----------
    method : object
        Unfitted method.
    members : Members
        Kinds, groups and scores of workers.
    """
    if not _has_parameters(method) and members.are_known:
        method.set_params(kinds=members.kinds, groups=members.groups)


def _has_parameters(method: Any) -> bool:
    return getattr(method, "groups", None) is not None or getattr(method, "kinds", None) is not None


def find_members(source: VoteSource, reading: Reading, crowd: Crowd, path: Path | None) -> Members:
    """Return kinds, groups and scores from the export of a labelling tool, overridden by the table of members.

    Parameters
    ----------
    source : VoteSource
        Source of the votes.
    reading : Reading
        Options by which the votes were read.
    crowd : Crowd
        Votes.
    path : Path or None
        Table of members; None uses what the export says.

    Returns
    -------
    Members
    """

    if crowd.workers is None:
        if path is not None:
            raise UsageError("--members needs votes with worker ids, and these have none; leave it out")
        return Members()
    question, scores = _read_question(source, reading, crowd)
    kinds: dict[Any, Any] = {} if question is None else dict(question.kinds.items())
    groups: dict[Any, Any] = (
        {} if question is None or question.groups is None else dict(question.groups.dropna().items())
    )
    if path is not None:
        table = _read(path, reading, crowd)
        kinds |= table["kind"].dropna().to_dict()
        groups |= table["group"].dropna().to_dict()
    voters = {str(name) for name in crowd.workers}
    if kinds:  # workers that are not listed are people
        kinds = dict.fromkeys(sorted(voters), "person") | kinds
    kinds_by_worker, groups_by_worker = (
        {str(worker): str(value) for worker, value in column.items() if str(worker) in voters}
        for column in (kinds, groups)
    )
    return Members(kinds_by_worker or None, groups_by_worker or None, scores)


def _read_question(source: VoteSource, reading: Reading, crowd: Crowd) -> tuple[Question | None, pd.DataFrame | None]:
    """Return the question of the export that the votes answer, and the scores of machines; None for other files."""
    from dataclasses import replace

    names_columns = any((reading.task, reading.worker, reading.label, reading.weight, reading.time))
    if not source.format.is_tool or names_columns:
        return None, None
    from wisecrowd.io.tools.projects import build_project

    export = source.read_export()
    question_name = reading.question or next(iter(export.questions))
    name = question_name if question_name in export.questions else question_name.partition("=")[0]
    # Problems of other questions do not matter here.
    export = replace(export, questions={name: export.questions[name]})
    question = build_project(export, source.format.name, duplicates="keep").get_question()
    scores = question.scores.drop_duplicates(["task", "worker"], keep=False)
    if (
        crowd.is_numeric or name != question_name or not len(scores)
    ):  # scores belong to whole questions, not to one option
        return question, None
    scored_votes = scores[["task", "worker", "score"]].merge(
        crowd.to_frame()[["task", "worker", "label"]], on=["task", "worker"]
    )
    return question, scored_votes if len(scored_votes) else None


def _read(path: Path, reading: Reading, crowd: Crowd) -> pd.DataFrame:
    """Read a table of members; worker ids get the type they have in the votes, and workers without votes are dropped."""
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.errors import InputError, preview
    from wisecrowd.io.members import read_members
    from wisecrowd.io.problems import MissingColumn
    from wisecrowd.io.tables.spellings import match_spellings

    try:
        table = read_members(path, worker=reading.worker)
    except MissingColumn:
        table = read_members(path)
    assert crowd.workers is not None
    table.index = (
        match_spellings(table.index, crowd.workers) if reading.normalise else match_id_type(table.index, crowd.workers)
    )
    strange = ~table.index.isin(crowd.workers)
    if strange.all():
        raise InputError(
            f"{path}: none of its workers has votes. It lists {preview(table.index)}; the votes are by {preview(crowd.workers)}. "
            "Use the same ids in both files"
        )
    if strange.any():
        warn(f"{path}: workers without votes are ignored: {preview(table.index[strange])}")
    return table[~strange]


# ---------------------------------------------------------------------- tables and summary


def make_judge_tables(fitted: Any, members: Members, truth: pd.Series | None) -> dict[str, pd.DataFrame]:
    """Return the tables of judges and groups by file name.

    Parameters
    ----------
    fitted : object
        Fitted method.
    members : Members
        Kinds, groups and scores of workers.
    truth : Series or None
        Known truth by task.

    Returns
    -------
    dict
        Table by file name.
    """
    from wisecrowd.cli._fitting import with_integer_counts
    from wisecrowd.cli._outputs import rounded

    tables: dict[str, pd.DataFrame] = {}
    judges = getattr(fitted, "judges_", None)
    if judges is not None and len(judges):
        tables[JUDGES] = with_integer_counts(judges)
        confusion = make_judge_confusion(fitted)
        if len(confusion):
            tables[CONFUSION] = confusion
    if hasattr(fitted, "opinions_"):
        tables[GROUPS] = rounded(fitted.opinions_)
    calibration = _calibration(fitted, members, truth)
    if calibration is not None:
        tables[CALIBRATION] = rounded(calibration)
    return tables


def make_judge_confusion(fitted: Any) -> pd.DataFrame:
    """Return counts and shares by judge, label of the people and label of the judge, as a long table.

    Parameters
    ----------
    fitted : Panel
        Fitted panel.

    Returns
    -------
    DataFrame
    """
    import numpy as np
    import pandas as pd

    from wisecrowd.cli._outputs import DECIMALS

    counts = fitted.judge_confusion_.round(DECIMALS)
    total = counts.sum(axis=2, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0).round(DECIMALS)
    judge, people, judge_label = where = np.nonzero(counts)
    return pd.DataFrame(
        {"worker": fitted.judges_.index[judge], "people_say": fitted.classes_[people], "judge_says": fitted.classes_[judge_label],
         "n_votes": counts[where], "share": share[where]}
    )  # fmt: skip


def _calibration(fitted: Any, members: Members, truth: pd.Series | None) -> pd.DataFrame | None:
    """Return a calibration table of the judges' scores, against known truth if it covers scored tasks, else the panel's labels."""
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.errors import InputError

    if members.scores is None or not hasattr(fitted, "judges_"):
        return None
    if truth is not None and not members.scores["task"].isin(match_id_type(truth.index, fitted.task_index_)).any():
        truth = None
    try:
        rich_table: pd.DataFrame = fitted.calibration(members.scores, truth=truth)
    except InputError as error:  # labelling tools accept any number as a score
        warn(f"{CALIBRATION} is not written: {error}")
        return None
    return rich_table


def summarise_judges(fitted: Any) -> dict[str, Any]:
    """Return worth and accuracy of judges and groups for JSON; empty if there are none."""
    judges, groups = getattr(fitted, "judges_", None), getattr(fitted, "opinions_", None)
    facts: dict[str, Any] = {}
    if judges is not None and len(judges):
        ordered = judges.sort_values(["worth", "accuracy"], ascending=False, kind="stable")
        facts["judges"] = {str(row.Index): _worth(row) for row in ordered.itertuples()}
    if groups is not None:
        facts["groups"] = {str(row.Index): _worth(row) | {"members": int(row.n_workers)} for row in groups.itertuples()}
    if hasattr(fitted, "n_effective_"):
        facts |= {"n_effective": round(float(fitted.n_effective_), 4), "verdict": list(fitted.verdict_)}
    return facts


def _worth(row: Any) -> dict[str, float | None]:
    return {
        name: None if value != value else round(float(value), 6)
        for name, value in (("worth", row.worth), ("accuracy", row.accuracy))
    }


def judge_lines(summary: Mapping[str, Any], fitted: Any) -> list[tuple[str, str]]:
    """Return the summary lines about judges and groups.

    Parameters
    ----------
    summary : mapping
        Figures that `summarise_judges` returned.
    fitted : object
        Fitted method.

    Returns
    -------
    list of tuple
        Title and text of each line.
    """
    facts = []
    if takes_members(fitted) and not _has_parameters(fitted):
        facts.append(("Judges", "no machines or groups are known, so panel equals dawid-skene; see --members"))
    for title, key in (("Judges", "judges"), ("Groups", "groups")):
        rows = summary.get(key, {})
        if not rows:
            continue
        shown = ", ".join(_row(name, row) for name, row in list(rows.items())[:SHOWN])
        more = f", and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
        in_people = any(row["worth"] is not None for row in rows.values())
        unit = (
            "worth of one vote, in votes of a person" if key == "judges" else "worth of all votes, in votes of a person"
        )
        facts.append((title, f"{unit if in_people else 'accuracy by the panel'}: {shown}{more}"))
    facts += [("Judges", sentence) for sentence in summary.get("verdict", [])]
    return facts


def _row(name: str, row: Mapping[str, Any]) -> str:
    value = f"{row['accuracy']:.0%}" if row["worth"] is None else f"{row['worth']:.2f}"
    return f"{shorten_id(name)} {value}" + (f" ({row['members']:,} members)" if "members" in row else "")


# ---------------------------------------------------------------------- costs


def parse_costs(text: str | None, crowd: Crowd, members: Members) -> dict[str, float] | None:
    """Return the cost of a vote by worker or kind, parsed from ``person=0.20,machine=0.01``.

    Parameters
    ----------
    text : str or None
        Value of ``--costs``.
    crowd : Crowd
        Votes.
    members : Members
        Kinds, groups and scores of workers.

    Returns
    -------
    dict or None
    """
    from wisecrowd.errors import preview, suggest_name
    from wisecrowd.io.members import parse_kind

    if text is None:
        return None
    workers = set() if crowd.workers is None else {str(name) for name in crowd.workers}
    kinds = set((members.kinds or {}).values())
    costs: dict[str, float] = {}
    for part in text.split(","):
        name, equals, price = (word.strip() for word in part.rpartition("="))
        if not equals or not name:
            raise UsageError(
                f"--costs takes costs by kind or worker, such as person=0.20,machine=0.01; got {part.strip()!r}"
            )
        if name not in workers:
            kind = parse_kind(name)
            if kind is not None and not kinds:
                raise UsageError(
                    f"--costs gives the cost of a {kind}, but no worker is known to be one. Add a table with the columns "
                    "worker and kind: --members FILE"
                )
            if kind not in kinds:
                raise UsageError(
                    f"--costs names {name!r}, which is neither a worker nor a kind. Workers are {preview(sorted(workers))}; "
                    f"kinds are {' and '.join(sorted(kinds)) or 'unknown'}."
                    f"{suggest_name(name, [*workers, *kinds])}"
                )
            name = str(kind)
        if name in costs:
            raise UsageError(f"--costs names {name!r} twice; leave one of them out")
        costs[name] = _price(name, price)
    return costs


def _price(name: str, text: str) -> float:
    import math

    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not (math.isfinite(price) and price > 0):
        raise UsageError(f"the cost of {name!r} must be a positive number; got {text!r}")
    return price


# ---------------------------------------------------------------------- model for diagnosis and planning


def choose_method(
    method: str | None, source: VoteSource, reading: Reading, crowd: Crowd, path: Path | None, *, quiet: bool = False
) -> tuple[str, Members]:
    """Return the name of the method for votes, and the members that it is fitted with. All commands choose it here.

    Machines of one model make the same errors, so votes of machines are aggregated and rated by the method panel unless the user
    names another. Groups alone (channels, vendors) do not change the method unless the user lists them.

    Parameters
    ----------
    method : str or None
        Name of the method that the user chose.
    source : VoteSource
        Source of the votes.
    reading : Reading
        Options by which the votes were read.
    crowd : Crowd
        Votes.
    path : Path or None
        Table of members.
    quiet : bool, default=False
        Print no note if machines vote and the chosen method treats them as people.

    Returns
    -------
    name : str
        Name of the method.
    members : Members
        Kinds, groups and scores of workers; empty if the method does not use them.
    """
    from wisecrowd.base.registry import find

    if method is not None and not takes_members(find(method)):
        if path is not None:
            raise UsageError(
                f"{method} treats workers as independent and does not use --members; leave it out, or use -m panel"
            )
        if not quiet and not crowd.is_numeric and find_members(source, reading, crowd, None).has_machines:
            print_note(
                f"Note: {method} treats every machine as an independent person, but machines of one model make the same errors; "
                "-m panel models this"
            )
        return method, Members()
    members = find_members(source, reading, crowd, path)
    is_panel = method is not None or members.has_machines or (path is not None and members.are_known)
    if crowd.is_numeric or not is_panel:
        return method or DEFAULT_METHOD, Members()
    return method or PANEL, members


def fit_model(method: str, crowd: Crowd, members: Members, gold: pd.Series | None = None) -> Any:
    """Return the model for a diagnosis or a plan: a fitted panel, or the name of another method.

    Parameters
    ----------
    method : str
        Name of the method.
    crowd : Crowd
        Votes.
    members : Members
        Kinds, groups and scores of workers.
    gold : Series, optional
        Known truth of some tasks.

    Returns
    -------
    Panel or str
    """
    cast = crowd.select_observed()
    if not members.are_known or not cast.n_votes:
        return method
    from wisecrowd.base.registry import find

    unfitted: Any = find(method)()
    set_members(unfitted, members)
    return unfitted.fit(cast, truth=gold)


def use_worker_names(crowd: Crowd, members: Members, names: Mapping[str, str]) -> tuple[Crowd, Members]:
    """Return the votes with the names of people beside their worker ids.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    members : Members
        Kinds, groups and scores of workers.
    names : mapping of str to str
        Name by worker id.

    Returns
    -------
    crowd : Crowd
        Votes of workers such as ``Ann Lee (3)``.
    members : Members
        The same about these workers.
    """
    if not names or crowd.workers is None:
        return crowd, members
    labels = {
        str(worker): f"{names[str(worker)]} ({worker})"
        for worker in crowd.workers
        if names.get(str(worker), str(worker)) != str(worker)
    }
    if not labels:
        return crowd, members
    renamed = crowd.replace_fields(workers=[labels.get(str(worker), str(worker)) for worker in crowd.workers])
    kinds, groups = (
        None if part is None else {labels.get(worker, worker): value for worker, value in part.items()}
        for part in (members.kinds, members.groups)
    )
    scores = members.scores
    if scores is not None:
        scores = scores.assign(worker=[labels.get(str(worker), worker) for worker in scores["worker"]])
    return renamed, Members(kinds, groups, scores)
