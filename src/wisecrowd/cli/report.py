"""``wisecrowd report``: one page for people, on whom to trust, what is hard, what to use and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as who
from wisecrowd.cli._console import watched
from wisecrowd.cli._options import Quiet, flag, place, with_options
from wisecrowd.cli._reading import Reading, Votes


@with_options(Reading)
def report(
    ctx: typer.Context,
    votes: Votes,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=place, metavar="FILE", help="Where to write the page.")
    ] = Path("report.html"),
    method: fitting.Model = None,
    features: feature_files.FeaturesFile = None,
    members: who.MembersFile = None,
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Known truth, shown beside what is inferred without it."),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="What the tasks say: a table with task and text."),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="Column of the texts in --texts.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE_OR_FOLDER",
            show_default=False,
            help="What the tasks look like: a folder of PNG, JPEG, GIF or WebP files called as the tasks are, or a table with "
            "task and image, paths from the table's folder.",
        ),
    ] = None,
    image_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="Column of the paths in --images.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", show_default=False, help="Title of the page.")] = None,
    compare: Annotated[
        bool, flag("--compare/--no-compare", help="Whether methods are compared, which takes most of the time.")
    ] = True,
    force: Annotated[bool, flag("--force", help="Overwrite a file that is no report.")] = False,
    quiet: Quiet = False,
    reading: Reading,
) -> None:
    """One page for people: whom to trust, what is hard, what to do next.

      wisecrowd report votes.csv -o report.html
      wisecrowd report votes.csv --texts tasks.csv --truth gold.csv
      wisecrowd report votes.csv --images photos/
      wisecrowd report votes.csv --features X.npz --title "Street scenes"

    The page is one file that needs no network: open it in a browser, send it by mail, print it. It has an overview, every
    worker with their confusion matrix and the reasons for flags, the hardest and most disputed tasks, what is confused with
    what, methods side by side, and how it was made. Of large crowds it shows a part, and says which.

    Where machines vote, too, it tells what each is worth beside people, and all are judged by the method panel. An export of
    a labelling tool tells who is a machine, or --members does:

      wisecrowd report votes.csv --members members.csv
    """  # fmt: skip
    from wisecrowd.cli._memory import keep_freed_memory
    from wisecrowd.cli._reading import located, read_truth
    from wisecrowd.cli._summary import size
    from wisecrowd.report import build
    from wisecrowd.report.images import read_images
    from wisecrowd.report.texts import read_texts

    inputs = [path for path in (votes, features, members, truth, texts, images) if path is not None]
    _check(output, inputs, force=force)
    keep_freed_memory()
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
        gold = None if truth is None else read_truth(truth, reading, crowd)
        told = None if texts is None else read_texts(located(texts), task=reading.task, text=text_column)
        seen = None if images is None else read_images(located(images), task=reading.task, image=image_column)
        given = None if features is None else feature_files.read(features, reading)
    fitting.warn_of_look_alikes(crowd, votes)
    fitting.warn_of_strange_truth(gold, crowd, truth)
    known = who.known_to_judge(method, votes, reading, crowd, members)
    X, crowd = feature_files.beside(given, crowd)
    with watched(quiet=quiet):
        made = build(
            crowd, truth=gold, X=X, texts=told, images=seen, title=title or votes.stem, compare=compare,
            model=who.model_for(method, crowd, known), scores=known.scores, command=_command(ctx),
        )  # fmt: skip
        made.save(output)
    if not quiet:
        length = f"{len(made.html.encode()) / 1e6:.1f} MB"
        fitting.tell(
            {},
            [("Read", str(votes)), ("Votes", size(crowd)), ("Wrote", f"{output}, {length}")],
            as_json=False,
            quiet=False,
        )


def _check(output: Path, inputs: list[Path], *, force: bool) -> None:
    """Refuse a file before the work begins rather than after it."""
    from wisecrowd.cli._outputs import check_writable
    from wisecrowd.errors import UsageError
    from wisecrowd.report import is_report

    if output.is_dir():
        raise UsageError(f"{output} is a folder; -o takes a file, for example -o {output / 'report.html'}")
    check_writable(output)
    if not output.exists():
        return
    if output.resolve() in {path.resolve() for path in inputs}:
        raise UsageError(f"the report would overwrite {output}, which is read; choose another file with -o")
    if not force and not is_report(output):
        raise UsageError(
            f"{output} exists, and is no report of wisecrowd; choose another file with -o, or overwrite it with --force"
        )


def _command(ctx: typer.Context) -> str:
    """The command line as it can be typed again."""
    words = ["wisecrowd", str(ctx.info_name)]
    for parameter in ctx.command.params:
        value = ctx.params.get(str(parameter.name))
        given = ctx.get_parameter_source(str(parameter.name))
        if value is None or given is None or given.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)
