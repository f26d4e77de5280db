"""``wisecrowd aggregate``: from votes to labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, warn, watched
from wisecrowd.cli._options import Quiet, flag, place, with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base import Aggregator
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.crowd import Crowd

LABELS, WORKERS, TASKS, POSTERIOR, MODEL = "labels.csv", "workers.csv", "tasks.csv", "posterior.csv", "model"


@with_options(Reading)
def aggregate(
    votes: Votes,
    *,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="How to aggregate: see wisecrowd methods.")
    ] = "dawid-skene",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            show_default=False,
            help="A parameter of the method; may be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", parser=place, metavar="FOLDER", show_default=False, help="Where to write the results."
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Gold questions: tasks of known truth, used for fitting. They keep it, and teach what workers are worth.",
        ),
    ] = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Known truth to score the labels against; never used for fitting."
        ),
    ] = None,
    proba: Annotated[bool, flag("--proba", help="Also write posterior.csv: a column for each class.")] = False,
    save: Annotated[bool, flag("--save", help="Also write the fitted method, to the folder model.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Threads at most.")] = 1,
    quiet: Quiet = False,
    as_json: Annotated[bool, flag("--json", help="Print the record of the run as JSON instead.")] = False,
    reading: Reading,
) -> None:
    """Infer the true label of every task, and what each worker is worth.

    Writes labels.csv (task, label, confidence), workers.csv and run.json, the record of the run; a method that tells how
    hard tasks are also writes tasks.csv:

      wisecrowd aggregate votes.csv -o results

    Another method, with a parameter; columns by other names:

      wisecrowd aggregate votes.csv -m one-coin -p max_iter=50 -o results
      wisecrowd aggregate votes.csv --task question --label answer -o results

    Some tasks have a known truth: use them as gold questions, or keep them to see how good the labels are:

      wisecrowd aggregate votes.csv --truth gold.csv -o results
      wisecrowd aggregate votes.csv --score gold.csv -o results

    Labels that are numbers are averaged:

      wisecrowd aggregate ratings.csv --numeric -m median -o results
    """  # fmt: skip
    import json

    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._summary import lines, size, summarise
    from wisecrowd.errors import UsageError
    from wisecrowd.run import record

    if output is None and (proba or save):
        raise UsageError("--proba and --save write files; say where with -o FOLDER")
    chosen = _chosen(method, parameter or [], jobs)
    inputs = [path for path in (votes, truth, score) if path is not None]
    if output is not None:
        check_folder(output, [LABELS, WORKERS, *([POSTERIOR] if proba else []), RECORD], inputs)
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
        gold = None if truth is None else read_truth(truth, reading, crowd)
        known = None if score is None else read_truth(score, reading, crowd)
    _check_kind(chosen, crowd, proba=proba)
    _warn_of_look_alikes(crowd, votes)
    with watched(quiet=quiet):
        fitted = chosen.fit(crowd, truth=gold)
    summary = summarise(fitted, crowd)
    if gold is not None:
        summary["gold"] = {"tasks": int(_tasks_of(gold, crowd).isin(crowd.tasks).sum())}
    if known is not None:
        summary["score"] = _score(known, gold, fitted, crowd)
        if unknown := summary["score"].get("unknown_classes"):
            warn(_nobody_chose(unknown, score, fitted))
    command = {"votes": str(votes), **reading.recorded(votes), "truth": _text(truth), "score": _text(score)}
    run = record(fitted, crowd, source=str(votes), command=command, summary=summary)
    kept = "nothing; -o FOLDER keeps the results"
    if output is not None:
        tables = _tables(fitted, proba=proba)
        check_folder(output, tables, inputs)  # some are known only now
        run["files"] = _write(output, tables, fitted, run, save=save)
        kept = f"{', '.join(run['files'])} in {output}"
    if as_json:
        typer.echo(json.dumps(run, indent=2, ensure_ascii=False))
    elif not quiet:
        begin = [("Read", str(votes)), ("Votes", size(crowd)), ("Method", _how(fitted))]
        show_facts([*begin, *lines(summary), ("Wrote", kept)])


def _chosen(name: str, assignments: list[str], jobs: int) -> Aggregator:
    """The method with its parameters, not yet fitted."""
    import dataclasses

    from wisecrowd.base import Aggregator
    from wisecrowd.cli._parameters import parse_parameters
    from wisecrowd.errors import UsageError
    from wisecrowd.registry import find, kind_of

    method = find(name)
    if not issubclass(method, Aggregator):
        raise UsageError(f"{method.name} does not aggregate votes; it is a method to {kind_of(method)}")
    parameters = parse_parameters(method, assignments)
    if any(field.name == "n_jobs" for field in dataclasses.fields(method)):
        parameters.setdefault("n_jobs", jobs)
    return method(**parameters)


def _check_kind(chosen: Aggregator, crowd: Crowd, *, proba: bool) -> None:
    """Refuse what does not go together, in the words of the command line."""
    from wisecrowd.errors import InputError, UsageError

    if proba and crowd.is_numeric:
        raise UsageError("numbers have no probabilities of classes; leave --proba out")
    if chosen.numeric is True and not crowd.is_numeric:
        raise InputError(
            f"{chosen.name} averages numbers, but these labels were read as classes; add --numeric if they are numbers, "
            "or choose another method with -m"
        )


def _warn_of_look_alikes(crowd: Crowd, votes: Path) -> None:
    """The one complaint of ``wisecrowd check`` that costs nothing to find and changes answers without a word."""
    from wisecrowd.doctor.checks import same_but_for_case_or_space
    from wisecrowd.errors import some

    alike = [] if crowd.classes is None else same_but_for_case_or_space(crowd.classes)
    if alike:
        warn(
            f"{len(alike):,} labels differ only by case or space, and count as different ({some(alike)}); "
            f"see wisecrowd check {votes}"
        )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _tasks_of(truth: pd.Series, crowd: Crowd) -> pd.Index:
    """The tasks of known truth, as the crowd writes them: a number in one file may be a text in another."""
    from wisecrowd.vocabulary import same_kind

    return same_kind(truth.index, crowd.tasks)


def _score(known: pd.Series, gold: pd.Series | None, fitted: Aggregator, crowd: Crowd) -> dict[str, Any]:
    """How good the labels are on tasks that the method was not told the truth of."""
    from wisecrowd.errors import InputError

    if gold is None:
        return _figures(known, fitted)
    told = _tasks_of(known, crowd).isin(_tasks_of(gold, crowd))
    if told.all():
        raise InputError(
            "every task of --score is among those of --truth, where the method was told; score other tasks"
        )
    return _figures(known[~told], fitted) | {"gold_left_out": int(told.sum())}


def _figures(known: pd.Series, fitted: Aggregator) -> dict[str, Any]:
    """The usual figures, and how many tasks are of which classes that the crowd never had."""
    from wisecrowd._pairing import align
    from wisecrowd.metrics import summary

    figures: dict[str, Any] = summary(known, fitted)
    if hasattr(fitted, "posterior_"):
        both = align(known, fitted)
        true = both.classes[both.truth]
        counts = true[~true.isin(fitted.classes_)].value_counts(sort=False)
        if len(counts):
            figures["unknown_classes"] = {str(name): int(n) for name, n in counts.items()}
    return figures


def _nobody_chose(unknown: dict[str, int], score: Path | None, fitted: Aggregator) -> str:
    from wisecrowd.doctor.findings import counted
    from wisecrowd.errors import did_you_mean, some

    tasks = sum(unknown.values())
    return (
        f"{score}: no label of the crowd is {some(unknown)}, so {counted(tasks, 'task')} of known truth "
        f"{'counts' if tasks == 1 else 'count'} as wrong.{did_you_mean(next(iter(unknown)), map(str, fitted.classes_))}"
    )


def _write(
    output: Path, tables: dict[str, pd.DataFrame], fitted: Aggregator, run: dict[str, Any], *, save: bool
) -> list[str]:
    """Write everything there is to keep, and give the names of the files."""
    from wisecrowd._files import write_json
    from wisecrowd.cli._outputs import RECORD, table_of, write_all

    names = [*tables, *([MODEL] if save else []), RECORD]
    stale = [name for name in (WORKERS, TASKS, POSTERIOR, MODEL) if name not in names and (output / name).exists()]
    if stale:
        warn(f"{', '.join(stale)} in {output}: left there by an earlier run, not part of this one")
    if save:
        fitted.save(output / MODEL)
    # The record comes first to get its name last: where it is, the rest is.
    files: dict[Path, Writer] = {output / RECORD: lambda path: write_json(path, run | {"files": names})}
    write_all(files | {output / name: table_of(table) for name, table in tables.items()})
    return names


def _tables(fitted: Aggregator, *, proba: bool) -> dict[str, pd.DataFrame]:
    from wisecrowd.cli._outputs import labels_table

    tables = {LABELS: labels_table(fitted)}
    if fitted.worker_index_ is not None:
        tables[WORKERS] = _counted_whole(fitted.workers_)
    if hasattr(fitted, "posterior_") and hasattr(fitted, "tasks_"):  # of numbers, the labels tell all
        tables[TASKS] = _counted_whole(fitted.tasks_)
    if proba:
        posterior = fitted.proba_.round(6)
        posterior.columns = posterior.columns.astype(str)
        # A class may be called task, too.
        tables[POSTERIOR] = posterior.reset_index(names="task_id" if "task" in posterior else "task")
    return tables


def _counted_whole(table: pd.DataFrame) -> pd.DataFrame:
    """A table for a file; its numbers of labels have no decimals unless votes were weighted."""
    rounded = table.round(6).reset_index()
    whole = (rounded["n_labels"] == rounded["n_labels"].round()).all()
    return rounded.astype({"n_labels": "int64"}) if whole else rounded


def _how(fitted: Aggregator) -> str:
    from wisecrowd.doctor.findings import counted

    passes = getattr(fitted, "n_iter_", None)
    if passes is None:
        return f"{fitted.name}, {fitted.fit_seconds_:.2f} s"
    ended = "converged after" if getattr(fitted, "converged_", True) else "stopped before it converged, after"
    return f"{fitted.name}, {ended} {counted(passes, 'iteration')}, {fitted.fit_seconds_:.2f} s"
