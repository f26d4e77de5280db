"""``wisecrowd learn``: from votes and features to a classifier."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import watched
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.learner import Learner
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features


@with_options(Reading)
def learn(
    votes: Votes,
    *,
    features: feature_files.FeaturesFile = None,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="How to learn: see wisecrowd methods.")
    ] = "concord",
    parameter: fitting.Parameter = None,
    predict: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Features of further tasks, whose labels are predicted."),
    ] = None,
    output: fitting.Output = None,
    truth: fitting.Gold = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Known truth to score labels and predictions against; never used for fitting.",
        ),
    ] = None,
    proba: Annotated[bool, flag("--proba", help="Also write posterior.csv: a column for each class.")] = False,
    spreadsheet: fitting.Spreadsheet = False,
    jobs: fitting.Jobs = 1,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: Reading,
) -> None:
    """Train a classifier on the votes, infer the true label of every task, and predict new ones.

    Every task needs a row of features, matched by its id. Writes labels.csv (task, label, confidence), workers.csv, run.json,
    and the trained classifier to the folder model; with --predict, also predictions.csv:

      wisecrowd learn votes.csv --features X.npz -o results
      wisecrowd learn votes.csv --features X.csv --predict new.csv -o results

    Features are a table with a column task and numbers in all others, or arrays: np.savez("X.npz", task=ids, X=X).

    Another method, with a parameter; gold questions; known truth to see how good it is:

      wisecrowd learn votes.csv --features X.npz -m raykar -p l2=3 -o results
      wisecrowd learn votes.csv -x X.npz --truth gold.csv --score known.csv

    The model goes on answering in Python: wisecrowd.load("results/model").predict(X)
    """  # fmt: skip
    from wisecrowd.base.provenance import record
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import lines, size
    from wisecrowd.utils.progress import speaks

    fitting.needs_folder(output, proba=proba, spreadsheet=spreadsheet)
    unfitted: Learner = fitting.chosen("learn", method, parameter or [], jobs)
    source = feature_files.where(features, votes, "a classifier")
    inputs = [path for path in (votes, source, predict, truth, score) if path is not None]
    names = [fitting.LABELS, fitting.WORKERS, fitting.PREDICTIONS, *([fitting.POSTERIOR] if proba else []), RECORD]
    if output is not None and speaks():
        check_folder(output, names, inputs)
    with _heard_once(), reading.hushed(quiet=quiet or not speaks()):
        crowd = reading.read(votes)
        gold = None if truth is None else read_truth(truth, reading, crowd)
        known = None if score is None else read_truth(score, reading, crowd)
        given = feature_files.read(source, reading)
        new = None if predict is None else feature_files.read(predict, reading)
    if speaks():
        fitting.warn_of_look_alikes(crowd, votes)
    with _heard_once(), watched(quiet=quiet):
        X, crowd = given.beside(crowd)
        fitted = unfitted.fit(X, crowd, truth=gold)
    if not speaks():  # of several processes that torchrun started, the first tells and writes
        return
    predicted = None if new is None else _predicted(fitted, new, predict)
    summary = fitting.summary_of(fitted, crowd, gold, _labelled(known, crowd, predicted), score)
    summary["features"] = {"shape": list(given.rows.shape[1:]), "tasks": len(given.tasks)}
    if predicted is not None:
        summary["predicted"] = _figures(predicted, known)
    command = {
        "votes": str(votes),
        **reading.recorded(votes),
        "features": str(source),
        "predict": fitting.text(predict),
        "truth": fitting.text(truth),
        "score": fitting.text(score),
    }
    run = record(fitted, crowd, source=str(votes), command=command, summary=summary)
    tables = {} if output is None else fitting.tables_of(fitted, proba=proba)
    if predicted is not None:
        tables[fitting.PREDICTIONS] = _table(predicted)
    kept = fitting.keep(output, tables, run, Guard(on=spreadsheet), model=fitted, inputs=inputs)
    begin = [("Read", f"{votes} and {source}"), ("Votes", size(crowd)), ("Features", feature_files.size(given, crowd))]
    told = [*begin, ("Method", fitting.how(fitted)), *lines(summary), *_predictions(summary), ("Wrote", kept)]
    fitting.tell(run, told, as_json=as_json, quiet=quiet)


def _heard_once() -> AbstractContextManager[None]:
    """A block whose warnings, of several processes that torchrun started, the first gives."""
    from wisecrowd.errors import unwarned
    from wisecrowd.utils.progress import speaks

    return nullcontext() if speaks() else unwarned()


def _predicted(fitted: Learner, new: Features, path: Path | None) -> pd.DataFrame:
    """The posterior of tasks of which only features are known."""
    import pandas as pd

    from wisecrowd.errors import InputError

    try:
        posterior = fitted.predict_proba(new.rows if new.rows.ndim != 2 else new.table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return pd.DataFrame(posterior, index=new.tasks, columns=fitted.classes_)


def _labelled(known: pd.Series | None, crowd: Crowd, predicted: pd.DataFrame | None) -> pd.Series | None:
    """What is known of the tasks with votes; None if it is all of tasks that are only predicted."""
    if known is None or predicted is None:
        return known
    here = fitting.tasks_of(known, crowd.tasks).isin(crowd.tasks)
    there = fitting.tasks_of(known, predicted.index).isin(predicted.index)
    return known[here] if here.any() else None if there.any() else known


def _figures(predicted: pd.DataFrame, known: pd.Series | None) -> dict[str, Any]:
    """How many tasks were predicted, how surely, and how well where the truth is known."""
    from wisecrowd.evaluate.metrics import summary

    figures: dict[str, Any] = {
        "tasks": len(predicted),
        "mean_confidence": round(float(predicted.max(axis=1).mean()), 6),
    }
    if known is not None:
        there = fitting.tasks_of(known, predicted.index).isin(predicted.index)
        if there.any():
            figures["score"] = summary(known[there], predicted)
    return figures


def _table(predicted: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    from wisecrowd.cli._outputs import rounded

    best = predicted.columns[predicted.to_numpy().argmax(axis=1)]
    return rounded(pd.DataFrame({"task": predicted.index, "label": best, "confidence": predicted.max(axis=1).array}))


def _predictions(summary: dict[str, Any]) -> list[tuple[str, str]]:
    from wisecrowd.cli._summary import scored
    from wisecrowd.utils.text import count_noun

    if "predicted" not in summary:
        return []
    found = summary["predicted"]
    told = [("Predicted", f"{count_noun(found['tasks'], 'task')}, mean confidence {found['mean_confidence']:.3f}")]
    if "score" in found:
        told.append(("", scored(found["score"])))
    return told
