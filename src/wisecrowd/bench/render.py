"""Tables of a benchmark as plain text for a terminal, and as a Markdown page."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.cells import OK, Row
from wisecrowd.bench.table import (
    BenchmarkScores,
    ColumnGroup,
    ResultTable,
    build_leaderboard,
    build_table,
    format_seconds,
)

#: Width of a Markdown table in characters; wider tables need a scroll bar.
PAGE_WIDTH = 90
#: Spaces between two columns.
_GAP = 2


def render_text(
    benchmark: Benchmark,
    rows: Iterable[Row],
    *,
    width: int = 80,
    only: tuple[Collection[str], Collection[str]] | None = None,
) -> str:
    """Render the tables of a benchmark and their footnotes as plain text.

    Parameters
    ----------
    benchmark : Benchmark
        Benchmark that was run.
    rows : iterable of dict
        Stored rows.
    width : int, default=80
        Maximum number of characters in a line.
    only : tuple of (collection of str, collection of str), optional
        Titles of the entries and of the data to show; an empty collection stands for all.

    Returns
    -------
    str
    """
    row_list = list(rows)
    scores = BenchmarkScores(benchmark, row_list, only)
    tables = _build_tables(scores)
    parts = ["\n".join(_text_lines(table, groups)) for table in tables for groups in _split_columns(table, width)]
    parts.append("\n".join(_wrap_notes(scores.notes, width)))
    findings = _get_findings(benchmark, row_list)
    parts += [
        finding if "\n" in finding else textwrap.fill(finding, width) for finding in findings
    ]  # tables stay as they are
    return "\n\n".join(part for part in parts if part)


def render_markdown(benchmark: Benchmark, rows: Sequence[Row]) -> str:
    """Render the page of a benchmark in Markdown.

    Parameters
    ----------
    benchmark : Benchmark
        Benchmark that was run.
    rows : sequence of dict
        Stored rows.

    Returns
    -------
    str
        Title, remarks, command, tables, footnotes, findings, and a description of the run.
    """
    scores = BenchmarkScores(benchmark, rows)
    parts = [f"# {benchmark.title}", *benchmark.remarks, *_cite_references(benchmark)]
    parts.append(f"```sh\nwisecrowd bench run {benchmark.name}\n```")
    tables = _build_tables(scores)
    parts += [
        "\n".join(_markdown_lines(table, groups)) for table in tables for groups in _split_columns(table, PAGE_WIDTH)
    ]
    parts += ["\n".join(f"{position}. {note}" for position, note in enumerate(scores.notes, 1))] if scores.notes else []
    last = [*_get_findings(benchmark, rows), describe_seeds(benchmark, rows), describe_run(rows)]
    return "\n\n".join([*parts, *(part for part in last if part)]) + "\n"


def describe_seeds(benchmark: Benchmark, rows: Iterable[Row]) -> str:
    """Describe the seeds that were run, and what the benchmark has and was not run.

    Parameters
    ----------
    benchmark : Benchmark
        Benchmark that was run.
    rows : iterable of dict
        Stored rows.

    Returns
    -------
    str
        One paragraph; empty if there are no rows.

    Examples
    --------
    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> from wisecrowd.bench.entries import Aggregate
    >>> small = Benchmark(title="", entries={"MV": Aggregate("majority-vote")}, data={"easy": SimulatedDataset({})}, seeds=3)
    >>> describe_seeds(small, [{"entry": "MV", "data": "easy", "seed": seed} for seed in (0, 1)])
    'Seeds: MV 2 of 3.'
    """
    seeds: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        seeds.setdefault((row["entry"], row["data"]), set()).add(int(row["seed"]))
    if not seeds:
        return ""
    expected = Counter((entry, data) for entry, data, _ in benchmark.cells)
    states: dict[tuple[int, int], dict[str, list[str]]] = {}
    for cell in dict.fromkeys([*expected, *seeds]):
        n_run = len(seeds.get(cell, ()))
        state = n_run, max(expected.get(cell, n_run), 1)
        states.setdefault(state, {}).setdefault(cell[0], []).append(cell[1])
    n_data = Counter(entry for entry, _ in {*expected, *seeds})
    complete = sorted(n_run for n_run, n_expected in states if n_run >= n_expected)
    parts = [f"{', '.join(map(str, complete))} per cell" if complete else ""]
    for (n_run, n_expected), entries in sorted(states.items(), reverse=True):
        if n_run < n_expected:
            titles = [
                title if len(data) == n_data[title] else f"{title} on {', '.join(data)}"
                for title, data in entries.items()
            ]
            listed = "; ".join(titles)
            parts.append(f"{listed} {n_run} of {n_expected}" if n_run else f"Not run: {listed}")
    return f"Seeds: {'. '.join(part for part in parts if part)}."


def describe_run(rows: Iterable[Row]) -> str:
    """Describe a run in one paragraph: number of results, time, dates, versions and machine.

    Parameters
    ----------
    rows : iterable of dict
        Stored rows.

    Returns
    -------
    str
    """
    row_list = list(rows)
    if not row_list:
        return "Nothing has been run yet."
    states = Counter(row["status"] for row in row_list)
    counts = ", ".join(f"{n:,} {state}" for state, n in sorted(states.items()) if state != OK)
    n_unconverged = sum(row["status"] == OK and row.get("converged") is False for row in row_list)
    n_confirmed = sum("confirmed" in row for row in row_list)
    days = sorted({row["finished"][:10] for row in row_list})
    total = sum(row["seconds"] for row in row_list)
    parts = [
        f"{states[OK]:,} answers"
        + (f" ({counts})" if counts else "")
        + f" in {format_seconds(total)} seconds of computing",
        f"{n_unconverged:,} of them ended at their limit of iterations" if n_unconverged else "",
        f"{n_confirmed:,} of them confirmed after a change of code by running a sample again" if n_confirmed else "",
        f"run {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else ""),
        "with " + ", ".join(_list_versions(row_list)),
        "on " + " and ".join(sorted({row["machine"] for row in row_list})),
    ]
    return "; ".join(part for part in parts if part) + "."


def _build_tables(scores: BenchmarkScores) -> list[ResultTable]:
    """Return the table of a benchmark, after its leaderboard if it has one."""
    table = build_table(scores)
    return [build_leaderboard(scores), table] if scores.benchmark.ranked else [table]


def _get_findings(benchmark: Benchmark, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the paragraphs below the table."""
    return () if benchmark.findings is None else benchmark.findings(rows)


def _cite_references(benchmark: Benchmark) -> list[str]:
    """Return the sentence that cites the papers with the published values."""
    from wisecrowd.base.citations import format_citation

    if not benchmark.references:
        return []
    return [f"Published figures: {', '.join(format_citation(key) for key in benchmark.references)}."]


def _list_versions(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the versions of the main packages."""
    for package in ("wisecrowd", "python", "numpy", "scipy", "numba"):
        versions = sorted({row[package] for row in rows if row.get(package)})
        if versions:
            yield f"{package} {'/'.join(versions)}"


def _wrap_notes(notes: Sequence[str], width: int) -> Iterator[str]:
    """Yield the footnotes with their scores, wrapped to the width."""
    for position, note in enumerate(notes, 1):
        number = f"{position}. "
        yield textwrap.fill(note, width, initial_indent=number, subsequent_indent=" " * len(number))


# ---------------------------------------------------------------------- widths


def _split_columns(table: ResultTable, width: int) -> Iterator[list[ColumnGroup]]:
    """Yield the column groups that fit side by side into the width."""
    first = max(map(len, [table.corner, *table.titles, *table.footer]))
    block: list[ColumnGroup] = []
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


def _widths(group: ColumnGroup) -> list[int]:
    """Return the widths of the columns of a group; the last one makes room for the title."""
    widths = [max(map(len, texts)) for texts in zip(group.columns, *group.cells, *group.footer, strict=True)]
    missing = len(group.title) - sum(widths) - _GAP * (len(widths) - 1)
    return [*widths[:-1], widths[-1] + max(missing, 0)]


# ---------------------------------------------------------------------- printing


def _find_nonempty_rows(table: ResultTable, groups: list[ColumnGroup]) -> list[tuple[int, str]]:
    """Return positions and titles of the rows that are not empty in these columns."""
    return [
        (position, title)
        for position, title in enumerate(table.titles)
        if any(any(group.cells[position]) for group in groups)
    ]


def _text_lines(table: ResultTable, groups: list[ColumnGroup]) -> Iterator[str]:
    """Yield the lines of a table in plain text."""
    first = max(map(len, [table.corner, *table.titles, *table.footer]))
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
    for position, title in _find_nonempty_rows(table, groups):
        yield line(title, [group.cells[position] for group in groups])
    if table.footer:
        yield ""
    for position, title in enumerate(table.footer):
        yield line(title, [group.footer[position] for group in groups])


def _markdown_lines(table: ResultTable, groups: list[ColumnGroup]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""

    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    heads = [_column_titles(group) for group in groups]
    columns = [table.corner, *(head for parts in heads for head in parts)]
    yield line(columns)
    yield line("---" for _ in columns)
    for position, title in _find_nonempty_rows(table, groups):
        yield line([title, *(text for group in groups for text in group.cells[position])])
    for position, title in enumerate(table.footer):
        yield line([f"*{title}*", *(text for group in groups for text in group.footer[position])])


def _column_titles(group: ColumnGroup) -> list[str]:
    """Return the titles of the columns of a group in Markdown."""
    if len(group.columns) == 1:
        return [group.title]
    return [f"{group.title}<br>{group.columns[0]}", *group.columns[1:]]
