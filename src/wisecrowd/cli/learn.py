"""``wisecrowd learn``: train a classifier on votes and features."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._answers import refuse_objects_and_texts
from wisecrowd.cli._console import show_progress
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.learner import Learner
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features


#: Share of tasks whose votes calibrate the confidence of predictions.
PREDICTION_CALIBRATION = 0.2


@with_options(GoldReading, "reading")
def learn(
    votes: Votes,
    *,
    features: feature_files.FeaturesFile = None,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="Method: see wisecrowd methods.")
    ] = "concord",
    parameter: fitting.Parameter = None,
    predict: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Features of new tasks, whose labels are predicted."),
    ] = None,
    output: fitting.Output = None,
    gold: fitting.Gold = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Known truth to score labels and predictions against; not used in fitting.",
        ),
    ] = None,
    proba: Annotated[bool, flag("--proba", help="Also write posterior.csv with one column per class.")] = False,
    spreadsheet: fitting.Spreadsheet = False,
    jobs: fitting.Jobs = 1,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Train a classifier on votes and features, infer the label of every task, and predict labels of new tasks.

    Every task needs a row of features with its id. Writes labels.csv (task,
    label, confidence), workers.csv, run.json and the trained classifier (folder
    model); with --predict, also predictions.csv:

      wisecrowd learn votes.csv --features X.npz -o results
      wisecrowd learn votes.csv --features X.csv --predict new.csv -o results

    Features are a table with a column task and numbers in all other columns, or
    arrays: np.savez("X.npz", task=ids, X=X).

    Choose a method and its parameters; use gold tasks; score against known
    truth:

      wisecrowd learn votes.csv --features X.npz -m raykar -p l2=3 -o results
      wisecrowd learn votes.csv -x X.npz --gold gold.csv --score known.csv

    With --predict, the learner is fitted a second time without the votes on a
    fifth of the tasks, which calibrate the confidence of the predictions
    (-p calibration=0 leaves it out).

    Use the model in Python: wisecrowd.load("results/model").predict(X)
    """  # fmt: skip
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd, summary_lines
    from wisecrowd.utils.progress import is_main_process

    reading.check_gold_columns(gold, score)
    fitting.check_output_options(output, proba=proba, spreadsheet=spreadsheet)
    unfitted: Learner = fitting.make_method("learn", method, parameter or [], jobs)
    if predict is not None and not any(text.partition("=")[0].strip() == "calibration" for text in parameter or []):
        unfitted.set_params(calibration=PREDICTION_CALIBRATION)
    source = feature_files.require_features(features, votes, "a classifier")
    inputs = [path for path in (votes, source, predict, gold, score) if path is not None]
    names = [fitting.LABELS, fitting.WORKERS, fitting.PREDICTIONS, *([fitting.POSTERIOR] if proba else []), RECORD]
    if output is not None and is_main_process():
        check_folder(output, names, inputs)
    refuse_objects_and_texts(votes, reading, "learn")
    with _heard_once(), reading.silence_notes(quiet=quiet or not is_main_process()):
        vote_source = reading.open(votes)
        crowd = reading.read(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd)
        score_truth = None if score is None else read_truth(score, reading, crowd, other_tasks=predict is not None)
        feature_table = feature_files.read_features_file(source, reading, crowd)
        new = None if predict is None else feature_files.read_features_file(predict, reading, crowd)
    if is_main_process():
        fitting.warn_similar_labels(crowd, votes)
    with _heard_once(), show_progress(quiet=quiet):
        X, crowd = feature_table.align(crowd)
        fitted = unfitted.fit(X, crowd, truth=gold_truth)
    if not is_main_process():  # with torchrun, only the first process prints and writes
        return
    predicted = None if new is None else _predicted(fitted, new, predict)
    assessment = fitting.assess_fit(fitted, crowd, gold_truth)
    estimate = None if assessment is None else assessment.labels
    fitting.warn_assessment(assessment)
    summary = fitting.summarise_fit(
        fitted, crowd, gold_truth, _labelled(score_truth, crowd, predicted), score, estimate
    )
    summary |= fitting.summarise_assessment(assessment)
    summary["features"] = {"shape": list(feature_table.rows.shape[1:]), "tasks": len(feature_table.tasks)}
    if predicted is not None:
        summary["predicted"] = _figures(predicted, score_truth)
    command = {
        "votes": str(votes),
        **reading.to_record(vote_source),
        "features": str(source),
        "predict": fitting.path_text(predict),
        "gold": fitting.path_text(gold),
        "score": fitting.path_text(score),
    }
    run = record_run(fitted, crowd, source=str(votes), command=command, summary=summary)
    tables = {} if output is None else fitting.make_tables(fitted, estimate, proba=proba, assessment=assessment)
    if predicted is not None:
        tables[fitting.PREDICTIONS] = _table(predicted)
    written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), model=fitted, inputs=inputs)
    begin = [
        ("Read", f"{votes} and {source}"),
        ("Votes", describe_crowd(crowd)),
        ("Features", feature_files.describe_features(feature_table, crowd)),
    ]
    facts = [
        *begin,
        ("Method", fitting.describe_fit(fitted)),
        *summary_lines(summary),
        *_predictions(summary),
        ("Wrote", written),
    ]
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)


def _heard_once() -> AbstractContextManager[None]:
    """Return a context that silences warnings in all but the first of several torchrun processes."""
    from wisecrowd.errors import ignore_fit_warnings
    from wisecrowd.utils.progress import is_main_process

    return nullcontext() if is_main_process() else ignore_fit_warnings()


def _predicted(fitted: Learner, new: Features, path: Path | None) -> pd.DataFrame:
    """Return the class probabilities of new tasks."""
    import pandas as pd

    from wisecrowd.errors import InputError

    try:
        posterior = fitted.predict_proba(new.rows if new.rows.ndim != 2 else new.table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return pd.DataFrame(posterior, index=new.tasks, columns=fitted.classes_)


def _labelled(score_truth: pd.Series | None, crowd: Crowd, predicted: pd.DataFrame | None) -> pd.Series | None:
    """Return the truth of tasks with votes, or None if all of it belongs to predicted tasks."""
    if score_truth is None or predicted is None:
        return score_truth
    here = fitting.match_task_ids(score_truth, crowd.tasks).isin(crowd.tasks)
    there = fitting.match_task_ids(score_truth, predicted.index).isin(predicted.index)
    return score_truth[here] if here.any() else None if there.any() else score_truth


def _figures(predicted: pd.DataFrame, score_truth: pd.Series | None) -> dict[str, Any]:
    """Return number, mean confidence and score of the predictions."""
    from wisecrowd.evaluate.metrics import summary

    figures: dict[str, Any] = {
        "tasks": len(predicted),
        "mean_confidence": round(float(predicted.max(axis=1).mean()), 6),
    }
    if score_truth is not None:
        there = fitting.match_task_ids(score_truth, predicted.index).isin(predicted.index)
        if there.any():
            figures["score"] = summary(score_truth[there], predicted)
    return figures


def _table(predicted: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    from wisecrowd.cli._outputs import rounded

    best = predicted.columns[predicted.to_numpy().argmax(axis=1)]
    return rounded(pd.DataFrame({"task": predicted.index, "label": best, "confidence": predicted.max(axis=1).array}))


def _predictions(summary: dict[str, Any]) -> list[tuple[str, str]]:
    from wisecrowd.cli._summary import describe_score
    from wisecrowd.utils.text import count_noun

    if "predicted" not in summary:
        return []
    prediction = summary["predicted"]
    facts = [
        ("Predicted", f"{count_noun(prediction['tasks'], 'task')}, mean confidence {prediction['mean_confidence']:.3f}")
    ]
    if "score" in prediction:
        facts.append(("", describe_score(prediction["score"])))
    return facts
