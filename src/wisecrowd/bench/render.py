"""A table as text that fits a terminal, and as Markdown for people and for the documentation."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.cells import OK, Row
from wisecrowd.bench.table import Group, Numbers, Table, leaderboard, seconds_text, table_of

#: A Markdown table wider than this would have to be scrolled.
PAGE = 90
_GAP = 2


def as_text(
    benchmark: Benchmark,
    rows: Iterable[Row],
    *,
    width: int = 80,
    only: tuple[Collection[str], Collection[str]] | None = None,
) -> str:
    """The tables of a benchmark, each no wider than ``width``, and their footnotes."""
    row_list = list(rows)
    numbers = Numbers(benchmark, row_list, only)
    tables = _tables(numbers)
    parts = ["\n".join(_text_lines(table, groups)) for table in tables for groups in _fitting(table, width)]
    parts.append("\n".join(_wrapped(numbers.notes, width)))
    parts += [textwrap.fill(finding, width) for finding in _findings(benchmark, row_list)]
    return "\n\n".join(part for part in parts if part)


def as_markdown(benchmark: Benchmark, rows: Sequence[Row]) -> str:
    """A page: what the benchmark is, how to run it again, its tables, footnotes, and what it was run with."""
    numbers = Numbers(benchmark, rows)
    parts = [f"# {benchmark.title}", *benchmark.remarks, *_references(benchmark)]
    parts.append(f"```sh\nwisecrowd bench run {benchmark.name}\n```")
    tables = _tables(numbers)
    parts += ["\n".join(_markdown_lines(table, groups)) for table in tables for groups in _fitting(table, PAGE)]
    parts += (
        ["\n".join(f"{position}. {note}" for position, note in enumerate(numbers.notes, 1))] if numbers.notes else []
    )
    return "\n\n".join([*parts, *_findings(benchmark, rows), provenance(rows)]) + "\n"


def provenance(rows: Iterable[Row]) -> str:
    """One paragraph: how much was run, when, with what, and on which machine."""
    row_list = list(rows)
    if not row_list:
        return "Nothing has been run yet."
    states = Counter(row["status"] for row in row_list)
    counts = ", ".join(f"{n:,} {state}" for state, n in sorted(states.items()) if state != OK)
    unsettled = sum(row["status"] == OK and row.get("converged") is False for row in row_list)
    days = sorted({row["finished"][:10] for row in row_list})
    total = sum(row["seconds"] for row in row_list)
    parts = [
        f"{states[OK]:,} answers"
        + (f" ({counts})" if counts else "")
        + f" in {seconds_text(total)} seconds of computing",
        f"{unsettled:,} of them ended at their limit of iterations" if unsettled else "",
        f"run {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else ""),
        "with " + ", ".join(_versions(row_list)),
        "on " + " and ".join(sorted({row["machine"] for row in row_list})),
    ]
    return "; ".join(part for part in parts if part) + "."


def _tables(numbers: Numbers) -> list[Table]:
    whole = table_of(numbers)
    return [leaderboard(numbers), whole] if numbers.benchmark.ranked else [whole]


def _findings(benchmark: Benchmark, rows: Sequence[Row]) -> tuple[str, ...]:
    return () if benchmark.findings is None else benchmark.findings(rows)


def _references(benchmark: Benchmark) -> list[str]:
    from wisecrowd.base.citations import format_citation

    if not benchmark.references:
        return []
    return [f"Published figures: {', '.join(format_citation(key) for key in benchmark.references)}."]


def _versions(rows: Sequence[Row]) -> Iterator[str]:
    for package in ("wisecrowd", "python", "numpy", "scipy", "numba"):
        versions = sorted({row[package] for row in rows if row.get(package)})
        if versions:
            yield f"{package} {'/'.join(versions)}"


def _wrapped(notes: Sequence[str], width: int) -> Iterator[str]:
    for position, note in enumerate(notes, 1):
        number = f"{position}. "
        yield textwrap.fill(note, width, initial_indent=number, subsequent_indent=" " * len(number))


# ---------------------------------------------------------------------- widths


def _fitting(table: Table, width: int) -> Iterator[list[Group]]:
    """Groups of columns that stand side by side."""
    first = max(map(len, [table.corner, *table.titles, *table.foot]))
    block: list[Group] = []
    used = first
    for group in table.groups:
        needed = sum(_widths(group)) + _GAP * len(group.columns)
        if block and used + needed > width:
            yield block
            block, used = [], first
        block.append(group)
        used += needed
    if block:
        yield block


def _widths(group: Group) -> list[int]:
    """The widths of a group's columns; the last makes room for the title."""
    widths = [max(map(len, texts)) for texts in zip(group.columns, *group.cells, *group.foot, strict=True)]
    missing = len(group.title) - sum(widths) - _GAP * (len(widths) - 1)
    return [*widths[:-1], widths[-1] + max(missing, 0)]


# ---------------------------------------------------------------------- printing


def _filled(table: Table, groups: list[Group]) -> list[tuple[int, str]]:
    """The rows that have something to show in these columns."""
    return [
        (position, title)
        for position, title in enumerate(table.titles)
        if any(any(group.cells[position]) for group in groups)
    ]


def _text_lines(table: Table, groups: list[Group]) -> Iterator[str]:
    first = max(map(len, [table.corner, *table.titles, *table.foot]))
    gap = " " * _GAP
    widths = [_widths(group) for group in groups]
    spans = [sum(parts) + _GAP * (len(parts) - 1) for parts in widths]

    def line(title: str, texts: Sequence[tuple[str, ...]]) -> str:
        cells = [
            text.ljust(wide)
            for parts, cells in zip(widths, texts, strict=True)
            for wide, text in zip(parts, cells, strict=True)
        ]
        return gap.join([title.ljust(first), *cells]).rstrip()

    has_names = any(len(group.columns) > 1 for group in groups)
    titles = [group.title.ljust(span) for group, span in zip(groups, spans, strict=True)]
    yield gap.join([("" if has_names else table.corner).ljust(first), *titles]).rstrip()
    if has_names:
        yield line(table.corner, [group.columns for group in groups])
    yield "─" * (first + sum(_GAP + span for span in spans))
    for position, title in _filled(table, groups):
        yield line(title, [group.cells[position] for group in groups])
    if table.foot:
        yield ""
    for position, title in enumerate(table.foot):
        yield line(title, [group.foot[position] for group in groups])


def _markdown_lines(table: Table, groups: list[Group]) -> Iterator[str]:
    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    heads = [_heads(group) for group in groups]
    columns = [table.corner, *(head for parts in heads for head in parts)]
    yield line(columns)
    yield line("---" for _ in columns)
    for position, title in _filled(table, groups):
        yield line([title, *(text for group in groups for text in group.cells[position])])
    for position, title in enumerate(table.foot):
        yield line([f"*{title}*", *(text for group in groups for text in group.foot[position])])


def _heads(group: Group) -> list[str]:
    if len(group.columns) == 1:
        return [group.title]
    return [f"{group.title}<br>{group.columns[0]}", *group.columns[1:]]
