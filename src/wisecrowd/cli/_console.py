"""Printing: results on standard output, messages on standard error, plain text in a pipe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


#: Blanks between two columns of a table.
GAP = 2


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints ids literally, without markup, emoji or highlighting."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def show(thing: Any = "", *, style: str | None = None) -> None:
    """Print a line or a table on standard output; a line is wrapped between words.

    Parameters
    ----------
    thing : object, default=""
        Text or table.
    style : str, optional
        Style of rich, such as "bold".
    """
    out = console()
    thing = escape_controls(thing) if isinstance(thing, str) else thing
    if out.is_terminal:
        out.print(thing, style=style)
        return
    with out.capture() as captured:
        out.print(thing, style=style)
    # Tables are padded with blanks, which do not belong in a file.
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_verbatim(text: str) -> None:
    """Print text without wrapping it, so that commands and formulas can be copied."""
    console().print(escape_controls(text, lines=True), soft_wrap=True)


def show_json(value: Any) -> None:
    """Print JSON with unprintable characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # Unprintable characters occur only inside strings, where JSON has an escape for each.
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def heading(text: str) -> None:
    """Print a heading, with an empty line before it."""
    show()
    show(text, style="bold")


def print_note(text: str, style: str | None = None) -> None:
    """Print a line on standard error without wrapping, so that paths and commands can be copied.

    Parameters
    ----------
    text : str
        Line.
    style : str, optional
        Style of rich, such as "yellow".
    """
    console(stderr=True).print(escape_controls(text, lines=True), style=style, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning."""
    print_note(f"Warning: {text}", style="yellow")


def show_progress(*, quiet: bool = False) -> AbstractContextManager[None]:
    """Show progress inside the block: bars on a terminal, and a line now and then in a log file."""
    from wisecrowd.utils import progress

    if quiet:
        return nullcontext()
    return progress.show() if console(stderr=True).is_terminal else progress.write_lines(print_note)


def escape_controls(value: object, *, lines: bool = False) -> str:
    """Return a text with control characters escaped; line breaks are kept if ``lines`` is true.

    Parameters
    ----------
    value : object
        Value, which is converted to text.
    lines : bool, default=False
        Keep line breaks.

    Returns
    -------
    str
    """
    text = str(value)
    if text.isprintable():
        return text
    allowed = "\n" if lines else ""
    return "".join(
        char if char.isprintable() or char in allowed else char.encode("unicode_escape").decode() for char in text
    )


def shorten_id(value: object, room: int = 40) -> str:
    """Return an id cut to ``room`` columns (…), in quotes if it is blank.

    Parameters
    ----------
    value : object
        Id.
    room : int, default=40
        Largest number of columns.

    Returns
    -------
    str
    """
    from rich.cells import cell_len, set_cell_size

    text = str(value)
    if not text.strip(" "):
        text = f"'{text}'"
    shown = escape_controls(text[:room])
    if len(text) <= room and cell_len(shown) <= room:
        return shown
    return (shown if cell_len(shown) < room else set_cell_size(shown, room - 1)) + "…"


def show_facts(rows: Iterable[tuple[str, str]], *, width: int = 0) -> None:
    """Print lines of the form *name  value* with aligned values, at least ``width`` columns from the left.

    Parameters
    ----------
    rows : iterable of tuple
        Names and values.
    width : int, default=0
        Smallest distance of the values from the left, in columns.
    """
    facts = list(rows)
    width = max(width, *(len(what) + GAP for what, _ in facts))
    for what, value in facts:
        show_hanging(what.ljust(width), value, style="bold")


def show_bullets(lines: Iterable[str]) -> None:
    """Print a bulleted list."""
    for line in lines:
        show_hanging("- ", line)


def show_hanging(start: str, text: str, style: str = "") -> None:
    """Print ``start`` and a text with a hanging indent. Only blanks break lines, so that paths and ids can be copied.

    A text that is a command line is not broken at all.

    Parameters
    ----------
    start : str
        Beginning of the first line.
    text : str
        Text, whose further lines are indented by the width of ``start``.
    style : str, default=""
        Style of ``start``.
    """
    from rich.cells import cell_len
    from rich.text import Text

    out = console()
    indent = cell_len(start)
    is_command = text.startswith("wisecrowd ")
    lines = [escape_controls(text)] if is_command else _wrapped(escape_controls(text), max(out.width - indent, 20))
    for number, line in enumerate(lines):
        out.print(Text.assemble((start if number == 0 else " " * indent, style), line), soft_wrap=True)


def _wrapped(text: str, room: int) -> list[str]:
    """Wrap a text by display width; `textwrap` ignores that some characters take two columns or none."""
    from rich.cells import cell_len

    lines = [""]
    for word in re.findall(r" *[^ ]+", text):
        if lines[-1] and cell_len(lines[-1] + word) > room:
            lines.append(word.lstrip(" "))
        else:
            lines[-1] += word
    return lines


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, n_text_columns: int = 1, fold: str | None = None
) -> Table:
    """Return a table whose first ``n_text_columns`` columns are left-aligned text and the others right-aligned figures.

    Where it is too wide, the column ``fold`` is continued below; without one, the widest text is cut, and the cut is
    shown (…). Figures are never cut.

    Parameters
    ----------
    columns : sequence of str
        Column headings.
    rows : iterable of list
        Cells by row.
    n_text_columns : int, default=1
        Number of text columns.
    fold : str, optional
        Column that continues below if the table is too wide.

    Returns
    -------
    Table
    """
    from rich.cells import cell_len
    from rich.table import Table

    cells = [[escape_controls(cell) for cell in row] for row in rows]
    width = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    excess = sum(width) + GAP * (len(width) - 1) - console().width
    widest = max(range(n_text_columns), key=lambda position: width[position])
    if excess > 0 and fold is None:
        width[widest] = max(width[widest] - excess, 1)
    rich_table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for position, name in enumerate(columns):
        if name == fold:
            rich_table.add_column(name, overflow="fold")
        else:
            side = "left" if position < n_text_columns else "right"
            rich_table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", max_width=width[position])  # type: ignore[arg-type]
    for row in cells:
        rich_table.add_row(*row)
    return rich_table
