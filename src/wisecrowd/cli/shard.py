"""``wisecrowd shard``: files larger than memory become a folder of shards."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, show_json, watched
from wisecrowd.cli._options import Quiet, flag, place, with_options
from wisecrowd.cli._reading import PANEL, Reading

if TYPE_CHECKING:
    from wisecrowd.data.sharded import ShardedCrowd


def _column(what: str) -> Any:
    return typer.Option(metavar="COLUMN", show_default=False, rich_help_panel=PANEL, help=what)


def _rule(what: str) -> Any:
    return typer.Option(metavar="RULE", rich_help_panel=PANEL, help=what)


@dataclass(frozen=True, kw_only=True)
class Files:
    """How other commands read votes, as far as it goes for files of any size."""

    task: Annotated[str | None, _column("Column of the task ids.")] = None
    worker: Annotated[str | None, _column("Column of the worker ids.")] = None
    label: Annotated[str | None, _column("Column of the labels.")] = None
    weight: Annotated[str | None, _column("Column of how much a vote counts.")] = None
    no_workers: Annotated[bool, flag("--no-workers", panel=PANEL, help="Nobody knows who said what.")] = False
    duplicates: Annotated[str, _rule("When a worker labelled a task twice: error, first, last, distinct or keep.")] = (
        "error"
    )
    missing: Annotated[str, _rule("Rows with an empty cell: error or drop.")] = "error"

    @property
    def reading(self) -> Reading:
        """The same, for what all commands do with it."""
        return Reading(**vars(self))


@with_options(Files)
def shard(
    votes: Annotated[
        list[str],
        typer.Argument(
            metavar="VOTES…",
            show_default=False,
            help="The votes: CSV, TSV or Parquet files, folders of them, or patterns.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=place, metavar="FOLDER", show_default=False, help="Where to write the shards."
        ),
    ],
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", show_default=False, help="Memory at most, for example 4GB; else half of what is free."
        ),
    ] = None,
    votes_per_shard: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, show_default=False, help="Votes in a shard, about; else 16 million."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, show_default=False, help="Threads at most; else all."),
    ] = None,
    fresh: Annotated[bool, flag("--fresh", help="Replace shards that are there, and do not go on with them.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, flag("--json", help="Print the figures as JSON instead.")] = False,
    files: Files,
) -> None:
    """Turn files of votes that do not fit in memory into a folder of shards: some tasks each, with all their votes.

    The folder takes about as much room as the files in Parquet would, and two or three times as much while it is made:

      wisecrowd shard votes/*.parquet -o crowd
      wisecrowd aggregate crowd -o results

    Files of any kind and number, with columns by other names, and a rule for repeated votes:

      wisecrowd shard 2024.csv.gz 2025/ --task question --duplicates last -o crowd

    When it is interrupted, the same command goes on where it was; to begin anew instead:

      wisecrowd shard votes/*.parquet -o crowd --fresh
    """  # fmt: skip
    from wisecrowd.data.sharded import VOTES_PER_SHARD
    from wisecrowd.io.sharding import shard_files

    begun = time.monotonic()
    given = files.reading.arguments()
    options = {name: given[name] for name in ("task", "worker", "label", "weight", "duplicates", "missing")}
    try:
        with files.reading.hushed(quiet=quiet or as_json), watched(quiet=quiet):
            crowd = shard_files(
                votes,
                output,
                votes_per_shard=votes_per_shard or VOTES_PER_SHARD,
                memory=memory,
                n_jobs=jobs or -1,
                fresh=fresh,
                **options,
            )
    except KeyboardInterrupt:
        begun_at = output.is_dir() and any(output.iterdir())
        raise KeyboardInterrupt(
            "what was done is kept, and the same command goes on from there." if begun_at else "nothing was done yet."
        ) from None
    figures = _figures(crowd, time.monotonic() - begun)
    if as_json:
        show_json(figures)
    elif not quiet:
        show_facts(_lines(figures))


def _figures(crowd: ShardedCrowd, seconds: float) -> dict[str, Any]:
    size = sum(file.stat().st_size for file in crowd.folder.rglob("*") if file.is_file())
    return {
        "folder": str(crowd.folder),
        "votes": crowd.n_votes,
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers if crowd.has_workers else None,
        "classes": crowd.n_classes,
        "shards": len(crowd.parts),
        "bytes": size,
        "seconds": round(seconds, 3),
        "sha256": crowd.digest,
    }


def _lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    from wisecrowd.utils.text import count_noun

    who = "no worker ids" if figures["workers"] is None else count_noun(figures["workers"], "worker")
    classes = f"{figures['classes']:,} {'class' if figures['classes'] == 1 else 'classes'}"
    folder = figures["folder"]
    return [
        (
            "Votes",
            f"{count_noun(figures['votes'], 'vote')} on {count_noun(figures['tasks'], 'task')}, {who}, {classes}",
        ),
        ("Wrote", f"{folder}: {count_noun(figures['shards'], 'shard')}, {_size(figures['bytes'])}"),
        ("Took", f"{figures['seconds']:,.1f} seconds"),
        ("Next", f"wisecrowd aggregate {shlex.quote(folder)} -o results"),
    ]


def _size(n_bytes: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
