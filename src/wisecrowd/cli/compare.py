"""``wisecrowd compare``: compare methods by held-out votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _answers as answers
from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as members_file
from wisecrowd.cli._console import print_note, shorten_id, show, show_progress, table
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.evaluate.model_selection import Comparison
    from wisecrowd.io.answer_tables import AnswerTable
    from wisecrowd.io.tools.answer_questions import AnswerQuestion

COMPARED, DISPUTED, AGREEMENT = "methods.csv", "disputed.csv", "agreement.csv"
#: Disputed tasks shown; the file contains all.
SHOWN = 5
#: Further columns of the table on the terminal, with their headings.
_FURTHER_COLUMNS = {"f1": "F1", "iou": "IoU", "dice": "Dice", "wer": "WER", "cer": "CER"}


@with_options(GoldReading, "reading")
def compare(
    votes: Votes,
    *,
    features: feature_files.FeaturesFile = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD",
            show_default=False,
            help="Method to compare; may be repeated. Default: a selection of fast methods.",
        ),
    ] = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Known truth, to evaluate the choice; not used for choosing.",
        ),
    ] = None,
    gold: fitting.RefusedGold = None,
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Number of cross-validation folds over the votes.")
    ] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the folds.")] = 0,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Compare methods without ground truth, by held-out votes.

    Every method predicts votes that it was not fitted with (cross-validation).
    A higher log-likelihood of these votes means a better model of tasks and
    workers. The last line recommends a method.

      wisecrowd compare votes.csv
      wisecrowd compare votes.csv --features X.npz
      wisecrowd compare votes.csv -m dawid-skene -m majority-vote -o results

    With known truth for some tasks, evaluate the recommendation:

      wisecrowd compare votes.csv --score gold.csv

    Other answers are recognised by their columns. Methods for boxes, points,
    polygons, spans, masks and texts predict what held-out workers mark or write;
    with known objects, masks or texts, the table has F1 scores, overlaps or
    error rates, too:

      wisecrowd compare arena.csv
      wisecrowd compare boxes.csv --score true_boxes.csv
      wisecrowd compare transcriptions.csv --score true_texts.csv

    With -o, writes methods.csv, disputed.csv (tasks with different results),
    agreement.csv and run.json.
    """  # fmt: skip
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_accuracy, describe_crowd
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.evaluate.confidence import estimate_confidence
    from wisecrowd.evaluate.model_selection import compare_methods

    fitting.refuse_gold(gold, "--gold is used in fitting, and compare chooses methods by held-out votes alone")
    reading.check_gold_columns(score)
    fitting.check_output_options(output, spreadsheet=spreadsheet)
    other_answers = answers.find_answers(votes, reading, method or [])
    if other_answers is not None:
        takes_truth = other_answers.answer_type in answers.OBJECTS_AND_TEXTS
        answers.check_unused(other_answers, {"--features": features, "--score": None if takes_truth else score})
        _compare_answers(
            other_answers, method, folds, seed, reading, score,
            output=output, spreadsheet=spreadsheet, quiet=quiet, as_json=as_json,
        )  # fmt: skip
        return
    inputs = [path for path in (votes, features, score) if path is not None]
    if output is not None:
        check_folder(output, [COMPARED, DISPUTED, AGREEMENT, RECORD], inputs)
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        score_truth = None if score is None else read_truth(score, reading, crowd, use="score", votes=vote_source)
        feature_table = None if features is None else feature_files.read_features_file(features, reading, crowd)
    fitting.warn_filled_votes(crowd)
    fitting.warn_single_votes(crowd)
    if not quiet and members_file.choose_method(None, vote_source, reading, crowd, None)[0] == members_file.PANEL:
        print_note(
            "Note: machines voted, so the other commands use panel, which knows them; the compared methods take all workers for "
            "independent people"
        )
    X, crowd = feature_files.match_features(feature_table, crowd)
    with show_progress(quiet=quiet):
        comparison = compare_methods(crowd, method or None, X, truth=score_truth, folds=folds, random_state=seed)
        accuracy = estimate_confidence(comparison.fitted_methods[comparison.best], crowd.select_observed()).accuracy
    run: dict[str, Any] = {
        "use": comparison.best,
        "expected_accuracy": accuracy.to_dict(),
        "tied": list(comparison.tied_methods),
        "sentence": comparison.summary,
        "methods": comparison.table.reset_index().to_dict("records"),
        "votes": str(votes), **reading.to_record(vote_source),
        "features": fitting.path_text(features), "score": fitting.path_text(score),
        "folds": folds, "random_state": seed, **describe_environment(crowd, rows=row_counts.to_dict()),
    }  # fmt: skip
    tables = {} if output is None else _tables(comparison)
    written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="tables")
    begin = [("Read", str(votes)), ("Votes", describe_crowd(crowd)), ("Wrote", written)]
    fitting.print_run(run, begin, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show(comparison)
        show(f"Accuracy of {comparison.best}: {describe_accuracy(accuracy.to_dict())}.")


def _compare_answers(
    other_answers: AnswerTable | AnswerQuestion,
    method: list[str] | None,
    folds: int,
    seed: int,
    reading: GoldReading,
    score: Path | None,
    *,
    output: Path | None,
    spreadsheet: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare methods for answers other than labels."""
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.evaluate.model_selection import compare_methods

    path = Path(other_answers.source.name)
    inputs = [path, *([] if score is None else [score])]
    if output is not None:
        check_folder(output, [COMPARED, DISPUTED, AGREEMENT, RECORD], inputs)
    crowd = answers.read_answers(other_answers, reading)
    truth = None if score is None else answers.read_true_answers(score, crowd, reading)
    documents = answers.read_documents(other_answers)
    with show_progress(quiet=quiet):
        comparison = compare_methods(crowd, method or None, documents, truth=truth, folds=folds, random_state=seed)
    run: dict[str, Any] = {
        "answers": other_answers.answer_type,
        "use": comparison.best,
        "tied": list(comparison.tied_methods),
        "sentence": comparison.summary,
        "methods": comparison.table.reset_index().to_dict("records"),
        "votes": str(path), "score": fitting.path_text(score), "folds": folds, "random_state": seed,
        **describe_environment(crowd),
    }  # fmt: skip
    tables = {} if output is None else _tables(comparison)
    if DISPUTED in tables:
        tables[DISPUTED] = _write_sets_as_text(tables[DISPUTED])
    written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="tables")
    begin = [("Read", f"{path}: {other_answers.description}"), ("Votes", describe_crowd(crowd)), ("Wrote", written)]
    fitting.print_run(run, begin, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show(comparison, "items" if other_answers.answer_type == "pairwise" else "tasks")


def _write_sets_as_text(disputed: pd.DataFrame) -> pd.DataFrame:
    from wisecrowd.io.tools.label_sets import format_label_set

    return disputed.map(
        lambda labels: format_label_set(tuple(map(str, labels))) if isinstance(labels, tuple) else labels
    )


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    from wisecrowd.cli._outputs import rounded

    index_name = comparison.disputed_tasks.index.name
    tables = {
        COMPARED: comparison.table,
        DISPUTED: comparison.disputed_tasks.rename_axis("task" if index_name is None else str(index_name)),
        AGREEMENT: comparison.agreement.rename_axis("method"),
    }
    return {name: rounded(table) for name, table in tables.items()}


def _show(comparison: Comparison, noun: str = "tasks") -> None:
    from wisecrowd.utils.levels import format_level

    further = {name: heading for name, heading in _FURTHER_COLUMNS.items() if name in comparison.table}
    # Long names and further columns leave no room for the duration.
    columns = [
        "method",
        *(["log P"] if further else ["log P(vote)"]),
        "behind",
        format_level(),
        *([] if further else ["seconds"]),
    ]
    score_truth = "accuracy" in comparison.table
    rows = []
    for name, row in comparison.table.iterrows():
        mark = "*" if name in comparison.tied_methods else ""
        cells: list[object] = [f"{name}{mark}", f"{row['log_likelihood']:.3f}", f"{row['behind']:.3f}"]
        cells += [f"{row['low']:.3f} to {row['high']:.3f}"]
        cells += [f"{row[name]:.3f}" for name in further] or [f"{row['seconds']:.2f}"]
        rows.append([*cells, f"{row['accuracy']:.3f}", f"{row['p_mcnemar']:.2f}"] if score_truth else cells)
    columns += further.values()
    show()
    show(table([*columns, "accuracy", "p"] if score_truth else columns, rows))
    show(
        "* not significantly worse than the best"
        + ("; p: McNemar test against the first method" if score_truth else "")
    )
    if len(comparison.disputed_tasks):
        show()
        few = comparison.disputed_tasks.head(SHOWN)
        show(
            f"Methods differ on {len(comparison.disputed_tasks):,} {noun}, most of all on {', '.join(map(shorten_id, few.index))}."
        )
    show()
    show(comparison.summary, style="bold")
