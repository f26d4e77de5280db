"""Results of ``wisecrowd complete``: figures, tables and the completed votes."""

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
    from wisecrowd.evaluate.completion import CompleterScore

#: Share of the real votes that is held out to evaluate a completer.
HIDDEN = 0.2
#: Standard errors from which a difference counts as real.
CERTAIN = 2.0


class CompletionSummary:
    """Accuracy on held-out votes, accuracy after completion, and number of votes filled in."""

    def __init__(self) -> None:
        self.heldout_score: CompleterScore | None = None
        self.accuracy_table: pd.DataFrame | None = None
        self.summary: dict[str, Any] = {}

    def evaluate(self, completer: Completer, crowd: Crowd, X: Any, truth: pd.Series | None, *, evaluate: bool) -> None:
        """Evaluate the completer on held-out votes and against known truth, as requested.

        Parameters
        ----------
        completer : Completer
            Unfitted completer.
        crowd : Crowd
            Votes.
        X : object
            Features of the tasks.
        truth : Series or None
            Known truth by task.
        evaluate : bool
            Whether to hold out votes and predict them.
        """
        from wisecrowd.evaluate.completion import UNIFORM_SHARE, accuracy_after_completion, score_completer

        if evaluate:
            self.heldout_score = score_completer(completer, crowd, X, fraction=HIDDEN)
            self.summary["heldout"] = {
                "hidden": HIDDEN,
                "votes": self.heldout_score.n_votes,
                "coverage": round(self.heldout_score.coverage, 6),
                "mixed_with_uniform": UNIFORM_SHARE,
                "forecasts": _plain(self.heldout_score.table),
            }
        if truth is not None:
            self.accuracy_table = accuracy_after_completion(completer, crowd, X, truth)
            by_name = self.accuracy_table.groupby(level="aggregator", sort=False)
            self.summary["accuracy"] = {str(name): _plain(part.droplevel("aggregator")) for name, part in by_name}

    def files(self, fitted: Completer, crowd: Crowd, name: str, guard: Guard) -> dict[str, pd.DataFrame | Writer]:
        """Return the files to write by name; votes are completed while they are written.

        Parameters
        ----------
        fitted : Completer
            Fitted completer.
        crowd : Crowd
            Votes.
        name : str
            Name of the file of completed votes.
        guard : Guard
            Filter of texts that a spreadsheet would run as formulas.

        Returns
        -------
        dict
            Table, or function that writes the file, by file name.
        """
        import pyarrow as pa

        from wisecrowd.cli._outputs import rounded
        from wisecrowd.io.tables.chunks import write_chunks

        def write(path: Path) -> None:
            spell = partial(guard.texts, name=name) if guard.on else None
            write_chunks(self.count_filled(fitted.stream()), path, times=len(fitted.vote_time_) > 0, format_text=spell)

        if not name.endswith(".parquet") and not guard.on:
            for ids in (crowd.tasks, crowd.workers, crowd.classes):
                guard.texts(pa.array(ids), name)
        files: dict[str, pd.DataFrame | Writer] = {name: write}
        if self.heldout_score is not None:
            files[fitting.HELDOUT] = rounded(self.heldout_score.table)
        if self.accuracy_table is not None:
            files[fitting.ACCURACY] = rounded(self.accuracy_table)
        return files

    def count_filled(self, chunks: Iterable[Crowd]) -> Iterator[Crowd]:
        """Yield the chunks and count the votes that were filled in."""
        from wisecrowd.evaluate.completion import count_cells

        rows, cells, weight = 0, 0, 0.0
        for chunk in chunks:
            filled_votes = chunk.take(~chunk.observed)
            rows, cells, weight = (
                rows + filled_votes.n_votes,
                cells + count_cells(filled_votes),
                weight + float(filled_votes.weight.sum()),
            )
            yield chunk
        self.summary["filled"] = {"cells": cells, "rows": rows, "weight": round(weight, 6)}

    def lines(self, crowd: Crowd) -> list[tuple[str, str]]:
        """Return how much was filled in, as lines of the summary."""
        from wisecrowd.evaluate.completion import count_cells
        from wisecrowd.utils.text import count_noun

        filled, room = self.summary["filled"], crowd.n_tasks * crowd.n_workers
        if filled["cells"] == 0:
            return [("Filled in", "nothing: no cell is empty, or none that the method would fill")]
        text = f"{count_noun(filled['cells'], 'vote')}: {filled['cells'] / crowd.n_tasks:.1f} per task, with the weight of "
        facts = [("Filled in", text + f"{filled['weight'] / crowd.n_tasks:.1f} real votes")]
        empty_cells = room - count_cells(crowd.select_observed()) - filled["cells"]
        return facts + ([("Left open", f"{count_noun(empty_cells, 'cell')} of {room:,}")] if empty_cells else [])

    def show_tables(self) -> None:
        """Print the tables of held-out votes and of accuracy after completion."""
        if self.heldout_score is not None:
            _show_heldout(self.heldout_score)
        if self.accuracy_table is not None:
            _show_accuracy(self.accuracy_table)


def _show_heldout(heldout_score: CompleterScore) -> None:
    from wisecrowd.evaluate.completion import UNIFORM_SHARE

    heading(f"Prediction of {heldout_score.n_votes:,} held-out votes ({HIDDEN:.0%})")
    scores = heldout_score.table
    rows = [
        (
            name,
            f"{row['accuracy']:.1%} ± {row['accuracy_se']:.1%}",
            f"{row['log_loss']:.3f} ± {row['log_loss_se']:.3f}",
            "" if name == scores.index[0] else f"{row['gain']:+.3f} ± {row['gain_se']:.3f}",
        )
        for name, row in scores.iterrows()
    ]
    show(table(["forecast", "accuracy", "log loss", f"{scores.index[0]} better by"], rows))
    show(
        f"± standard errors; log loss in nats, of forecasts mixed with a share of {UNIFORM_SHARE:g} of a uniform one.",
        style="dim",
    )
    if heldout_score.coverage < 1:
        on = scores.loc[scores.index[0]]
        show(
            f"{scores.index[0]} would fill in {heldout_score.coverage:.1%} of the hidden votes"
            + (
                f"; there accuracy {on['filled_accuracy']:.1%}, log loss {on['filled_log_loss']:.3f}."
                if heldout_score.coverage
                else "."
            )
        )
    show(verdict(heldout_score))


def verdict(heldout_score: CompleterScore) -> str:
    """Return one sentence: whether the completer predicts votes better than simple baselines."""
    name, others = heldout_score.table.index[0], heldout_score.table.iloc[1:]
    best = int(others["log_loss"].to_numpy().argmin())
    rival, gain, error = others.index[best], others["gain"].iloc[best], others["gain_se"].iloc[best]
    if gain > CERTAIN * error:
        return f"{name} predicts held-out votes better than every baseline."
    if gain < -CERTAIN * error:
        return f"{name} predicts held-out votes worse than {rival}. Do not use the votes it fills in."
    return f"{name} and {rival} predict held-out votes equally well; the difference is within two standard errors."


def _show_accuracy(accuracy_table: pd.DataFrame) -> None:
    heading("Accuracy before and after completion, against known truth")
    rows = [
        (row.aggregator, row.votes, f"{row.accuracy:.1%}", *(f"{value:.3f}" for value in row[-3:]))
        for row in accuracy_table.reset_index().itertuples(index=False)
    ]
    show(table(["aggregator", "votes", "accuracy", "log loss", "ECE", "confidence"], rows, n_text_columns=2))
    show("ECE: expected calibration error, the mean distance between confidence and accuracy.", style="dim")


def _plain(scores: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Return a table as nested dicts for JSON, with None for NaN."""
    return {
        str(name): {str(key): None if value != value else round(float(value), 6) for key, value in row.items()}
        for name, row in scores.iterrows()
    }
