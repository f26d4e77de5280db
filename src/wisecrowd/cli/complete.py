"""``wisecrowd complete``: predict the missing votes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._answers import refuse_objects_and_texts
from wisecrowd.cli._console import show_progress, warn
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    from wisecrowd.base.completer import Completer
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features

#: Default methods without and with features.
DEFAULT, DEFAULT_WITH_FEATURES = "ds-fill", "mmlc-fill"


@with_options(GoldReading, "reading")
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
            help=f"Method: see wisecrowd methods. Default: {DEFAULT_WITH_FEATURES} with --features, {DEFAULT} without.",
        ),
    ] = None,
    parameter: fitting.Parameter = None,
    gold: fitting.RefusedGold = None,
    output: fitting.Output = None,
    evaluate: Annotated[
        bool, flag("--evaluate", help="Hold out a fifth of the votes and measure how well they are predicted.")
    ] = False,
    score: Annotated[
        Path | None,
        typer.Option(
            "--score",
            metavar="FILE",
            show_default=False,
            help="Known truth, to compare accuracy before and after completion; not used in fitting.",
        ),
    ] = None,
    parquet: Annotated[bool, flag("--parquet", help="Write completed.parquet instead of completed.csv.")] = False,
    save: Annotated[bool, flag("--save", help="Also write the fitted method to the folder model.")] = False,
    spreadsheet: fitting.Spreadsheet = False,
    jobs: fitting.Jobs = 1,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Predict the votes of workers on tasks that they did not label.

    Writes completed.csv (task, worker, label, weight, observed) and run.json.
    Real votes are unchanged, with observed true. All predicted votes on a task
    together weigh as much as the real votes on an average task:

      wisecrowd complete votes.csv --features X.npz -m tllc -o results
      wisecrowd aggregate results/completed.csv -o labels

    Measure how well held-out votes are predicted, and the gain in accuracy
    where the truth is known:

      wisecrowd complete votes.csv --features X.npz -m tllc --evaluate
      wisecrowd complete votes.csv --features X.npz -m tllc --score known.csv

    Without features; with full weight, as in papers; only for workers with more
    than ten votes; probabilities instead of one label:

      wisecrowd complete votes.csv -o results
      wisecrowd complete votes.csv -p fill_weight=1 -o results
      wisecrowd complete votes.csv -p min_votes=10 -o results
      wisecrowd complete votes.csv -p fill_mode=soft -o results
    """
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._completion import CompletionSummary
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.cli._truth_files import read_truth

    fitting.refuse_gold(gold, "--gold is used in fitting, and completers use votes and features alone")
    reading.check_gold_columns(score)
    fitting.check_output_options(output, save=save, parquet=parquet, spreadsheet=spreadsheet)
    name = method or (DEFAULT if features is None else DEFAULT_WITH_FEATURES)
    completer: Completer = fitting.make_method("complete", name, parameter or [], jobs)
    source = feature_files.find_features(completer, features, votes)
    inputs = [path for path in (votes, source, score) if path is not None]
    filled_file = fitting.COMPLETED_PARQUET if parquet else fitting.COMPLETED
    further = [fitting.HELDOUT] * evaluate + [fitting.ACCURACY] * (score is not None)
    if output is not None:
        check_folder(output, [filled_file, *further, RECORD], inputs)
    refuse_objects_and_texts(votes, reading, "complete")
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        score_truth = None if score is None else read_truth(score, reading, crowd, use="score", votes=vote_source)
        feature_table = None if source is None else feature_files.read_features_file(source, reading, crowd)
    _check_kind(completer, crowd)
    X, crowd = feature_files.match_features(feature_table, crowd)

    completion = CompletionSummary()
    with show_progress(quiet=quiet):
        completion.evaluate(completer, crowd, X, score_truth, evaluate=evaluate)
        fitted = completer.fit(crowd, X)
        command = {
            "votes": str(votes), **reading.to_record(vote_source),
            "features": fitting.path_text(source), "score": fitting.path_text(score),
        }  # fmt: skip
        run = record_run(
            fitted, crowd, rows=row_counts.to_dict(), source=str(votes), command=command, summary=completion.summary
        )
        if output is None:
            for _ in completion.count_filled(fitted.stream()):
                pass
        guard = Guard(on=spreadsheet)
        files = completion.files(fitted, crowd, filled_file, guard)
        written = fitting.write_run(output, files, run, guard, model=fitted if save else None, inputs=inputs)

    begin = [("Read", str(votes) if source is None else f"{votes} and {source}"), ("Votes", describe_crowd(crowd))]
    facts = [
        *begin,
        *_features_line(feature_table, crowd),
        ("Method", fitting.describe_fit(fitted)),
        *completion.lines(crowd),
    ]
    facts.append(("Wrote", written))
    if output is not None:
        again = _reading_again(fitted, crowd, reading)
        facts.append(("Go on", shlex.join(["wisecrowd", "aggregate", str(output / filled_file), *again])))
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        completion.show_tables()


def _check_kind(completer: Completer, crowd: Crowd) -> None:
    """Raise an error if the method does not suit the votes."""
    from wisecrowd.errors import InputError

    if crowd.is_numeric:
        raise InputError("completers predict classes, and the labels were read as numbers; leave --numeric out")
    if not crowd.has_workers:
        raise InputError(
            f"{completer.name} needs worker ids, and these votes have none; name their column with --worker"
        )
    if not crowd.observed.all():
        warn("votes filled in earlier (observed is false) are ignored and predicted again")


def _features_line(feature_table: Features | None, crowd: Crowd) -> list[tuple[str, str]]:
    return [] if feature_table is None else [("Features", feature_files.describe_features(feature_table, crowd))]


def _reading_again(fitted: Completer, crowd: Crowd, reading: GoldReading) -> list[str]:
    """Return the options for reading the completed votes."""
    from wisecrowd.evaluate.completion import count_cells

    repeated = fitted.fill_mode == "soft" or count_cells(crowd) < crowd.n_votes
    return ["--duplicates", "keep"] * repeated + ([] if reading.classes is None else ["--classes", reading.classes])
