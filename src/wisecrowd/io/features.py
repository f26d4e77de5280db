"""Features of tasks in files: arrays (npz), tables (CSV, TSV, Parquet), and dataset folders."""

from __future__ import annotations

import logging
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import same_kind
from wisecrowd.errors import InputError, some
from wisecrowd.io.formats import about
from wisecrowd.io.problems import MissingColumn
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.columns import find_column

_LOG = logging.getLogger("wisecrowd.io")
#: What pandas calls the row numbers that it writes when nobody stops it.
_NAMELESS = ("", "Unnamed: 0")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, eq=False)
class Features:
    """A row of features for each task; a row is numbers, or an image of any shape.

    >>> Features(pd.Index(["t1"]), np.array([[1.0, 2.0]]), ("length", "width")).table
        length  width
    t1     1.0    2.0
    """

    tasks: pd.Index
    rows: NDArray[np.float64]
    names: tuple[str, ...] | None = None

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a table by task, where they are plain numbers."""
        if self.rows.ndim != 2:
            raise InputError(f"features of shape {self.rows.shape} do not go into a table; use rows")
        return pd.DataFrame(self.rows, index=self.tasks, columns=None if self.names is None else list(self.names))

    def beside(self, crowd: Crowd) -> tuple[Any, Crowd]:
        """The features and the crowd in a form that ``fit(X, crowd)`` takes, matched by task.

        >>> crowd = Crowd.from_triples([("t2", "ann", "cat"), ("t1", "ann", "dog")])
        >>> X, crowd = Features(pd.Index(["t2", "t1"]), np.array([[[2.0]], [[1.0]]])).beside(crowd)
        >>> X.ravel().tolist(), crowd.tasks_given
        ([1.0, 2.0], True)
        """
        place = self.tasks.get_indexer(same_kind(crowd.tasks, self.tasks))
        if (place < 0).any():
            raise InputError(
                f"no features for {np.sum(place < 0):,} tasks, for example {some(crowd.tasks[place < 0])}; the features "
                f"are of {some(self.tasks)}"
            )
        if self.rows.ndim == 2:
            return self.table, crowd
        # The order of its tasks is beyond doubt now.
        return self.rows[place], crowd._replace(np.arange(crowd.n_votes), tasks_given=True)


def read_features(path: str | os.PathLike[str], *, task: str | None = None) -> Features:
    """Read the features of tasks.

    A file of arrays holds ``task`` and ``X``; a table has a column of task ids, named ``task``, like it, or first, and
    numbers in all others; a dataset folder has either of them, called ``features``.

    >>> _ = Path("X.csv").write_text("task,length,width\\nt1,1.5,2\\nt2,0.5,1\\n")
    >>> read_features("X.csv").table.loc["t2"].to_dict()
    {'length': 0.5, 'width': 1.0}
    """
    place = Path(path)
    if place.is_dir():
        held = [place / name for name in ("features.npz", "features.parquet") if (place / name).is_file()]
        if not held:
            raise InputError(f"{place}: this folder has no features (features.npz or features.parquet)")
        place = held[0]
    with about(place):
        try:
            found = _read(place, task)
        except OSError as error:
            raise InputError(f"cannot read it: {error.strerror or error}") from None
        if not found.tasks.is_unique:
            raise InputError(
                f"several rows for {some(found.tasks[found.tasks.duplicated()].unique())}; keep one each. If that is no "
                "id, the file has no column of task ids that could be recognised: call it 'task'"
            )
        if found.rows[:1].size == 0:
            raise InputError("there are no features in it")
        return found


def _read(path: Path, task: str | None) -> Features:
    if not path.is_file():
        raise InputError("there is no such file")
    kind = path.suffix if path.suffix not in (".gz", ".bz2", ".zst") else Path(path.stem).suffix
    if kind == ".npz":
        return _from_arrays(path)
    if kind == ".parquet":
        try:
            return _from_table(pq.read_table(path), task)
        except pa.ArrowInvalid as error:
            raise InputError(f"it is not a Parquet file: {error}") from None
    if kind in _SEPARATORS:
        return _from_text(path, _SEPARATORS[kind], task)
    raise InputError("features are read from .npz, .csv, .tsv or .parquet files, or from a dataset folder")


def _from_arrays(path: Path) -> Features:
    wanted = "the arrays 'task' (ids) and 'X' (a row for each) were wanted: np.savez('X.npz', task=ids, X=X)"
    try:
        with np.load(path, allow_pickle=False) as held:
            absent = {"task", "X"} - set(held.files)
            if absent:
                raise InputError(f"{wanted}; it holds {some(held.files, 8) or 'nothing'}")
            tasks, rows = held["task"], held["X"]
    except (ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{wanted}; {error}") from None
    if tasks.ndim != 1 or rows.ndim < 2 or len(rows) != len(tasks):
        raise InputError(f"{wanted}; they are of shape {tasks.shape} and {rows.shape}")
    if rows.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers; 'X' holds {rows.dtype}")
    return Features(pd.Index(tasks), rows.astype(np.float64))


def _from_text(path: Path, separator: str, task: str | None) -> Features:
    _text.head_lines(path)  # says what it is if it is no text
    parse = arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    try:
        with pa.input_stream(str(path)) as stream:
            names = arrow_csv.open_csv(stream, parse_options=parse).schema.names
        ids = _task_column(names, task)
        # Ids are text, whatever they look like: "007" is not 7.
        convert = arrow_csv.ConvertOptions(column_types={ids: pa.string()}, strings_can_be_null=False)
        with pa.input_stream(str(path)) as stream:
            table = arrow_csv.read_csv(stream, parse_options=parse, convert_options=convert)
    except pa.ArrowInvalid as error:
        raise InputError(f"it cannot be read as a table separated by {separator!r}: {error}") from None
    return _from_table(table, ids)


def _from_table(table: pa.Table, task: str | None) -> Features:
    ids = _task_column(table.column_names, task)
    others = [name for name in table.column_names if name not in (ids, "__index_level_0__")]
    counters = [name for name in others if name in _NAMELESS and _counts_rows(table[name])]
    if counters:
        _LOG.info("left out %r, which only counts the rows", counters[0])
        others = [name for name in others if name not in counters]
    kinds = {name: table.schema.field(name).type for name in others}
    texts = [name for name, kind in kinds.items() if not _is_number(kind)]
    if texts:
        found = ((row, value) for row, value in enumerate(table[texts[0]].to_pylist()) if not _reads_as_number(value))
        row, example = next(found, (0, None))
        shown = "" if example is None else f", for example {example!r} of the task {table[ids][row].as_py()!r}"
        raise InputError(f"features must be numbers, and {some(texts)} is not{shown}; encode it, or leave it out")
    columns = [table[name].cast(pa.float64()).to_numpy() for name in others]
    rows = np.stack(columns, axis=1) if columns else np.empty((len(table), 0))
    return Features(pd.Index(table[ids].to_pandas(), name=None), rows, tuple(others))


def _task_column(names: list[str], given: str | None) -> str:
    """The column of the ids: the one that is named or called so, or else the first."""
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise InputError(f"several columns are called {some(sorted(repeated))}")
    try:
        return find_column(names, "task", given)
    except MissingColumn:
        if given is not None or not names:
            raise
        _LOG.info("read %r as the task column", names[0])
        return names[0]


def _counts_rows(column: pa.ChunkedArray) -> bool:
    return pa.types.is_integer(column.type) and column.to_pylist() == list(range(len(column)))


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def _is_number(kind: pa.DataType) -> bool:
    return (
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    )
