"""Aggregating a crowd in shards: the answers are written as they come, for they may not fit in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import watched

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.data.sharded import ShardedCrowd

#: Where a fit stands while it runs, beside its results: the same command goes on from it.
STANDING = ".fit.npz"


def are_shards(votes: Path) -> bool:
    """Whether votes are in a folder that ``wisecrowd shard`` wrote, or began to write."""
    from wisecrowd.data.sharded import is_begun, is_whole

    return is_whole(votes) or is_begun(votes)


def aggregate_shards(
    votes: Path, unfitted: Aggregator, *, output: Path | None, gold: pd.Series | None, known: pd.Series | None,
    proba: bool, save: bool, spreadsheet: bool, quiet: bool, as_json: bool, command: dict[str, Any], inputs: list[Path],
) -> None:  # fmt: skip
    """Fit, write labels.parquet shard by shard, and tell what came of it."""
    from wisecrowd.base.provenance import record
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import lines, size
    from wisecrowd.data.sharded import open_shards
    from wisecrowd.errors import UsageError

    crowd = open_shards(votes)
    if not unfitted.streams:
        raise UsageError(
            f"{unfitted.name} wants all votes in memory, and {votes} is a folder of shards; choose a method that streams, "
            "such as dawid-skene or one-coin (wisecrowd methods tells which)"
        )
    standing = None
    if output is not None:
        check_folder(output, [fitting.LABELS_PARQUET, fitting.WORKERS, RECORD], inputs)
        if getattr(unfitted, "checkpoint", "has none") is None:
            standing = output / STANDING
            unfitted.set_params(checkpoint=str(standing))
    with watched(quiet=quiet), _going_on(standing):
        fitted = unfitted.fit(crowd, truth=gold)
        if standing is not None:  # of which the record and the saved method need not tell
            unfitted.set_params(checkpoint=None)
        run = record(fitted, crowd, source=str(votes), command=command)
        answers = _Answers(fitted, crowd, known)
        tables: dict[str, Any] = {}
        if fitted.worker_index_ is not None:
            tables[fitting.WORKERS] = fitting.counted_whole(fitted.workers_)

        def write(path: Path) -> None:
            from wisecrowd.base.posterior_stream import write_answers

            write_answers(answers, path, proba=proba)
            run["summary"] = answers.summary(gold)

        tables[fitting.LABELS_PARQUET] = write
        if output is None:
            for _ in answers:
                pass
            run["summary"] = answers.summary(gold)
        # The record is written last, and so has what the answers looked like.
        kept = fitting.keep(output, tables, run, Guard(on=spreadsheet), model=fitted if save else None, inputs=inputs)
    if standing is not None:
        standing.unlink(missing_ok=True)
    told = [("Read", str(votes)), ("Votes", size(crowd)), ("Method", fitting.how(fitted)), *lines(run["summary"])]
    fitting.tell(run, [*told, ("Wrote", kept)], as_json=as_json, quiet=quiet)


@contextlib.contextmanager
def _going_on(standing: Path | None) -> Iterator[None]:
    """Say of an interrupted fit whether the same command goes on with it."""
    try:
        yield
    except KeyboardInterrupt:
        if standing is None or not standing.exists():
            raise KeyboardInterrupt("nothing is left of it, and the same command begins anew.") from None
        raise KeyboardInterrupt(
            f"the fit is kept in {standing}: the same command goes on from there, and without that file begins anew."
        ) from None


class _Answers:
    """The answers of a fit, shard by shard, at which one glances as they pass."""

    def __init__(self, fitted: Aggregator, crowd: ShardedCrowd, known: pd.Series | None) -> None:
        from wisecrowd.cli._summary import Glance

        self.fitted, self.crowd, self.known = fitted, crowd, known
        self.glance = Glance()
        self.scored: list[pd.DataFrame] = []

    def __iter__(self) -> Iterator[pd.DataFrame]:
        from wisecrowd.utils import progress

        for number, table in enumerate(self.fitted.posterior_tables(), 1):
            self.glance.add(table.to_numpy())
            if self.known is not None:
                here = table.index.isin(fitting.tasks_of(self.known, table.index))
                self.scored.append(table[here])
            yield table
            progress.report("writing labels", number, len(self.crowd.parts), f"{self.glance.tasks:,} tasks")

    def summary(self, gold: pd.Series | None) -> dict[str, Any]:
        """What `lines` tells."""
        from wisecrowd.cli._summary import ranked
        from wisecrowd.evaluate.metrics import summary

        told = self.glance.figures(self.fitted.classes_) | {"without_votes": 0}
        if self.crowd.has_workers:
            told["workers"] = ranked(self.fitted.workers_)
        if gold is not None:
            told["gold"] = {"tasks": len(gold)}
        if self.known is not None:
            import pandas as pd

            known = self.known if gold is None else self.known[~self.known.index.isin(gold.index)]
            score = summary(known, pd.concat(self.scored))
            told["score"] = score | {"n_without_truth": self.glance.tasks - int(score["n_tasks"])}
        return told
