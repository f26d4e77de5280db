"""``wisecrowd diagnose``: whom to trust, and which tasks are hard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as who
from wisecrowd.cli._console import heading, shortened, show, show_hanging, table, watched
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.diagnose import Diagnosis

WORKERS, TASKS, CONFUSION, COPIES = "workers.csv", "tasks.csv", "confusion.csv", "copies.csv"
#: Workers and tasks to show, and members of a group to name; all are in the files.
SHOWN, NAMED = 8, 5


@with_options(Reading)
def diagnose(
    votes: Votes,
    *,
    method: fitting.Model = None,
    features: feature_files.FeaturesFile = None,
    members: who.MembersFile = None,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: Reading,
) -> None:
    """Whom to trust, which tasks are hard, and how far the crowd agrees.

    Workers who answer at random, press one button, say the opposite or copy
    somebody are named, with the reason. Tasks are settled, outvoted (settled by
    those who know), ambiguous (good workers differ) or undecided (another vote
    will help). A vote is always judged by the other votes on its task:

      wisecrowd diagnose votes.csv
      wisecrowd diagnose votes.csv -o results
      wisecrowd diagnose votes.csv --time submitted --features X.npz

    Where votes have times, workers who change are named as well. With features, tasks whose label does not go with them have a
    low aum and waum in tasks.csv.

    Machines of one model err together, and are no witnesses of each other. Where it is known who is a machine and who belongs
    together, all are judged by the method panel. An export of a labelling tool tells it, or --members does:

      wisecrowd diagnose votes.csv --members members.csv

    Writes workers.csv, tasks.csv, confusion.csv (what is said when each class is true), copies.csv and run.json with -o.
    """  # fmt: skip
    from wisecrowd.base.provenance import surroundings
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import size
    from wisecrowd.diagnose import diagnosis

    fitting.needs_folder(output, spreadsheet=spreadsheet)
    inputs = [path for path in (votes, members) if path is not None]
    if output is not None:
        check_folder(output, [WORKERS, TASKS, CONFUSION, COPIES, RECORD], inputs)
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
        given = None if features is None else feature_files.read(features, reading)
    fitting.warn_of_look_alikes(crowd, votes)
    fitting.warn_of_filled_votes(crowd)
    known = who.known_to_judge(method, votes, reading, crowd, members)
    X, crowd = feature_files.beside(given, crowd)
    with watched(quiet=quiet):
        found = diagnosis(crowd, X, model=who.model_for(method, crowd, known))
        run: dict[str, Any] = {
            "crowd": found.overview,
            "groups": list(found.groups.described),
            "votes": str(votes),
            "members": fitting.text(members),
            "method": found.model.name,
            **reading.recorded(votes),
        }
        run |= surroundings(crowd)
        tables = {} if output is None else _tables(found)
        kept = fitting.keep(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="tables")
    told = [("Read", str(votes)), ("Votes", size(crowd)), *_facts(found), ("Wrote", kept)]
    fitting.tell(run, told, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show_workers(found.workers)
        _show_groups(found)
        _show_tasks(found)


def _tables(found: Diagnosis) -> dict[str, pd.DataFrame]:
    from wisecrowd.cli._outputs import rounded

    tables = {
        WORKERS: found.workers.assign(group=found.groups.of_worker["group"] + 1),
        TASKS: found.tasks,
        CONFUSION: found.confusion,
        COPIES: found.of_workers.copies.pairs,
    }
    return {name: rounded(table) for name, table in tables.items()}


def _facts(found: Diagnosis) -> list[tuple[str, str]]:
    figures = found.overview
    alpha = figures["krippendorff_alpha"]
    agreed = (
        "no telling: nobody shares tasks, or all say the same"
        if alpha is None
        else f"Krippendorff's alpha {alpha:.2f} ({figures['krippendorff_alpha_low']:.2f} to "
        f"{figures['krippendorff_alpha_high']:.2f}), Gwet's AC1 {figures['gwet_ac1']:.2f}"
    )
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in figures["tasks_by_kind"].items() if n)
    flagged, few = figures["flagged_workers"], figures["workers_with_fewer_than_10_labels"]
    workers = f"{flagged:,} of {figures['workers']:,} to look at; {few:,} with fewer than 10 labels"
    return [("Agreement", agreed), ("Workers", workers), ("Tasks", kinds)]


def _show_workers(workers: pd.DataFrame) -> None:
    flagged = workers[workers["flags"] != ""].sort_values("n_votes", ascending=False)
    if flagged.empty:
        return
    heading("Workers to look at")
    for name, row in flagged.head(SHOWN).iterrows():
        show_hanging(f"{shortened(name, 24)}  ", f"{row['flags']}: {row['why']}", style="bold")
    if len(flagged) > SHOWN:
        show(f"and {len(flagged) - SHOWN:,} more")


def _show_groups(found: Diagnosis) -> None:
    if len(found.groups.size) < 2:
        return
    heading("Groups of workers who err alike")
    for number, about in enumerate(found.groups.described):
        names = ", ".join(shortened(name, 24) for name in found.groups.members(number, NAMED))
        show_hanging(f"{number + 1}  ", f"{about} ({names})", style="bold")


def _show_tasks(found: Diagnosis) -> None:
    if found.X is not None:
        _show_odd(found)
    hard = found.tasks[found.tasks["kind"].isin(["ambiguous", "undecided"])]
    hard = hard.sort_values(["kind", "misfit"]).head(SHOWN)
    if hard.empty:
        return
    heading("Tasks to look at")
    rows = [
        (
            shortened(name, 30),
            row["kind"],
            shortened(row["label"], 16),
            f"{row['confidence']:.2f}",
            int(row["n_votes"]),
        )
        for name, row in hard.iterrows()
    ]
    show(table(["task", "kind", "label", "confidence", "labels"], rows, left=3))


def _show_odd(found: Diagnosis) -> None:
    """Tasks whose label goes least with their features."""
    odd = found.tasks.nsmallest(SHOWN, "aum")
    heading("Labels that do not go with the features")
    rows = [
        (shortened(name, 30), shortened(row["label"], 16), f"{row['confidence']:.2f}", f"{row['aum']:.2f}")
        for name, row in odd[odd["aum"] < 0].iterrows()
    ]
    show(table(["task", "label", "confidence", "aum"], rows, left=2) if rows else "none")
