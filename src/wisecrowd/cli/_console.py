"""How the command line looks: results on standard output, all else on standard error, 80 columns, plain in a pipe."""

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
    """Where to print. Ids are data: nothing in them is taken for markup, emoji or a number to colour."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def show(thing: Any = "", *, style: str | None = None) -> None:
    """Print a line or a table on standard output; a line is wrapped between words."""
    out = console()
    thing = visible(thing) if isinstance(thing, str) else thing
    if out.is_terminal:
        out.print(thing, style=style)
        return
    with out.capture() as captured:
        out.print(thing, style=style)
    # A table fills its columns with blanks, which nobody wants in a file.
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_verbatim(text: str) -> None:
    """Print text without wrapping it, so that commands and formulas can be copied."""
    console().print(visible(text, lines=True), soft_wrap=True)


def show_json(value: Any) -> None:
    """Print JSON in which every character can be seen; what reads it gets the same texts."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # Whatever cannot be printed stands in a text, where JSON has a spelling for it.
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def heading(text: str) -> None:
    """Print a heading, with an empty line before it."""
    show()
    show(text, style="bold")


def remark(text: str, style: str | None = None) -> None:
    """Print a line on standard error, unbroken, so that what it names can be copied."""
    console(stderr=True).print(visible(text, lines=True), style=style, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning."""
    remark(f"Warning: {text}", style="yellow")


def watched(*, quiet: bool = False) -> AbstractContextManager[None]:
    """Draw the progress of what takes long inside the block, if somebody is there to see it."""
    from wisecrowd.utils import progress

    return nullcontext() if quiet or not console(stderr=True).is_terminal else progress.show()


def visible(value: object, *, lines: bool = False) -> str:
    """A text as it can be shown, on one line unless it may have ``lines``: what a terminal would obey is spelled out."""
    text = str(value)
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode() for char in text
    )


def shortened(value: object, room: int = 40) -> str:
    """An id that leaves room for the rest of its line: the end of a long one is cut (…), and a blank one has quotes."""
    from rich.cells import cell_len, set_cell_size

    text = str(value)
    if not text.strip(" "):
        text = f"'{text}'"
    seen = visible(text[:room])
    if len(text) <= room and cell_len(seen) <= room:
        return seen
    return (seen if cell_len(seen) < room else set_cell_size(seen, room - 1)) + "…"


def show_facts(rows: Iterable[tuple[str, str]], *, width: int = 0) -> None:
    """Print lines of the form *what  value*, the values below each other, ``width`` or more from the left."""
    told = list(rows)
    width = max(width, *(len(what) + GAP for what, _ in told))
    for what, value in told:
        show_hanging(what.ljust(width), value, style="bold")


def show_bullets(lines: Iterable[str]) -> None:
    """Print sentences below each other, each with a dash."""
    for line in lines:
        show_hanging("- ", line)


def show_hanging(start: str, text: str, style: str = "") -> None:
    """Print a text that continues below itself; ``start`` stands before its first line.

    It is wrapped between words only: a path or an id stays in one chunk, even if it is too long for the line.
    """
    from rich.cells import cell_len
    from rich.text import Text

    out = console()
    indent = cell_len(start)
    for number, line in enumerate(_wrapped(visible(text), max(out.width - indent, 20))):
        out.print(Text.assemble((start if number == 0 else " " * indent, style), line), soft_wrap=True)


def _wrapped(text: str, room: int) -> list[str]:
    """Lines of whole words. Letters of some scripts are two columns wide, and some have none, which textwrap ignores."""
    from rich.cells import cell_len

    lines = [""]
    for word in re.findall(r" *[^ ]+", text):
        if lines[-1] and cell_len(lines[-1] + word) > room:
            lines.append(word.lstrip(" "))
        else:
            lines[-1] += word
    return lines


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1, fold: str | None = None) -> Table:
    """A table whose first ``left`` columns hold text and the others figures, aligned to the right.

    Where it is too wide, the column ``fold`` is continued below; without one, the widest text is cut, and the cut is
    shown (…). Figures are never cut.
    """
    from rich.cells import cell_len
    from rich.table import Table

    cells = [[visible(cell) for cell in row] for row in rows]
    width = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    excess = sum(width) + GAP * (len(width) - 1) - console().width
    widest = max(range(left), key=lambda position: width[position])
    if excess > 0 and fold is None:
        width[widest] = max(width[widest] - excess, 1)
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for position, name in enumerate(columns):
        if name == fold:
            made.add_column(name, overflow="fold")
        else:
            side = "left" if position < left else "right"
            made.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", max_width=width[position])  # type: ignore[arg-type]
    for row in cells:
        made.add_row(*row)
    return made
