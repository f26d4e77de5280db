"""Tables of a benchmark from its stored rows: published values, our values, differences, ranks and footnotes.

`wisecrowd.bench.benchmark` explains entries and figures.
`wisecrowd.bench.render` prints them.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from wisecrowd.bench.benchmark import FIGURES, Benchmark, Figure
from wisecrowd.bench.cells import FAILED, OK, TOO_SLOW, Row

#: Share of the data for which an entry needs a result to be ranked; entries that skip the hard data would rank too high.
MIN_SHARE_TO_RANK = 0.8

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Heading(NamedTuple):
    """Heading of a row or column: an entry (``data`` is empty), or a figure of data (``entry`` is empty).

    Attributes
    ----------
    entry : str
        Title of the entry.
    data : str
        Title of the data.
    figure : str
        Name of the figure.
    """

    entry: str = ""
    data: str = ""
    figure: str = ""


@dataclass(frozen=True)
class CellScores:
    """Published value and our value of a figure, for one entry on one dataset.

    Attributes
    ----------
    figure : Figure
        Display format.
    paper : float or None
        Published value.
    ours : float or None
        Mean over the seeds.
    spread : float or None
        Standard deviation over the seeds.
    state : str
        State of the rows; empty if there are none.
    seconds : float
        Mean running time.
    comparable : bool
        False if the published value measures something else.
    notes : str
        Numbers of the footnotes.
    """

    figure: Figure
    paper: float | None
    ours: float | None
    spread: float | None
    state: str
    seconds: float
    comparable: bool = True
    notes: str = ""

    @property
    def difference(self) -> float | None:
        """Our value minus the published one, or None if they cannot be compared."""
        if self.ours is None or self.paper is None or not self.comparable:
            return None
        return self.ours - self.paper

    @property
    def is_empty(self) -> bool:
        """True if there is no published value and no row."""
        return self.paper is None and not self.state


class CellTexts(NamedTuple):
    """Texts of a cell with a published value.

    Attributes
    ----------
    paper : str
        Published value.
    ours : str
        Our value.
    difference : str
        Our value minus the published one.
    """

    paper: str = ""
    ours: str = ""
    difference: str = ""


@dataclass(frozen=True)
class ColumnGroup:
    """One or three columns under one title, as texts.

    Attributes
    ----------
    title : str
        Title above the columns.
    columns : tuple of str
        Titles of the columns.
    cells : sequence of tuple of str
        One tuple per row.
    footer : sequence of tuple of str
        One tuple per row below the table.
    """

    title: str
    columns: tuple[str, ...]
    cells: Sequence[tuple[str, ...]]
    footer: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class ResultTable:
    """Table as texts.

    Attributes
    ----------
    corner : str
        Title of the column of row titles.
    titles : list of str
        Titles of the rows.
    footer : list of str
        Titles of the rows below the table.
    groups : list of ColumnGroup
        Groups of columns.
    notes : list of str
        Footnotes.
    """

    corner: str
    titles: list[str]
    footer: list[str]
    groups: list[ColumnGroup]
    notes: list[str] = field(default_factory=list)


class BenchmarkScores:
    """Scores of a benchmark by entry, data and figure.

    Parameters
    ----------
    benchmark : Benchmark
        Benchmark that was run.
    rows : iterable of dict
        Stored rows.
    only : tuple of (collection of str, collection of str), optional
        Titles of the entries and of the data to show; an empty collection stands for all.

    Attributes
    ----------
    entries, data : list of str
        Titles to show.
    notes : list of str
        Footnotes in the order in which they were marked.
    """

    def __init__(
        self, benchmark: Benchmark, rows: Iterable[Row], only: tuple[Collection[str], Collection[str]] | None = None
    ) -> None:
        self.benchmark = benchmark
        self._rows: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            self._rows.setdefault((row["entry"], row["data"]), []).append(row)
        entries, data = only or ((), ())
        titles = {key for key, _, _ in benchmark.published} | {entry for entry, _ in self._rows}
        self.entries = [title for title in benchmark.entries if title in titles and (not entries or title in entries)]
        elsewhere = sorted({data for _, data in self._rows}) if benchmark.data_at_hand else []
        data_titles = dict.fromkeys([*benchmark.data, *elsewhere])
        shown = {title for _, title, _ in benchmark.published} | {title for _, title in self._rows}
        self.data = [title for title in data_titles if title in shown and (not data or title in data)]
        self.notes: list[str] = []

    def figures(self, data: str) -> tuple[str, ...]:
        """Return the figures to show.

        Parameters
        ----------
        data : str
            Title of the data.

        Returns
        -------
        tuple of str
        """
        source = self.benchmark.data.get(data)
        return ("accuracy",) if source is None else source.figures

    def get_cell(self, entry: str, data: str, figure: str) -> CellScores:
        """Return the scores of one cell of the table, and mark its footnotes.

        Parameters
        ----------
        entry, data, figure : str
            Titles of the entry and of the data, and name of the figure.

        Returns
        -------
        CellScores
        """
        rows = self._rows.get((entry, data), [])
        values = [row["figures"][figure] for row in rows if row.get("figures", {}).get(figure) is not None]
        state = next((row["status"] for row in rows if row["status"] != OK), OK if rows else "")
        reasons = {row["reason"]: None for row in rows if row["status"] != OK}
        note = self.benchmark.notes.get((entry, data))
        return CellScores(
            figure=FIGURES.get(figure, Figure(figure)),
            paper=self.benchmark.published.get((entry, data, figure)),
            ours=statistics.fmean(values) if values else None,
            spread=statistics.stdev(values) if len(values) > 1 else None,
            state=state,
            seconds=sum(row["seconds"] for row in rows if row["status"] == OK) / max(len(values), 1),
            comparable=data not in self.benchmark.incomparable,
            notes=self.mark([*reasons, *([note] if note else [])]),
        )

    def mark(self, notes: Sequence[str]) -> str:
        """Return the numbers of footnotes, and add new footnotes to the list.

        Parameters
        ----------
        notes : sequence of str
            Texts. A text that is in the list keeps its number.

        Returns
        -------
        str
            Numbers as superscripts.
        """
        for note in notes:
            if note not in self.notes:
                self.notes.append(note)
        return ",".join(str(self.notes.index(note) + 1).translate(_SUPERSCRIPTS) for note in notes)

    def title(self, name: str) -> str:
        """Return the title of an entry or data with the number of its footnote.

        Parameters
        ----------
        name : str
            Title.

        Returns
        -------
        str
        """
        note = self.benchmark.notes.get(name)
        return name + self.mark([note] if note else [])

    def values(self) -> pd.DataFrame:
        """Return our values of the first figure, with the sign changed where less is better.

        Returns
        -------
        DataFrame
            Data by entries; NaN where there is no value.
        """
        by_data: dict[str, dict[str, float]] = {}
        for data in self.data:
            figure = self.figures(data)[0]
            sign = 1 if FIGURES.get(figure, Figure(figure)).more_is_better else -1
            values = {entry: self.get_cell(entry, data, figure).ours for entry in self.entries}
            by_data[data] = {
                entry: float("nan") if value is None else sign * value for entry, value in values.items()
            }  # fmt: skip
        return pd.DataFrame.from_dict(by_data, orient="index", columns=self.entries, dtype="float64")

    def ranks(self) -> pd.DataFrame:
        """Return the ranks of the ranked entries (1 is best), on the data for which all of them have a value."""
        values = self.values()
        ranked = values.loc[:, values.notna().mean() >= MIN_SHARE_TO_RANK]
        return ranked.dropna().round(9).rank(axis=1, ascending=False)

    def seconds(self, entry: str) -> float:
        """Return the running time of an entry on all data, for one seed.

        Parameters
        ----------
        entry : str
            Title of the entry.

        Returns
        -------
        float
        """
        return sum(self.get_cell(entry, data, self.figures(data)[0]).seconds for data in self.data)


def build_table(scores: BenchmarkScores) -> ResultTable:
    """Build the table of a benchmark.

    Parameters
    ----------
    scores : BenchmarkScores
        Scores of the benchmark.

    Returns
    -------
    ResultTable
        Table whose rows are the entries or the data, as the benchmark says.
    """
    by_data = [Heading(data=data, figure=figure) for data in scores.data for figure in scores.figures(data)]
    by_entry = [Heading(entry=entry) for entry in scores.entries]
    has_data_rows = scores.benchmark.rows == "data"
    rows, columns = (by_data, by_entry) if has_data_rows else (by_entry, by_data)
    # Footnotes are numbered in reading order: the titles of the columns first, then row by row.
    column_titles = [_format_title(scores, column) for column in columns]
    titles, grid = [], []
    for row in rows:
        titles.append(_format_title(scores, row))
        grid.append([scores.get_cell(*_cell_key(row, column)) for column in columns])
    footer = _build_footer(scores, grid) if has_data_rows else {}
    groups = [
        _build_group(title, [cells[position] for cells in grid], [line[position] for line in footer.values()])
        for position, title in enumerate(column_titles)
        if not all(cells[position].is_empty for cells in grid)
    ]
    if not has_data_rows:
        times = [(format_seconds(scores.seconds(entry)),) for entry in scores.entries]
        groups.append(ColumnGroup("seconds", ("",), times, []))
    return ResultTable("data" if has_data_rows else "method", titles, list(footer), groups, scores.notes)


def build_leaderboard(scores: BenchmarkScores) -> ResultTable:
    """Build the leaderboard, with the entries in the order of their mean ranks.

    Parameters
    ----------
    scores : BenchmarkScores
        Scores of the benchmark.

    Returns
    -------
    ResultTable
        Entries with results for too few data come last and have no rank.
    """
    ranks, values = scores.ranks(), scores.values()
    mean_rank = ranks.mean().sort_values()
    order = [*mean_rank.index, *(entry for entry in scores.entries if entry not in mean_rank.index)]
    n_best = (values.eq(values.max(axis=1), axis=0) & values.notna()).sum()
    means = values.loc[ranks.index].mean()
    cells = {
        f"mean rank of {len(mean_rank)}": [f"{mean_rank[entry]:.1f}" if entry in mean_rank else "" for entry in order],
        "mean accuracy": [format_number(means[entry], 3) if entry in mean_rank else "" for entry in order],
        "best on": [str(n_best[entry]) for entry in order],
        "answered": [f"{values[entry].notna().sum()} of {len(values)}" for entry in order],
        "seconds": [format_seconds(scores.seconds(entry)) for entry in order],
    }
    groups = [ColumnGroup(title, ("",), [(text,) for text in texts], []) for title, texts in cells.items()]
    return ResultTable("method", order, [], groups)


def format_number(value: float, digits: int, *, sign: bool = False) -> str:
    """Format a value without the zero before the decimal point.

    Parameters
    ----------
    value : float
        Value.
    digits : int
        Number of decimals.
    sign : bool, default=False
        Write the plus sign of positive values.

    Returns
    -------
    str
    """
    text = f"{round(value, digits) or 0.0:{'+' if sign and round(value, digits) else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def format_seconds(seconds: float) -> str:
    """Format a running time.

    Parameters
    ----------
    seconds : float
        Running time.

    Returns
    -------
    str
        Two decimals below ten seconds, none above; empty if the time is zero.
    """
    if not seconds:
        return ""
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.0f}"


def _format_title(scores: BenchmarkScores, column: Heading) -> str:
    """Return the title of a row or column with its footnotes."""
    if column.entry:
        return scores.title(column.entry)
    figures = scores.figures(column.data)
    name = scores.title(column.data)
    return name if figures == ("accuracy",) else f"{name} {FIGURES.get(column.figure, Figure(column.figure)).title}"


def _cell_key(row: Heading, column: Heading) -> tuple[str, str, str]:
    """Return the entry, the data and the figure of a cell."""
    return row.entry or column.entry, row.data or column.data, row.figure or column.figure


def _build_group(title: str, cells: list[CellScores], footer: list[CellTexts]) -> ColumnGroup:
    """Build three columns if there is a published value, and one otherwise."""
    if any(cell.paper is not None for cell in cells):
        return ColumnGroup(title, ("paper", "ours", "diff."), [_format_cell(cell) for cell in cells], footer)
    return ColumnGroup(
        title, ("",), [(_format_ours(cell) + cell.notes,) for cell in cells], [(texts.ours,) for texts in footer]
    )


def _format_cell(cell: CellScores) -> CellTexts:
    """Return the published value, our value and the difference as texts."""
    digits = cell.figure.digits
    paper = "" if cell.paper is None else format_number(cell.paper, digits)
    if cell.difference is None:
        return CellTexts(paper, _format_ours(cell) + cell.notes)
    return CellTexts(paper, _format_ours(cell), format_number(cell.difference, digits, sign=True) + cell.notes)


def _format_ours(cell: CellScores) -> str:
    """Return our value with its spread, or the reason why there is none."""
    if cell.ours is None:
        return {"": "", OK: "none", FAILED: "failed", TOO_SLOW: "slow"}.get(cell.state, "–")
    text = format_number(cell.ours, cell.figure.digits)
    spread = round(cell.spread or 0.0, cell.figure.digits)
    return f"{text}±{format_number(spread, cell.figure.digits)}" if spread else text


def _build_footer(scores: BenchmarkScores, grid: list[list[CellScores]]) -> Mapping[str, list[CellTexts]]:
    """Return the rows below a table of datasets (rows) by entries (columns), by their titles.

    - Mean over the datasets for which every entry has our value, and the published one if the entry has any; only if all
      datasets show the same figure.
    - Mean rank of our values, over the datasets for which all ranked entries have one.
    - Running time on all datasets together.
    """
    columns = list(zip(*grid, strict=True))
    needs_paper = [any(cell.paper is not None for cell in column) for column in columns]
    complete_rows = [
        position
        for position, cells in enumerate(grid)
        if all(cell.ours is not None for cell in cells)
        and all(cell.paper is not None for cell, needed in zip(cells, needs_paper, strict=True) if needed)
    ]
    footer: dict[str, list[CellTexts]] = {}
    has_one_figure = len({cells[0].figure for cells in grid}) == 1  # a mean over different units has no meaning
    if len(complete_rows) > 1 and has_one_figure:
        footer[f"mean of {len(complete_rows)} datasets"] = [
            _format_mean([column[position] for position in complete_rows]) for column in columns
        ]
    if scores.benchmark.ranked:
        ranks = scores.ranks()
        mean_rank = ranks.mean()
        footer[f"mean rank ({len(ranks)} datasets)"] = [
            CellTexts(ours=f"{mean_rank[entry]:.1f}" if entry in mean_rank else "") for entry in scores.entries
        ]
    footer["seconds"] = [CellTexts(ours=format_seconds(scores.seconds(entry))) for entry in scores.entries]
    return footer


def _format_mean(cells: list[CellScores]) -> CellTexts:
    """Return the means of published values, our values and differences as texts."""
    digits = cells[0].figure.digits
    ours = statistics.fmean(cell.ours for cell in cells if cell.ours is not None)
    published = [cell.paper for cell in cells if cell.paper is not None]
    if not published:
        return CellTexts(ours=format_number(ours, digits))
    paper = statistics.fmean(published)
    difference = format_number(ours - paper, digits, sign=True)
    return CellTexts(format_number(paper, digits), format_number(ours, digits), difference)
