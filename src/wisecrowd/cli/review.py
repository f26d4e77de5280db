"""``wisecrowd review``: a local page on which a person settles disputed or audited tasks."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._answers import refuse_objects_and_texts
from wisecrowd.cli._console import print_note, show_progress
from wisecrowd.cli._options import Quiet, flag, parse_output_path, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.tools.projects import Project
    from wisecrowd.io.vote_source import VoteSource
    from wisecrowd.service.review_app import ExportedFile, ReviewSession
    from wisecrowd.service.review_decisions import DecisionLog
    from wisecrowd.service.review_queue import TaskTable


@with_options(GoldReading, "reading")
def review(
    votes: Votes,
    *,
    tasks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Tasks to review, in this order: a table with a column task, or the folder of wisecrowd audit. Columns text "
            "and image are shown. Default: tasks on which workers disagree.",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            parser=parse_output_path,
            metavar="FILE",
            help="Table of the decisions, written after each of them. A review with an existing table goes on with it.",
        ),
    ] = Path("checked.csv"),
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Without --tasks: maximum number of tasks, the least certain first.")
    ] = 100,
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
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Your name, saved with every decision. Default: the name of your account; the page can change it.",
        ),
    ] = None,
    blind: Annotated[
        bool | None,
        flag("--blind/--votes", help="Hide votes and labels until the reviewer asks. Default: hide them in an audit."),
    ] = None,
    method: fitting.AggregationMethod = None,
    parameter: fitting.Parameter = None,
    gold: fitting.Gold = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on. Default: this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 chooses a free one.")] = 8766,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="File with the token. Default: variable WISECROWD_TOKEN, or a new one.",
        ),
    ] = None,
    insecure: Annotated[
        bool, flag("--insecure", help="Listen on other addresses without TLS, for use behind a proxy with TLS.")
    ] = False,
    quiet: Quiet = False,
    reading: GoldReading,
) -> None:
    """Settle tasks by hand on a local page; the decisions become gold.

    Tasks on which the workers disagree, the least certain first:

      wisecrowd review votes.csv --texts tasks.csv -o checked.csv

    Open the link that is printed. Keys 1 to 9 choose a label, S skips, U takes
    the last decision back, N writes a note. Every decision is on disk with name
    and time before the next task appears; run the command again to go on.

    Check the tasks that an audit draws. Their votes are hidden, so that the
    checks do not depend on them:

      wisecrowd audit votes.csv --size 50 -o audit
      wisecrowd review votes.csv --tasks audit -o checked.csv
      wisecrowd audit votes.csv --checked checked.csv -o audited

    Use the decisions as gold, or write them into the labelling tool:

      wisecrowd aggregate votes.csv --gold checked.csv -o results
      wisecrowd export checked.csv --project export.json -o gold.json
    """  # fmt: skip
    from wisecrowd.cli.serve import Terminated, check_host, describe_link, exit_on_sigterm
    from wisecrowd.errors import MissingExtra

    try:
        from wisecrowd.service.authentication import load_token
        from wisecrowd.service.review_app import create_review_app
        from wisecrowd.service.server import bind_socket, create_server
    except ImportError as error:
        raise MissingExtra("serve", "review pages") from error
    check_host(host, insecure=insecure)
    reading.check_gold_columns(gold)
    _check_output(output, [path for path in (votes, tasks, texts, images, gold) if path is not None])
    token, is_new = load_token(token_file)
    if method is not None:
        fitting.make_method(
            "aggregate", method, parameter or [], 1
        )  # a misspelt name is an error before the votes are read
    session = _prepare(
        votes, tasks, output, limit, (texts, text_column), (images, image_column), gold, (method, parameter or []), reading,
        name=name or _account_name(), blind=blind, quiet=quiet,
    )  # fmt: skip
    with exit_on_sigterm(), contextlib.closing(session.log):
        bound_socket, address = bind_socket(host, port)
        with contextlib.closing(bound_socket):
            bound_socket.listen()  # so that a browser that is faster than the server waits
            if not quiet:
                n_open = len(session.queue) - session.describe_progress()["states"].count("d")
                print_note(f"{n_open:,} of {len(session.queue):,} tasks to settle; decisions are written to {output}")
            if is_new or not quiet:
                print_note(f"Open {describe_link(address, token, is_new=is_new)} (stop with Ctrl-C)")
            with contextlib.suppress(KeyboardInterrupt, Terminated):
                create_server(create_review_app(session, token)).run(sockets=[bound_socket])
        if not quiet:
            print_note(f"{len(session.log.gold):,} decisions in {output}")


def _prepare(
    votes: Path, tasks: Path | None, output: Path, limit: int, texts: tuple[Path | None, str | None],
    images: tuple[Path | None, str | None], gold: Path | None, method: tuple[str | None, list[str]], reading: GoldReading, *,
    name: str, blind: bool | None, quiet: bool,
) -> ReviewSession:  # fmt: skip
    """Read all inputs, fit the method, and open the table of the decisions."""
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.diagnose.assessment import CrowdAssessment
    from wisecrowd.errors import InputError
    from wisecrowd.report.images import read_images
    from wisecrowd.report.texts import read_texts
    from wisecrowd.service.review_app import ReviewSession
    from wisecrowd.service.review_decisions import DecisionLog
    from wisecrowd.service.review_queue import ReviewQueue, find_disputed_tasks, read_task_table

    refuse_objects_and_texts(votes, reading, "review")
    with reading.silence_notes(quiet=quiet):
        source = reading.open(votes)
        crowd = reading.read(source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, votes=source)
        table = None if tasks is None else read_task_table(tasks, task=reading.task)
        task_texts = None if texts[0] is None else read_texts(resolve_path(texts[0]), task=reading.task, text=texts[1])
        task_images = (
            None if images[0] is None else read_images(resolve_path(images[0]), task=reading.task, image=images[1])
        )
    if crowd.is_numeric:
        raise InputError(f"{votes} has numbers as labels, which nobody can settle; review needs classes")
    unfitted = fitting.prepare_method(*method, source, reading, crowd, quiet=quiet)
    with show_progress(quiet=quiet):
        fitted = unfitted.fit(crowd, truth=gold_truth)
        assessment = CrowdAssessment(crowd, fitted, gold_truth)
        warnings = assessment.warnings
    fitting.warn_assessment(assessment)
    project = _read_project(source)
    if table is not None:
        task_texts = table.texts if task_texts is None else task_texts
        task_images = table.images if task_images is None else task_images
    if task_texts is None and project is not None:
        task_texts = _project_texts(project)
    queue = ReviewQueue(
        assessment=assessment,
        tasks=find_disputed_tasks(crowd, assessment.labels, limit) if table is None else table.tasks,
        texts=task_texts,
        images=task_images,
    )
    _ = queue.aligned_texts, queue.aligned_images  # ids that do not match are an error before the page opens
    if table is not None and tasks is not None:
        table = _check_table(table, tasks, crowd, normalise=reading.normalise)
    log = DecisionLog(output, *_initial_decisions(table), question=reading.question or "")
    _check_decisions(log, crowd, output)
    return ReviewSession(
        queue=queue, log=log, title=f"Review of {votes.stem}", reviewer=name, warnings=warnings,
        is_blind=bool(table is not None and table.is_audit) if blind is None else blind,
        next_commands=_next_commands(
            votes, output, method, gold, reading, is_audit=table is not None and table.is_audit, project=project
        ),
        export=None if project is None else _make_export(project, output, reading.question),
    )  # fmt: skip


def _check_table(table: TaskTable, path: Path, crowd: Crowd, *, normalise: bool) -> TaskTable:
    """Return the tasks to review after comparing truth that was filled in with the classes of the votes."""
    from dataclasses import replace

    import pandas as pd

    from wisecrowd.cli._truth_files import check_truth_classes
    from wisecrowd.io.tables.spellings import match_spellings

    if table.truth.empty:
        return table
    truth = table.truth
    if normalise and crowd.classes is not None:
        truth = pd.Series(match_spellings(pd.Index(truth), crowd.classes).astype(str), index=truth.index)
    check_truth_classes(truth, crowd, path, use="decisions")
    return replace(table, truth=truth)


def _check_decisions(log: DecisionLog, crowd: Crowd, path: Path) -> None:
    """Compare the decisions of a review that goes on with the tasks and classes of the votes."""
    import pandas as pd

    from wisecrowd.cli._truth_files import check_truth_classes, check_truth_tasks

    if not log.gold:
        return
    decisions = pd.Series(log.gold, dtype=object)
    try:
        check_truth_tasks(decisions, crowd.tasks, path)
        check_truth_classes(decisions, crowd, path, use="decisions")
    except BaseException:
        log.close()
        raise


def _initial_decisions(table: TaskTable | None) -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """Return the columns that the table of decisions keeps, and the rows that were filled in by hand before."""
    from wisecrowd.service.review_decisions import Decision

    if table is None:
        return {}, []
    columns = {name: {str(task): value for task, value in column.items()} for name, column in table.columns.items()}
    return columns, [Decision(str(task), label, "") for task, label in table.truth.items()]


def _check_output(output: Path, inputs: list[Path]) -> None:
    from wisecrowd.cli._outputs import check_writable
    from wisecrowd.errors import UsageError

    if output.is_dir():
        raise UsageError(f"{output} is a folder; -o takes a file, for example -o {output / 'checked.csv'}")
    check_writable(output)
    if output.resolve() in {path.resolve() for path in inputs}:
        raise UsageError(f"{output} is an input file and would be overwritten; choose another file with -o")


def _read_project(source: VoteSource) -> Project | None:
    """Return the project of an export of a labelling tool that decisions can be written for."""
    from wisecrowd.io.tools.consensus_export import TOOLS
    from wisecrowd.io.tools.projects import read_project

    return read_project(source, duplicates="keep") if source.format.is_tool and source.format.name in TOOLS else None


def _project_texts(project: Project) -> pd.Series:
    import pandas as pd

    from wisecrowd.report.task_media import describe_task_data

    texts = {task: describe_task_data(data) for task, data in project.tasks.items()}
    return pd.Series(texts, dtype=object).dropna()


def _make_export(project: Project, output: Path, question: str | None) -> Callable[[dict[str, str]], ExportedFile]:
    """Return a function that writes gold for the tool of the votes."""

    def export(gold: dict[str, str]) -> ExportedFile:
        import tempfile

        import pandas as pd

        from wisecrowd.io.tools.consensus_export import TOOLS, write_gold

        suffix = ".json" if TOOLS[project.format].as_list else ".jsonl"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{output.stem}{suffix}"
            write_gold(pd.Series(gold, dtype=object), project, path, question=question)
            return path.name, "application/json" if suffix == ".json" else "application/jsonl", path.read_bytes()

    return export


def _next_commands(
    votes: Path, output: Path, method: tuple[str | None, list[str]], gold: Path | None, reading: GoldReading, *, is_audit: bool,
    project: Project | None,
) -> tuple[str, ...]:  # fmt: skip
    """Return the command lines that use the decisions, with the options of this review."""
    table = str(output)
    fit = fitting.to_words(votes, *method, None, reading)
    commands = [["wisecrowd", "aggregate", *fit, "--gold", table, "-o", "results"]]
    if is_audit:  # the gold is that of the draw
        audit = fitting.to_words(votes, *method, gold, reading)
        commands.insert(0, ["wisecrowd", "audit", *audit, "--checked", table, "-o", "audited"])
    if project is not None:
        question = [] if reading.question is None else ["--question", reading.question]
        commands.append(["wisecrowd", "export", table, "--project", str(votes), *question, "-o", "gold.json"])
    return tuple(map(shlex.join, commands))


def _account_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name, as in some containers
        return ""
