"""How commands read votes and truth: the options, and what they lead to."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._options import flag

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd

PANEL = "How to read the votes"

Votes = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        show_default=False,
        help="The votes: CSV, TSV, Parquet or JSON lines with a row per vote, a dataset folder, or a labelling tool's export.",
    ),
]


def _column(name: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar="COLUMN", show_default=False, rich_help_panel=PANEL, help=what)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Which column is which, and what to do with repeats and holes."""

    task: Annotated[str | None, _column("task", "Column of the task ids.")] = None
    worker: Annotated[str | None, _column("worker", "Column of the worker ids.")] = None
    label: Annotated[str | None, _column("label", "Column of the labels.")] = None
    weight: Annotated[str | None, _column("weight", "Column of how much a vote counts.")] = None
    time: Annotated[str | None, _column("time", "Column of when a vote was cast.")] = None
    no_workers: Annotated[bool, flag("--no-workers", panel=PANEL, help="Nobody knows who said what.")] = False
    numeric: Annotated[bool, flag("--numeric", panel=PANEL, help="Labels are numbers.")] = False
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…", show_default=False, rich_help_panel=PANEL, help="All classes, also those nobody chose."
        ),
    ] = None
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            rich_help_panel=PANEL,
            help="When a worker labelled a task twice: error, first, last, distinct or keep.",
        ),
    ] = "error"
    missing: Annotated[
        str, typer.Option(metavar="RULE", rich_help_panel=PANEL, help="Rows with an empty cell: error or drop.")
    ] = "error"
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "--input-format", metavar="NAME", show_default=False, rich_help_panel=PANEL,
            help="The file format, when its name does not tell.",
        ),
    ] = None  # fmt: skip
    question: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, rich_help_panel=PANEL,
            help="Which question of a labelling tool's export; NAME=OPTION for one option of several: see wisecrowd questions.",
        ),
    ] = None  # fmt: skip

    def arguments(self) -> dict[str, Any]:
        """The same as arguments of `wisecrowd.read` and `wisecrowd.examine`."""
        from wisecrowd.errors import UsageError

        if self.no_workers and self.worker is not None:
            raise UsageError("--no-workers and --worker contradict each other; leave one of them out")
        return {
            "task": self.task,
            "worker": False if self.no_workers else self.worker,
            "label": self.label,
            "weight": self.weight,
            "time": self.time,
            "numeric": self.numeric,
            "classes": None if self.classes is None else [name.strip() for name in self.classes.split(",")],
            "duplicates": self.duplicates,
            "missing": self.missing,
            "format": self.format,
            "question": self.question,
        }

    def read(self, path: Path) -> Crowd:
        """The votes in a file or folder."""
        from wisecrowd import io

        return io.read(located(path), **self.arguments())

    def recorded(self, path: Path) -> dict[str, Any]:
        """All that is needed to read the same votes in the same way again, ready for JSON."""
        from wisecrowd.io.formats import find_format

        return dataclasses.asdict(self) | {"format": find_format(located(path), self.format).name}

    @contextlib.contextmanager
    def hushed(self, *, quiet: bool) -> Iterator[None]:
        """Read without notes on columns that the user named, for he knows; with no notes at all if it is to be quiet."""
        named = tuple(
            f"read {getattr(self, role)!r} as the {role} column"
            for role in ("task", "worker", "label", "weight", "time")
        )

        def worth_saying(note: logging.LogRecord) -> bool:
            return not quiet and not note.getMessage().endswith(named)

        logger = logging.getLogger("wisecrowd.io")
        logger.addFilter(worth_saying)
        try:
            yield
        finally:
            logger.removeFilter(worth_saying)


def located(path: Path) -> Path:
    """The path itself, or the folder of the dataset that has this name; never a folder of shards."""
    from wisecrowd.cli._shards import are_shards

    if are_shards(path):
        from wisecrowd.errors import InputError

        raise InputError(
            f"{path} is a folder of shards, and only wisecrowd aggregate works on those; give this command files of votes, "
            "or load them in Python: Crowd.open(folder).load()"
        )
    if path.exists() or len(path.parts) != 1:
        return path
    from wisecrowd.errors import InputError
    from wisecrowd.io.datasets import list_datasets

    known = list_datasets()
    if path.name not in known.index:
        return path
    where = known.at[path.name, "where"]
    if not known.at[path.name, "downloaded"]:
        raise InputError(f"the dataset {path} is not here yet; get it with: wisecrowd datasets fetch {path}")
    return Path(str(where))


def read_truth(path: Path, reading: Reading, crowd: Crowd | None = None) -> pd.Series:
    """The truth in a file or dataset folder; its task column may be called as that of the votes is."""
    from wisecrowd import io
    from wisecrowd.io.formats import find_format
    from wisecrowd.io.problems import MissingColumn

    path, numeric = located(path), crowd is not None and crowd.is_numeric
    if reading.question is not None and find_format(path).project is not None:
        return io.read_truth(path, numeric=numeric, question=reading.question)
    if reading.task is not None:
        try:
            return io.read_truth(path, task=reading.task, numeric=numeric)
        except MissingColumn as error:
            if "task" not in error.roles:
                raise
    return io.read_truth(path, numeric=numeric)
