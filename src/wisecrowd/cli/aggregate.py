"""``wisecrowd aggregate``: from votes to labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as who
from wisecrowd.cli._console import watched
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import Reading, Votes
from wisecrowd.cli._shards import aggregate_shards, are_shards

if TYPE_CHECKING:
    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.data.crowd import Crowd


@with_options(Reading)
def aggregate(
    votes: Votes,
    *,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="How to aggregate: see wisecrowd methods.")
    ] = "dawid-skene",
    parameter: fitting.Parameter = None,
    features: feature_files.FeaturesFile = None,
    members: who.MembersFile = None,
    output: fitting.Output = None,
    truth: fitting.Gold = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Known truth to score the labels against; never used for fitting."
        ),
    ] = None,
    proba: Annotated[bool, flag("--proba", help="Also write posterior.csv: a column for each class.")] = False,
    save: Annotated[bool, flag("--save", help="Also write the fitted method, to the folder model.")] = False,
    spreadsheet: fitting.Spreadsheet = False,
    jobs: fitting.Jobs = 1,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Where sums over votes are taken: local, or ray, a cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST", show_default=False, help="Of the Ray cluster; auto finds one, none starts one."),
    ] = None,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
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

    Some methods also look at features of the tasks (wisecrowd methods tells which):

      wisecrowd aggregate votes.csv --features X.npz -m mnldp -o results

    Some votes are of machines, or of people who share their errors; --members tells who, where no labelling tool did.
    judges.csv, judge_confusion.csv, groups.csv and, where machines gave scores, calibration.csv tell what they are worth:

      wisecrowd aggregate votes.csv -m panel --members members.csv -o results

    More votes than memory holds: make shards of them first. Labels are then written to labels.parquet as they come, and,
    unless the method is a mere vote, a run that was interrupted goes on when it is started again. With --engine ray, a
    cluster does the work:

      wisecrowd shard votes/*.parquet -o crowd
      wisecrowd aggregate crowd -o results --jobs 2
      wisecrowd aggregate crowd -o results --engine ray --address auto
    """  # fmt: skip
    from wisecrowd.base.provenance import record
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import lines, size

    fitting.needs_folder(output, proba=proba, save=save, spreadsheet=spreadsheet)
    unfitted: Aggregator = fitting.chosen("aggregate", method, parameter or [], jobs, _engine(engine, address))
    who.refuse(unfitted, members)
    if are_shards(votes):
        _aggregate_shards(
            votes, unfitted, truth, score, reading, output=output, proba=proba, save=save, spreadsheet=spreadsheet,
            quiet=quiet, as_json=as_json,
        )  # fmt: skip
        return
    source = feature_files.source_of(unfitted, features, votes)
    inputs = [path for path in (votes, source, members, truth, score) if path is not None]
    if output is not None:
        check_folder(output, [fitting.LABELS, fitting.WORKERS, *([fitting.POSTERIOR] if proba else []), RECORD], inputs)
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
        gold = None if truth is None else read_truth(truth, reading, crowd)
        known = None if score is None else read_truth(score, reading, crowd)
        given = None if source is None else feature_files.read(source, reading)
    _check_kind(unfitted, crowd, proba=proba)
    found = who.known(votes, reading, crowd, members) if who.takes(unfitted) else who.Members()
    if who.takes(unfitted):
        who.tell(unfitted, found)
    elif not quiet:
        who.hint(unfitted, votes, reading, crowd)
    fitting.warn_of_look_alikes(crowd, votes)
    X, crowd = feature_files.beside(given, crowd)
    with watched(quiet=quiet):
        fitted = unfitted.fit(crowd, X, truth=gold)
    summary = fitting.summary_of(fitted, crowd, gold, known, score) | who.figures(fitted)
    if given is not None:
        summary["features"] = {"shape": list(given.rows.shape[1:]), "tasks": len(given.tasks)}
    command = {
        "votes": str(votes),
        **reading.recorded(votes),
        "features": fitting.text(source),
        "members": fitting.text(members),
        "truth": fitting.text(truth),
        "score": fitting.text(score),
    }
    run = record(fitted, crowd, source=str(votes), command=command, summary=summary)
    tables = {} if output is None else fitting.tables_of(fitted, proba=proba)
    if output is not None:
        tables |= who.tables_of(fitted, found, gold if known is None else known)
    kept = fitting.keep(output, tables, run, Guard(on=spreadsheet), model=fitted if save else None, inputs=inputs)
    begin = [("Read", str(votes)), ("Votes", size(crowd))]
    if given is not None:
        begin = [("Read", f"{votes} and {source}"), begin[1], ("Features", feature_files.size(given, crowd))]
    told = [*begin, ("Method", fitting.how(fitted)), *lines(summary), *who.lines(summary, fitted), ("Wrote", kept)]
    fitting.tell(run, told, as_json=as_json, quiet=quiet)


def _engine(name: str, address: str | None) -> str:
    """The engine as methods want it named."""
    from wisecrowd.errors import UsageError

    if address is not None and name != "ray":
        raise UsageError("--address is of a Ray cluster; add --engine ray")
    return name if address is None else f"{name}:{address}"


def _aggregate_shards(
    votes: Path, unfitted: Aggregator, truth: Path | None, score: Path | None, reading: Reading, **options: Any
) -> None:
    """As above, of a crowd in shards."""
    from wisecrowd.cli._reading import read_truth

    gold, known = (None if path is None else read_truth(path, reading) for path in (truth, score))
    command = {"votes": str(votes), "truth": fitting.text(truth), "score": fitting.text(score)}
    inputs = [path for path in (truth, score) if path is not None]
    aggregate_shards(votes, unfitted, gold=gold, known=known, command=command, inputs=inputs, **options)


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
