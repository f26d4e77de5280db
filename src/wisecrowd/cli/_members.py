"""Who is a machine and who belongs together, on the command line: where it is told, and what there is to say of it then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._console import remark, shortened, warn

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._reading import Reading
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.tools.projects import Question

JUDGES, CONFUSION, GROUPS, CALIBRATION = "judges.csv", "judge_confusion.csv", "groups.csv", "calibration.csv"
#: Judges, and groups, to show; all are in the files.
SHOWN = 6

MembersFile = Annotated[
    Path | None,
    typer.Option(
        "--members",
        metavar="FILE",
        show_default=False,
        help="Who is a machine, and who belongs together: a table with the column worker, and kind (person or machine), "
        "group, or both. What a labelling tool's export tells of it need not be told again.",
    ),
]


@dataclass(frozen=True, eq=False)
class Members:
    """What is known of workers beside their votes; None where nothing is."""

    kinds: dict[str, str] | None = None
    groups: dict[str, str] | None = None
    #: How sure machines were: task, worker, label, score.
    scores: pd.DataFrame | None = None

    @property
    def has_machines(self) -> bool:
        """Whether somebody is known to be a machine."""
        return "machine" in (self.kinds or {}).values()

    @property
    def has_groups(self) -> bool:
        """Whether two belong together."""
        of = list((self.groups or {}).values())
        return len(set(of)) < len(of)


def refuse(method: Any, path: Path | None) -> None:
    """Refuse to be told who is who when the method does not ask."""
    from wisecrowd.errors import UsageError

    if path is None:
        return
    if not takes(method):
        raise UsageError(
            f"{method.name} takes everybody for independent, and asks neither for machines nor for groups; leave --members out, "
            "or choose the method that does: -m panel"
        )
    if _has_parameters(method):
        raise UsageError("--members and -p groups=… or -p kinds=… say the same; leave one of them out")


def takes(method: Any) -> bool:
    """Whether a method wants to know who is a machine and who belongs together."""

    return {"groups", "kinds"} <= {field.name for field in parameter_fields(method)}


def tell(method: Any, found: Members) -> None:
    """Tell a method who is who, unless it was told by parameters or there is nothing to tell."""
    if not _has_parameters(method) and (found.has_machines or found.has_groups):
        method.set_params(kinds=found.kinds, groups=found.groups)


def hint(method: Any, votes: Path, reading: Reading, crowd: Crowd) -> None:
    """Say that there is a method that knows machines, where they vote and the chosen one takes them for people."""
    if takes(method) or crowd.is_numeric or crowd.workers is None:
        return
    if known(votes, reading, crowd, None).has_machines:
        remark(
            f"Note: {method.name} counts a machine as one more independent person; machines of one model err together, and "
            "-m panel counts them for what they are worth"
        )


def _has_parameters(method: Any) -> bool:
    return method.groups is not None or method.kinds is not None


def known(votes: Path, reading: Reading, crowd: Crowd, path: Path | None) -> Members:
    """What the export of a labelling tool tells of its workers, and a table, which counts more."""
    from wisecrowd.errors import UsageError

    if crowd.workers is None:
        if path is not None:
            raise UsageError("--members says who workers are, but nobody knows who cast these votes; leave it out")
        return Members()
    question, scores = _exported(votes, reading, crowd)
    kinds = {} if question is None else dict(question.kinds.items())
    groups = {} if question is None or question.groups is None else dict(question.groups.dropna().items())
    if path is not None:
        table = _read(path, reading, crowd)
        kinds |= table["kind"].dropna().to_dict()
        groups |= table["group"].dropna().to_dict()
    here = {str(name) for name in crowd.workers}
    if kinds:  # who is not named is a person, as workers are
        kinds = dict.fromkeys(sorted(here), "person") | kinds
    found = [{str(who): str(what) for who, what in told.items() if str(who) in here} for told in (kinds, groups)]
    return Members(found[0] or None, found[1] or None, scores)


def _exported(votes: Path, reading: Reading, crowd: Crowd) -> tuple[Question | None, pd.DataFrame | None]:
    """The question that the votes answer, if a labelling tool asked it, and how sure machines were of their votes."""
    from dataclasses import replace

    from wisecrowd.cli._reading import located
    from wisecrowd.io.formats import find_format
    from wisecrowd.io.tools.projects import project_of

    place = located(votes)
    form = find_format(place, reading.format)
    if form.project is None or any((reading.task, reading.worker, reading.label, reading.weight, reading.time)):
        return None, None
    gathered = form.project(place)
    wanted = reading.question or next(iter(gathered.asked))
    name = wanted if wanted in gathered.asked else wanted.partition("=")[0]
    # What is wrong with other questions is nothing to whoever asks for this one.
    only = replace(gathered, asked={name: gathered.asked[name]})
    question = project_of(only, form.name, duplicates="keep").question()
    scores = question.scores.drop_duplicates(["task", "worker"], keep=False)
    if crowd.is_numeric or name != wanted or not len(scores):  # of one option, nobody gave a score
        return question, None
    told = scores[["task", "worker", "score"]].merge(
        crowd.to_frame()[["task", "worker", "label"]], on=["task", "worker"]
    )
    return question, told if len(told) else None


def _read(path: Path, reading: Reading, crowd: Crowd) -> pd.DataFrame:
    """A table of members, its workers as the votes write them; who has no votes here is left out."""
    from wisecrowd.data.vocabulary import same_kind
    from wisecrowd.errors import InputError, some
    from wisecrowd.io.members import read_members
    from wisecrowd.io.problems import MissingColumn

    try:
        table = read_members(path, worker=reading.worker)
    except MissingColumn:
        table = read_members(path)
    assert crowd.workers is not None
    table.index = same_kind(table.index, crowd.workers)
    strange = ~table.index.isin(crowd.workers)
    if strange.all():
        raise InputError(
            f"{path}: none of its workers is among the votes: it names {some(table.index)}, and the votes are of "
            f"{some(crowd.workers)}; see that ids are the same"
        )
    if strange.any():
        warn(f"{path}: {some(table.index[strange])} cast none of these votes, and what is said of them is left out")
    return table[~strange]


# ---------------------------------------------------------------------- what was found


def tables_of(fitted: Any, found: Members, truth: pd.Series | None) -> dict[str, pd.DataFrame]:
    """What there is to say of judges and groups, by the name of the file."""
    from wisecrowd.cli._fitting import counted_whole
    from wisecrowd.cli._outputs import rounded

    tables: dict[str, pd.DataFrame] = {}
    judges = getattr(fitted, "judges_", None)
    if judges is not None and len(judges):
        tables[JUDGES] = counted_whole(judges)
        confusion = _confusion(fitted)
        if len(confusion):
            tables[CONFUSION] = confusion
    if hasattr(fitted, "opinions_"):
        tables[GROUPS] = rounded(fitted.opinions_)
    calibration = _calibration(fitted, found, truth)
    if calibration is not None:
        tables[CALIBRATION] = rounded(calibration)
    return tables


def _confusion(fitted: Any) -> pd.DataFrame:
    """A row for each judge, what people say and what the judge says: how often, and how large a share of it that is."""
    import numpy as np
    import pandas as pd

    from wisecrowd.cli._outputs import DECIMALS

    counts = fitted.judge_confusion_.round(DECIMALS)
    total = counts.sum(axis=2, keepdims=True)
    share = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0).round(DECIMALS)
    judge, people, said = where = np.nonzero(counts)
    return pd.DataFrame(
        {"worker": fitted.judges_.index[judge], "people_say": fitted.classes_[people], "judge_says": fitted.classes_[said],
         "n_votes": counts[where], "share": share[where]}
    )  # fmt: skip


def _calibration(fitted: Any, found: Members, truth: pd.Series | None) -> pd.DataFrame | None:
    """Scores against how often judges are right: by the truth where it is known of what was scored, else by the panel."""
    from wisecrowd.data.vocabulary import same_kind
    from wisecrowd.errors import InputError

    if found.scores is None or not hasattr(fitted, "judges_"):
        return None
    if truth is not None and not found.scores["task"].isin(same_kind(truth.index, fitted.task_index_)).any():
        truth = None
    try:
        made: pd.DataFrame = fitted.calibration(found.scores, truth=truth)
    except InputError as error:  # tools take any number for a score
        warn(f"there is no {CALIBRATION}: {error}")
        return None
    return made


def figures(fitted: Any) -> dict[str, Any]:
    """What a person wants to know of judges and groups at a glance, ready for JSON; nothing if there are none."""
    judges, groups = getattr(fitted, "judges_", None), getattr(fitted, "opinions_", None)
    told: dict[str, Any] = {}
    if judges is not None and len(judges):
        ordered = judges.sort_values(["worth", "accuracy"], ascending=False, kind="stable")
        told["judges"] = {str(row.Index): _worth(row) for row in ordered.itertuples()}
    if groups is not None:
        told["groups"] = {str(row.Index): _worth(row) | {"members": int(row.n_workers)} for row in groups.itertuples()}
    return told


def _worth(row: Any) -> dict[str, float | None]:
    return {
        name: None if value != value else round(float(value), 6)
        for name, value in (("worth", row.worth), ("accuracy", row.accuracy))
    }


def lines(summary: Mapping[str, Any], fitted: Any) -> list[tuple[str, str]]:
    """The same as lines; a panel of which nobody said who is who is told to be none."""
    told = []
    if takes(fitted) and not _has_parameters(fitted):
        told.append(
            ("Judges", "nobody is known to be a machine or to belong to a group, so this is dawid-skene; see --members")
        )
    for title, key in (("Judges", "judges"), ("Groups", "groups")):
        rows = summary.get(key, {})
        if not rows:
            continue
        shown = ", ".join(_row(name, row) for name, row in list(rows.items())[:SHOWN])
        more = f", and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
        in_people = any(row["worth"] is not None for row in rows.values())
        unit = "a vote is worth, in votes of a person" if key == "judges" else "together, in votes of a person"
        told.append((title, f"{unit if in_people else 'right by the panel'}: {shown}{more}"))
    return told


def _row(name: str, row: Mapping[str, Any]) -> str:
    value = f"{row['accuracy']:.0%}" if row["worth"] is None else f"{row['worth']:.2f}"
    return f"{shortened(name)} {value}" + (f" ({row['members']:,} members)" if "members" in row else "")


# ---------------------------------------------------------------------- what votes cost


def costs_of(text: str | None, crowd: Crowd, found: Members) -> dict[str, float] | None:
    """Prices by worker or kind: ``person=0.20,machine=0.01``."""
    from wisecrowd.errors import UsageError, did_you_mean, some
    from wisecrowd.io.members import kind_called

    if text is None:
        return None
    workers = set() if crowd.workers is None else {str(name) for name in crowd.workers}
    kinds = set((found.kinds or {}).values())
    costs: dict[str, float] = {}
    for part in text.split(","):
        name, equals, price = (word.strip() for word in part.rpartition("="))
        if not equals or not name:
            raise UsageError(
                f"--costs takes prices by kind or worker, for example person=0.20,machine=0.01; got {part.strip()!r}"
            )
        if name not in workers:
            kind = kind_called(name)
            if kind is not None and not kinds:
                raise UsageError(
                    f"--costs says what a {kind} costs, but nothing tells who is one; name people and machines in a table with "
                    "the columns worker and kind: --members FILE"
                )
            if kind not in kinds:
                raise UsageError(
                    f"--costs names {name!r}, which is neither a worker nor a kind that is known here; the workers are "
                    f"{some(sorted(workers))}, the kinds {' and '.join(sorted(kinds)) or 'unknown'}."
                    f"{did_you_mean(name, [*workers, *kinds])}"
                )
            name = str(kind)
        if name in costs:
            raise UsageError(f"--costs names {name!r} twice; leave one of them out")
        costs[name] = _price(name, price)
    return costs


def _price(name: str, text: str) -> float:
    import math

    from wisecrowd.errors import UsageError

    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not (math.isfinite(price) and price > 0):
        raise UsageError(f"the cost of {name!r} must be a positive number, the price of a vote; got {text!r}")
    return price


# ---------------------------------------------------------------------- who judges


def known_to_judge(method: str | None, votes: Path, reading: Reading, crowd: Crowd, path: Path | None) -> Members:
    """What is known of workers, for whoever plans or diagnoses; ``method`` is the one that was named."""
    from wisecrowd.base.registry import find
    from wisecrowd.errors import UsageError

    if path is not None and method is not None and not takes(find(method)):
        raise UsageError(
            "who belongs together is for the method panel, which --members asks for; leave out -m, or --members"
        )
    found = known(votes, reading, crowd, path)
    if path is None and not found.has_machines:  # channels and vendors alone are no reason to judge in another way
        return Members()
    return found


def model_for(method: str | None, crowd: Crowd, found: Members) -> Any:
    """By what workers and tasks are judged: the method that is named, or a panel where somebody is known to be anything."""
    from wisecrowd.base.registry import find

    if method is not None and not takes(find(method)):
        return method
    panel = panel_for(crowd, found)
    return method if panel is None else panel


def panel_for(crowd: Crowd, found: Members) -> Any:
    """A panel fitted to the votes that somebody cast; None where nobody is known to be anything."""
    if (found.kinds is None and not found.has_groups) or crowd.is_numeric:
        return None
    from wisecrowd.base.registry import find

    panel: Any = find("panel")
    cast = crowd.only_observed()
    return panel(kinds=found.kinds, groups=found.groups).fit(cast) if cast.n_votes else None
