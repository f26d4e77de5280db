"""What a file format is: one `Format` object per format, each in its own module of this package, found by looking."""

from __future__ import annotations

import contextlib
import importlib
import logging
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data._building import Missing, Vocabulary
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import Duplicates
from wisecrowd.data.sharded import is_whole
from wisecrowd.errors import DataWarning, InputError, UsageError, did_you_mean, one_of, some
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tables.archives import why_no_export
from wisecrowd.io.tables.numerals import numbers, suspect_numbers

if TYPE_CHECKING:
    from wisecrowd.io.tools.gathering import Gathering

log = logging.getLogger("wisecrowd.io")

_SHEET = ("a spreadsheet", "save its sheet as CSV in UTF-8 first")
_ARCHIVE = ("an archive", "unpack it first, and give the file or folder that was in it")
#: What people try, by suffix: what it is, and what to do instead.
_NOT_READ = dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET) | dict.fromkeys((".zip", ".7z", ".tar", ".tgz"), _ARCHIVE)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to read votes: which column is which, the vocabularies, and what to do about repeats and holes.

    >>> Options(task="question").missing
    'error'
    """

    task: str | None = None
    worker: str | Literal[False] | None = None
    label: str | None = None
    weight: str | None = None
    time: str | Literal[False] | None = None
    tasks: Vocabulary = None
    workers: Vocabulary = None
    classes: Vocabulary = None
    numeric: bool = False
    duplicates: Duplicates = "error"
    missing: Missing = "error"
    question: str | None = None

    def __post_init__(self) -> None:
        one_of("missing", self.missing, ("error", "drop"))
        one_of("duplicates", self.duplicates, ("error", "first", "last", "distinct", "keep"))

    @property
    def names_columns(self) -> bool:
        """Whether somebody says which column of a table is which."""
        return any((self.task, self.worker, self.label, self.weight, self.time))


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Votes as a file tells them, before anything is judged.

    ``table`` has the columns ``task``, ``label`` and, where they are known, ``worker``, ``weight``, ``observed`` and ``time``;
    the vocabularies are there when the format says more than the rows do, such as tasks that nobody labelled.

    >>> votes = Votes(table=pa.table({"task": ["t1"], "worker": ["ann"], "label": ["cat"]}))
    >>> votes.crowd(Options())
    Crowd(1 labels: 1 tasks x 1 workers, 1 classes, 1.0 labels/task)
    """

    table: pa.Table
    tasks: Vocabulary = None
    workers: Vocabulary = None
    classes: Vocabulary = None
    numeric: bool = False
    notes: tuple[str, ...] = ()
    #: The lines of the file on which some rows are, where rows are lines at all; None also when it cannot be told.
    lines: Callable[[Sequence[int]], list[int] | None] | None = None

    def where(self, rows: Sequence[int]) -> str:
        """How to call the places of some rows: the lines of the file, or else the positions from 0.

        >>> Votes(table=pa.table({"task": []}), lines=lambda rows: [row + 2 for row in rows]).where([0, 3])
        'line 2, 5'
        """
        word, places = self.places(rows[:4])  # one more than a message shows
        return f"{word} {some(places)}"

    def places(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        """What places are called, and the numbers of those of some rows.

        >>> Votes(table=pa.table({"task": []})).places([0, 3])
        ('row', [0, 3])
        """
        lines = None if self.lines is None else self.lines(rows)
        return ("row", list(rows)) if lines is None else ("line", lines)

    def complete(self) -> Votes:
        """The votes in rows that have a value in every column, but for the time; they still know their lines.

        >>> table = pa.table({"task": ["a", None, "b"], "label": [1.0, 2.0, 3.0]})
        >>> Votes(table=table, lines=lambda rows: [row + 2 for row in rows]).complete().where([1])
        'line 4'
        """
        needed = [name for name in self.table.column_names if name != "time"]
        holes = np.logical_or.reduce([vocab.missing_mask(self.table[name]) for name in needed])
        if not holes.any():
            return self
        kept, lines = np.flatnonzero(~holes), self.lines
        return replace(
            self,
            table=self.table.filter(pa.array(~holes)),
            lines=None if lines is None else lambda rows: lines(kept[list(rows)].tolist()),
        )

    def crowd(self, options: Options) -> Crowd:
        """Judge the votes: a crowd, or an error that says what is wrong."""
        table, numeric = self.table, self.numeric or options.numeric
        if table.num_rows == 0:
            raise EmptyInput("there are no votes in it: a row per vote was wanted, with a task, a worker and a label")
        if numeric:
            place = table.column_names.index("label")
            table = table.set_column(place, "label", numbers(table["label"], "label", self.where))
        self._refuse_bad_rows(table, options)
        if options.missing == "drop":
            table = replace(self, table=table).complete().table
        given: dict[str, Any] = {
            "tasks": self.tasks if options.tasks is None else options.tasks,
            "workers": self.workers if options.workers is None else options.workers,
            "classes": self.classes if options.classes is None else options.classes,
        }
        return Crowd.from_frame(
            table,
            worker="worker" if "worker" in table.column_names else None,
            weight="weight" if "weight" in table.column_names else None,
            observed="observed" if "observed" in table.column_names else None,
            time="time" if "time" in table.column_names else None,
            numeric=numeric,
            duplicates=options.duplicates,
            **given,
        )

    def _refuse_bad_rows(self, table: pa.Table, options: Options) -> None:
        """Say on which lines of the file something is wrong, while rows are still in the order of the file."""
        if self.lines is None:
            return
        if options.missing == "error":
            for role in ("task", "worker", "label"):
                if role in table.column_names:
                    vocab.refuse_missing(table[role], role, self.where)
        if "weight" in table.column_names:
            weight = table["weight"].to_numpy()
            bad = ~(np.isfinite(weight) & (weight > 0))
            rows = np.flatnonzero(bad & ~np.isnan(weight) if options.missing == "drop" else bad)
            if rows.size:
                raise InputError(
                    f"{rows.size:,} of {len(weight):,} weights are not finite and positive ({self.where(rows.tolist())}); "
                    "drop votes that should not count"
                )


Truth: TypeAlias = pd.DataFrame  # indexed by task, with the column "truth" and perhaps "split"


@dataclass(frozen=True, kw_only=True)
class Format:
    """One way to keep votes in files; what it has no function for, it does not hold.

    >>> formats()["csv"].matches(Path("votes.csv.gz"))
    True
    """

    name: str
    about: str
    #: Names that files of this format go by, as for fnmatch.
    patterns: tuple[str, ...]
    votes: Callable[[Path, Options], Votes]
    #: Whether the content can only be of this format, whatever it is called.
    sniff: Callable[[Path], bool]
    truth: Callable[[Path, str | None, str | None], Truth | None] | None = None
    features: Callable[[Path], pd.DataFrame | None] | None = None
    texts: Callable[[Path], pd.DataFrame | None] | None = None
    meta: Callable[[Path], dict[str, Any]] | None = None
    write: Callable[[Crowd, Path], None] | None = None
    #: One table, of votes or of truth, rather than a place for both.
    is_table: bool = False
    #: All that the export of a labelling tool tells: it may hold several questions, of which ``votes`` gives one.
    project: Callable[[Path], Gathering] | None = None

    def matches(self, path: Path) -> bool:
        """Whether the name is one that files of this format go by."""
        return any(fnmatch(path.name.lower(), pattern) for pattern in self.patterns)

    def read(self, path: Path, options: Options) -> Crowd:
        """The crowd in a file or folder of this format."""
        with about(path):
            if options.question is not None and self.project is None:
                raise UsageError(f"question= (--question) is for exports of labelling tools; this is {self.about}")
            votes = self.votes(path, options)
            for note in votes.notes:
                log.info("%s: %s", path, note)
            crowd = votes.crowd(options)
        if crowd.classes is not None and votes.classes is None and options.classes is None:
            suspect = suspect_numbers(crowd.classes)
            if len(suspect):
                warnings.warn(
                    f"{path}: the labels are numbers, and each of the {len(suspect):,} is a class of its own "
                    f"({some(suspect)}); if they measure something, say numeric=True (--numeric); if they are names, "
                    "list them as classes= (--classes)",
                    DataWarning,
                    stacklevel=3,
                )
        return crowd


@cache
def formats() -> dict[str, Format]:
    """Every format there is, by name.

    >>> "parquet" in formats()
    True
    """
    import wisecrowd.io as package

    modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    # Sorted by file name, so that the order in which formats are tried does not depend on the folder they are in.
    names = sorted((module.name for module in modules), key=lambda name: name.rsplit(".", 1)[-1])
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return {value.name: value for value in values if isinstance(value, Format)}


def find_format(path: Path, name: str | None = None) -> Format:
    """The format of that name, or the one that an existing file or folder looks like.

    >>> find_format(Path("votes.txt"), "tsv").about
    'a table separated by tabs, with a header line'
    """
    refuse_name(path)
    if name is not None:
        if name not in formats():
            raise UsageError(
                f"no format is called {name!r}; there are {', '.join(formats())}.{did_you_mean(name, formats())}"
            )
        if path.is_dir() and formats()[name].is_table:
            raise InputError(f"{path} is a folder, but {name} is the format of a file.{_inside(path)}")
        return formats()[name]
    if str(path) == "-":
        raise InputError("votes are not read from standard input; save them to a file, and give its name")
    if not path.exists():
        near = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file or folder {path}.{near}")
    if is_whole(path):
        raise InputError(
            f"{path} is a folder of shards; open it with Crowd.open, or let wisecrowd aggregate work on it"
        )
    if path.is_file() and path.stat().st_size == 0:
        raise EmptyInput(f"{path} is empty; a file with a row per vote was wanted")
    # What a labelling tool wrote is a table, too, or a list of objects; that it is the tool's says more.
    tools = [form for form in formats().values() if form.project is not None and form.sniff(path)]
    if tools:
        return tools[0]
    looks = [form for form in formats().values() if form.project is None and form.sniff(path)]
    if not looks and path.is_file() and path.suffix.lower() in _NOT_READ:
        if path.suffix.lower() == ".zip":
            raise InputError(why_no_export(path))
        what, advice = _NOT_READ[path.suffix.lower()]
        raise InputError(f"{path} is {what}, which is not read; {advice}")
    called = [form for form in formats().values() if path.is_file() and form.matches(path)]
    known = [form for form in looks if form in called] + looks + called
    if not known and path.is_dir():
        raise InputError(
            f"{path} is a folder, but no dataset: there is no annotations.parquet in it, nor another tool's files."
            f"{_inside(path)}"
        )
    if not known:
        raise InputError(
            f"cannot tell what {path} is: neither its name nor its content fits any of {', '.join(formats())}. "
            'Say which it is, for example format="csv" (--format csv)'
        )
    return known[0]


def _inside(folder: Path) -> str:
    """What there is in a folder, and which of it to try."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    if not names:
        return " It is empty"
    tables = [name for name in names for form in formats().values() if form.is_table and form.matches(Path(name))]
    tables.sort(key=lambda name: not any(word in name for word in ("vote", "annotation", "label", "answer")))
    advice = f". Give the file with the votes itself, for example {folder / tables[0]}" if tables else ""
    return f" In it: {some(names, 8)}{advice}"


def refuse_name(path: Path) -> None:
    """Raise when the name of a file is in another encoding, which what reads and writes tables does not take.

    >>> refuse_name(Path("caf\\udce9.csv"))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the name of 'caf\\udce9.csv' is not in UTF-8; rename it
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"the name of {some([path.name])} is not in UTF-8; rename it") from None


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Put the name of the file before whatever is wrong with it.

    >>> with about(Path("votes.csv")):
    ...     raise InputError("it is empty")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: votes.csv: it is empty
    """
    refuse_name(path)
    try:
        with vocab.whole_characters():
            yield
    except InputError as error:
        error.args = (f"{path}: {error}",)  # in place, for an error may know more than its message
        raise
