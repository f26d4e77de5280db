"""``wisecrowd complete``: what workers would have said of the tasks that they did not see."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import warn, watched
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    from wisecrowd.base.completer import Completer
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features

#: The methods that are used unless one is named, without features and with them.
DEFAULT, DEFAULT_WITH_FEATURES = "ds-fill", "mmlc-fill"


@with_options(Reading)
def complete(
    votes: Votes,
    *,
    features: feature_files.FeaturesFile = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD",
            show_default=False,
            help=f"How to complete: see wisecrowd methods. Unless told, {DEFAULT_WITH_FEATURES} with --features, {DEFAULT} "
            "without.",
        ),
    ] = None,
    parameter: fitting.Parameter = None,
    output: fitting.Output = None,
    evaluate: Annotated[
        bool, flag("--evaluate", help="Hide a fifth of the votes first, and see how well they are foretold.")
    ] = False,
    score: Annotated[
        Path | None,
        typer.Option(
            "--score",
            "--truth",
            metavar="FILE",
            show_default=False,
            help="Known truth, to see what is gained: aggregates before and after. Never used for filling in.",
        ),
    ] = None,
    parquet: Annotated[bool, flag("--parquet", help="Write completed.parquet instead of completed.csv.")] = False,
    save: Annotated[bool, flag("--save", help="Also write the fitted method, to the folder model.")] = False,
    spreadsheet: fitting.Spreadsheet = False,
    jobs: fitting.Jobs = 1,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: Reading,
) -> None:
    """Fill in what each worker would have said of the tasks that they did not see.

    Writes completed.csv (task, worker, label, weight, observed) and run.json.
    Real votes stay as they are, with observed true. Filled ones weigh, on each
    task together, as much as the real votes on an average task:

      wisecrowd complete votes.csv --features X.npz -m tllc -o results
      wisecrowd aggregate results/completed.csv -o labels

    Is it worth it? See how well votes are foretold that were hidden, and what is
    gained where the truth is known:

      wisecrowd complete votes.csv --features X.npz -m tllc --evaluate
      wisecrowd complete votes.csv --features X.npz -m tllc --score known.csv

    Without features; filled votes that count as real ones do, as in papers; only
    for workers with more than ten labels; shares instead of one label each:

      wisecrowd complete votes.csv -o results
      wisecrowd complete votes.csv -p fill_weight=1 -o results
      wisecrowd complete votes.csv -p min_labels=10 -o results
      wisecrowd complete votes.csv -p answers=soft -o results
    """
    from wisecrowd.base.provenance import record
    from wisecrowd.cli._completion import Found
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import size

    fitting.needs_folder(output, save=save, parquet=parquet, spreadsheet=spreadsheet)
    name = method or (DEFAULT if features is None else DEFAULT_WITH_FEATURES)
    completer: Completer = fitting.chosen("complete", name, parameter or [], jobs)
    source = feature_files.source_of(completer, features, votes)
    inputs = [path for path in (votes, source, score) if path is not None]
    filled_file = fitting.COMPLETED_PARQUET if parquet else fitting.COMPLETED
    further = [fitting.JUDGED] * evaluate + [fitting.SCORED] * (score is not None)
    if output is not None:
        check_folder(output, [filled_file, *further, RECORD], inputs)
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
        known = None if score is None else read_truth(score, reading, crowd)
        given = None if source is None else feature_files.read(source, reading)
    _check_kind(completer, crowd)
    fitting.warn_of_look_alikes(crowd, votes)
    X, crowd = feature_files.beside(given, crowd)

    found = Found()
    with watched(quiet=quiet):
        found.look(completer, crowd, X, known, evaluate=evaluate)
        fitted = completer.fit(crowd, X)
        command = {
            "votes": str(votes), **reading.recorded(votes), "features": fitting.text(source), "score": fitting.text(score),
        }  # fmt: skip
        run = record(fitted, crowd, source=str(votes), command=command, summary=found.summary)
        if output is None:
            for _ in found.counted(fitted.stream()):
                pass
        guard = Guard(on=spreadsheet)
        files = found.files(fitted, crowd, filled_file, guard)
        kept = fitting.keep(output, files, run, guard, model=fitted if save else None, inputs=inputs)

    begin = [("Read", str(votes) if source is None else f"{votes} and {source}"), ("Votes", size(crowd))]
    told = [*begin, *_features_line(given, crowd), ("Method", fitting.how(fitted)), *found.lines(crowd)]
    told.append(("Wrote", kept))
    if output is not None:
        again = _reading_again(fitted, crowd, reading)
        told.append(("Go on", shlex.join(["wisecrowd", "aggregate", str(output / filled_file), *again])))
    fitting.tell(run, told, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        found.show_tables()


def _check_kind(completer: Completer, crowd: Crowd) -> None:
    """Refuse what does not go together, in the words of the command line."""
    from wisecrowd.errors import InputError

    if crowd.is_numeric:
        raise InputError(
            "a completer chooses between classes, and these labels were read as numbers; leave --numeric out"
        )
    if not crowd.has_workers:
        raise InputError(
            f"{completer.name} imitates workers, and nobody knows who cast these votes; name their column with --worker"
        )
    if not crowd.observed.all():
        warn("votes that were filled in before (observed is false) do not count, and are filled in anew")


def _features_line(given: Features | None, crowd: Crowd) -> list[tuple[str, str]]:
    return [] if given is None else [("Features", feature_files.size(given, crowd))]


def _reading_again(fitted: Completer, crowd: Crowd, reading: Reading) -> list[str]:
    """Options that the completed votes are to be read with."""
    from wisecrowd.evaluate.completion import count_cells

    repeated = fitted.answers == "soft" or count_cells(crowd) < crowd.n_votes
    return ["--duplicates", "keep"] * repeated + ([] if reading.classes is None else ["--classes", reading.classes])
