"""``wisecrowd diagnose``: quality of workers, difficulty of tasks, agreement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _answers as answers
from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as members_file
from wisecrowd.cli import _scores as score_files
from wisecrowd.cli._answer_diagnosis import diagnose_answers
from wisecrowd.cli._console import heading, shorten_id, show, show_hanging, show_progress, table
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.diagnose import Diagnosis

WORKERS, TASKS, CONFUSION, COPIES, RATERS = "workers.csv", "tasks.csv", "confusion.csv", "copies.csv", "raters.csv"
#: Workers and tasks shown, and members named per group; the files contain all.
SHOWN, NAMED = 8, 5


@with_options(GoldReading, "reading")
def diagnose(
    votes: Votes,
    *,
    method: fitting.Model = None,
    features: feature_files.FeaturesFile = None,
    members: members_file.MembersFile = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Gold: known truth of some tasks, used in fitting to rate the workers.",
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Scores of judges: texts of the tasks, for length bias."),
    ] = None,
    versions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD,NEW",
            show_default=False,
            help="Scores of judges: versions of one judge, in order; may be repeated.",
        ),
    ] = None,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Rate workers, classify tasks, and measure inter-annotator agreement.

    Flags workers who answer at random, always give one label, invert labels or
    copy others, with the reason. Tasks are settled, outvoted (settled against
    half of the votes or more), ambiguous (good workers disagree) or undecided
    (more votes will help). Every vote is compared with the other votes on its
    task only:

      wisecrowd diagnose votes.csv
      wisecrowd diagnose votes.csv -o results
      wisecrowd diagnose votes.csv --time submitted --features X.npz

    With times, workers whose accuracy changes are flagged, too. With features,
    tasks whose label does not fit have a low aum and waum in tasks.csv.

    Machines of one model make the same errors. If machines or groups are known,
    from the export of a labelling tool or from --members, workers are rated by
    the method panel:

      wisecrowd diagnose votes.csv --members members.csv

    If classes are ordered (--ordered), also estimates the severity of raters
    and whether their ratings vary more or less than expected (infit and outfit,
    many-facet Rasch analysis):

      wisecrowd diagnose ratings.csv --ordered -o results

    Comparisons, label sets, boxes, points, polygons, spans, masks and texts are
    recognised by their columns. Their workers are rated by their own models: who
    misses objects, marks what is not there, draws too large or shifted, splits
    or merges objects, confuses classes, leaves out words. The agreement on label
    sets is measured by MASI and Jaccard distance, that on objects by pairwise F1
    scores, that on masks by Dice coefficients, that on texts by word and
    character error rates:

      wisecrowd diagnose arena.csv
      wisecrowd diagnose tags.csv -o results
      wisecrowd diagnose boxes.csv
      wisecrowd diagnose transcriptions.csv

    Scores of judges (columns task, judge, score) are compared with gold, or with
    the labels of the panel: agreement beyond chance, severity, calibration
    curves, consistency of repeated scores, bias by length, and changes between
    versions of a judge:

      wisecrowd diagnose scores.csv --gold gold.csv --texts texts.csv -o results
      wisecrowd diagnose scores.csv --gold gold.csv --versions gpt-4,gpt-4o

    With -o, writes workers.csv, tasks.csv, confusion.csv (labels given by true
    class), copies.csv, raters.csv (if classes are ordered) and run.json; for
    comparisons workers.csv and items.csv; for label sets workers.csv,
    labels.csv and tasks.csv; for objects, masks and texts workers.csv and
    tasks.csv.
    """  # fmt: skip
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.diagnose import diagnose_crowd
    from wisecrowd.errors import UsageError

    reading.check_gold_columns(gold)
    fitting.check_output_options(output, spreadsheet=spreadsheet)
    other_answers = answers.find_answers(votes, reading, [] if method is None else [method])
    if other_answers is not None and other_answers.answer_type == "scores":
        answers.check_unused(other_answers, {"--features": features, "--members": members, "-m": method})
        score_files.diagnose_scores(
            other_answers, reading, gold=gold, texts=texts, versions=versions,
            output=output, spreadsheet=spreadsheet, quiet=quiet, as_json=as_json,
        )  # fmt: skip
        return
    if texts is not None or versions:
        raise UsageError(
            "--texts and --versions apply to scores of judges (columns task, judge, score) only; leave them out"
        )
    if other_answers is not None:
        answers.check_unused(other_answers, {"--features": features, "--members": members, "--gold": gold})
        diagnose_answers(
            other_answers, method, reading, output=output, spreadsheet=spreadsheet, quiet=quiet, as_json=as_json
        )
        return
    inputs = [path for path in (votes, members, gold) if path is not None]
    if output is not None:
        check_folder(output, [WORKERS, TASKS, CONFUSION, COPIES, RATERS, RECORD], inputs)
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, votes=vote_source)
        feature_table = None if features is None else feature_files.read_features_file(features, reading, crowd)
    fitting.warn_filled_votes(crowd)
    chosen, member_info = members_file.choose_method(method, vote_source, reading, crowd, members, quiet=quiet)
    X, crowd = feature_files.match_features(feature_table, crowd)
    with show_progress(quiet=quiet):
        result = diagnose_crowd(
            crowd, X, model=members_file.fit_model(chosen, crowd, member_info, gold_truth), gold=gold_truth
        )
        _compute_in_steps(result)
        run: dict[str, Any] = {
            "figures": result.assessment.to_dict(),
            "crowd": result.overview,
            "groups": list(result.groups.descriptions),
            "votes": str(votes),
            "members": fitting.path_text(members),
            "gold": fitting.path_text(gold),
            "method": result.model.name,
            **reading.to_record(vote_source),
        }
        run |= describe_environment(crowd, rows=row_counts.to_dict())
        tables = {} if output is None else _tables(result)
        written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="tables")
    fitting.warn_assessment(result.assessment)
    facts = [("Read", str(votes)), ("Votes", describe_crowd(crowd)), *_facts(result), ("Wrote", written)]
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show_workers(result)
        _show_raters(result)
        _show_groups(result)
        _show_tasks(result)


def _compute_in_steps(result: Diagnosis) -> None:
    """Compute the parts of a diagnosis and report the progress, in percent of the usual time."""
    from wisecrowd.utils.progress import report

    for name, finished in (("workers", 0), ("tasks", 50), ("groups", 80)):
        report("diagnosing", finished, 100, name)
        getattr(result, name)
    report("diagnosing", 100, 100)


def _tables(result: Diagnosis) -> dict[str, pd.DataFrame]:
    from wisecrowd.cli._outputs import rounded
    from wisecrowd.diagnose.assessment import sort_flagged_first

    tables = {
        WORKERS: sort_flagged_first(result.workers.assign(group=result.groups.memberships["group"] + 1)),
        TASKS: result.tasks,
        CONFUSION: result.confusion,
        COPIES: result.worker_diagnosis.copying.suspects,
    }
    if result.raters is not None:
        tables[RATERS] = sort_flagged_first(result.raters.workers)
    return {name: rounded(table) for name, table in tables.items()}


def _facts(result: Diagnosis) -> list[tuple[str, str]]:
    from wisecrowd.cli._summary import assessment_lines
    from wisecrowd.utils.levels import format_level

    figures = result.overview
    alpha = figures["krippendorff_alpha"]
    agreed = (
        "undefined: no task has votes of two workers, or all votes are equal"
        if alpha is None
        else f"Krippendorff's alpha {alpha:.2f} ({format_level(result.level)}: {figures['krippendorff_alpha_low']:.2f} to "
        f"{figures['krippendorff_alpha_high']:.2f}), Gwet's AC1 {figures['gwet_ac1']:.2f}"
    )
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in figures["tasks_by_kind"].items() if n)
    few = figures["workers_with_fewer_than_10_votes"]
    facts = [
        *assessment_lines(result.assessment),
        ("Agreement", agreed),
        ("Workers", f"{figures['workers']:,}; {few:,} with fewer than 10 votes"),
        ("Tasks", kinds),
    ]
    if result.raters is not None:
        facts.insert(-2, ("Ratings", _describe_ratings(figures, result.level)))
    return facts


def _describe_ratings(figures: dict[str, Any], level: float) -> str:
    """Return agreement on ordered classes, and how reliably raters differ."""
    from wisecrowd.utils.levels import format_level

    parts = []
    if figures["ordinal_alpha"] is not None:
        low, high = figures["ordinal_alpha_low"], figures["ordinal_alpha_high"]
        parts.append(f"ordinal alpha {figures['ordinal_alpha']:.2f} ({format_level(level)}: {low:.2f} to {high:.2f})")
    if figures["icc"] is not None:
        parts.append(f"ICC(1) {figures['icc']:.2f}")
    parts.append(f"differences in severity are {figures['rater_reliability']:.0%} reliable")
    parts.append(f"{figures['flagged_raters']:,} raters flagged")
    return ", ".join(parts)


def _show_workers(result: Diagnosis) -> None:
    flagged = result.workers.loc[result.assessment.flags.index]
    if flagged.empty:
        return
    heading("Flagged workers")
    for name, row in flagged.head(SHOWN).iterrows():
        show_hanging(f"{shorten_id(name, 24)}  ", f"{row['flags']}: {row['why']}", style="bold")
    if len(flagged) > SHOWN:
        show(f"and {len(flagged) - SHOWN:,} more")


def _show_raters(result: Diagnosis) -> None:
    """Print the flagged raters, or the most severe and most lenient ones if there are none."""
    if result.raters is None:
        return
    raters = result.raters.workers.dropna(subset="severity").sort_values("severity", ascending=False)
    flagged = raters[raters["flags"] != ""]
    heading("Severity and fit of raters" if flagged.empty else "Flagged raters")
    shown = flagged if len(flagged) else raters
    half = SHOWN // 2
    names = shown.index if len(shown) <= SHOWN else [*shown.index[:half], *shown.index[-half:]]
    rows = [
        (
            shorten_id(name, 24),
            row["flags"] or "-",
            f"{row['severity']:+.2f}",
            f"{row['standard_error']:.2f}",
            f"{row['infit']:.2f}",
            f"{row['outfit']:.2f}",
            f"{row['n_votes']:g}",
        )
        for name, row in shown.loc[names].iterrows()
    ]
    columns = ["rater", "flags", "severity", "error", "infit", "outfit", "votes"]
    show(table(columns, rows, n_text_columns=2))
    if len(shown) > SHOWN:
        show(f"and {len(shown) - SHOWN:,} more between them")


def _show_groups(result: Diagnosis) -> None:
    if len(result.groups.size) < 2:
        return
    heading("Groups of workers with similar errors")
    for number, about in enumerate(result.groups.descriptions):
        names = ", ".join(shorten_id(name, 24) for name in result.groups.members(number, NAMED))
        show_hanging(f"{number + 1}  ", f"{about} ({names})", style="bold")


def _show_tasks(result: Diagnosis) -> None:
    if result.X is not None:
        _show_odd(result)
    hard = result.tasks[result.tasks["kind"].isin(["ambiguous", "undecided"])]
    hard = hard.sort_values(["kind", "misfit"]).head(SHOWN)
    if hard.empty:
        return
    heading("Ambiguous and undecided tasks")
    rows = [
        (
            shorten_id(name, 30),
            row["kind"],
            shorten_id(row["label"], 16),
            f"{row['confidence']:.2f}",
            int(row["n_votes"]),
        )
        for name, row in hard.iterrows()
    ]
    show(table(["task", "kind", "label", "confidence", "votes"], rows, n_text_columns=3))


def _show_odd(result: Diagnosis) -> None:
    """Print the tasks whose label fits their features least."""
    odd = result.tasks.nsmallest(SHOWN, "aum")
    heading("Labels that do not fit the features")
    rows = [
        (shorten_id(name, 30), shorten_id(row["label"], 16), f"{row['confidence']:.2f}", f"{row['aum']:.2f}")
        for name, row in odd[odd["aum"] < 0].iterrows()
    ]
    show(table(["task", "label", "confidence", "aum"], rows, n_text_columns=2) if rows else "none")
