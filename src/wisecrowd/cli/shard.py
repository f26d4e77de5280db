"""``wisecrowd shard``: divide files larger than memory into shards."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, show_json, show_progress
from wisecrowd.cli._failures import explain_interruption
from wisecrowd.cli._options import Quiet, flag, parse_output_path, with_options
from wisecrowd.cli._reading import PANEL, MaxUnpacked, Reading

if TYPE_CHECKING:
    from wisecrowd.data.sharded import ShardedCrowd


def _column(what: str) -> Any:
    return typer.Option(metavar="COLUMN", show_default=False, rich_help_panel=PANEL, help=what)


def _rule(what: str) -> Any:
    return typer.Option(metavar="RULE", rich_help_panel=PANEL, help=what)


@dataclass(frozen=True, kw_only=True)
class Files:
    """Reading options that work for files of any size."""

    task: Annotated[str | None, _column("Column of the task ids.")] = None
    worker: Annotated[str | None, _column("Column of the worker ids.")] = None
    label: Annotated[str | None, _column("Column of the labels.")] = None
    weight: Annotated[str | None, _column("Column of the weights of votes.")] = None
    no_workers: Annotated[bool, flag("--no-workers", panel=PANEL, help="Votes have no worker ids.")] = False
    duplicates: Annotated[
        str, _rule("Rule for several votes of a worker on a task: error, first, last, distinct or keep.")
    ] = "error"
    missing: Annotated[str, _rule("Rule for rows with a missing value: error or drop.")] = "error"
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "--input-format", metavar="NAME", show_default=False, rich_help_panel=PANEL,
            help="Format of all files, if it is not recognised: csv, tsv or parquet.",
        ),
    ] = None  # fmt: skip
    max_unpacked: MaxUnpacked = None

    @property
    def reading(self) -> Reading:
        """Return the options in the form that all commands use."""
        return Reading(**vars(self))


@with_options(Files)
def shard(
    votes: Annotated[
        list[str],
        typer.Argument(
            metavar="VOTES…",
            show_default=False,
            help="Votes: CSV, TSV or Parquet files, folders of them, or patterns.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=parse_output_path, metavar="FOLDER", show_default=False, help="Folder to write."
        ),
    ],
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", show_default=False, help="Memory limit, such as 4GB. Default: half of the free memory."
        ),
    ] = None,
    votes_per_shard: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, show_default=False, help="Approximate votes per shard. Default: 16 million."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            show_default=False,
            help="Maximum number of threads. Default: all cores.",
        ),
    ] = None,
    fresh: Annotated[bool, flag("--fresh", help="Replace existing shards instead of resuming.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, flag("--json", help="Print the figures as JSON instead.")] = False,
    files: Files,
) -> None:
    """Divide files of votes that do not fit in memory into shards, each with some tasks and all their votes.

    The folder needs about as much space as the votes in Parquet, and two or
    three times as much while it is written:

      wisecrowd shard votes/*.parquet -o crowd
      wisecrowd aggregate crowd -o results

    Mix file types, name columns, and give a rule for repeated votes:

      wisecrowd shard 2024.csv.gz 2025/ --task question --duplicates last -o crowd

    An interrupted command resumes when it is run again. To start from the
    beginning:

      wisecrowd shard votes/*.parquet -o crowd --fresh
    """  # fmt: skip
    from wisecrowd.data.sharded import VOTES_PER_SHARD
    from wisecrowd.io.sharding import shard_files

    started = time.monotonic()
    read_options = files.reading.read_arguments()
    options = {
        name: read_options[name] for name in ("task", "worker", "label", "weight", "duplicates", "missing", "format")
    }
    with (
        explain_interruption(lambda: _describe_partial_shards(output)),
        files.reading.silence_notes(quiet=quiet or as_json),
        show_progress(quiet=quiet),
    ):
        crowd = shard_files(
            votes,
            output,
            votes_per_shard=votes_per_shard or VOTES_PER_SHARD,
            memory=memory,
            n_jobs=jobs or -1,
            fresh=fresh,
            **options,
        )
    _warn_similar_ids(crowd)
    figures = _figures(crowd, time.monotonic() - started)
    if as_json:
        show_json(figures)
    elif not quiet:
        show_facts(_lines(figures))


def _describe_partial_shards(output: Path) -> str:
    is_begun = output.is_dir() and any(output.iterdir())
    return "finished steps are kept; the same command resumes." if is_begun else "nothing was written yet."


def _warn_similar_ids(crowd: ShardedCrowd) -> None:
    """Warn of labels and workers that probably mean the same; task ids may not fit in memory together."""
    from wisecrowd.cli._console import warn
    from wisecrowd.io.tables.similar_ids import describe_similar_ids

    for sentence in describe_similar_ids({"label": crowd.classes, "worker id": crowd.workers}):
        warn(f"{sentence}; shards are not normalised: if they mean the same, unify them in the files and shard again")


def _figures(crowd: ShardedCrowd, seconds: float) -> dict[str, Any]:
    size = sum(file.stat().st_size for file in crowd.folder.rglob("*") if file.is_file())
    return {
        "folder": str(crowd.folder),
        "votes": crowd.n_votes,
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers if crowd.has_workers else None,
        "classes": crowd.n_classes,
        "shards": crowd.n_shards,
        "bytes": size,
        "seconds": round(seconds, 3),
        "sha256": crowd.digest,
    }


def _lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    from wisecrowd.utils.memory import format_size
    from wisecrowd.utils.text import count_noun

    who = "no worker ids" if figures["workers"] is None else count_noun(figures["workers"], "worker")
    classes = f"{figures['classes']:,} {'class' if figures['classes'] == 1 else 'classes'}"
    folder = figures["folder"]
    return [
        (
            "Votes",
            f"{count_noun(figures['votes'], 'vote')} on {count_noun(figures['tasks'], 'task')}, {who}, {classes}",
        ),
        ("Wrote", f"{folder}: {count_noun(figures['shards'], 'shard')}, {format_size(figures['bytes'])}"),
        ("Took", f"{figures['seconds']:,.1f} seconds"),
        ("Next", f"wisecrowd aggregate {shlex.quote(folder)} -o results"),
    ]
