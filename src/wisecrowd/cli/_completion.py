"""What ``wisecrowd complete`` finds out and leaves behind: figures, tables and the votes themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import heading, show, table

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.completer import Completer
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.evaluate.completion import Judgement

#: How much of the real votes is hidden to judge a completer.
HIDDEN = 0.2
#: A difference of fewer standard errors than this may be luck.
CERTAIN = 2.0


class Found:
    """How well a completer foretells votes, what is gained by it, and how much it filled in."""

    def __init__(self) -> None:
        self.judged: Judgement | None = None
        self.scored: pd.DataFrame | None = None
        self.summary: dict[str, Any] = {}

    def look(self, completer: Completer, crowd: Crowd, X: Any, known: pd.Series | None, *, evaluate: bool) -> None:
        """Judge the completer as far as somebody wants to know."""
        from wisecrowd.evaluate.completion import MIXED, after_filling, judge

        if evaluate:
            self.judged = judge(completer, crowd, X, fraction=HIDDEN)
            self.summary["judged"] = {
                "hidden": HIDDEN,
                "votes": self.judged.n_votes,
                "coverage": round(self.judged.coverage, 6),
                "mixed_with_uniform": MIXED,
                "forecasts": _plain(self.judged.table),
            }
        if known is not None:
            self.scored = after_filling(completer, crowd, X, known)
            by_name = self.scored.groupby(level="aggregator", sort=False)
            self.summary["scored"] = {str(name): _plain(part.droplevel("aggregator")) for name, part in by_name}

    def files(self, fitted: Completer, crowd: Crowd, name: str, guard: Guard) -> dict[str, pd.DataFrame | Writer]:
        """What to write, by name; the votes are made while they are written."""
        import pyarrow as pa

        from wisecrowd.cli._outputs import rounded
        from wisecrowd.io.tables.chunks import write_pieces

        def write(path: Path) -> None:
            spell = partial(guard.texts, name=name) if guard.on else None
            write_pieces(self.counted(fitted.stream()), path, times=len(fitted.vote_time_) > 0, spell=spell)

        if not name.endswith(".parquet") and not guard.on:
            for ids in (crowd.tasks, crowd.workers, crowd.classes):
                guard.texts(pa.array(ids), name)
        files: dict[str, pd.DataFrame | Writer] = {name: write}
        if self.judged is not None:
            files[fitting.JUDGED] = rounded(self.judged.table)
        if self.scored is not None:
            files[fitting.SCORED] = rounded(self.scored)
        return files

    def count_noun(self, chunks: Iterable[Crowd]) -> Iterator[Crowd]:
        """The chunks, counted while they go by."""
        from wisecrowd.evaluate.completion import count_cells

        rows, cells, weight = 0, 0, 0.0
        for chunk in chunks:
            made = chunk.take(~chunk.observed)
            rows, cells, weight = rows + made.n_votes, cells + count_cells(made), weight + float(made.weight.sum())
            yield chunk
        self.summary["filled"] = {"cells": cells, "rows": rows, "weight": round(weight, 6)}

    def lines(self, crowd: Crowd) -> list[tuple[str, str]]:
        """How much was filled in, in words."""
        from wisecrowd.evaluate.completion import count_cells
        from wisecrowd.utils.text import count_noun

        filled, room = self.summary["filled"], crowd.n_tasks * crowd.n_workers
        if filled["cells"] == 0:
            return [("Filled in", "nothing: no cell is empty, or none that the method would fill")]
        text = f"{count_noun(filled['cells'], 'vote')}: {filled['cells'] / crowd.n_tasks:.1f} on each task, which weigh as much as "
        told = [("Filled in", text + f"{filled['weight'] / crowd.n_tasks:.1f} real ones")]
        left = room - count_cells(crowd.only_observed()) - filled["cells"]
        return told + ([("Left open", f"{count_noun(left, 'cell')} of {room:,}")] if left else [])

    def show_tables(self) -> None:
        """Print what was judged and scored."""
        if self.judged is not None:
            _show_judged(self.judged)
        if self.scored is not None:
            _show_scored(self.scored)


def _show_judged(judged: Judgement) -> None:
    from wisecrowd.evaluate.completion import MIXED

    heading(f"How well are votes foretold? {judged.n_votes:,} real votes were hidden ({HIDDEN:.0%})")
    found = judged.table
    rows = [
        (
            name,
            f"{row['accuracy']:.1%} ± {row['accuracy_se']:.1%}",
            f"{row['log_loss']:.3f} ± {row['log_loss_se']:.3f}",
            "" if name == found.index[0] else f"{row['gain']:+.3f} ± {row['gain_se']:.3f}",
        )
        for name, row in found.iterrows()
    ]
    show(table(["forecast", "accuracy", "log loss", f"{found.index[0]} better by"], rows))
    show(
        f"± standard errors; log loss in nats, of forecasts mixed with a share of {MIXED:g} of a uniform one.",
        style="dim",
    )
    if judged.coverage < 1:
        on = found.loc[found.index[0]]
        show(
            f"{found.index[0]} would fill in {judged.coverage:.1%} of the hidden votes"
            + (
                f"; there accuracy {on['filled_accuracy']:.1%}, log loss {on['filled_log_loss']:.3f}."
                if judged.coverage
                else "."
            )
        )
    show(verdict(judged))


def verdict(judged: Judgement) -> str:
    """One sentence: whether the completer foretells votes better than what is simple."""
    name, others = judged.table.index[0], judged.table.iloc[1:]
    best = int(others["log_loss"].to_numpy().argmin())
    rival, gain, error = others.index[best], others["gain"].iloc[best], others["gain_se"].iloc[best]
    if gain > CERTAIN * error:
        return f"{name} foretells votes better than all simple forecasts."
    if gain < -CERTAIN * error:
        return f"{name} foretells votes worse than {rival}: what it fills in is not what these workers would have said."
    return f"{name} foretells votes no better than {rival}, as far as so many votes can tell."


def _show_scored(scored: pd.DataFrame) -> None:
    heading("What is gained? Before and after, by the known truth")
    rows = [
        (row.aggregator, row.votes, f"{row.accuracy:.1%}", *(f"{value:.3f}" for value in row[-3:]))
        for row in scored.reset_index().itertuples(index=False)
    ]
    show(table(["aggregator", "votes", "accuracy", "log loss", "ECE", "confidence"], rows, left=2))
    show("ECE, expected calibration error: how far confidence is from accuracy.", style="dim")


def _plain(found: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """A table for JSON, which knows no NaN."""
    return {
        str(name): {str(key): None if value != value else round(float(value), 6) for key, value in row.items()}
        for name, row in found.iterrows()
    }
