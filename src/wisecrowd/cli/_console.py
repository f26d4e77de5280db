"""How the command line looks: results on standard output, all else on standard error, 80 columns, plain in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console(*, stderr: bool = False) -> Console:
    """Where to print. Ids are data: nothing in them is taken for markup, emoji or a number to colour."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def show(thing: Any = "", *, style: str | None = None) -> None:
    """Print a line or a table on standard output; a line is wrapped between words."""
    out = console()
    if out.is_terminal:
        out.print(thing, style=style)
        return
    with out.capture() as captured:
        out.print(thing, style=style)
    # A table fills its columns with blanks, which nobody wants in a file.
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_verbatim(text: str) -> None:
    """Print text without wrapping it, so that commands and formulas can be copied."""
    console().print(text, soft_wrap=True)


def heading(text: str) -> None:
    """Print a heading, with an empty line before it."""
    show()
    show(text, style="bold")


def remark(text: str, style: str | None = None) -> None:
    """Print a line on standard error, unbroken, so that what it names can be copied."""
    console(stderr=True).print(text, style=style, soft_wrap=True)


def visible(value: object) -> str:
    """An id as it can be shown on one line: what a terminal would obey is spelled out."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Lines of the form *what: value*, the values below each other."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for what, value in rows:
        grid.add_row(what, value)
    return grid


def bullets(lines: Iterable[str]) -> Table:
    """Sentences below each other, each with a dash."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row("-", visible(line))
    return grid


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1, fold: str | None = None) -> Table:
    """A table whose first ``left`` columns hold text and the others figures, aligned to the right.

    What does not fit is cut, and the cut is shown (…), except in the column ``fold``, which is continued below.
    """
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, name in enumerate(columns):
        folded = name == fold
        made.add_column(
            name,
            justify="left" if position < left or folded else "right",
            no_wrap=not folded,
            overflow="fold" if folded else "ellipsis",
        )
    for row in rows:
        made.add_row(*(visible(cell) for cell in row))
    return made
