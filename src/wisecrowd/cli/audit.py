"""``wisecrowd audit``: know the accuracy of labels by checking some of them by hand."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._answers import find_answers, refuse_objects_and_texts
from wisecrowd.cli._audit_draw import (
    CHECKS,
    check_draw,
    combine_checks,
    count_drawn,
    find_draw_command,
    identify_draw,
    refuse_filled_checks,
)
from wisecrowd.cli._console import print_note, shorten_id, show, show_progress, table, warn
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._outputs import Writer
    from wisecrowd.evaluate.audit import AuditResult
    from wisecrowd.evaluate.confidence import LabelConfidence
    from wisecrowd.io.tools.projects import Project
    from wisecrowd.io.vote_source import VoteSource

#: Files: the tasks to check for the labelling tool, and accuracy by class.
IMPORT, CLASSES = "checks.json", "classes.csv"
#: Classes shown; the file contains all.
SHOWN = 10


@with_options(GoldReading, "reading")
def audit(
    votes: Votes,
    *,
    size: Annotated[
        int | None, typer.Option(metavar="N", min=1, show_default=False, help="Number of tasks to draw for checking.")
    ] = None,
    checked: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Checked tasks: table with task, truth and, if drawn here, weight; or the export of checks.json from Label "
            "Studio.",
        ),
    ] = None,
    method: fitting.AggregationMethod = None,
    parameter: fitting.Parameter = None,
    new_classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            show_default=False,
            help="Classes of checked tasks that no vote names; the labels of these tasks are wrong.",
        ),
    ] = None,
    gold: fitting.Gold = None,
    within: Annotated[
        float, typer.Option(metavar="P", help="Half width of the interval that the audit aims at.")
    ] = 0.02,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the draw.")] = 0,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Estimate the accuracy of labels from a few that you check by hand.

    First, draw tasks to check. Uncertain labels are drawn more often, which makes
    the estimate more precise than a simple random sample; the column weight
    accounts for it:

      wisecrowd audit votes.csv --size 50 -o audit

    Fill in the column truth of audit/checks.csv without looking at the labels, or
    settle the tasks on a page: wisecrowd review votes.csv --tasks audit
    Then:

      wisecrowd audit votes.csv --checked audit/checks.csv -o audited

    If the votes are an export of a labelling tool, audit/checks.json contains
    the tasks for import. From Label Studio, export the project with the answers
    as JSON, and give that file; the answers are the truth:

      wisecrowd audit export.json --checked checked-export.json -o audited

    This gives the accuracy overall and by class with intervals, and says how many
    more checks are needed. With -o, writes labels.csv with confidence that the
    checks recalibrate, classes.csv and run.json. Checked tasks have their truth as
    label. Draw further tasks with --checked and --size together; the new
    checks.csv has the checks so far, too:

      wisecrowd audit votes.csv --checked audit/checks.csv --size 20 -o audit-2

    Evaluate checks with the votes, method and gold of the draw. Others are
    refused, because the weights would be wrong.
    """  # fmt: skip
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.cli._truth_files import fit_reading, read_truth
    from wisecrowd.data.vocabulary import locate_ids
    from wisecrowd.errors import InputError, UsageError
    from wisecrowd.evaluate.audit import draw_audit_sample, evaluate_audit
    from wisecrowd.evaluate.confidence import estimate_confidence

    reading.check_gold_columns(gold, checked)
    if size is None and checked is None:
        raise UsageError("say what to do: --size N draws tasks to check, --checked FILE evaluates checked tasks")
    fitting.check_output_options(output, spreadsheet=spreadsheet)
    if new_classes is not None and checked is None:
        raise UsageError("--new-classes are classes of checked tasks, but no checks are given; add --checked FILE")
    if method is not None:
        fitting.make_method(
            "aggregate", method, parameter or [], 1
        )  # a misspelt name is an error before the votes are read
    words = fitting.to_words(votes, method, parameter or [], gold, reading)
    check_columns = [] if gold is not None else reading.gold_words()
    inputs = [path for path in (votes, checked, gold) if path is not None]
    if output is not None:
        check_folder(output, [CHECKS, IMPORT, CLASSES, fitting.LABELS, RECORD], inputs)
    if output is not None and size is not None:
        refuse_filled_checks(output, ["wisecrowd", "audit", *words], checked, check_columns)
    refuse_objects_and_texts(votes, reading, "audit")
    _warn_label_sets(votes, reading, method)
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, beside=checked, votes=vote_source)
        # Columns may be named that only the gold has; the table of checks is usually the one that was drawn here.
        check_reading = reading if checked is None else fit_reading(checked, reading, gold)
        if crowd.is_numeric:
            raise InputError(f"{votes} has numbers as labels, which are not right or wrong; audit needs classes")
        unfitted = fitting.prepare_method(method, parameter or [], vote_source, reading, crowd, quiet=quiet)
        draw = identify_draw(crowd, unfitted, gold_truth)
        checks = None
        if checked is not None:
            check_draw(checked, check_reading, draw, find_draw_command(checked), crowd.tasks)
            extra = [] if new_classes is None else [name.strip() for name in new_classes.split(",")]
            checks = read_truth(checked, check_reading, crowd, use="checks", new_classes=extra, votes=vote_source)
    with show_progress(quiet=quiet):
        fitted = unfitted.fit(crowd, truth=gold_truth)
        result = None
        if checks is not None and checked is not None:
            weight = _read_by_task(checked, "weight", check_reading, checks, crowd.tasks)
            if weight is None and not quiet:
                print_note(_describe_unweighted(checked))
            result = evaluate_audit(fitted, crowd, checks, truth=gold_truth, weight=weight, half_width=within)
            estimate = result.estimate
        else:
            estimate = estimate_confidence(fitted, crowd, truth=gold_truth)
    tables: dict[str, pd.DataFrame | Writer] = {}
    facts = [("Read", str(votes)), ("Votes", describe_crowd(crowd)), ("Method", fitting.describe_fit(fitted))]
    summary: dict[str, Any] = {"expected_accuracy": estimate.accuracy.to_dict()}
    if result is not None:
        tables |= {fitting.LABELS: _recalibrated_labels(estimate), CLASSES: rounded(result.accuracy_by_class)}
        summary |= _summarize(result)
        n_drawn = 0 if checked is None else count_drawn(checked, check_reading, draw, crowd.tasks)
        summary |= {"drawn_before": n_drawn} if n_drawn else {}
        facts += _result_lines(result, n_drawn)
        if result.n_more and size is None:
            options = [*check_columns, "--checked", str(checked), "--size", str(result.n_more), "-o", "audit-2"]
            facts.append(("More", shlex.join(["wisecrowd", "audit", *words, *options])))
    else:
        facts.append(("Accuracy", f"expected {estimate.accuracy}, without checks"))
    if size is not None:
        sample = draw_audit_sample(estimate, size, random_state=seed)
        if len(sample) < size:
            warn(
                f"--size {size:,} is more than the {len(sample):,} tasks that are left to check; all of them are drawn"
            )
        earlier: tuple[pd.Series | None, pd.Series | None, pd.Series | None] = (None, None, None)
        if checks is not None and checked is not None:
            position = locate_ids(checks.index, crowd.tasks)
            here = checks[position >= 0].set_axis(crowd.tasks[position[position >= 0]])
            columns = [
                _read_by_task(checked, name, check_reading, checks, crowd.tasks) for name in ("weight", "stratum")
            ]
            earlier = (here, columns[0], columns[1])
        drawn_checks = combine_checks(sample, *earlier, draw=draw)
        if vote_source.format.is_tool:
            project = _read_project(vote_source)
            # Weights of a second draw are valid only together with the checks of the first.
            tables[IMPORT] = _queue_writer(sample.index, project, drawn_checks if checks is None else None)
            drawn_checks = _add_texts(drawn_checks, project)
        tables[CHECKS] = rounded(drawn_checks)
        summary["drawn"] = len(sample)
        facts.append(("Drawn", f"{len(sample):,} tasks to check, {sample['weight'].min():.2g} to "
                      f"{sample['weight'].max():.2g} tasks each stands for"))  # fmt: skip
        if output is not None:
            facts += _next_lines(words, output)
            if vote_source.format.name == "label-studio" and checks is None:
                facts.append(("", f"after answers to {output / IMPORT} in Label Studio: --checked with their export"))
    command = {
        "votes": str(votes), **reading.to_record(vote_source), "size": size, "checked": fitting.path_text(checked),
        "gold": fitting.path_text(gold), "within": within, "seed": seed, "new_classes": new_classes,
        **({} if size is None else {"draw": shlex.join(["wisecrowd", "audit", *words])}),
    }  # fmt: skip
    run = record_run(fitted, crowd, rows=row_counts.to_dict(), source=str(votes), command=command, summary=summary)
    what = "results" if size is None else "tasks to check"
    written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what=what)
    fitting.print_run(run, [*facts, ("Wrote", written)], as_json=as_json, quiet=quiet)
    if result is not None and not (as_json or quiet):
        _show_classes(result)


def _warn_label_sets(votes: Path, reading: GoldReading, method: str | None) -> None:
    """Warn of label sets, which aggregate infers label by label unless a method of classes is named."""
    answers = None if reading.label is not None else find_answers(votes, reading, [] if method is None else [method])
    if answers is not None and answers.answer_type == "multilabel":
        advice = (
            "Name a method of classes in both commands, such as -m model-average, or take one option: --question NAME=OPTION"
            if answers.source.format.is_tool
            else "To audit one label, make a table of its votes, yes or no"
        )
        warn(
            f"{answers.source.path} holds sets of labels; audit takes each set as one class, so these are not the labels that "
            f"wisecrowd aggregate writes. {advice}"
        )


def _next_lines(words: list[str], output: Path) -> list[tuple[str, str]]:
    """Return the lines of the summary that say how to check the tasks, and how to evaluate the checks."""
    review = ["wisecrowd", "review", *words, "--tasks", str(output), "-o", "checked.csv"]
    evaluate = ["wisecrowd", "audit", *words, "--checked", str(output / CHECKS), "-o", "audited"]
    return [
        ("Check", f"fill in the column truth of {output / CHECKS}, or settle the tasks on a page:"),
        ("", shlex.join(review)),
        ("Then", shlex.join(evaluate)),
        ("", "after a review: --checked checked.csv"),
    ]


def _describe_unweighted(checked: Path) -> str:
    """Return a note about checks without the columns of a draw."""
    return (
        f"Note: {checked} has no column weight, so the checks count as a simple random sample of the tasks. If wisecrowd audit "
        "drew them, keep its columns draw, weight and stratum; if they were chosen otherwise, such as the hard ones, the "
        "estimate is biased"
    )


def _read_by_task(path: Path, name: str, reading: GoldReading, checks: pd.Series, tasks: pd.Index) -> pd.Series | None:
    """Return a column of numbers of the checks by task of the crowd, or None if the file has no such column."""
    import pandas as pd

    from wisecrowd.cli._truth_files import read_column
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.errors import InputError, preview
    from wisecrowd.io.tables.spellings import match_spellings

    column = read_column(path, reading, name, tasks=tasks)
    if column is None:
        return None
    if reading.normalise:
        column.index = match_spellings(column.index, checks.index)
    column = column[column.index.isin(checks.index)]
    numbers = pd.to_numeric(column, errors="coerce")
    if name == "weight" and len(missing := column.index[numbers.isna()]):
        raise InputError(
            f"{path}: {len(missing):,} checks have no number as weight ({preview(missing)}); keep that column of the file that "
            "wisecrowd audit wrote, or remove it if the tasks are a simple random sample"
        )
    numbers.index = match_id_type(numbers.index, tasks)
    return numbers


def _recalibrated_labels(estimate: LabelConfidence) -> pd.DataFrame:
    """Return labels and confidence; a checked task has its truth as label."""
    import numpy as np

    from wisecrowd.cli._outputs import DECIMALS

    labels = estimate.table.astype({"label": object})
    is_known = estimate.checked >= 0
    labels.loc[is_known, "label"] = np.asarray(estimate.classes[estimate.checked[is_known]])
    labels.loc[is_known, "confidence"] = 1.0
    # The true class of these tasks is none of the labels, so that the label is known to be wrong.
    labels.loc[estimate.checked < -1, "confidence"] = 0.0
    return labels.round({"confidence": DECIMALS}).reset_index()


def _read_project(source: VoteSource) -> Project:
    from wisecrowd.io.tools.projects import read_project

    return read_project(source, duplicates="keep")


def _add_texts(checks: pd.DataFrame, project: Project) -> pd.DataFrame:
    """Return the table of checks with the texts, or the addresses of images, that the export has."""
    from wisecrowd.report.task_media import describe_task_data

    texts = [describe_task_data(project.tasks.get(str(task), {})) or "" for task in checks.index]
    if any(texts):
        checks = checks.copy()
        checks.insert(0, "text", texts)
    return checks


def _queue_writer(tasks: pd.Index, project: Project, checks: pd.DataFrame | None) -> Writer:
    """Return a function that writes tasks for import into the labelling tool of the votes."""
    from wisecrowd.cli._audit_draw import COLUMNS
    from wisecrowd.cli._outputs import DECIMALS
    from wisecrowd.io.tools.consensus_export import write_queue

    draw = None if checks is None else checks[[name for name in COLUMNS if name != "truth"]].round({"weight": DECIMALS})
    return lambda path: write_queue(tasks, project, path, draw=draw)


def _summarize(result: AuditResult) -> dict[str, Any]:
    """Return the figures of an audit for JSON."""
    by_class = result.accuracy_by_class.round(6)
    return {
        "checked": result.n_checked,
        "right": result.n_right,
        "checks_alone": result.checks_alone.to_dict(),
        "by_class": {str(name): row for name, row in by_class.to_dict("index").items()},
        "further_checks": result.n_more,
        "within": result.half_width,
    }


def _result_lines(result: AuditResult, n_drawn: int) -> list[tuple[str, str]]:
    """Return the lines of the summary, and warn if some of the tasks that were drawn are not checked."""
    from wisecrowd.utils.text import count_noun

    points = f"±{100 * result.half_width:.3g} points"
    more = (
        f"{points} are reached"
        if not result.n_more
        else f"about {count_noun(result.n_more, 'more check')} for {points}"
    )
    tasks = count_noun(result.n_checked, "task")
    if n_drawn > result.n_checked:
        tasks = f"{result.n_checked:,} of {n_drawn:,} drawn tasks"
        warn(
            f"only {tasks} are checked; blank or deleted checks bias the estimate if these tasks differ from the others, such as "
            "hard ones that were skipped. Check all of them"
        )
    return [
        ("Checked", f"{tasks}, {count_noun(result.n_right, 'label')} right"),
        ("Accuracy", str(result.accuracy)),
        ("Checks alone", str(result.checks_alone)),
        ("Further", more),
    ]


def _show_classes(result: AuditResult) -> None:
    """Print the accuracy of the most frequent classes."""
    by_class = result.accuracy_by_class.sort_values("n_tasks", ascending=False, kind="stable")
    figures = by_class[["accuracy", "low", "high"]].to_numpy()
    rows = [
        (shorten_id(str(name), 30), f"{n_tasks:,}", f"{n_gold:,}", *(f"{share:.3f}" for share in shares))
        for name, n_tasks, n_gold, shares in zip(
            by_class.index, by_class["n_tasks"], by_class["n_gold"], figures, strict=True
        )
    ]
    show()
    show(table(["label", "tasks", "checked", "accuracy", "low", "high"], rows[:SHOWN], n_text_columns=1))
    if len(rows) > SHOWN:
        show(f"and {len(rows) - SHOWN:,} more")
