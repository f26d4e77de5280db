"""``wisecrowd check``: find problems in the votes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from wisecrowd.cli._console import show, show_facts, show_hanging
from wisecrowd.cli._options import with_options
from wisecrowd.cli._reading import Reading, Votes, resolve_path

STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
WIDTH = 9


@with_options(Reading)
def check(
    votes: Votes,
    *,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Sizes of images (columns task, width, height): finds boxes, points and polygons outside of them.",
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Texts (columns task, and tokens or text): finds spans beyond their end.",
        ),
    ] = None,
    reading: Reading,
) -> None:
    """Check the votes: repeated votes, missing values, misspelt labels, workers who always give the same label, and more.

    Problems that would silently change the labels are errors (exit code 1);
    problems that make the labels less certain are warnings. Each names the
    option that resolves it, and the last line has all of them, with the options
    that you gave:

      wisecrowd check votes.csv
      wisecrowd check votes.csv --duplicates distinct --missing drop

    Other answers are recognised by their columns. Checks of comparisons include
    items that were never compared with others, items that always win or lose,
    workers who always choose one side, and pairs judged in both orders. Checks
    of boxes, points, polygons and spans include negative sizes, reversed spans,
    workers who never mark anything, and marks outside of images or texts:

      wisecrowd check boxes.csv --images sizes.csv
      wisecrowd check spans.csv --documents texts.csv
    """
    from wisecrowd.io.validation.vote_checks import check_votes, find_options

    path, arguments = resolve_path(votes), reading.read_arguments()
    media: dict[str, Any] = {
        name: None if file is None else resolve_path(file)
        for name, file in (("images", images), ("documents", documents))
    }
    examination = check_votes(path, **media, **arguments)
    summary = examination.summary.partition("(")[2].removesuffix(")")  # without the name of the class
    show_facts([("Read", examination.source), *([("Votes", summary)] if summary else [])], width=WIDTH)
    for finding in examination.findings:
        start = finding.severity.ljust(WIDTH)
        show_hanging(start, f"{finding.name}: {finding.message}", style=STYLES[finding.severity])
        if finding.fix:
            show_hanging(" " * WIDTH, finding.fix)
    if not examination.findings:
        show("No problems found.")
    options = find_options(path, examination, **media, **arguments)
    if options:
        words = ["wisecrowd", "aggregate", str(votes), *reading.to_words(options)]
        show_hanging("Fix all".ljust(WIDTH), shlex.join(words))
    if not examination.ok:
        raise typer.Exit(1)
