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

    Examples:

      wisecrowd cite dawid-skene
      wisecrowd cite dawid-skene one-coin >> paper.bib

    A paper behind several of the methods is printed once.
    """
    from wisecrowd.base.citations import cite as bibtex

    typer.echo(bibtex(*methods))
