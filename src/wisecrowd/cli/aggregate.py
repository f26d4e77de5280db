"""``wisecrowd aggregate``: from votes to labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import facts, show
from wisecrowd.cli._options import with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base import Aggregator
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.crowd import Crowd

LABELS, WORKERS, POSTERIOR, MODEL = "labels.csv", "workers.csv", "posterior.csv", "model"


@with_options(Reading)
def aggregate(
    votes: Votes,
    *,
    method: Annotated[str, typer.Option("--method", "-m", help="How to aggregate: see wisecrowd methods.")] = "dawid-skene",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", "-p", metavar="NAME=VALUE", show_default=False,
            help="A parameter of the method; may be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", show_default=False, help="Where to write the results."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False,
            help="Gold questions: tasks of known truth, used for fitting. They keep it, and teach what workers are worth.",
        ),
    ] = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Known truth to score the labels against; never used for fitting."
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Also write posterior.csv: a column for each class.")] = False,
    save: Annotated[bool, typer.Option("--save", help="Also write the fitted method, to the folder model.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads at most.")] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and warnings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record of the run as JSON instead.")] = False,
    reading: Reading,
) -> None:
    """Infer the true label of every task, and what each worker is worth.

    Writes labels.csv (task, label, confidence), workers.csv and run.json, the record of the run:

      wisecrowd aggregate votes.csv -o results

    Another method, with a parameter; columns by other names:

      wisecrowd aggregate votes.csv -m one-coin -p max_iter=50 -o results
      wisecrowd aggregate votes.csv --task question --label answer -o results

    Some tasks have a known truth: use them as gold questions, or keep them to see how good the labels are:

      wisecrowd aggregate votes.csv --truth gold.csv -o results
      wisecrowd aggregate votes.csv --score gold.csv -o results
    """  # fmt: skip
    from wisecrowd import progress
    from wisecrowd.cli._outputs import RECORD, check_folder, write_all
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._summary import lines, summarise
    from wisecrowd.errors import UsageError
    from wisecrowd.run import record

    if output is None and (proba or save):
        raise UsageError("--proba and --save write files; say where with -o FOLDER")
    chosen = _chosen(method, parameter or [], jobs)
    if output is not None:
        inputs = [path for path in (votes, truth, score) if path is not None]
        check_folder(output, [LABELS, WORKERS, *([POSTERIOR] if proba else []), RECORD], inputs)
    crowd = reading.read(votes)
    gold = None if truth is None else read_truth(truth, reading)
    known = None if score is None else read_truth(score, reading)
    with progress.show():
        fitted = chosen.fit(crowd, truth=gold)
    summary = summarise(fitted, crowd)
    if gold is not None:
        summary["gold"] = {"tasks": len(_tasks_of(gold, crowd))}
    if known is not None:
        summary["score"] = _score(known, gold, fitted, crowd)
    run = record(fitted, crowd, source=str(votes), summary=summary)

    if output is not None:
        if save:
            fitted.save(output / MODEL)
        write_all(_files(output, fitted, run, proba=proba))
    if as_json:
        import json

        typer.echo(json.dumps(run, indent=2, ensure_ascii=False))
    elif not quiet:
        written = [name for name in (LABELS, WORKERS, POSTERIOR, RECORD, MODEL) if output and (output / name).exists()]
        kept = f"{', '.join(written)} in {output}" if written else "nothing; -o FOLDER keeps labels, workers and a record"
        show(facts([("Read", f"{votes}: {crowd!r}"), ("Method", _how(fitted)), *lines(summary), ("Wrote", kept)]))


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


def _tasks_of(truth: pd.Series, crowd: Crowd) -> pd.Index:
    from wisecrowd.vocabulary import same_kind

    tasks = same_kind(truth.dropna().index, crowd.tasks)
    return tasks[tasks.isin(crowd.tasks)]


def _score(known: pd.Series, gold: pd.Series | None, fitted: Aggregator, crowd: Crowd) -> dict[str, Any]:
    """How good the labels are on tasks that the method was not told the truth of."""
    from wisecrowd.errors import InputError
    from wisecrowd.metrics import summary

    told = known.index.isin(gold.index) if gold is not None else None
    fair = known if told is None else known[~told]
    if not len(fair):
        raise InputError("every task of --score is among those of --truth, where the method was told; score other tasks")
    figures = summary(fair, fitted)
    return figures | ({} if told is None else {"gold_left_out": int(told.sum())})


def _files(output: Path, fitted: Aggregator, run: dict[str, Any], *, proba: bool) -> dict[Path, Writer]:
    from wisecrowd._files import write_json
    from wisecrowd.cli._outputs import RECORD, labels_table, table_of

    # The record comes first to get its name last: where it is, the rest is.
    files: dict[Path, Writer] = {
        output / RECORD: lambda path: write_json(path, run),
        output / LABELS: table_of(labels_table(fitted)),
    }
    if fitted.worker_index_ is not None:
        workers = fitted.workers_.round(6).reset_index()
        files[output / WORKERS] = table_of(workers.astype({"n_labels": "int64"}) if _whole(workers["n_labels"]) else workers)
    if proba:
        posterior = fitted.proba_.round(6)
        files[output / POSTERIOR] = table_of(posterior.set_axis(posterior.columns.astype(str), axis=1).reset_index())
    return files


def _whole(numbers: pd.Series) -> bool:
    return bool((numbers == numbers.round()).all())


def _how(fitted: Aggregator) -> str:
    passes = getattr(fitted, "n_iter_", None)
    if passes is None:
        return f"{fitted.name}, {fitted.fit_seconds_:.2f} s"
    ended = "converged after" if getattr(fitted, "converged_", True) else "stopped before it converged, after"
    return f"{fitted.name}, {ended} {passes:,} iterations, {fitted.fit_seconds_:.2f} s"
