"""From rows to a table: *paper | ours | difference*, with ranks and footnotes. How it is printed is `_render`'s."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from wisecrowd.bench.benchmark import FIGURES, Benchmark, Figure
from wisecrowd.bench.cells import FAILED, OK, TOO_SLOW, Row

#: Entries that scored a smaller share of the data than this are not ranked: what they were spared would flatter them.
ENOUGH_TO_RANK = 0.8

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Column(NamedTuple):
    """What one side of the table is about: an entry (data is empty), or a figure of data (entry is empty)."""

    entry: str = ""
    data: str = ""
    figure: str = ""


@dataclass(frozen=True)
class Answer:
    """What the paper and our runs say of one entry on one dataset."""

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
        """Ours less the paper's."""
        if self.ours is None or self.paper is None or not self.comparable:
            return None
        return self.ours - self.paper

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.paper is None and not self.state


@dataclass(frozen=True)
class Group:
    """One or three columns under one title."""

    title: str
    columns: tuple[str, ...]
    cells: Sequence[tuple[str, ...]]
    foot: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Table:
    """Row titles, groups of columns, and what stands below."""

    corner: str
    titles: list[str]
    foot: list[str]
    groups: list[Group]
    notes: list[str] = field(default_factory=list)


class Numbers:
    """The answers of a benchmark, by entry, data and figure."""

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
        """The figures to show of data."""
        source = self.benchmark.data.get(data)
        return ("accuracy",) if source is None else source.figures

    def answer(self, entry: str, data: str, figure: str) -> Answer:
        """Everything about one cell of the table."""
        rows = self._rows.get((entry, data), [])
        values = [row["figures"][figure] for row in rows if row.get("figures", {}).get(figure) is not None]
        state = next((row["status"] for row in rows if row["status"] != OK), OK if rows else "")
        reasons = {row["reason"]: None for row in rows if row["status"] != OK}
        note = self.benchmark.notes.get((entry, data))
        return Answer(
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
        """The numbers of footnotes; a text that was said before keeps its number."""
        for note in notes:
            if note not in self.notes:
                self.notes.append(note)
        return ",".join(str(self.notes.index(note) + 1).translate(_SUPERSCRIPTS) for note in notes)

    def title(self, name: str) -> str:
        """The title of an entry or data, with its footnote."""
        note = self.benchmark.notes.get(name)
        return name + self.mark([note] if note else [])

    def ours(self) -> pd.DataFrame:
        """Data x entries: the figure that counts, NaN where there is none; higher is better."""
        ranks: dict[str, dict[str, float]] = {}
        for data in self.data:
            figure = self.figures(data)[0]
            sign = 1 if FIGURES.get(figure, Figure(figure)).more_is_better else -1
            answers = {entry: self.answer(entry, data, figure).ours for entry in self.entries}
            ranks[data] = {
                entry: float("nan") if value is None else sign * value for entry, value in answers.items()
            }  # fmt: skip
        return pd.DataFrame.from_dict(ranks, orient="index", columns=self.entries, dtype="float64")

    def ranks(self) -> pd.DataFrame:
        """Data x ranked entries: the rank of each, on the data that all of them scored."""
        scores = self.ours()
        ranked = scores.loc[:, scores.notna().mean() >= ENOUGH_TO_RANK]
        return ranked.dropna().round(9).rank(axis=1, ascending=False)

    def seconds(self, entry: str) -> float:
        """How long an entry took for all data shown, each once."""
        return sum(self.answer(entry, data, self.figures(data)[0]).seconds for data in self.data)


def table_of(numbers: Numbers) -> Table:
    """The table as the benchmark wants it: entries or data down the side."""
    by_data = [Column(data=data, figure=figure) for data in numbers.data for figure in numbers.figures(data)]
    by_entry = [Column(entry=entry) for entry in numbers.entries]
    sideways = numbers.benchmark.rows == "data"
    side, above = (by_data, by_entry) if sideways else (by_entry, by_data)
    # Footnotes are numbered as they are read: the titles above first, then row by row.
    heads = [_title(numbers, column) for column in above]
    titles, grid = [], []
    for row in side:
        titles.append(_title(numbers, row))
        grid.append([numbers.answer(*_place(row, column)) for column in above])
    foot = _foot(numbers, grid) if sideways else {}
    groups = [
        _group(head, [answers[position] for answers in grid], [line[position] for line in foot.values()])
        for position, head in enumerate(heads)
        if not all(answers[position].is_empty for answers in grid)
    ]
    if not sideways:
        took = [(seconds_text(numbers.seconds(entry)),) for entry in numbers.entries]
        groups.append(Group("seconds", ("",), took, []))
    return Table("data" if sideways else "method", titles, list(foot), groups, numbers.notes)


def leaderboard(numbers: Numbers) -> Table:
    """Entries by mean rank, the best first; those that answered for too few data come last, without a rank."""
    ranks, scores = numbers.ranks(), numbers.ours()
    mean_rank = ranks.mean().sort_values()
    order = [*mean_rank.index, *(entry for entry in numbers.entries if entry not in mean_rank.index)]
    first = (scores.eq(scores.max(axis=1), axis=0) & scores.notna()).sum()
    common = scores.loc[ranks.index].mean()
    cells = {
        f"mean rank of {len(mean_rank)}": [f"{mean_rank[entry]:.1f}" if entry in mean_rank else "" for entry in order],
        "mean accuracy": [number(common[entry], 3) if entry in mean_rank else "" for entry in order],
        "best on": [str(first[entry]) for entry in order],
        "answered": [f"{scores[entry].notna().sum()} of {len(scores)}" for entry in order],
        "seconds": [seconds_text(numbers.seconds(entry)) for entry in order],
    }
    groups = [Group(title, ("",), [(text,) for text in texts], []) for title, texts in cells.items()]
    return Table("method", order, [], groups)


def number(value: float, digits: int, *, sign: bool = False) -> str:
    """A figure as tables print it: without the zero before the point."""
    text = f"{round(value, digits) or 0.0:{'+' if sign and round(value, digits) else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def seconds_text(seconds: float) -> str:
    """Seconds, with as many digits as mean something; nothing for nothing."""
    if not seconds:
        return ""
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.0f}"


def _title(numbers: Numbers, column: Column) -> str:
    if column.entry:
        return numbers.title(column.entry)
    figures = numbers.figures(column.data)
    name = numbers.title(column.data)
    plain = figures == ("accuracy",)
    return name if plain else f"{name} {FIGURES.get(column.figure, Figure(column.figure)).title}"


def _place(row: Column, column: Column) -> tuple[str, str, str]:
    return row.entry or column.entry, row.data or column.data, row.figure or column.figure


def _group(title: str, answers: list[Answer], foot: list[tuple[str, str, str]]) -> Group:
    if any(answer.paper is not None for answer in answers):
        return Group(title, ("paper", "ours", "diff."), [_texts(answer) for answer in answers], foot)
    return Group(
        title, ("",), [(_ours(answer) + answer.notes,) for answer in answers], [(ours,) for _, ours, _ in foot]
    )


def _texts(answer: Answer) -> tuple[str, str, str]:
    digits = answer.figure.digits
    paper = "" if answer.paper is None else number(answer.paper, digits)
    if answer.difference is None:
        return paper, _ours(answer) + answer.notes, ""
    return paper, _ours(answer), number(answer.difference, digits, sign=True) + answer.notes


def _ours(answer: Answer) -> str:
    if answer.ours is None:
        return {"": "", OK: "none", FAILED: "failed", TOO_SLOW: "slow"}.get(answer.state, "–")
    text = number(answer.ours, answer.figure.digits)
    spread = round(answer.spread or 0.0, answer.figure.digits)
    return f"{text}±{number(spread, answer.figure.digits)}" if spread else text


def _foot(numbers: Numbers, grid: list[list[Answer]]) -> Mapping[str, list[tuple[str, str, str]]]:
    """Means over the rows that are complete, ranks and times: title -> (paper, ours, difference) for each entry."""
    columns = list(zip(*grid, strict=True))
    compared = [any(answer.paper is not None for answer in column) for column in columns]
    whole = [
        position
        for position, answers in enumerate(grid)
        if all(a.ours is not None and (a.paper is not None or not c) for a, c in zip(answers, compared, strict=True))
    ]
    foot: dict[str, list[tuple[str, str, str]]] = {}
    alike = len({answers[0].figure for answers in grid}) == 1  # a mean of milliseconds and megabytes says nothing
    if len(whole) > 1 and alike:
        foot[f"mean of {len(whole)}"] = [_mean([column[position] for position in whole]) for column in columns]
    if numbers.benchmark.ranked:
        ranks = numbers.ranks()
        mean = ranks.mean()
        foot[f"mean rank ({len(ranks)} data)"] = [
            ("", f"{mean[entry]:.1f}" if entry in mean else "", "") for entry in numbers.entries
        ]
    foot["seconds"] = [("", seconds_text(numbers.seconds(entry)), "") for entry in numbers.entries]
    return foot


def _mean(answers: list[Answer]) -> tuple[str, str, str]:
    digits = answers[0].figure.digits
    ours = statistics.fmean(answer.ours for answer in answers if answer.ours is not None)
    published = [answer.paper for answer in answers if answer.paper is not None]
    if not published:
        return "", number(ours, digits), ""
    paper = statistics.fmean(published)
    return number(paper, digits), number(ours, digits), number(ours - paper, digits, sign=True)
