"""``wisecrowd aggregate``: infer labels from votes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.cli import _answers as answers
from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as members_file
from wisecrowd.cli import _scores as score_files
from wisecrowd.cli._console import show_progress
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import GoldReading, Votes
from wisecrowd.cli._shards import aggregate_shards, are_shards

if TYPE_CHECKING:
    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.data.crowd import Crowd


@with_options(GoldReading, "reading")
def aggregate(
    votes: Votes,
    *,
    method: fitting.AggregationMethod = None,
    parameter: fitting.Parameter = None,
    features: feature_files.FeaturesFile = None,
    members: members_file.MembersFile = None,
    output: fitting.Output = None,
    gold: fitting.Gold = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Known truth to score the labels against; not used in fitting."
        ),
    ] = None,
    proba: Annotated[bool, flag("--proba", help="Also write posterior.csv with one column per class.")] = False,
    save: Annotated[bool, flag("--save", help="Also write the fitted method to the folder model.")] = False,
    spreadsheet: fitting.Spreadsheet = False,
    jobs: fitting.Jobs = 1,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Where sums over votes are computed: local or ray.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST", show_default=False, help="Address of a Ray cluster; auto finds one. Default: start one."
        ),
    ] = None,
    no_verify: Annotated[bool, flag("--no-verify", help="Do not compare shards with their SHA-256 digests.")] = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Infer the true label of every task and the accuracy of every worker.

    Writes labels.csv (task, label, confidence), workers.csv and run.json, the
    record of the run. Methods that estimate the difficulty of tasks also write
    tasks.csv:

      wisecrowd aggregate votes.csv -o results

    Choose a method and its parameters; name the columns:

      wisecrowd aggregate votes.csv -m one-coin -p max_iter=50 -o results
      wisecrowd aggregate votes.csv --task question --label answer -o results

    With known truth for some tasks, use it in the fit (gold tasks), or keep it
    to score the labels:

      wisecrowd aggregate votes.csv --gold gold.csv -o results
      wisecrowd aggregate votes.csv --score gold.csv -o results

    Aggregate numbers:

      wisecrowd aggregate ratings.csv --numeric -m median -o results

    Aggregate ratings by raters of different severity, on ordered classes or
    numbers:

      wisecrowd aggregate ratings.csv --ordered -m graded-response -o results
      wisecrowd aggregate ratings.csv --numeric -m rater-mean -o results

    Comparisons of two items (columns left, right, label, or model_a, model_b,
    winner) and sets of labels (columns task, worker, labels: cat|dog) are
    recognised by their columns. They write scores.csv with ranks and intervals,
    or labels.csv with sets:

      wisecrowd aggregate arena.csv -o results

    Scores of judges (columns task, judge, score), such as grades of language
    models, are calibrated by gold or by votes of people (rows with a label
    instead of a score); judges that err together are not counted twice:

      wisecrowd aggregate scores.csv --gold gold.csv -o results

    Some methods also use features of the tasks (wisecrowd methods lists them):

      wisecrowd aggregate votes.csv --features X.npz -m mnldp -o results

    If some workers are machines, or make the same errors, list them in a table
    (--members) unless the export of a labelling tool does. The method is panel
    then, which does not count errors of one model several times. This writes
    judges.csv, judge_confusion.csv, groups.csv and, if machines gave scores,
    calibration.csv:

      wisecrowd aggregate votes.csv --members members.csv -o results

    If the votes do not fit in memory, divide them into shards first. Labels are
    then written to labels.parquet. An interrupted run resumes when it is
    started again. With --engine ray, a cluster computes:

      wisecrowd shard votes/*.parquet -o crowd
      wisecrowd aggregate crowd -o results --jobs 2
      wisecrowd aggregate crowd -o results --engine ray --address auto
    """  # fmt: skip
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd, describe_order, summary_lines
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.errors import UsageError

    reading.check_gold_columns(gold, score)
    fitting.check_output_options(output, proba=proba, save=save, spreadsheet=spreadsheet)
    other_answers = (
        None if are_shards(votes) else answers.find_answers(votes, reading, [] if method is None else [method])
    )
    if other_answers is not None and other_answers.answer_type == "scores":
        answers.check_unused(other_answers, {"--features": features, "--members": members})
        score_files.aggregate_scores(
            other_answers, method, parameter or [], reading, gold=gold, score=score,
            output=output, proba=proba, save=save, spreadsheet=spreadsheet, quiet=quiet, as_json=as_json,
        )  # fmt: skip
        return
    if other_answers is not None:
        class_options = {
            "--features": features,
            "--members": members,
            "--gold": gold,
            "--score": score,
            "--proba": proba,
        }
        answers.check_unused(other_answers, class_options)
        answers.aggregate_answers(
            other_answers, method, parameter or [], jobs, reading,
            output=output, save=save, spreadsheet=spreadsheet, quiet=quiet, as_json=as_json,
        )  # fmt: skip
        return
    make_method = partial(fitting.make_method, "aggregate", jobs=jobs, engine=_engine(engine, address))
    # Without a name, the votes decide about the method, and so about its parameters.
    is_named = method is not None or are_shards(votes)
    unfitted: Aggregator = make_method(method or DEFAULT_METHOD, (parameter or []) if is_named else [])
    members_file.check_members_option(unfitted, members)
    if are_shards(votes):
        _aggregate_shards(
            votes, unfitted, gold, score, reading, output=output, proba=proba, save=save, spreadsheet=spreadsheet,
            verify=not no_verify, quiet=quiet, as_json=as_json,
        )  # fmt: skip
        return
    if no_verify:
        raise UsageError("--no-verify skips the digests of shards, and these votes are not in shards; leave it out")
    source = feature_files.find_features(unfitted, features, votes)
    inputs = [path for path in (votes, source, members, gold, score) if path is not None]
    if output is not None:
        check_folder(output, [fitting.LABELS, fitting.WORKERS, *([fitting.POSTERIOR] if proba else []), RECORD], inputs)
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, beside=score, votes=vote_source)
        score_truth = (
            None if score is None else read_truth(score, reading, crowd, use="score", beside=gold, votes=vote_source)
        )
        feature_table = None if source is None else feature_files.read_features_file(source, reading, crowd)
    chosen, member_info = members_file.choose_method(method, vote_source, reading, crowd, members, quiet=quiet)
    if not is_named:
        unfitted = make_method(chosen, parameter or [])
        members_file.check_members_option(unfitted, members)
    _check_kind(unfitted, crowd, proba=proba)
    members_file.set_members(unfitted, member_info)
    X, crowd = feature_files.match_features(feature_table, crowd)
    with show_progress(quiet=quiet):
        fitted = unfitted.fit(crowd, X, truth=gold_truth)
        assessment = fitting.assess_fit(fitted, crowd, gold_truth, X)
        estimate = None if assessment is None else assessment.labels
        shared = fitting.summarise_assessment(assessment)
    fitting.warn_assessment(assessment)
    summary = fitting.summarise_fit(fitted, crowd, gold_truth, score_truth, assessment) | members_file.summarise_judges(
        fitted
    )
    summary |= shared
    if feature_table is not None:
        summary["features"] = {"shape": list(feature_table.rows.shape[1:]), "tasks": len(feature_table.tasks)}
    command = {
        "votes": str(votes),
        **reading.to_record(vote_source),
        "features": fitting.path_text(source),
        "members": fitting.path_text(members),
        "gold": fitting.path_text(gold),
        "score": fitting.path_text(score),
    }
    run = record_run(fitted, crowd, rows=row_counts.to_dict(), source=str(votes), command=command, summary=summary)
    tables = {} if output is None else fitting.make_tables(fitted, estimate, proba=proba, assessment=assessment)
    if output is not None:
        tables |= members_file.make_judge_tables(
            fitted, member_info, gold_truth if score_truth is None else score_truth
        )
    written = fitting.write_run(
        output, tables, run, Guard(on=spreadsheet), model=fitted if save else None, inputs=inputs
    )
    begin = [("Read", str(votes)), ("Votes", describe_crowd(crowd))]
    if feature_table is not None:
        begin = [
            ("Read", f"{votes} and {source}"),
            begin[1],
            ("Features", feature_files.describe_features(feature_table, crowd)),
        ]
    facts = [
        *begin,
        *describe_order(crowd),
        ("Method", fitting.describe_fit(fitted)),
        *summary_lines(summary),
        *members_file.judge_lines(summary, fitted),
        ("Wrote", written),
    ]
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)


def _engine(name: str, address: str | None) -> str:
    """Return the value of a method's ``engine`` parameter."""
    from wisecrowd.errors import UsageError

    if address is not None and name != "ray":
        raise UsageError("--address is the address of a Ray cluster; add --engine ray")
    return name if address is None else f"{name}:{address}"


def _aggregate_shards(
    votes: Path, unfitted: Aggregator, gold: Path | None, score: Path | None, reading: GoldReading, **options: Any
) -> None:
    """Aggregate a crowd in shards."""
    from wisecrowd.cli._truth_files import read_truth

    reading.check_shards(votes, gold, score)
    gold_truth, score_truth = (
        None if path is None else read_truth(path, reading, beside=other)
        for path, other in ((gold, score), (score, gold))
    )
    command = {"votes": str(votes), "gold": fitting.path_text(gold), "score": fitting.path_text(score)}
    inputs = [path for path in (gold, score) if path is not None]
    aggregate_shards(
        votes, unfitted, gold=gold_truth, score_truth=score_truth, command=command, inputs=inputs, **options
    )


def _check_kind(chosen: Aggregator, crowd: Crowd, *, proba: bool) -> None:
    """Raise an error if the method does not suit the labels."""
    from wisecrowd.errors import InputError, UsageError

    if proba and crowd.is_numeric:
        raise UsageError("--proba writes class probabilities, and these labels are numbers; leave it out")
    if chosen.answer_types == ("numeric",) and not crowd.is_numeric:
        advice = "-m rater-mean" if crowd.is_ordered else "another method with -m"
        raise InputError(
            f"{chosen.name} aggregates numbers, but the labels were read as classes. Add --numeric if they are numbers, "
            f"or choose {advice}"
        )
