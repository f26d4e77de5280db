"""``wisecrowd methods``: what there is to choose from."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._console import GAP, console, heading, show, show_facts, show_verbatim, table

if TYPE_CHECKING:
    from wisecrowd.base.method import Method

WIDTH = 80

SUMMARY = "what it assumes"
#: What each kind of method does or needs, and what its command is given.
KINDS = {
    "aggregate": ("From votes", "votes.csv"),
    "learn": ("From votes and features", "votes.csv --features X.npz"),
    "complete": ("What workers would have said", "votes.csv"),
}
#: What stands before the summary of a method that takes no classes.
NUMBERS = "[numbers] "
#: What stands before the summary of an aggregator or completer that looks at more than votes.
FEATURES = "[features] "


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="METHOD", show_default=False, help="Show this method's page.")
    ] = None,
) -> None:
    """List the methods, or show the page of one: its model, when to choose it, its parameters and its paper.

    Examples:

      wisecrowd methods
      wisecrowd methods dawid-skene

    The names are those that -m of wisecrowd aggregate, wisecrowd learn and wisecrowd complete takes.
    """
    if name is None:
        _list()
    else:
        from wisecrowd.base.registry import find

        _page(find(name))


def _list() -> None:
    from wisecrowd.base.citations import short
    from wisecrowd.base.registry import kind_of
    from wisecrowd.base.registry import methods as known

    found = known()
    first = max(map(len, found))
    for kind, (what, given) in KINDS.items():
        members = {name: method for name, method in found.items() if kind_of(method) == kind}
        show(f"{what}: wisecrowd {kind} {given} -m METHOD", style="bold")
        columns = {
            "method".ljust(first): list(members),
            SUMMARY: [_mark(method) + method.summary() for method in members.values()],
            "paper": [short(method.references[0]) if method.references else "" for method in members.values()],
        }
        others = [max(map(len, [title, *cells])) for title, cells in columns.items() if title != SUMMARY]
        room = max(console().width - sum(others) - GAP * len(others), 20)
        columns[SUMMARY] = [_cut(text, room) for text in columns[SUMMARY]]
        rows = list(zip(*columns.values(), strict=True))
        show(table(list(columns), rows, left=len(columns), fold=SUMMARY))
        show()
    if any(method.numeric for method in found.values()):
        show(f"{NUMBERS.strip()} takes labels that are numbers, read with --numeric")
    if any(_mark(method) == FEATURES for method in found.values()):
        show(f"{FEATURES.strip()} also looks at features of the tasks, given with --features X.npz")
    streaming = [name for name, method in found.items() if getattr(method, "streams", False)]
    show(f"On votes in shards (wisecrowd shard), too: {', '.join(streaming)}")
    show("The page of a method: wisecrowd methods dawid-skene")


def _mark(method: type[Method]) -> str:
    """What a method wants beyond what its command is always given."""
    if method.numeric:
        return NUMBERS
    return FEATURES if getattr(method, "uses_features", False) else ""


def _cut(text: str, room: int) -> str:
    """As much of a text as goes on two lines."""
    return " ".join(textwrap.wrap(text, room, max_lines=2, placeholder=" …", break_on_hyphens=False))


def _page(method: type[Method]) -> None:
    from wisecrowd.base.citations import entry, short
    from wisecrowd.base.registry import kind_of

    text, example = _split(inspect.getdoc(method) or "")
    show_facts([(method.name, f"wisecrowd.{method.__name__} in Python; kind: {kind_of(method)}")])
    show()
    show_verbatim(text)
    fields = parameter_fields(method)
    if fields:
        heading("Parameters: -p name=value")
        rows = [(field.name, _default(field), field.metadata.get("help", "")) for field in fields]
        show(table(["name", "default", "meaning"], rows, left=3, fold="meaning"))
    heading("On the command line")
    given = {NUMBERS: "ratings.csv --numeric", FEATURES: "votes.csv --features X.npz"}.get(
        _mark(method), KINDS[kind_of(method)][1]
    )
    show_verbatim(f"  wisecrowd {kind_of(method)} {given} -m {method.name} -o results")
    if example:
        heading("In Python")
        show_verbatim(textwrap.indent(example, "  "))
    if method.references:
        heading(f"Papers: wisecrowd cite {method.name}")
        show_facts((short(key), _title(entry(key))) for key in method.references)


def _split(page: str) -> tuple[str, str]:
    """The prose of a docstring, wrapped for a terminal, and its example."""
    prose, prompt, example = page.partition(">>> ")
    blocks = []
    for block in prose.strip("\n").split("\n\n"):
        plain = re.sub(r"`+([^`]*)`+", r"\1", block)
        # What is indented is a formula, whose lines mean something.
        blocks.append(plain if block.startswith(" ") else textwrap.fill(plain, WIDTH))
    return "\n\n".join(blocks).rstrip(), (prompt + example).rstrip()


def _default(field: dataclasses.Field[object]) -> str:
    return "" if field.default is dataclasses.MISSING else str(field.default)


def _title(bibtex: str) -> str:
    found = re.search(r"^\s*title\s*=\s*\{(.*)\},$", bibtex, re.MULTILINE)
    return re.sub(r"[{}]", "", found.group(1)) if found else ""
