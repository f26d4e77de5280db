"""``wisecrowd cite``: the papers behind methods."""

from __future__ import annotations

from typing import Annotated

import typer


def cite(
    methods: Annotated[
        list[str],
        typer.Argument(metavar="METHOD...", show_default=False, help="Names of methods: see wisecrowd methods."),
    ],
) -> None:
    """Print BibTeX for the papers behind methods.

    Several methods at once give every paper once:

      wisecrowd cite dawid-skene
      wisecrowd cite dawid-skene one-coin >> paper.bib
    """
    from wisecrowd.citation import cite as bibtex

    typer.echo(bibtex(*methods))
