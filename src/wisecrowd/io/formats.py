"""What a file format is: one `Format` object per format, each in its own module of this package, found by looking."""

from __future__ import annotations

import contextlib
import importlib
import logging
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd import vocabulary as vocab
from wisecrowd._building import Missing, Vocabulary
from wisecrowd._rows import Duplicates
from wisecrowd.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, did_you_mean, one_of
from wisecrowd.io.problems import EmptyInput

log = logging.getLogger("wisecrowd.io")


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
    tasks: Vocabulary = None
    workers: Vocabulary = None
    classes: Vocabulary = None
    numeric: bool = False
    duplicates: Duplicates = "error"
    missing: Missing = "error"

    def __post_init__(self) -> None:
        one_of("missing", self.missing, ("error", "drop"))
        one_of("duplicates", self.duplicates, ("error", "first", "last", "distinct", "keep"))


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Votes as a file tells them, before anything is judged.

    ``table`` has the columns ``task``, ``label`` and, where they are known, ``worker``, ``weight`` and ``observed``;
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

    def crowd(self, options: Options) -> Crowd:
        """Judge the votes: a crowd, or an error that says what is wrong."""
        table, numeric = self.table, self.numeric or options.numeric
        if table.num_rows == 0:
            raise EmptyInput("there are no votes in it: a row per vote was wanted, with a task, a worker and a label")
        if numeric:
            place = table.column_names.index("label")
            table = table.set_column(place, "label", numbers(table["label"], "label"))
        if options.missing == "drop":
            table = drop_holes(table)
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
            numeric=numeric,
            duplicates=options.duplicates,
            **given,
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

    def matches(self, path: Path) -> bool:
        """Whether the name is one that files of this format go by."""
        return any(fnmatch(path.name.lower(), pattern) for pattern in self.patterns)

    def read(self, path: Path, options: Options) -> Crowd:
        """The crowd in a file or folder of this format."""
        with about(path):
            votes = self.votes(path, options)
            for note in votes.notes:
                log.info("%s: %s", path, note)
            return votes.crowd(options)


@cache
def formats() -> dict[str, Format]:
    """Every format there is, by name.

    >>> "parquet" in formats()
    True
    """
    import wisecrowd.io as package

    names = [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return {value.name: value for value in values if isinstance(value, Format)}


def find_format(path: Path, name: str | None = None) -> Format:
    """The format of that name, or the one that an existing file or folder looks like.

    >>> find_format(Path("votes.txt"), "tsv").about
    'a table separated by tabs, with a header line'
    """
    if name is not None:
        if name not in formats():
            raise UsageError(
                f"no format is called {name!r}; there are {', '.join(formats())}.{did_you_mean(name, formats())}"
            )
        return formats()[name]
    if not path.exists():
        near = did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file or folder {path}.{near}")
    if path.is_file() and path.stat().st_size == 0:
        raise EmptyInput(f"{path} is empty; a file with a row per vote was wanted")
    looks = [form for form in formats().values() if form.sniff(path)]
    called = [form for form in formats().values() if path.is_file() and form.matches(path)]
    known = [form for form in looks if form in called] + looks + called
    if not known:
        raise InputError(
            f"cannot tell what {path} is: neither its name nor its content fits any of {', '.join(formats())}. "
            'Say which it is, for example format="csv" (--format csv)'
        )
    return known[0]


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Put the name of the file before whatever is wrong with it.

    >>> with about(Path("votes.csv")):
    ...     raise InputError("it is empty")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: votes.csv: it is empty
    """
    try:
        yield
    except InputError as error:
        raise type(error)(f"{path}: {error}") from None


def drop_holes(table: pa.Table) -> pa.Table:
    """The rows that have a value in every column.

    >>> drop_holes(pa.table({"task": ["a", None], "label": [1.0, 2.0]})).num_rows
    1
    """
    holes = np.logical_or.reduce([vocab.missing_mask(column) for column in table.columns])
    return table.filter(pa.array(~holes)) if holes.any() else table


def numbers(column: pa.ChunkedArray, what: str) -> pa.ChunkedArray:
    """A column of numbers, parsed if it is text.

    >>> numbers(pa.chunked_array([["1.5", "2"]]), "label").to_pylist()
    [1.5, 2.0]
    """
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"numbers were wanted in the {what} column: {error}") from None
