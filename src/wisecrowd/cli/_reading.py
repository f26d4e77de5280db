"""Options for reading votes and truth, and the functions behind them."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._options import flag

if TYPE_CHECKING:
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io import VoteSource
    from wisecrowd.io.vote_table import ReadVotes

PANEL = "Reading the votes"
#: Votes of a worker on a task from which columns are probably swapped if there are more classes than tasks.
MIN_REPEATS = 2

Votes = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        show_default=False,
        help="Votes: CSV, TSV, Excel, Parquet or JSON lines with one vote per row, a dataset folder, or an export of a labelling "
        "tool; also an address such as s3://bucket/votes.csv, or - for standard input.",
    ),
]


def _limit_unpacked(context: typer.Context, size: str | None) -> str | None:
    """Apply ``--max-unpacked`` to every file that the command reads."""
    if size is not None:
        from wisecrowd.errors import UsageError
        from wisecrowd.io.compressed_files import limit_unpacked

        try:
            context.with_resource(limit_unpacked(size))
        except UsageError as error:
            raise typer.BadParameter(str(error)) from None
    return size


MaxUnpacked = Annotated[
    str | None,
    typer.Option(
        "--max-unpacked",
        metavar="SIZE",
        show_default=False,
        rich_help_panel=PANEL,
        callback=_limit_unpacked,
        help="Size that a compressed file may unpack to, such as 16GB. Without it, 50 times its size and a quarter of the memory.",
    ),
]


def _column(name: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar="COLUMN", show_default=False, rich_help_panel=PANEL, help=what)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Columns of the votes, and rules for repeated votes and missing values."""

    task: Annotated[str | None, _column("task", "Column of the task ids.")] = None
    worker: Annotated[str | None, _column("worker", "Column of the worker ids.")] = None
    label: Annotated[str | None, _column("label", "Column of the labels.")] = None
    weight: Annotated[str | None, _column("weight", "Column of the weights of votes.")] = None
    time: Annotated[str | None, _column("time", "Column of the times of votes.")] = None
    no_workers: Annotated[bool, flag("--no-workers", panel=PANEL, help="Votes have no worker ids.")] = False
    numeric: Annotated[bool, flag("--numeric", panel=PANEL, help="Labels are numbers.")] = False
    ordered: Annotated[
        bool, flag("--ordered", panel=PANEL, help="Classes are ordered; with --classes, from lowest to highest.")
    ] = False
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            show_default=False,
            rich_help_panel=PANEL,
            help="All classes, including those without votes.",
        ),
    ] = None
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            rich_help_panel=PANEL,
            help="Rule for several votes of a worker on a task: error, first, last, distinct or keep.",
        ),
    ] = "error"
    missing: Annotated[
        str,
        typer.Option(metavar="RULE", rich_help_panel=PANEL, help="Rule for rows with a missing value: error or drop."),
    ] = "error"
    normalise: Annotated[
        bool,
        flag(
            "--normalise",
            "--normalize",
            panel=PANEL,
            help="Unify ids and labels that differ only by case, space, Unicode form or number form (1 and 1.0).",
        ),
    ] = False
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "--input-format", metavar="NAME", show_default=False, rich_help_panel=PANEL,
            help="File format, if it is not recognised.",
        ),
    ] = None  # fmt: skip
    question: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, rich_help_panel=PANEL,
            help="Question of a labelling tool's export; NAME=OPTION for one option of a multiple choice. See wisecrowd questions.",
        ),
    ] = None  # fmt: skip

    max_unpacked: MaxUnpacked = None

    def read_arguments(self) -> dict[str, Any]:
        """Return the options as arguments of `wisecrowd.read` and `wisecrowd.check_votes`."""
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
            "ordered": self.ordered,
            "classes": None if self.classes is None else [name.strip() for name in self.classes.split(",")],
            "duplicates": self.duplicates,
            "missing": self.missing,
            "normalise": self.normalise,
            "format": self.format,
            "question": self.question,
            "max_unpacked": self.max_unpacked,
        }

    def to_words(self, changes: Mapping[str, Any]) -> list[str]:
        """Return the options that were given, with some changes, as words of a command line."""
        if changes.get("worker") is False:
            changes = {**changes, "worker": None, "no_workers": True}
        words: list[str] = []
        for field in dataclasses.fields(self):
            value = changes.get(field.name, getattr(self, field.name))
            if value != field.default:
                words += [f"--{field.name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return words

    def open(self, path: Path) -> VoteSource:
        """Detect the format of a file or folder; the result is passed on, so that it is detected once per run."""
        from wisecrowd.io import VoteSource

        return VoteSource.detect(resolve_path(path), self.format)

    def read(self, source: VoteSource) -> Crowd:
        """Read the votes. An error names all problems of the file and the options that resolve them."""
        return self.read_counted(source).crowd

    def read_counted(self, source: VoteSource) -> ReadVotes:
        """Read the votes as `read` does, with the numbers of rows that reading removed or changed, for the record of a run."""
        from wisecrowd.errors import InputError
        from wisecrowd.io.vote_table import ReadOptions

        options = {name: value for name, value in self.read_arguments().items() if name != "format"}
        try:
            votes = source.read_counted(ReadOptions(**options))
            crowd = votes.crowd
            self._warn_swapped_names(crowd)
            self._warn_single_class(crowd)
            self._warn_swapped_columns(crowd)
            return votes
        except InputError as error:
            error.args = (f"{error}{self._describe_other_problems(source)}",)  # in place: subclasses carry attributes
            raise

    def _warn_single_class(self, crowd: Crowd) -> None:
        """Warn of votes that are all equal: nothing contradicts them, so every figure says that all is certain."""
        if crowd.classes is None or len(crowd.classes) != 1 or not crowd.n_votes:
            return
        from wisecrowd.cli._console import warn
        from wisecrowd.errors import preview

        subject = "there is one vote" if crowd.n_votes == 1 else f"all {crowd.n_votes:,} votes are equal"
        warn(
            f"{subject}, {preview(crowd.classes)}, so the labels are certain by construction and say nothing about the workers; if "
            "there are other classes, name all of them: --classes A,B,…"
        )

    def _warn_swapped_names(self, crowd: Crowd) -> None:
        """Warn if two columns that the user named have names that usually mean the role of the other, unless the votes fit."""
        from itertools import combinations

        from wisecrowd.cli._console import warn
        from wisecrowd.io.tables.columns import role_names, simplify_name
        from wisecrowd.io.validation.mistake_checks import looks_right_when_swapped, looks_swapped

        named = {role: name for role in ("task", "worker", "label") if (name := getattr(self, role)) is not None}
        for one, other in combinations(named, 2):
            means_other, means_one = simplify_name(named[one]), simplify_name(named[other])
            is_swapped = means_other in role_names(other) and means_one in role_names(one)
            is_pair = is_swapped and {one, other} == {"task", "worker"}
            if is_pair and (looks_right_when_swapped(crowd) or looks_swapped(crowd)):
                continue  # the header itself is wrong, or reading has asked already
            if is_swapped and means_other not in role_names(one) and means_one not in role_names(other):
                warn(
                    f"column {named[one]!r} usually holds {other}s and {named[other]!r} {one}s; are they swapped? Then say --{one} "
                    f"{shlex.quote(named[other])} --{other} {shlex.quote(named[one])}"
                )

    def _warn_swapped_columns(self, crowd: Crowd) -> None:
        """Warn if there are more classes than tasks and workers label a task many times: the columns are probably swapped."""
        if crowd.classes is None or crowd.worker is None or len(crowd.classes) <= crowd.n_tasks:
            return
        import numpy as np

        from wisecrowd.cli._console import warn
        from wisecrowd.errors import preview

        is_new = (np.diff(crowd.task) != 0) | (np.diff(crowd.worker) != 0)  # votes are sorted by task and worker
        if crowd.n_votes > MIN_REPEATS * (1 + int(is_new.sum())):
            warn(
                f"there are more classes ({len(crowd.classes):,}: {preview(crowd.classes)}) than tasks ({crowd.n_tasks:,}: "
                f"{preview(crowd.tasks)}), and workers give several labels to one task; are the columns of tasks and labels "
                "swapped? Name them: --task COLUMN --label COLUMN"
            )

    def _describe_other_problems(self, source: VoteSource) -> str:
        """Return a sentence about all errors in the votes and the options that resolve them, if there are several."""
        from wisecrowd.errors import WisecrowdError
        from wisecrowd.io.validation.vote_checks import check_votes, find_options

        try:
            report = check_votes(source, **self.read_arguments())
            options = find_options(source, report, **self.read_arguments()) if len(report.errors) > 1 else {}
        except WisecrowdError:
            return ""
        if not options:
            return ""
        names = ", ".join(finding.name for finding in report.errors)
        return (
            f". The file has {len(report.errors)} problems ({names}); the options {shlex.join(self.to_words(options))} resolve "
            f"{'both' if len(report.errors) == 2 else 'all'}"
        )

    def to_record(self, source: VoteSource) -> dict[str, Any]:
        """Return the options that read the same votes again, for JSON."""
        return dataclasses.asdict(self) | {"format": source.format.name}

    @contextlib.contextmanager
    def silence_notes(self, *, quiet: bool) -> Iterator[None]:
        """Silence notes about columns that the user named explicitly, or all notes if ``quiet`` is true."""
        named = tuple(
            f"read {getattr(self, role)!r} as the {role} column"
            for role in ("task", "worker", "label", "weight", "time")
        )

        def is_wanted(note: logging.LogRecord) -> bool:
            return not quiet and not note.getMessage().endswith(named)

        logger = logging.getLogger("wisecrowd.io")
        logger.addFilter(is_wanted)
        try:
            yield
        finally:
            logger.removeFilter(is_wanted)


@dataclass(frozen=True, kw_only=True)
class GoldReading(Reading):
    """Options for commands that read a table of truth beside the votes."""

    gold_task: Annotated[str | None, _column("gold-task", "Column of the task ids in the tables of known truth.")] = (
        None
    )
    gold_label: Annotated[str | None, _column("gold-label", "Column of the labels in the tables of known truth.")] = (
        None
    )

    def gold_words(self) -> list[str]:
        """Return the options that name columns of a table of truth, as words of a command line."""
        names = {"--gold-task": self.gold_task, "--gold-label": self.gold_label}
        return [word for option, name in names.items() if name is not None for word in (option, name)]

    def check_gold_columns(self, *tables: Path | None) -> None:
        """Raise an error if columns of a table of truth are named but no such table is given."""
        if (self.gold_task or self.gold_label) and all(table is None for table in tables):
            from wisecrowd.errors import UsageError

            raise UsageError(
                "--gold-task and --gold-label name columns of a table of known truth, but no such table is given; add it, or "
                "leave them out. --task and --label name columns of the votes"
            )

    def check_shards(self, votes: Path, *tables: Path | None) -> None:
        """Raise an error if options for reading files are given with a folder of shards, which were read before."""
        from wisecrowd.errors import UsageError

        # These describe tables of truth, which are read now.
        used = {"gold_task": None, "gold_label": None, "max_unpacked": None}
        if any(table is not None for table in tables):
            used["task"] = None
        if words := self.to_words(used):
            raise UsageError(
                f"{shlex.join(words)} applies to files, but {votes} is a folder of shards, whose votes were read when it was made; "
                "leave it out here, and apply it when the shards are made: give it to wisecrowd shard, or, if that command has no "
                "such option, convert the files first with wisecrowd.write(wisecrowd.read(file, ...), file)"
            )


def resolve_path(path: Path) -> Path:
    """Return the path, a copy of a remote file, or the folder of the dataset with this name; shards are an error."""
    from wisecrowd.cli._shards import are_shards
    from wisecrowd.io.source_files import fetch_source, is_remote

    if is_remote(path):
        return fetch_source(path)
    if are_shards(path):
        from wisecrowd.errors import InputError

        raise InputError(
            f"{path} is a folder of shards, which only wisecrowd aggregate reads. Give this command files of votes, "
            "or load the shards in Python: Crowd.open(folder).load()"
        )
    if path.exists() or len(path.parts) != 1:
        return path
    from wisecrowd.errors import InputError
    from wisecrowd.io.datasets import list_datasets

    datasets = list_datasets()
    if path.name not in datasets.index:
        return path
    where = datasets.at[path.name, "where"]
    if not datasets.at[path.name, "downloaded"]:
        raise InputError(f"the dataset {path} is not downloaded; download it with: wisecrowd datasets fetch {path}")
    return Path(str(where))
