"""``wisecrowd learn``: train a classifier on votes and features."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _contents as contents
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
    from wisecrowd.encoders.feature_encoder import FeatureEncoder
    from wisecrowd.io.features import Features, MixedFeatures


#: Share of tasks whose votes calibrate the confidence of predictions.
PREDICTION_CALIBRATION = 0.2


@with_options(GoldReading, "reading")
def learn(
    votes: Votes,
    *,
    features: feature_files.FeaturesFile = None,
    features_missing: feature_files.FeaturesMissing = "error",
    texts: contents.TextsFile = None,
    text_column: contents.TextColumn = None,
    images: contents.ImagesFolder = None,
    encoder: contents.EncoderName = None,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="Method: see wisecrowd methods.")
    ] = "concord",
    parameter: fitting.Parameter = None,
    predict: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Features (or texts, or images) of new tasks, whose labels are predicted.",
        ),
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

    Every task needs a row of features with its id; --features-missing drop
    leaves out the votes on other tasks. Writes labels.csv (task, label,
    confidence), workers.csv, run.json and the trained classifier (folder
    model); with --predict, also predictions.csv:

      wisecrowd learn votes.csv --features X.npz -o results
      wisecrowd learn votes.csv --features X.csv --predict new.csv -o results

    Features are a table with a column task, or arrays:
    np.savez("X.npz", task=ids, X=X). Strings, dates and missing values of a
    table are encoded. Without features, give the texts or images of the tasks:

      wisecrowd learn votes.csv --texts tasks.csv -o results
      wisecrowd learn votes.csv --images photos/ -o results

    Their default features (TF-IDF; colours and edges) are usually weaker than
    embeddings of a network: --encoder NAME uses one on this machine.

    Choose a method and its parameters; use gold tasks; score against known
    truth:

      wisecrowd learn votes.csv --features X.npz -m raykar -p l2=3 -o results
      wisecrowd learn votes.csv -x X.npz --gold gold.csv --score known.csv

    With --predict or -o, the learner is fitted a second time without the votes
    on a fifth of the tasks, which calibrate the confidence of predictions
    (-p calibration=0 leaves it out).

    Use the model later: wisecrowd predict results/model new.npz, or in Python
    wisecrowd.load("results/model").predict(X)
    """  # fmt: skip
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd, summary_lines
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.utils.progress import is_main_process

    reading.check_gold_columns(gold, score)
    fitting.check_output_options(output, proba=proba, spreadsheet=spreadsheet)
    unfitted: Learner = fitting.make_method("learn", method, parameter or [], jobs)
    if (predict or output) is not None and not any(
        text.partition("=")[0].strip() == "calibration" for text in parameter or []
    ):
        unfitted.set_params(calibration=PREDICTION_CALIBRATION)
    contents.check_sources(features, texts, images, encoder, text_column)
    feature_files.check_missing_rule(features_missing)
    source = texts or images or feature_files.require_features(features, votes, "a classifier")
    feature_files.refuse_votes_as_features(features, votes)
    inputs = [path for path in (votes, source, predict, gold, score) if path is not None]
    names = [fitting.LABELS, fitting.WORKERS, fitting.PREDICTIONS, *([fitting.POSTERIOR] if proba else []), RECORD]
    if output is not None and is_main_process():
        check_folder(output, names, inputs)
    refuse_objects_and_texts(votes, reading, "learn")
    with _heard_once(), reading.silence_notes(quiet=quiet or not is_main_process()):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, beside=score, votes=vote_source)
        score_truth = (
            None
            if score is None
            else read_truth(
                score, reading, crowd, use="score", beside=gold, other_tasks=predict is not None, votes=vote_source
            )
        )
        feature_table, new, fitted_encoder, crowd = _read_features(
            source,
            predict,
            reading,
            crowd,
            texts=texts,
            images=images,
            column=text_column,
            encoder=encoder,
            missing=features_missing,
        )
    with _heard_once(), show_progress(quiet=quiet):
        X, crowd = feature_table.align(crowd)
        fitted = unfitted.fit(X, crowd, truth=gold_truth)
        if fitted_encoder is not None:
            fitted.attach_encoder(fitted_encoder)
    if not is_main_process():  # with torchrun, only the first process prints and writes
        return
    predicted = None if new is None else _predicted(fitted, new, predict)
    assessment = fitting.assess_fit(fitted, crowd, gold_truth)
    estimate = None if assessment is None else assessment.labels
    fitting.warn_assessment(assessment)
    feature_files.warn_problems(fitted, X, crowd)
    if new is not None:
        rows = new.table if len(new.shape) == 1 else new.rows  # type: ignore[union-attr]
        training = feature_files.find_training_tasks(fitted, rows, new.tasks)
        if fitted_encoder is None:
            feature_files.warn_missing_codes(new, predict)
        if not quiet:
            feature_files.note_unnamed_features(fitted, new, predict)
            labels = fitting.LABELS if output is None else str(output / fitting.LABELS)
            feature_files.note_training_tasks(new.tasks[training], len(new.tasks), labels)
    summary = fitting.summarise_fit(fitted, crowd, gold_truth, _labelled(score_truth, crowd, predicted), assessment)
    summary |= fitting.summarise_assessment(assessment)
    summary["features"] = {"shape": list(feature_table.shape), "tasks": len(feature_table.tasks)}
    if predicted is not None:
        summary["predicted"] = _figures(predicted, score_truth)
    command = {
        "votes": str(votes),
        **reading.to_record(vote_source),
        "features": str(source),
        "features_missing": features_missing,
        "encoder": None if fitted_encoder is None else encoder or fitted_encoder.kind,
        "predict": fitting.path_text(predict),
        "gold": fitting.path_text(gold),
        "score": fitting.path_text(score),
    }
    run = record_run(fitted, crowd, rows=row_counts.to_dict(), source=str(votes), command=command, summary=summary)
    tables = {} if output is None else fitting.make_tables(fitted, estimate, proba=proba, assessment=assessment)
    if predicted is not None:
        tables[fitting.PREDICTIONS] = _table(predicted)
    written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), model=fitted, inputs=inputs)
    begin = [
        ("Read", f"{votes} and {source}"),
        ("Votes", describe_crowd(crowd)),
        ("Features", feature_files.describe_features(feature_table, crowd)),
    ]
    gain = fitted.describe_features()
    facts = [
        *begin,
        ("Method", fitting.describe_fit(fitted)),
        *([("Gain", gain)] if gain else []),
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


def _read_features(
    source: Path,
    predict: Path | None,
    reading: GoldReading,
    crowd: Crowd,
    *,
    texts: Path | None,
    images: Path | None,
    column: str | None,
    encoder: str | None,
    missing: str,
) -> tuple[Features | MixedFeatures, Features | MixedFeatures | None, FeatureEncoder | None, Crowd]:
    """Return the features of the tasks, those of new tasks, the encoder of texts or images, and the votes to train on."""

    def restrict(known_tasks: pd.Index) -> Crowd:
        return crowd if missing == "error" else feature_files.drop_tasks_without_features(crowd, known_tasks, source)

    match = crowd if reading.normalise else None
    if texts is None and images is None:
        table = feature_files.read_mixed_features_file(source, reading.task, match, crowd)
        new = None if predict is None else feature_files.read_mixed_features_file(predict, reading.task, match)
        return table, new, None, restrict(table.tasks)

    def read(path: Path) -> contents.TaskContents:
        places = (path, None) if texts is not None else (None, path)
        return contents.read_contents(*places, task=reading.task, column=column, match=match)

    tasks = read(source)
    crowd = restrict(tasks.ids)
    fitted_encoder = tasks.fit_encoder(crowd, encoder)
    new = None if predict is None else read(predict).encode(fitted_encoder)
    return tasks.encode(fitted_encoder), new, fitted_encoder, crowd


def _predicted(fitted: Learner, new: Features | MixedFeatures, path: Path | None) -> pd.DataFrame:
    """Return the class probabilities of new tasks."""
    import pandas as pd

    from wisecrowd.errors import InputError

    try:
        posterior = fitted.predict_proba(new.table if len(new.shape) == 1 else new.rows)  # type: ignore[union-attr]
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
