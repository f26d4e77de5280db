"""Options, scores and output files shared by the commands that fit a method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._console import print_note, show_facts, show_json, warn
from wisecrowd.cli._members import CALIBRATION, CONFUSION, GROUPS, JUDGES
from wisecrowd.cli._options import flag, parse_output_path

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.method import Method
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.cli._reading import GoldReading, Reading
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.diagnose.assessment import CrowdAssessment
    from wisecrowd.evaluate.confidence import LabelConfidence
    from wisecrowd.io.vote_source import VoteSource

LABELS, LABELS_PARQUET, POSTERIOR = "labels.csv", "labels.parquet", "posterior.csv"
WORKERS, TASKS, SCORES = "workers.csv", "tasks.csv", "scores.csv"
OBJECTS, CANDIDATES, TEXTS, MASKS = "objects.csv", "candidates.csv", "texts.csv", "masks.csv"
PREDICTIONS, MODEL = "predictions.csv", "model"
COMPLETED, COMPLETED_PARQUET, HELDOUT, ACCURACY = "completed.csv", "completed.parquet", "heldout.csv", "accuracy.csv"
#: Calibration curves of judges, and differences between their versions.
CURVES, DRIFT = "curves.csv", "drift.csv"
#: All files that commands write into a results folder; the stale ones of an earlier run are named in a warning.
KNOWN = (
    CURVES,
    DRIFT,
    SCORES,
    OBJECTS,
    CANDIDATES,
    TEXTS,
    MASKS,
    LABELS,
    LABELS_PARQUET,
    WORKERS,
    TASKS,
    POSTERIOR,
    PREDICTIONS,
    COMPLETED,
    COMPLETED_PARQUET,
    HELDOUT,
    ACCURACY,
    JUDGES,
    CONFUSION,
    GROUPS,
    CALIBRATION,
    MODEL,
)

#: Largest number of votes, and of votes times classes, for which commands other than diagnose, plan and report rate workers; it
#: takes longer than a fit.
MAX_ASSESSED_VOTES, MAX_ASSESSED_CELLS = 200_000, 5_000_000

AggregationMethod = Annotated[
    str | None,
    typer.Option(
        "--method", "-m", metavar="METHOD", show_default=False,
        help="Method: see wisecrowd methods. Default: model-average; panel if machines voted.",
    ),
]  # fmt: skip
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        show_default=False,
        help="A parameter of the method; may be repeated.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        parser=parse_output_path,
        metavar="FOLDER",
        show_default=False,
        help="Where to write the results.",
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        "--gold",
        metavar="FILE",
        show_default=False,
        help="Gold: known truth of some tasks, used in fitting to rate the workers. Table with task and label.",
    ),
]
RefusedGold = Annotated[
    Path | None,
    typer.Option(
        "--gold", metavar="FILE", hidden=True, help="Not an option of this command, which refers to --score instead."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--method", "-m", metavar="NAME", show_default=False,
        help="Method that infers the labels and rates the workers, such as ibcc or one-coin. Default: labels by model-average, "
        "workers rated by dawid-skene; panel for both if machines voted.",
    ),
]  # fmt: skip
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Maximum number of threads.")]
Spreadsheet = Annotated[
    bool, flag("--spreadsheet", help="Prefix cells that a spreadsheet would run as formulas with an apostrophe.")
]
AsJson = Annotated[bool, flag("--json", help="Print the record of the run as JSON instead.")]


def make_method(kind: str, name: str, assignments: list[str], jobs: int, engine: str = "local") -> Any:
    """Return an unfitted method with its parameters; its kind must be that of the command.

    Parameters
    ----------
    kind : str
        Kind of the command: "aggregate", "learn" or "complete".
    name : str
        Name of the method.
    assignments : list of str
        Parameters as ``name=value``.
    jobs : int
        Number of threads.
    engine : str, default="local"
        Engine: "local", "ray" or "ray:ADDRESS".

    Returns
    -------
    Method
    """
    from wisecrowd.base.registry import find, kind_of
    from wisecrowd.cli._parameters import parse_parameters
    from wisecrowd.errors import UsageError

    method = find(name)
    if kind_of(method) != kind:
        raise UsageError(f"{method.name} belongs to another command: wisecrowd {kind_of(method)} -m {method.name}")
    parameters = parse_parameters(method, assignments)
    names = {field.name for field in parameter_fields(method)}
    if "n_jobs" in names:
        parameters.setdefault("n_jobs", jobs)
    if engine != "local":
        if "engine" not in names:
            raise UsageError(f"{method.name} runs on this machine only; leave --engine out, or choose another method")
        parameters["engine"] = engine
    return method(**parameters)


def prepare_method(
    method: str | None,
    assignments: list[str],
    source: VoteSource,
    reading: Reading,
    crowd: Crowd,
    *,
    quiet: bool = False,
) -> Any:
    """Return the unfitted aggregator for votes, with its parameters, and members if it uses them.

    Parameters
    ----------
    method : str or None
        Name of the method that the user chose.
    assignments : list of str
        Parameters as ``name=value``.
    source : VoteSource
        Source of the votes.
    reading : Reading
        Options by which the votes were read.
    crowd : Crowd
        Votes.
    quiet : bool, default=False
        Print no notes.

    Returns
    -------
    Aggregator
    """
    from wisecrowd.cli._members import choose_method, set_members

    name, member_info = choose_method(method, source, reading, crowd, None, quiet=quiet)
    unfitted = make_method("aggregate", name, assignments, 1)
    set_members(unfitted, member_info)
    return unfitted


def to_words(
    votes: Path, method: str | None, assignments: list[str], gold: Path | None, reading: GoldReading
) -> list[str]:
    """Return the words of a command line that read the same votes, and fit the same method with the same gold.

    Parameters
    ----------
    votes : Path
        Votes.
    method : str or None
        Name of the method that the user chose.
    assignments : list of str
        Parameters as ``name=value``.
    gold : Path or None
        Gold. Without it, the columns of a table of truth are left out, too.
    reading : GoldReading
        Options by which the votes were read.

    Returns
    -------
    list of str
    """
    words = [str(votes), *reading.to_words({} if gold is not None else {"gold_task": None, "gold_label": None})]
    words += [] if method is None else ["-m", method]
    words += [word for assignment in assignments for word in ("-p", assignment)]
    return words + ([] if gold is None else ["--gold", str(gold)])


def refuse_gold(gold: Path | None, reason: str) -> None:
    """Raise an error if gold is given to a command that only scores against known truth.

    Parameters
    ----------
    gold : Path or None
        Table of known truth.
    reason : str
        Sentence that says why the command takes no gold.
    """
    from wisecrowd.errors import UsageError

    if gold is not None:
        raise UsageError(f"{reason}; to evaluate against known truth: --score {gold}")


def warn_filled_votes(crowd: Crowd) -> None:
    """Warn that votes filled in by a completer are ignored."""
    if not crowd.observed.all():
        warn("votes filled in by a completer (observed is false) are ignored; only real votes are used")


def warn_single_votes(crowd: Crowd) -> None:
    """Warn that no two votes can be compared, in commands that fit methods without an assessment of the crowd."""
    if crowd.n_votes > 1 and crowd.votes_per_task.max(initial=0) <= 1:
        warn(
            "No task has two votes, so votes cannot be compared with each other, and held-out votes cannot tell methods apart. "
            "Collect a second vote on some tasks."
        )


def summarise_fit(
    fitted: Method,
    crowd: Crowd,
    gold: pd.Series | None,
    truth: pd.Series | None,
    assessment: CrowdAssessment | None,
) -> dict[str, Any]:
    """Return the figures of a fit for JSON, with scores against the truth.

    Parameters
    ----------
    fitted : Method
        Fitted method.
    crowd : Crowd
        Votes.
    gold : Series or None
        Truth that the method was fitted with.
    truth : Series or None
        Truth to score the labels against.
    assessment : CrowdAssessment or None
        Assessment of the crowd; None for numbers.

    Returns
    -------
    dict
    """
    from wisecrowd.cli._summary import summarise

    estimate = None if assessment is None else assessment.labels
    summary = summarise(fitted, crowd, estimate, rate_workers(fitted, assessment) if crowd.has_workers else None)
    if gold is not None:
        summary["gold"] = {"tasks": int(match_task_ids(gold, crowd.tasks).isin(crowd.tasks).sum())}
    if truth is not None:
        summary["score"] = _score(truth, gold, fitted, crowd, estimate)
    return summary


def assess_fit(fitted: Method, crowd: Crowd, gold: pd.Series | None, X: Any = None) -> CrowdAssessment | None:
    """Return the assessment of a fit, with the figures that all commands share.

    Parameters
    ----------
    fitted : Method
        Fitted method.
    crowd : Crowd
        Votes.
    gold : Series or None
        Truth that the method was fitted with.
    X : DataFrame or array, optional
        Features that the method was fitted with.

    Returns
    -------
    CrowdAssessment or None
        Assessment; None for numbers.
    """
    from wisecrowd.diagnose.assessment import CrowdAssessment

    return None if crowd.is_numeric else CrowdAssessment(crowd, fitted, gold, X=X)


def rates_workers(assessment: CrowdAssessment) -> bool:
    """Return whether a crowd is small enough to rate its workers beside a fit.

    Parameters
    ----------
    assessment : CrowdAssessment
        Assessment of the crowd.

    Returns
    -------
    bool
    """
    crowd = assessment.crowd
    is_small = crowd.n_votes <= MAX_ASSESSED_VOTES and crowd.n_votes * crowd.n_classes <= MAX_ASSESSED_CELLS
    return is_small and assessment.can_rate_workers


def summarise_assessment(assessment: CrowdAssessment | None) -> dict[str, Any]:
    """Return the figures that all commands share, for JSON.

    Parameters
    ----------
    assessment : CrowdAssessment or None
        Assessment of the crowd; None for numbers.

    Returns
    -------
    dict
        Figures under "figures", and a phrase about flagged workers under "flagged".
    """
    if assessment is None:
        return {}
    if not assessment.can_rate_workers:
        reason = f"not checked for {assessment.crowd.n_classes:,} classes with few votes each; merge rare classes"
        return {"figures": assessment.to_dict(with_workers=False), "flagged": reason}
    if not rates_workers(assessment):
        reason = "not checked for so many votes or classes; see wisecrowd diagnose"
        return {"figures": assessment.to_dict(with_workers=False), "flagged": reason}
    return {"figures": assessment.to_dict(), "flagged": assessment.describe_flags()}


def warn_assessment(assessment: CrowdAssessment | None) -> None:
    """Print the reasons not to trust the labels, before everything else.

    Parameters
    ----------
    assessment : CrowdAssessment or None
        Assessment of the crowd.
    """
    for warning in () if assessment is None else assessment.warnings:
        warn(warning)


def warn_marks(fitted: Method) -> list[str]:
    """Print the reasons not to trust the confidences of objects, before everything else.

    Parameters
    ----------
    fitted : Method
        Fitted method. Only those that infer objects from marks have reasons.

    Returns
    -------
    list of str
        Warnings, for JSON.
    """
    warnings = list(getattr(fitted, "warnings_", ()))
    for warning in warnings:
        warn(warning)
    return warnings


def path_text(path: Path | None) -> str | None:
    """Return a path as text for JSON, or None."""
    return None if path is None else str(path)


def match_task_ids(truth: pd.Series, tasks: pd.Index) -> pd.Index:
    """Return the task ids of a truth table in the type of other ids: a number in one file may be text in another.

    Parameters
    ----------
    truth : Series
        Known truth by task.
    tasks : Index
        Task ids of the crowd.

    Returns
    -------
    Index
    """
    from wisecrowd.data.vocabulary import match_id_type

    return match_id_type(truth.index, tasks)


def _score(
    truth: pd.Series, gold: pd.Series | None, fitted: Method, crowd: Crowd, estimate: LabelConfidence | None
) -> dict[str, Any]:
    """Score labels on tasks that were not given as gold."""
    from wisecrowd.errors import InputError

    if gold is None:
        return _figures(truth, fitted, estimate)
    facts = match_task_ids(truth, crowd.tasks).isin(match_task_ids(gold, crowd.tasks))
    if facts.all():
        raise InputError("every task of --score is also in --gold, which the method was fitted with; score other tasks")
    return _figures(truth[~facts], fitted, estimate) | {"gold_left_out": int(facts.sum())}


def _figures(truth: pd.Series, fitted: Method, estimate: LabelConfidence | None) -> dict[str, Any]:
    """Return accuracy and related figures, and counts of tasks whose true class nobody voted for."""
    from wisecrowd.evaluate.metrics import summary
    from wisecrowd.evaluate.truth_alignment import align_prediction

    figures: dict[str, Any] = summary(truth, fitted)
    figures |= accuracy_interval(figures)
    if estimate is not None:
        figures["calibration_error"] = estimate.calibration_error(truth)
        both = align_prediction(truth, fitted)
        true = both.classes[both.truth]
        if unknown := _unknown(true, fitted.classes_):
            figures["unknown_classes"] = unknown
    return figures


def accuracy_interval(figures: Mapping[str, Any]) -> dict[str, float]:
    """Return the interval of the accuracy in a score, for JSON.

    Parameters
    ----------
    figures : mapping
        Score with the accuracy and the number of tasks.

    Returns
    -------
    dict of str to float
        ``accuracy_low`` and ``accuracy_high``; empty for numbers.
    """
    from wisecrowd.evaluate.intervals import share_interval

    if "accuracy" not in figures:
        return {}
    low, high = share_interval(figures["accuracy"] * figures["n_tasks"], figures["n_tasks"])
    return {"accuracy_low": round(float(low), 6), "accuracy_high": round(float(high), 6)}


def _unknown(true: pd.Index, classes: pd.Index) -> dict[str, int]:
    """Count tasks by true class, for classes that no vote names."""
    counts = true[~true.isin(classes)].value_counts(sort=False)
    return {str(name): int(n) for name, n in counts.items()}


def check_output_options(output: Path | None, **options: bool) -> None:
    """Raise an error if options about output files are given without an output folder."""
    from wisecrowd.errors import UsageError

    named_options = [f"--{name}" for name, make_method in options.items() if make_method]
    if output is None and named_options:
        verb = "is" if len(named_options) == 1 else "are"
        raise UsageError(f"{' and '.join(named_options)} {verb} about output files; name a folder with -o FOLDER")


def write_run(
    output: Path | None,
    tables: Mapping[str, pd.DataFrame | Writer],
    run: dict[str, Any],
    guard: Guard,
    *,
    model: Method | None = None,
    inputs: Iterable[Path] = (),
    what: str = "results",
) -> str:
    """Write tables, record and model to the output folder, and return a line about the files written.

    Parameters
    ----------
    output : Path or None
        Folder; None writes nothing.
    tables : mapping
        Table, or function that writes the file, by file name.
    run : dict
        Record of the run.
    guard : Guard
        Filter of texts that a spreadsheet would run as formulas.
    model : Method, optional
        Fitted method to save.
    inputs : iterable of Path, default=()
        Files that the command reads and must not overwrite.
    what : str, default="results"
        Noun for the results in messages.

    Returns
    -------
    str
    """
    from wisecrowd.cli._outputs import RECORD, check_folder, write_results

    if output is None:
        return f"nothing; write the {what} with -o FOLDER"
    check_folder(output, tables, inputs)  # some file names are known only now
    run["files"] = [*tables, *([] if model is None else [MODEL]), RECORD]
    if guard.on:
        run["spreadsheet"] = True
    stale = [name for name in KNOWN if name not in run["files"] and (output / name).exists()]
    if stale:
        warn(f"{', '.join(stale)} in {output}: written by an earlier run, not by this one")
    _note_replaced(output / RECORD, run)
    if model is not None:
        model.save(output / MODEL)
    write_results(output, tables, run, guard)
    return f"{', '.join(run['files'])} in {output}"


def _note_replaced(record: Path, run: Mapping[str, Any]) -> None:
    """Print a note if the results in a folder, which are replaced, are those of other votes or of another question."""
    import json
    import os

    try:
        before = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if not isinstance(before, dict):
        return
    (source, question), now = _find_source(before), _find_source(run)
    if not source or not now[0] or (os.path.realpath(source), question) == (os.path.realpath(now[0]), now[1]):
        return
    votes = source if question is None else f"{source}, question {question!r}"
    print_note(f"Note: replaced the results of {votes}, which were in {record.parent}")


def _find_source(run: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the votes and the question of the record of a run."""
    command = run.get("command")
    options = command if isinstance(command, dict) else run
    source, question = options.get("votes") or run.get("source"), options.get("question")
    return source if isinstance(source, str) else None, question if isinstance(question, str) else None


def print_run(run: dict[str, Any], facts: list[tuple[str, str]], *, as_json: bool, quiet: bool) -> None:
    """Print the record as JSON, or the summary lines.

    Parameters
    ----------
    run : dict
        Record of the run.
    facts : list of tuple
        Names and values of the summary.
    as_json : bool
        Print the record as JSON.
    quiet : bool
        Print nothing but errors and warnings.
    """
    if as_json:
        show_json(run)
    elif not quiet:
        show_facts(facts)


def make_tables(
    fitted: Method, estimate: LabelConfidence | None, *, proba: bool, assessment: CrowdAssessment | None = None
) -> dict[str, pd.DataFrame]:
    """Return the tables of tasks and workers by file name.

    Parameters
    ----------
    fitted : Method
        Fitted method.
    estimate : LabelConfidence or None
        Confidence of the labels; None for numbers.
    proba : bool
        Whether to add the posterior.
    assessment : CrowdAssessment, optional
        Assessment whose flags are added to the table of workers.

    Returns
    -------
    dict
        Table by file name.
    """
    from wisecrowd.cli._outputs import labels_table, rounded

    tables = {LABELS: labels_table(fitted, estimate)}
    if fitted.worker_index_ is not None:
        tables[WORKERS] = with_integer_counts(rate_workers(fitted, assessment))
    if hasattr(fitted, "posterior_") and hasattr(fitted, "tasks_"):  # numeric methods have all of it in labels.csv
        tables[TASKS] = with_integer_counts(fitted.tasks_)
    if proba:
        tables[POSTERIOR] = rounded(fitted.proba_)
    return tables


def rate_workers(fitted: Method, assessment: CrowdAssessment | None) -> pd.DataFrame:
    """Return the table of workers with the columns flags and why, flagged workers first.

    The accuracies are those of the assessment, as in all other views: each vote is compared with the other votes on its task. A
    method compares votes with labels that the same votes helped to infer, so its own estimate is too high, most of all for few
    votes. Learners keep their estimate, because it rests on features, too.

    Parameters
    ----------
    fitted : Method
        Fitted method.
    assessment : CrowdAssessment or None
        Assessment of the crowd; without one, the table of the method is returned unchanged.

    Returns
    -------
    DataFrame
    """
    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.diagnose.assessment import sort_flagged_first

    workers = fitted.workers_
    if assessment is None or not rates_workers(assessment):
        return workers
    rated = assessment.worker_table.reindex(workers.index)
    if "accuracy" in workers and isinstance(fitted, Aggregator):
        workers = workers.assign(accuracy=rated["accuracy"].where(workers["n_votes"] > 0))
    return sort_flagged_first(workers.assign(flags=rated["flags"].fillna(""), why=rated["why"].fillna("")))


def with_integer_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a file, with integer vote counts unless votes are weighted."""
    from wisecrowd.cli._outputs import rounded

    rich_table = rounded(table)
    whole = (rich_table["n_votes"] == rich_table["n_votes"].round()).all()
    return rich_table.astype({"n_votes": "int64"}) if whole else rich_table


def describe_fit(fitted: Method) -> str:
    """Return the method, its iterations and its time as text."""
    from wisecrowd.utils.text import count_noun

    passes, seconds = getattr(fitted, "n_iter_", None), f"{getattr(fitted, 'fit_seconds_', 0):.2f} s"
    if passes is None:
        return f"{fitted.name}, {seconds}"
    if hasattr(fitted, "history_"):  # networks are trained for a number of epochs and do not converge
        return f"{fitted.name}, trained for {count_noun(passes, 'epoch')}, {seconds}"
    ended = "converged after" if getattr(fitted, "converged_", True) else "stopped before it converged, after"
    if getattr(fitted, "tol", 1) == 0:  # the user asked for a fixed number of iterations
        ended = "after"
    return f"{fitted.name}, {ended} {count_noun(passes, 'iteration')}, {seconds}"
