"""``wisecrowd methods``: list the methods, or describe one."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._console import GAP, console, heading, show, show_facts, show_verbatim, table

if TYPE_CHECKING:
    from wisecrowd.base.method import Method


SUMMARY = "model"
#: Title and input of each kind of method.
KINDS = {
    "aggregate": ("Infer labels from votes", "votes.csv"),
    "learn": ("Train a classifier on votes and features", "votes.csv --features X.npz"),
    "complete": ("Predict missing votes", "votes.csv"),
}


class Mark(NamedTuple):
    """Mark of methods that need another input than their command usually takes."""

    text: str
    meaning: str
    arguments: str


#: Marks by answer type, of methods that take no votes on plain classes; the first that applies is shown.
ANSWER_MARKS = {
    "ordinal": Mark("[ratings]", "takes ordered classes: add --ordered", "ratings.csv --ordered"),
    "numeric": Mark("[numbers]", "aggregates numbers: add --numeric", "ratings.csv --numeric"),
    "pairwise": Mark("[pairs]", "scores items by comparisons of two", "arena.csv"),
    "multilabel": Mark("[sets]", "infers which of several labels apply", "tags.csv"),
    "boxes": Mark("[boxes]", "infers objects from boxes on images", "boxes.csv"),
    "points": Mark("[points]", "infers objects from points on images", "points.csv"),
    "polygons": Mark("[polygons]", "infers objects from polygons on images", "polygons.csv"),
    "spans": Mark("[spans]", "infers spans of texts", "spans.csv"),
    "masks": Mark("[masks]", "infers masks of images, pixel by pixel", "masks.csv"),
    "texts": Mark("[texts]", "combines texts, such as transcriptions", "texts.csv"),
}
#: Mark of aggregators and completers that use features.
FEATURES = Mark("[features]", "uses features of the tasks: add --features X.npz", "votes.csv --features X.npz")


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="METHOD", show_default=False, help="Method to describe.")
    ] = None,
) -> None:
    """List the methods, or describe one: model, when to choose it, parameters and paper.

    Examples:

      wisecrowd methods
      wisecrowd methods dawid-skene

    Use the names with the option -m of wisecrowd aggregate, learn and complete.
    """
    if name is None:
        _list()
    else:
        from wisecrowd.base.registry import find

        _page(find(name))


def _list() -> None:
    from wisecrowd.base.citations import format_citation
    from wisecrowd.base.registry import kind_of
    from wisecrowd.base.registry import methods as list_methods

    all_methods = list_methods()
    first = max(map(len, all_methods))
    for kind, (what, arguments) in KINDS.items():
        members = {name: method for name, method in all_methods.items() if kind_of(method) == kind}
        show(what, style="bold")
        show_verbatim(f"  wisecrowd {kind} {arguments} -m METHOD")
        columns = {
            "method".ljust(first): list(members),
            SUMMARY: [_mark_summary(method) for method in members.values()],
            "paper": [
                format_citation(method.references[0]) if method.references else "" for method in members.values()
            ],
        }
        others = [max(map(len, [title, *cells])) for title, cells in columns.items() if title != SUMMARY]
        room = max(console().width - sum(others) - GAP * len(others), 20)
        columns[SUMMARY] = [_cut(text, room) for text in columns[SUMMARY]]
        rows = list(zip(*columns.values(), strict=True))
        show(table(list(columns), rows, n_text_columns=len(columns), fold=SUMMARY))
        show()
    used_marks = {_find_mark(method) for method in all_methods.values()}
    for mark in (*ANSWER_MARKS.values(), FEATURES):
        if mark in used_marks:
            show(f"{mark.text} {mark.meaning}")
    streaming = [name for name, method in all_methods.items() if getattr(method, "streams", False)]
    show(f"Methods for votes in shards (wisecrowd shard): {', '.join(streaming)}")
    show("Describe a method: wisecrowd methods dawid-skene")


def _find_mark(method: type[Method]) -> Mark | None:
    """Return the mark of a method that needs another input than its command usually takes."""
    if "categorical" not in method.answer_types:
        return next(mark for answer_type, mark in ANSWER_MARKS.items() if answer_type in method.answer_types)
    return FEATURES if getattr(method, "uses_features", False) else None


def _mark_summary(method: type[Method]) -> str:
    """Return the summary of a method after its mark."""
    mark, summary = _find_mark(method), method.summary().replace("`", "")
    return summary if mark is None else f"{mark.text} {summary}"


def _cut(text: str, room: int) -> str:
    """Return a text cut to two lines."""
    return " ".join(textwrap.wrap(text, room, max_lines=2, placeholder=" …", break_on_hyphens=False))


def _page(method: type[Method]) -> None:
    from wisecrowd.base.citations import format_citation, get_entry
    from wisecrowd.base.registry import kind_of

    text, example = _split(inspect.getdoc(method) or "")
    show_facts([(method.name, f"wisecrowd.{method.__name__} in Python; kind: {kind_of(method)}")])
    show()
    show_verbatim(text)
    fields = parameter_fields(method)
    if fields:
        heading("Parameters: -p name=value")
        rows = [(field.name, _default(field), field.metadata.get("help", "")) for field in fields]
        show(table(["name", "default", "meaning"], rows, n_text_columns=3, fold="meaning"))
    heading("On the command line")
    mark = _find_mark(method)
    arguments = KINDS[kind_of(method)][1] if mark is None else mark.arguments
    show_verbatim(f"  wisecrowd {kind_of(method)} {arguments} -m {method.name} -o results")
    if example:
        heading("In Python")
        show_verbatim(textwrap.indent(example, "  "))
    if method.references:
        heading(f"Papers: wisecrowd cite {method.name}")
        show_facts((format_citation(key), _title(get_entry(key))) for key in method.references)


def _split(page: str) -> tuple[str, str]:
    """Return the prose of a docstring, wrapped for a terminal, and its example."""
    prose, prompt, example = page.partition(">>> ")
    # Parameters are shown as a table, so the sections of the docstring are left out.
    prose = re.split(r"^(?:Parameters|Attributes|Examples)\n-+$", prose, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = []
    for block in prose.strip("\n").split("\n\n"):
        plain = re.sub(r"`+([^`]*)`+", r"\1", block)
        # Indented blocks are formulas and keep their lines.
        blocks.append(plain if block.startswith(" ") else textwrap.fill(plain, console().width))
    return "\n\n".join(blocks).rstrip(), (prompt + example).rstrip()


def _default(field: dataclasses.Field[object]) -> str:
    return "" if field.default is dataclasses.MISSING else str(field.default)


def _title(bibtex: str) -> str:
    title = re.search(r"^\s*title\s*=\s*\{(.*)\},$", bibtex, re.MULTILINE)
    return re.sub(r"[{}]", "", title.group(1)) if title else ""
