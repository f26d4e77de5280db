"""``wisecrowd predict``: label new tasks with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _contents as contents
from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._options import Quiet, flag, parse_output_path

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.learner import Learner
    from wisecrowd.io.features import Features, MixedFeatures


def predict(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Folder that wisecrowd learn -o or save() wrote.", show_default=False),
    ],
    features: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FEATURES]",
            show_default=False,
            help="Features of the new tasks, as in training: npz (arrays task and X), CSV, TSV or Parquet.",
        ),
    ] = None,
    *,
    texts: contents.TextsFile = None,
    text_column: contents.TextColumn = None,
    images: contents.ImagesFolder = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=parse_output_path,
            metavar="FILE",
            show_default=False,
            help="Where to write the predictions: .csv, .tsv or .parquet.",
        ),
    ] = None,
    proba: Annotated[bool, flag("--proba", help="Also write the probability of every class.")] = False,
    score: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Known truth to score the predictions against."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Column of the task ids.")
    ] = None,
    gold_task: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="Column of the task ids in --score.")
    ] = None,
    gold_label: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="Column of the true labels in --score.")
    ] = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, flag("--json", help="Print the summary as JSON instead.")] = False,
) -> None:
    """Label new tasks with a model that wisecrowd learn trained.

    Writes task, label and confidence, the calibrated probability that the label
    is right:

      wisecrowd learn votes.csv --features X.npz -o results
      wisecrowd predict results/model new.npz -o predictions.csv

    A model that was trained on texts or images takes these:

      wisecrowd learn votes.csv --texts tasks.csv -o results
      wisecrowd predict results/model --texts new.csv -o predictions.csv

    With the probability of every class, and scored against known truth:

      wisecrowd predict results/model new.csv --proba -o new.parquet
      wisecrowd predict results/model new.csv --score truth.csv
    """  # fmt: skip
    from wisecrowd.cli._console import show_facts, show_json
    from wisecrowd.cli._outputs import check_writable, table_of, write_all
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.errors import InputError, UsageError
    from wisecrowd.utils.text import count_noun

    contents.check_sources(features, texts, images, None, text_column)
    if output is not None:
        check_output_file(output, [path for path in (features, texts, images, score) if path is not None])
        check_writable(output)
    elif proba or spreadsheet:
        raise UsageError("--proba and --spreadsheet are about the output file; name it with -o FILE")
    if (gold_task or gold_label) and score is None:
        raise UsageError("--gold-task and --gold-label name columns of the known truth; give it with --score FILE")
    _refuse_swapped(model, features)
    learner = load_learner(model)
    source = features or texts or images
    new = _read_new_tasks(learner, features, texts, images, task=task, column=text_column)
    X = new.table if len(new.shape) == 1 else new.rows  # type: ignore[union-attr]
    try:
        posterior = learner.predict_proba(X)
        training = feature_files.find_training_tasks(learner, X, new.tasks)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    if features is not None:
        feature_files.warn_missing_codes(new, source)
    table = make_predictions(posterior, new.tasks, learner.classes_, proba=proba)
    summary: dict[str, Any] = {
        "model": str(model), "method": learner.name, "source": str(source), "tasks": len(table),
        "labels": {str(name): int(n) for name, n in table["label"].value_counts(sort=False).items()},
        "mean_confidence": round(float(posterior.max(axis=1).mean()), 6) if len(posterior) else None,
        "is_calibrated": is_calibrated(learner), "training_tasks": int(training.sum()),
    }  # fmt: skip
    if score is not None:
        summary["score"] = _score(score, posterior, new.tasks, learner.classes_, task=gold_task, label=gold_label)
    if output is not None:
        guard = Guard(on=spreadsheet)
        write_all({output: table_of(table, lambda rows: guard.table(rows, name=output.name))})
        guard.warn()
        summary["output"] = str(output)
    if not quiet:
        feature_files.note_unnamed_features(learner, new, source)
        places = [folder / fitting.LABELS for folder in (model, model.resolve().parent)]
        labels = next((str(place) for place in places if place.is_file()), f"{fitting.LABELS} of the run of training")
        feature_files.note_training_tasks(new.tasks[training], len(new.tasks), labels)
    if as_json:
        show_json(summary)
    elif not quiet:
        confidence = "" if not len(table) else f", mean confidence {summary['mean_confidence']:.3f}"
        facts = [
            ("Model", f"{learner.name} in {model}, {len(learner.classes_):,} classes"),
            ("Read", str(source)),
            ("Predicted", f"{count_noun(len(table), 'task')}{confidence}"),
        ]
        if not summary["is_calibrated"]:
            facts.append(("", "not calibrated: train with -p calibration=0.2"))
        facts.extend(_describe_score(summary))
        facts.append(("Wrote", "nothing; write the predictions with -o FILE" if output is None else str(output)))
        show_facts(facts)


def _refuse_swapped(model: Path, features: Path | None) -> None:
    """Raise an error if the model is given after the features."""
    from wisecrowd.base.persistence import STATE
    from wisecrowd.errors import UsageError

    if features is None or model.is_dir():
        return
    if any((features / inner / STATE).is_file() for inner in ("", fitting.MODEL)):
        raise UsageError(
            f"{model} is no folder of a model, but {features} is one; give the model first: wisecrowd predict {features} {model}"
        )


def load_learner(folder: Path) -> Learner:
    """Return the learner in a folder of a model, or of results with a model.

    Parameters
    ----------
    folder : Path
        Folder that ``wisecrowd learn -o`` or ``save`` wrote, or the folder ``model`` in it.

    Returns
    -------
    Learner
    """
    from wisecrowd.base.learner import Learner
    from wisecrowd.base.persistence import STATE, load
    from wisecrowd.errors import UsageError

    inner = folder / fitting.MODEL
    method = load(inner if (inner / STATE).is_file() and not (folder / STATE).is_file() else folder)
    if not isinstance(method, Learner):
        raise UsageError(
            f"{folder} holds {method.name}, which does not predict new tasks; train a classifier with wisecrowd learn"
        )
    return method


def is_calibrated(learner: Learner) -> bool:
    """Return whether the probabilities of a learner were calibrated on held-out votes.

    Parameters
    ----------
    learner : Learner
        Fitted learner.

    Returns
    -------
    bool
    """
    return learner.calibration > 0 or bool(getattr(learner, "calibrate", False))


def make_predictions(posterior: Any, tasks: pd.Index, classes: pd.Index, *, proba: bool) -> pd.DataFrame:
    """Return task, label and confidence, and the probabilities of the classes if asked for.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Class probabilities.
    tasks, classes : Index
        Task ids and classes.
    proba : bool
        Whether to add a column for every class.

    Returns
    -------
    DataFrame
    """
    import pandas as pd

    from wisecrowd.cli._outputs import rounded

    columns: dict[str, Any] = {
        "task": tasks,
        "label": classes[posterior.argmax(axis=1)] if len(posterior) else classes[:0],
        "confidence": posterior.max(axis=1, initial=0),
    }
    if proba:
        columns |= {f"P({name})": posterior[:, code] for code, name in enumerate(classes)}
    return rounded(pd.DataFrame(columns))


def check_output_file(output: Path, inputs: list[Path]) -> None:
    """Raise an error if the output is an input, or has no known format.

    Parameters
    ----------
    output : Path
        File to write.
    inputs : list of Path
        Files that the command reads.
    """
    import os

    from wisecrowd.errors import UsageError

    if output.suffix not in (".csv", ".tsv", ".parquet"):
        raise UsageError(f"{output} has no known suffix; -o takes a file .csv, .tsv or .parquet")
    if output.is_dir():
        raise UsageError(f"{output} is a folder; -o takes a file")
    if os.path.realpath(output) in set(map(os.path.realpath, inputs)):
        raise UsageError(f"{output} is an input file and would be overwritten; choose another file with -o")


def _read_new_tasks(
    learner: Learner,
    features: Path | None,
    texts: Path | None,
    images: Path | None,
    *,
    task: str | None,
    column: str | None,
) -> Features | MixedFeatures:
    """Return the features of the new tasks, encoded as in training."""
    from wisecrowd.cli._features import read_mixed_features_file
    from wisecrowd.errors import UsageError

    encoder: Any = getattr(learner, "feature_encoder_", None)
    content = {"text": "text", "image": "image"}.get(getattr(encoder, "kind", ""), getattr(encoder, "content", None))
    option = {"text": "--texts FILE", "image": "--images FOLDER"}.get(str(content), "a file of features")
    if features is None and texts is None and images is None:
        raise UsageError(f"name the new tasks: this model was trained with {option}")
    if features is not None:
        return read_mixed_features_file(features, task)
    if content != ("text" if texts is not None else "image"):
        wrong = "--texts" if texts is not None else "--images"
        raise UsageError(f"{wrong} does not fit: this model was trained with {option}")
    return contents.read_contents(texts, images, task=task, column=column).encode(encoder)


def _score(
    path: Path, posterior: Any, tasks: pd.Index, classes: pd.Index, *, task: str | None, label: str | None
) -> dict[str, Any]:
    """Return accuracy and related figures against the truth in a file."""
    import pandas as pd

    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.errors import InputError
    from wisecrowd.evaluate.metrics import summary
    from wisecrowd.io import VoteSource
    from wisecrowd.io.tables.matched_columns import VoteNames

    source = VoteSource.detect(resolve_path(path))
    truth = source.read_truth(task=task, truth=label, vote_names=VoteNames(tasks, classes))
    is_predicted = fitting.match_task_ids(truth, tasks).isin(tasks)
    if not is_predicted.any():
        raise InputError(f"{path}: none of the {len(truth):,} tasks with truth is predicted; use the same ids in both")
    return dict(summary(truth[is_predicted], pd.DataFrame(posterior, index=tasks, columns=classes)))


def _describe_score(summary: dict[str, Any]) -> list[tuple[str, str]]:
    from wisecrowd.cli._summary import describe_score

    return [("Score", describe_score(summary["score"]))] if "score" in summary else []
