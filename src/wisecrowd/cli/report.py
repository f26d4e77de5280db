"""``wisecrowd report``: an HTML page on workers, tasks, methods and next steps."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _answers as answers
from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as members_file
from wisecrowd.cli import _scores as score_files
from wisecrowd.cli._console import show_progress, warn
from wisecrowd.cli._options import Quiet, flag, parse_output_path, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    from wisecrowd.io.tools.projects import Project
    from wisecrowd.io.vote_source import VoteSource
    from wisecrowd.report import Report


@with_options(GoldReading, "reading")
def report(
    ctx: typer.Context,
    votes: Votes,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=parse_output_path, metavar="FILE", help="File to write.")
    ] = Path("report.html"),
    method: fitting.Model = None,
    features: feature_files.FeaturesFile = None,
    members: members_file.MembersFile = None,
    gold: fitting.Gold = None,
    score: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Known truth, compared with the inferred labels; not used in fitting.",
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Texts of the tasks: a table with the columns task and text."
        ),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="Column of the texts in --texts.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE_OR_FOLDER",
            show_default=False,
            help="Images of the tasks: a folder of PNG, JPEG, GIF or WebP files named by task, or a table with the columns "
            "task and image (paths relative to the table).",
        ),
    ] = None,
    image_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="Column of the paths in --images.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", show_default=False, help="Title of the page.")] = None,
    compare: Annotated[
        bool, flag("--compare/--no-compare", help="Compare methods by held-out votes (takes most of the time).")
    ] = True,
    force: Annotated[bool, flag("--force", help="Overwrite a file that is not a report.")] = False,
    quiet: Quiet = False,
    reading: GoldReading,
) -> None:
    """Write an HTML report on workers, tasks, methods and next steps.

    Examples:

      wisecrowd report votes.csv -o report.html
      wisecrowd report votes.csv --texts tasks.csv --score gold.csv
      wisecrowd report votes.csv --gold gold.csv
      wisecrowd report votes.csv --images photos/
      wisecrowd report votes.csv --features X.npz --title "Street scenes"

    The page is a single file that works offline. It contains a summary, every
    worker with confusion matrix and reasons for flags, the hardest and most
    disputed tasks, confused classes, a comparison of methods, and how the page
    was made. For large crowds it shows a selection and says so.

    If some workers are machines, they are rated beside people by the method
    panel. An export of a labelling tool or --members says which workers are
    machines:

      wisecrowd report votes.csv --members members.csv

    Comparisons and label sets are recognised by their columns. Their pages have
    the ranking with intervals, or the labels with agreement and confidence:

      wisecrowd report arena.csv -o arena.html

    The pages of boxes, points, polygons, spans and masks show disputed objects
    over the images or texts of their tasks (offsets of spans count characters of
    --texts, or tokens of documents.parquet in a folder); that of texts has
    disputed texts side by side:

      wisecrowd report boxes.csv --images photos/ -o boxes.html
      wisecrowd report spans.csv --texts documents.csv -o spans.html
      wisecrowd report transcriptions.csv -o transcriptions.html

    The page of scores of judges (columns task, judge, score) has their agreement
    beyond chance, severity, calibration curves and biases:

      wisecrowd report scores.csv --score gold.csv -o judges.html
    """  # fmt: skip
    from wisecrowd.cli._memory import keep_freed_memory
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.errors import UsageError
    from wisecrowd.io.answer_tables import AnswerTable
    from wisecrowd.report import build
    from wisecrowd.report.images import read_images
    from wisecrowd.report.task_media import find_links, find_texts
    from wisecrowd.report.texts import read_texts

    reading.check_gold_columns(gold, score)
    if gold is not None and score is not None:
        raise UsageError("--gold is used in fitting and --score only to evaluate; give one of them")
    inputs = [path for path in (votes, features, members, gold, score, texts, images) if path is not None]
    _check(output, inputs, force=force)
    keep_freed_memory()
    other_answers = answers.find_answers(votes, reading, [] if method is None else [method])
    if other_answers is not None and other_answers.answer_type == "scores":
        answers.check_unused(
            other_answers, {"--features": features, "--members": members, "--images": images, "-m": method}
        )
        scores = score_files.read_scores(other_answers, reading, keep_repeated=True)
        score_truth = score_files.read_score_truth(score, reading, scores)
        task_texts = None if texts is None else read_texts(resolve_path(texts), task=reading.task, text=text_column)
        with show_progress(quiet=quiet):
            page = build(scores, truth=score_truth, texts=task_texts, title=title or votes.stem, command=_command(ctx))
            _save(page, output)
        if not quiet:
            _print_size(f"{votes}: {other_answers.description}", describe_crowd(scores), output, page)
        return
    if other_answers is not None:
        kind = other_answers.answer_type
        class_options = {
            "--features": features,
            "--members": members,
            "--gold": gold,
            "--score": score,
            "--texts": None if kind == "spans" else texts,
            "--images": None if kind in ("boxes", "points", "polygons", "masks") else images,
        }
        answers.check_unused(other_answers, class_options)
        answer_votes = answers.read_answers(other_answers, reading)
        question = None if isinstance(other_answers, AnswerTable) else other_answers.name
        span_texts = None if texts is None else read_texts(resolve_path(texts), task=reading.task, text=text_column)
        if kind == "spans" and texts is None:
            span_texts = _find_tokens(answers.read_documents(other_answers))
        mark_images = (
            None if images is None else read_images(resolve_path(images), task=reading.task, image=image_column)
        )
        with show_progress(quiet=quiet):
            page = build(
                answer_votes, texts=span_texts, images=mark_images, title=title or _default_title(votes, question),
                question=question, compare=compare, model=method, command=_command(ctx),
            )  # fmt: skip
            _save(page, output)
        for warning in page.warnings:
            warn(warning)
        if not quiet:
            _print_size(f"{votes}: {other_answers.description}", describe_crowd(answer_votes), output, page)
        return
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd = reading.read(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, votes=vote_source)
        score_truth = None if score is None else read_truth(score, reading, crowd, use="score", votes=vote_source)
        task_texts = None if texts is None else read_texts(resolve_path(texts), task=reading.task, text=text_column)
        task_images = (
            None if images is None else read_images(resolve_path(images), task=reading.task, image=image_column)
        )
        feature_table = None if features is None else feature_files.read_features_file(features, reading, crowd)
    chosen, member_info = members_file.choose_method(method, vote_source, reading, crowd, members, quiet=quiet)
    project = _read_project(vote_source)
    if project is not None:
        crowd, member_info = members_file.use_worker_names(crowd, member_info, project.worker_names)
    links = None if project is None else find_links(project.tasks)
    if task_texts is None and project is not None:
        task_texts = find_texts(project.tasks)
    question = _find_question(reading, vote_source, project)
    X, crowd = feature_files.match_features(feature_table, crowd)
    with show_progress(quiet=quiet):
        page = build(
            crowd, gold=gold_truth, truth=score_truth, X=X, texts=task_texts, images=task_images, links=links,
            title=title or _default_title(votes, question), question=question, compare=compare,
            model=members_file.fit_model(chosen, crowd, member_info, gold_truth), scores=member_info.scores, command=_command(ctx),
        )  # fmt: skip
        _save(page, output)
    for warning in page.warnings:
        warn(warning)
    if not quiet:
        _print_size(str(votes), describe_crowd(crowd), output, page)


def _find_tokens(documents: Any) -> Any:
    """Return the tokens of the documents beside spans, by task; None if there are none."""
    if documents is None:
        return None
    table = documents.to_pandas()
    return table.set_index("task")["tokens"] if "tokens" in table else None


def _read_project(source: VoteSource) -> Project | None:
    """Return the project of an export of a labelling tool, which has names of workers and addresses of tasks."""
    from wisecrowd.errors import InputError
    from wisecrowd.io.tools.projects import read_project

    if not source.format.is_tool:
        return None
    try:
        return read_project(source, duplicates="keep")
    except InputError:  # a problem of a question that the report is not about
        return None


def _default_title(votes: Path, question: str | None) -> str:
    stem = "Votes" if str(votes) == "-" else votes.stem  # standard input has no name
    return stem if question is None else f"{stem}: {question}"


def _find_question(reading: GoldReading, source: VoteSource, project: Project | None) -> str | None:
    """Return the name of the question of a labelling tool that the report is about; None for a table."""
    if reading.question is not None and source.format.is_tool:
        return reading.question
    return next(iter(project.questions)) if project is not None and len(project.questions) == 1 else None


def _print_size(source: str, votes: str, output: Path, page: Report) -> None:
    length = f"{len(page.html.encode()) / 1e6:.1f} MB"
    facts = [("Read", source), ("Votes", votes), ("Wrote", f"{output}, {length}")]
    fitting.print_run({}, facts, as_json=False, quiet=False)


def _check(output: Path, inputs: list[Path], *, force: bool) -> None:
    """Raise an error if the output file cannot be written, before any work is done."""
    from wisecrowd.cli._outputs import check_writable
    from wisecrowd.errors import UsageError
    from wisecrowd.report import is_report

    if output.is_dir():
        raise UsageError(f"{output} is a folder; -o takes a file, for example -o {output / 'report.html'}")
    if not output.suffix and not output.exists():
        raise UsageError(f"{output} has no suffix; -o takes a file, for example -o {output}.html")
    check_writable(output)
    if not output.exists():
        return
    if output.resolve() in {path.resolve() for path in inputs}:
        raise UsageError(f"{output} is an input file and would be overwritten; choose another file with -o")
    if not force and not is_report(output):
        raise UsageError(
            f"{output} exists and is not a wisecrowd report; choose another file with -o, or overwrite it with --force"
        )


def _save(page: Report, output: Path) -> None:
    """Write the page, with a note if it replaces a report on other votes or a file that is not a report."""
    from wisecrowd.cli._console import print_note
    from wisecrowd.report import read_head

    is_replaced = output.exists()
    before = read_head(output) if is_replaced else None
    page.save(output)
    if not is_replaced:
        return
    if before is None:
        print_note(f"Note: replaced {output}, which was not a wisecrowd report")
        return
    after = read_head(output)
    if after is None or before.votes_digest != after.votes_digest:
        what = "on other votes"
        if before.question and after is not None and before.question != after.question:
            what = f"on question {before.question!r}"
        print_note(f"Note: replaced the report {before.title!r} {what}, which was in {output}")


def _command(ctx: typer.Context) -> str:
    """Return the command line that reproduces the report."""
    words = ["wisecrowd", str(ctx.info_name)]
    for parameter in ctx.command.params:
        value = ctx.params.get(str(parameter.name))
        origin = ctx.get_parameter_source(str(parameter.name))
        if value is None or origin is None or origin.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)
