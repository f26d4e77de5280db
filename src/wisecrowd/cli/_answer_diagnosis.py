"""``wisecrowd diagnose`` on comparisons, label sets, marks, masks and texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._answers import read_answers
from wisecrowd.cli._console import heading, shorten_id, show, show_hanging, show_progress, table

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._reading import Reading
    from wisecrowd.diagnose import ComparisonDiagnosis, LabelSetDiagnosis, MarkDiagnosis, MaskDiagnosis, TextDiagnosis
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
    """Diagnose comparisons, label sets, marks, masks or texts, write the tables and print a summary.

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
    from wisecrowd.data.masks import MaskCrowd
    from wisecrowd.data.texts import TextCrowd
    from wisecrowd.diagnose import (
        diagnose_comparisons,
        diagnose_label_sets,
        diagnose_marks,
        diagnose_masks,
        diagnose_texts,
    )
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
            overview = {**overview, "warnings": fitting.warn_marks(marks.model)}
            tables = {WORKERS: marks.workers, TASKS: marks.tasks}
        elif isinstance(crowd, MaskCrowd):
            masks = diagnose_masks(crowd, model=method)
            overview, model, facts = masks.overview, masks.model.name, _describe_masks(masks)
            tables = {WORKERS: masks.workers, TASKS: masks.tasks}
        elif isinstance(crowd, TextCrowd):
            texts = diagnose_texts(crowd, model=method)
            overview, model, facts = texts.overview, texts.model.name, _describe_texts(texts)
            tables = {WORKERS: texts.workers, TASKS: texts.tasks}
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
    if isinstance(crowd, MarkCrowd | MaskCrowd | TextCrowd):
        _show_worker_table(tables[WORKERS])
        _show_tasks(tables[TASKS])
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
        near = "near" if noun == "points" else "overlapping"
        agreed = f"two workers agree with an F1 score of {figures['agreement']:.2f} on {near} {noun}"
        if figures.get("agreement_exact") is not None:
            agreed += f", {figures['agreement_exact']:.2f} on equal ones"
        if figures.get("agreement_iou50") is not None:
            agreed += f", {figures['agreement_iou50']:.2f} from an intersection over union of 0.5"
        if figures.get("mean_iou") is not None:
            agreed += f"; mean intersection over union {figures['mean_iou']:.2f}"
        if figures.get("alpha_u") is not None:
            agreed += f"; Krippendorff's alpha for unitizing {figures['alpha_u']:.2f}"
    expected = "no objects were chosen"
    if figures["expected_precision"] is not None:
        expected = (
            f"{figures['objects']:,}, expected precision {figures['expected_precision']:.3f} and recall "
            f"{figures['expected_recall']:.3f} (of objects that somebody marked)"
        )
    return [
        ("Agreement", agreed),
        (
            "Marks",
            f"{figures['marks_per_vote']:.2f} {noun} per vote, {figures['empty_votes']:.0%} of the votes without any",
        ),
        ("Objects", expected),
        ("Workers", f"{figures['flagged_workers']:,} of {figures['workers']:,} flagged"),
    ]


def _describe_masks(result: MaskDiagnosis) -> list[tuple[str, str]]:
    figures = result.overview
    agreed = "undefined: no task has masks of two workers"
    if figures["agreement"] is not None:
        agreed = (
            f"masks of two workers have a Dice coefficient of {figures['agreement']:.2f} and an intersection over union of "
            f"{figures['pairwise_iou']:.2f}"
        )
    return [
        ("Agreement", agreed),
        (
            "Certainty",
            f"mean expected intersection over union {figures['mean_confidence']:.3f}, Dice coefficient "
            f"{figures['expected_dice']:.3f}",
        ),
        (
            "Workers",
            f"{figures['flagged_workers']:,} of {figures['workers']:,} flagged; sensitivity {figures['sensitivity']:.3f}, "
            f"specificity {figures['specificity']:.3f} (medians)",
        ),
    ]


def _describe_texts(result: TextDiagnosis) -> list[tuple[str, str]]:
    figures = result.overview
    agreed = "undefined: no task has texts of two workers"
    if figures["pairwise_wer"] is not None:
        agreed = (
            f"error rate of a text against that of another worker: {figures['pairwise_wer']:.2f} of words (WER), "
            f"{figures['pairwise_cer']:.2f} of characters (CER); {figures['identical_pairs']:.0%} of the pairs are equal"
        )
    return [
        ("Agreement", agreed),
        (
            "Certainty",
            f"mean probability that a text is right {figures['mean_confidence']:.3f}, expected share of right "
            f"{result.model.unit} {figures['token_confidence']:.3f}",
        ),
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


#: Columns of the table of workers on the terminal: heading, and whether a figure is a percentage.
_WORKER_COLUMNS = {
    "n_votes": ("votes", False),
    "agreement": ("agreement", False),
    "iou": ("IoU", False),
    "sensitivity": ("sensitivity", False),
    "specificity": ("specificity", False),
    "area_ratio": ("area", True),
    "detection_rate": ("detects", True),
    "false_alarms": ("false/task", False),
    "boundary_error": ("edges off", False),
    "size_ratio": ("size", True),
    "accuracy": ("accuracy", True),
    "wer": ("WER", False),
    "cer": ("CER", False),
    "replaced": ("replaced", True),
    "omitted": ("omitted", True),
    "added": ("added", True),
}


def _show_worker_table(workers: pd.DataFrame) -> None:
    """Show the figures of the first workers; those with flags come first."""
    columns = [name for name in _WORKER_COLUMNS if name in workers]
    rows = []
    for worker, row in workers.head(SHOWN).iterrows():
        cells = [shorten_id(worker, 20)]
        for name in columns:
            value = float(row[name])
            style = ",.0f" if name == "n_votes" else ".0%" if _WORKER_COLUMNS[name][1] else ".2f"
            cells.append("–" if value != value else format(value, style))
        rows.append(cells)
    heading("Workers")
    show(table(["worker", *(_WORKER_COLUMNS[name][0] for name in columns)], rows))
    if len(workers) > SHOWN:
        show(f"and {len(workers) - SHOWN:,} more; all of them are in {WORKERS} (-o FOLDER)")


def _show_tasks(tasks: pd.DataFrame) -> None:
    """Show the least certain tasks."""
    heading("Least certain tasks")
    rows: list[tuple[str, ...]] = []
    names = ["task", "expected F1", "objects", "candidates", "votes"]
    for task, row in tasks.head(SHOWN).iterrows():
        if "text" in tasks:
            names = ["task", "words right", "votes", "text"]
            text = shorten_id(" ".join(str(row["text"]).split()), 44)
            rows.append((shorten_id(task, 16), f"{row['token_confidence']:.2f}", f"{row['n_votes']:,}", text))
        elif "expected_dice" in tasks:
            names = ["task", "expected IoU", "expected Dice", "agreement", "pixels", "votes"]
            shares = (f"{row[name]:.2f}" for name in ("confidence", "expected_dice", "agreement"))
            rows.append((shorten_id(task, 24), *shares, f"{row['area']:,.0f}", f"{row['n_votes']:,.0f}"))
        else:
            counts = (f"{row[name]:,.0f}" for name in ("n_objects", "n_candidates", "n_votes"))
            rows.append((shorten_id(task, 24), f"{row['expected_f1']:.2f}", *counts))
    show(table(names, rows))
