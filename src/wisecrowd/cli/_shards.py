"""Aggregation of a crowd in shards; labels are written shard by shard because they may not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import show_progress
from wisecrowd.cli._failures import explain_interruption

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.data.sharded import ShardedCrowd
    from wisecrowd.evaluate.confidence import ConfidencePart

#: Checkpoint of a running fit in the results folder; the same command resumes from it.
CHECKPOINT = ".fit.npz"


def are_shards(votes: Path) -> bool:
    """Return whether a path is a folder that ``wisecrowd shard`` wrote or began to write."""
    from wisecrowd.data.sharded import is_shard_folder, is_unfinished_shard_folder

    return is_shard_folder(votes) or is_unfinished_shard_folder(votes)


def aggregate_shards(
    votes: Path, unfitted: Aggregator, *, output: Path | None, gold: pd.Series | None, score_truth: pd.Series | None,
    proba: bool, save: bool, spreadsheet: bool, verify: bool, quiet: bool, as_json: bool, command: dict[str, Any],
    inputs: list[Path],
) -> None:  # fmt: skip
    """Fit a method, write labels.parquet shard by shard, and print a summary.

    Parameters
    ----------
    votes : Path
        Folder of shards.
    unfitted : Aggregator
        Unfitted aggregator.
    output : Path or None
        Folder of the results.
    gold : Series or None
        Truth of gold tasks.
    score_truth : Series or None
        Truth to score the labels against.
    proba : bool
        Whether to write the posterior.
    save : bool
        Whether to save the fitted method.
    spreadsheet : bool
        Whether to guard texts against spreadsheets.
    verify : bool
        Whether to compare the shards with their checksums.
    quiet : bool
        Print nothing but errors and warnings.
    as_json : bool
        Print the record as JSON.
    command : dict
        Options of the command, for the record.
    inputs : list of Path
        Files that the command reads and must not overwrite.
    """
    from wisecrowd.base.run_record import record_run
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd, summary_lines
    from wisecrowd.data.sharded import open_shards
    from wisecrowd.errors import UsageError

    crowd = open_shards(votes, verify)
    if not unfitted.streams:
        raise UsageError(
            f"{unfitted.name} needs all votes in memory, and {votes} is a folder of shards. Choose a method that streams, "
            "such as model-average or dawid-skene (wisecrowd methods lists them)"
        )
    checkpoint = None
    if output is not None:
        check_folder(output, [fitting.LABELS_PARQUET, fitting.WORKERS, RECORD], inputs)
        if getattr(unfitted, "checkpoint", "has none") is None:
            checkpoint = output / CHECKPOINT
            unfitted.set_params(checkpoint=str(checkpoint))
    with show_progress(quiet=quiet), explain_interruption(lambda: _describe_checkpoint(checkpoint)):
        fitted = unfitted.fit(crowd, truth=gold)
        if checkpoint is not None:  # a detail of this run that does not belong into the record
            unfitted.set_params(checkpoint=None)
        run = record_run(fitted, crowd, source=str(votes), command=command)
        labels = LabelStream(fitted, crowd, score_truth)
        tables: dict[str, Any] = {}
        if fitted.worker_index_ is not None:
            tables[fitting.WORKERS] = fitting.with_integer_counts(fitted.workers_)

        def write(path: Path) -> None:
            from wisecrowd.base.posterior_stream import write_labels

            write_labels(labels, path, proba=proba)
            run["summary"] = labels.summary(gold)

        tables[fitting.LABELS_PARQUET] = write
        if output is None:
            for _ in labels:
                pass
            run["summary"] = labels.summary(gold)
        # The record is written last, when the summary of the labels is complete.
        written = fitting.write_run(
            output, tables, run, Guard(on=spreadsheet), model=fitted if save else None, inputs=inputs
        )
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    facts = [
        ("Read", str(votes)),
        ("Votes", describe_crowd(crowd)),
        ("Method", fitting.describe_fit(fitted)),
        *summary_lines(run["summary"]),
    ]
    fitting.print_run(run, [*facts, ("Wrote", written)], as_json=as_json, quiet=quiet)


def _describe_checkpoint(checkpoint: Path | None) -> str:
    """Return whether the same command resumes the fit."""
    if checkpoint is None or not checkpoint.exists():
        return "no checkpoint was written yet; the same command starts from the beginning."
    return (
        f"the fit is kept in {checkpoint}; the same command resumes it. Delete that file to start from the beginning."
    )


class LabelStream:
    """Posteriors and confidence of a fit, shard by shard, summarised while they pass."""

    def __init__(self, fitted: Aggregator, crowd: ShardedCrowd, score_truth: pd.Series | None) -> None:
        from wisecrowd.cli._summary import PosteriorSummary
        from wisecrowd.evaluate.confidence import ConfidenceStream

        self.fitted, self.crowd, self.score_truth = fitted, crowd, score_truth
        self.glance = PosteriorSummary()
        self.stream = ConfidenceStream(fitted)
        self.scored: list[pd.DataFrame] = []
        self.scored_confidence: list[NDArray[Any]] = []

    def __iter__(self) -> Iterator[ConfidencePart]:
        from wisecrowd.utils import progress

        for number, part in enumerate(self.stream, 1):
            table = part.posterior
            self.glance.add(table.to_numpy(), part.confidence)
            if self.score_truth is not None:
                here = table.index.isin(fitting.match_task_ids(self.score_truth, table.index))
                self.scored.append(table[here])
                self.scored_confidence.append(part.confidence[here])
            yield part
            progress.report("writing labels", number, self.crowd.n_shards, f"{self.glance.tasks:,} tasks")

    def summary(self, gold: pd.Series | None) -> dict[str, Any]:
        """Return the figures that `summary_lines` prints."""
        from wisecrowd.cli._summary import rank_workers
        from wisecrowd.evaluate.confidence import confidence_error, encode_known_truth
        from wisecrowd.evaluate.metrics import summary

        facts = self.glance.figures(self.fitted.classes_, self.stream.accuracy) | {"without_votes": 0}
        if self.crowd.has_workers:
            facts["workers"] = rank_workers(self.fitted.workers_)
        if gold is not None:
            facts["gold"] = {"tasks": len(gold)}
        if self.score_truth is not None:
            import numpy as np
            import pandas as pd

            score_truth = (
                self.score_truth if gold is None else self.score_truth[~self.score_truth.index.isin(gold.index)]
            )
            posterior, confidence = pd.concat(self.scored), np.concatenate(self.scored_confidence)
            true_class = encode_known_truth(score_truth, posterior.index, posterior.columns)
            is_known = true_class != -1
            right = posterior.to_numpy().argmax(axis=1)[is_known] == true_class[is_known]
            score = summary(score_truth, posterior)
            score |= fitting.accuracy_interval(score)
            score["calibration_error"] = confidence_error(confidence[is_known], right)
            facts["score"] = score | {"n_without_truth": self.glance.tasks - int(score["n_tasks"])}
        return facts
