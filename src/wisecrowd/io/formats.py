"""What a file format is: one `Format` object per format, each in its own module of this package, found by looking."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd import vocabulary as vocab
from wisecrowd._building import Missing, Vocabulary
from wisecrowd._rows import Duplicates
from wisecrowd.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, did_you_mean, one_of

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
            raise InputError("there are no votes in it: a row per vote was wanted, with a task, a worker and a label")
        if options.missing == "drop":
            table = drop_holes(table)
        given: dict[str, Any] = {
            "tasks": self.tasks if options.tasks is None else options.tasks,
            "workers": self.workers if options.workers is None else options.workers,
            "classes": self.classes if options.classes is None else options.classes,
        }
        worker = "worker" if "worker" in table.column_names else None
        if "observed" in table.column_names:
            return _with_observed(table, worker, numeric, options, given)
        return Crowd.from_frame(
            table,
            worker=worker,
            weight="weight" if "weight" in table.column_names else None,
            numeric=numeric,
            duplicates=options.duplicates,
            **given,
        )


Truth: TypeAlias = pd.DataFrame  # indexed by task, with the column "truth" and perhaps "split"


@dataclass(frozen=True, kw_only=True)
class Format:
    """One way to keep votes in files. What it has no function for, it does not hold.

    >>> from wisecrowd.io import csv
    >>> csv.CSV.matches(Path("votes.csv.gz"))
    True
    """

    name: str
    about: str
    patterns: tuple[str, ...]
    votes: Callable[[Path, Options], Votes]
    #: Whether the content looks like this format; asked when the name alone does not tell.
    sniff: Callable[[Path], bool] = lambda path: False  # noqa: ARG005
    truth: Callable[[Path, str | None, str | None], Truth | None] | None = None
    features: Callable[[Path], pd.DataFrame | None] | None = None
    texts: Callable[[Path], pd.DataFrame | None] | None = None
    meta: Callable[[Path], dict[str, Any]] | None = None
    write: Callable[[Crowd, Path], None] | None = None

    def matches(self, path: Path) -> bool:
        """Whether the name is one that files of this format go by."""
        return any(fnmatch(path.name.lower(), pattern) for pattern in self.patterns)

    def read(self, path: Path, options: Options) -> Crowd:
        """The crowd in a file or folder of this format."""
        try:
            votes = self.votes(path, options)
            for note in votes.notes:
                log.info("%s: %s", path, note)
            return votes.crowd(options)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


@cache
def formats() -> dict[str, Format]:
    """Every format there is, by name.

    >>> "parquet" in formats()
    True
    """
    import wisecrowd.io as package

    modules = [importlib.import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Format)]
    # Names such as answers.json say more than *.json, so they are tried first.
    return {form.name: form for form in sorted(set(found), key=lambda form: (all("*." in p for p in form.patterns), form.name))}


def find_format(path: Path, name: str | None = None) -> Format:
    """The format of that name, or the one that a file looks like.

    >>> find_format(Path("votes.tsv"), "csv").name
    'csv'
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
    for test in (Format.matches, lambda form, path: form.sniff(path)):
        for form in formats().values():
            if test(form, path):
                return form
    raise InputError(
        f"cannot tell what {path} is; neither its name nor its content is that of {', '.join(formats())}. "
        'Say which it is, for example format="csv" (--format csv)'
    )
