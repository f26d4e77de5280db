"""``wisecrowd diagnose`` on comparisons, label sets and marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._answers import read_answers
from wisecrowd.cli._console import heading, shorten_id, show, show_hanging, show_progress, table

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._reading import Reading
    from wisecrowd.diagnose import ComparisonDiagnosis, LabelSetDiagnosis, MarkDiagnosis
    from wisecrowd.io.answer_tables import AnswerTable
    from wisecrowd.io.tools.answer_questions import AnswerQuestion

WORKERS, ITEMS, LABELS, TASKS = "workers.csv", "items.csv", "labels.csv", "tasks.csv"
#: Workers and labels shown; the files contain all.
SHOWN = 8


def diagnose_answers(
    answers: AnswerTable | AnswerQuestion,
    method: str | None,
    reading: Reading,
    *,
    output: Path | None,
    spreadsheet: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Diagnose comparisons, label sets or marks, write the tables and print a summary.

    Parameters
    ----------
    answers : AnswerTable
        Answers.
    method : str or None
        Method; None for the default of the answer type.
    reading : Reading
        Options for reading.
    output : Path or None
        Folder for the tables.
    spreadsheet, quiet, as_json : bool
        Options of the command.
    """
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.data.comparisons import Comparisons
    from wisecrowd.data.label_sets import LabelSetCrowd
    from wisecrowd.data.marks import MarkCrowd
    from wisecrowd.diagnose import diagnose_comparisons, diagnose_label_sets, diagnose_marks
    from wisecrowd.diagnose.assessment import sort_flagged_first

    path = Path(answers.source.name)
    if output is not None:
        check_folder(output, [WORKERS, ITEMS, LABELS, TASKS, RECORD], [path])
    crowd = read_answers(answers, reading)
    with show_progress(quiet=quiet):
        if isinstance(crowd, Comparisons):
            comparisons = diagnose_comparisons(crowd, model=method)
            overview, model, facts = comparisons.overview, comparisons.model.name, _describe_comparisons(comparisons)
            tables: dict[str, pd.DataFrame] = {ITEMS: comparisons.items}
            if crowd.has_workers:
                tables[WORKERS] = comparisons.workers
        elif isinstance(crowd, MarkCrowd):
            marks = diagnose_marks(crowd, model=method)
            overview, model, facts = marks.overview, marks.model.name, _describe_marks(marks)
            tables = {WORKERS: marks.workers, TASKS: marks.tasks}
        else:
            assert isinstance(crowd, LabelSetCrowd)
            sets = diagnose_label_sets(crowd, model=method)
            overview, model, facts = sets.overview, sets.model.name, _describe_label_sets(sets)
            tables = {WORKERS: sets.workers, LABELS: sets.labels, TASKS: _with_text_sets(sets.tasks)}
        run: dict[str, Any] = {
            "answers": answers.answer_type,
            "crowd": overview,
            "method": model,
            "votes": str(path),
            **describe_environment(crowd),
        }
        if WORKERS in tables:
            tables[WORKERS] = sort_flagged_first(tables[WORKERS])
        files = {} if output is None else {name: rounded(part) for name, part in tables.items()}
        written = fitting.write_run(output, files, run, Guard(on=spreadsheet), inputs=[path], what="tables")
    begin = [("Read", f"{path}: {answers.description}"), ("Votes", describe_crowd(crowd))]
    fitting.print_run(run, [*begin, *facts, ("Wrote", written)], as_json=as_json, quiet=quiet)
    if as_json or quiet:
        return
    if WORKERS in tables:
        _show_workers(tables[WORKERS])
    if LABELS in tables:
        _show_labels(tables[LABELS])


def _describe_comparisons(result: ComparisonDiagnosis) -> list[tuple[str, str]]:
    figures = result.overview
    alpha, n_pairs = figures["krippendorff_alpha"], figures["pairs_with_several_workers"]
    agreed = "undefined: no pair was compared twice"
    if alpha is not None:
        agreed = f"Krippendorff's alpha {alpha:.2f} on {n_pairs:,} pairs that were compared several times"
    left = figures["left_share"]
    sides = "all comparisons are ties" if left is None else f"the left item wins {left:.0%} of decided comparisons"
    facts = [("Agreement", agreed), ("Sides", f"{sides}; {figures['tie_share']:.0%} ties")]
    if figures["components"] > 1:
        facts.append(("Groups", f"{figures['components']:,} groups of items without comparisons between them"))
    if figures["workers"]:
        facts.append(("Workers", f"{figures['flagged_workers']:,} of {figures['workers']:,} flagged"))
    return facts


def _describe_label_sets(result: LabelSetDiagnosis) -> list[tuple[str, str]]:
    from wisecrowd.utils.levels import format_level

    figures = result.overview
    masi = figures["alpha_masi"]
    agreed = "undefined: no task has votes of two workers, or all sets are equal"
    if masi is not None:
        agreed = (
            f"Krippendorff's alpha by MASI {masi:.2f} ({format_level()} {figures['alpha_masi_low']:.2f} to "
            f"{figures['alpha_masi_high']:.2f}), by "
            f"Jaccard {figures['alpha_jaccard']:.2f}, of whole sets {figures['alpha_whole_sets']:.2f}"
        )
    return [
        ("Agreement", agreed),
        ("Sets", f"{figures['labels_per_vote']:.2f} labels per vote, {figures['empty_sets']:.0%} empty"),
        (
            "Certainty",
            f"expected F1 {figures['expected_f1']:.3f}, mean probability that a whole set is right "
            f"{figures['mean_confidence']:.3f}",
        ),
        ("Workers", f"{figures['flagged_workers']:,} of {figures['workers']:,} flagged"),
    ]


def _describe_marks(result: MarkDiagnosis) -> list[tuple[str, str]]:
    figures, noun = result.overview, result.crowd.plural
    agreed = "undefined: no task was seen by two workers"
    if figures["agreement"] is not None:
        agreed = f"two workers agree with an F1 score of {figures['agreement']:.2f}, on average"
    return [
        ("Agreement", agreed),
        (
            "Marks",
            f"{figures['marks_per_vote']:.2f} {noun} per vote, {figures['empty_votes']:.0%} of the votes without any",
        ),
        ("Objects", f"{figures['objects']:,}, mean expected F1 of a task {figures['expected_f1']:.3f}"),
        ("Workers", f"{figures['flagged_workers']:,} of {figures['workers']:,} flagged"),
    ]


def _with_text_sets(tasks: pd.DataFrame) -> pd.DataFrame:
    from wisecrowd.io.tools.label_sets import format_label_set

    return tasks.assign(labels=[format_label_set(tuple(map(str, labels))) for labels in tasks["labels"]])


def _show_workers(workers: pd.DataFrame) -> None:
    flagged = workers[workers["flags"] != ""]
    if flagged.empty:
        return
    heading("Flagged workers")
    for name, row in flagged.head(SHOWN).iterrows():
        show_hanging(f"{shorten_id(name, 24)}  ", f"{row['flags']}: {row['why']}", style="bold")
    if len(flagged) > SHOWN:
        show(f"and {len(flagged) - SHOWN:,} more")


def _show_labels(labels: pd.DataFrame) -> None:
    heading("Labels with the lowest agreement")
    rows = [
        (
            shorten_id(name, 30),
            f"{row['alpha']:.2f}",
            f"{row['marked']:.0%}",
            f"{row['chosen']:.0%}",
            f"{row['confidence']:.2f}",
            f"{int(row['uncertain']):,}",
        )
        for name, row in labels.sort_values("alpha", kind="stable").head(SHOWN).iterrows()
    ]
    show(table(["label", "alpha", "marked", "chosen", "confidence", "uncertain"], rows))
