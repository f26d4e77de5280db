"""Features of tasks in files: arrays (npz), tables (CSV, TSV, Parquet) and dataset folders."""

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
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, preview
from wisecrowd.io.problems import MissingColumn, prefix_errors
from wisecrowd.io.tables.columns import find_column
from wisecrowd.io.tables.plain_tables import SEPARATORS, get_uncompressed_suffix, read_delimited, read_delimited_names

_LOG = logging.getLogger("wisecrowd.io")
#: Names of the row numbers that pandas writes by default.
_ROW_NUMBER_NAMES = ("", "Unnamed: 0")


@dataclass(frozen=True, eq=False)
class Features:
    """Features of tasks, one row per task.

    Parameters
    ----------
    tasks : Index
        Task ids.
    rows : ndarray of shape (n_tasks, ...)
        A row of numbers, or an image of any shape, for each task.
    names : tuple of str, optional
        Names of the features.

    Examples
    --------
    >>> Features(pd.Index(["t1"]), np.array([[1.0, 2.0]]), ("length", "width")).table
        length  width
    t1     1.0    2.0
    """

    tasks: pd.Index
    rows: NDArray[np.float64]
    names: tuple[str, ...] | None = None

    @property
    def table(self) -> pd.DataFrame:
        """Rows as a table indexed by task."""
        if self.rows.ndim != 2:
            raise InputError(f"features of shape {self.rows.shape} cannot be a table; use the attribute rows")
        return pd.DataFrame(self.rows, index=self.tasks, columns=None if self.names is None else list(self.names))

    def align(self, crowd: Crowd) -> tuple[FeaturesLike, Crowd]:
        """Match the features with a crowd by task.

        Parameters
        ----------
        crowd : Crowd
            Votes.

        Returns
        -------
        X : DataFrame or ndarray
            Features.
        crowd : Crowd
            Votes, in a form that ``fit(X, crowd)`` takes together with ``X``.

        Raises
        ------
        InputError
            If a task of the crowd has no features.

        Examples
        --------
        >>> crowd = Crowd.from_triples([("t2", "ann", "cat"), ("t1", "ann", "dog")])
        >>> X, crowd = Features(pd.Index(["t2", "t1"]), np.array([[[2.0]], [[1.0]]])).align(crowd)
        >>> X.ravel().tolist(), crowd.has_task_order
        ([1.0, 2.0], True)
        """
        positions = self.tasks.get_indexer(match_id_type(crowd.tasks, self.tasks))
        if (positions < 0).any():
            raise InputError(
                f"no features for {np.sum(positions < 0):,} tasks, for example {preview(crowd.tasks[positions < 0])}; the "
                f"features are of {preview(self.tasks)}"
            )
        if self.rows.ndim == 2:
            return self.table, crowd
        return self.rows[positions], crowd.replace_fields(has_task_order=True)


def read_features(path: str | os.PathLike[str], *, task: str | None = None) -> Features:
    """Read the features of tasks.

    Parameters
    ----------
    path : path-like
        File of arrays ``task`` and ``X`` (npz), table with a column of task ids and numbers in all others, or dataset folder
        with either of them, called ``features``.
    task : str, optional
        Column of task ids. Without it, a column called ``task`` or similar, or else the first one.

    Returns
    -------
    Features
        One row per task.

    Raises
    ------
    InputError
        If features are missing or not numbers, or a task has several rows.

    Examples
    --------
    >>> _ = Path("X.csv").write_text("task,length,width\\nt1,1.5,2\\nt2,0.5,1\\n")
    >>> read_features("X.csv").table.loc["t2"].to_dict()
    {'length': 0.5, 'width': 1.0}
    """
    file = Path(path)
    if file.is_dir():
        files = [file / name for name in ("features.npz", "features.parquet") if (file / name).is_file()]
        if not files:
            raise InputError(f"{file}: this folder has no features (features.npz or features.parquet)")
        file = files[0]
    with prefix_errors(file):
        try:
            features = _read_file(file, task)
        except OSError as error:
            raise InputError(f"cannot read it: {error.strerror or error}") from None
        if not features.tasks.is_unique:
            repeated = features.tasks[features.tasks.duplicated()].unique()
            raise InputError(
                f"several rows for {preview(repeated)}; keep one per task. If this is not a task id, call the column of task "
                "ids 'task'"
            )
        if features.rows[:1].size == 0:
            raise InputError("there are no features in it")
        return features


def _read_file(path: Path, task: str | None) -> Features:
    if not path.is_file():
        raise InputError("there is no such file")
    suffix = get_uncompressed_suffix(path)
    if suffix == ".npz":
        return _read_arrays(path)
    if suffix == ".parquet":
        try:
            return _from_table(pq.read_table(path), task)
        except pa.ArrowInvalid as error:
            raise InputError(f"it is not a Parquet file: {error}") from None
    if suffix in SEPARATORS:
        task_column = _find_task_column(read_delimited_names(path, SEPARATORS[suffix]), task)
        return _from_table(read_delimited(path, SEPARATORS[suffix], text_columns=[task_column]), task_column)
    raise InputError("features are read from .npz, .csv, .tsv or .parquet files, or from a dataset folder")


def _read_arrays(path: Path) -> Features:
    expected = "expected the arrays 'task' (ids) and 'X' (a row for each), as in np.savez('X.npz', task=ids, X=X)"
    try:
        with np.load(path, allow_pickle=False) as content:
            if not {"task", "X"} <= set(content.files):
                raise InputError(f"{expected}; it holds {preview(content.files, 8) or 'nothing'}")
            tasks, rows = content["task"], content["X"]
    except (ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{expected}; {error}") from None
    if tasks.ndim != 1 or rows.ndim < 2 or len(rows) != len(tasks):
        raise InputError(f"{expected}; they are of shape {tasks.shape} and {rows.shape}")
    if rows.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers; 'X' holds {rows.dtype}")
    return Features(pd.Index(tasks), rows.astype(np.float64))


def _from_table(table: pa.Table, task: str | None) -> Features:
    task_column = _find_task_column(table.column_names, task)
    names = [name for name in table.column_names if name not in (task_column, "__index_level_0__")]
    row_numbers = [name for name in names if name in _ROW_NUMBER_NAMES and _counts_rows(table[name])]
    if row_numbers:
        _LOG.info("left out %r, which only counts the rows", row_numbers[0])
        names = [name for name in names if name not in row_numbers]
    texts = [name for name in names if not _is_numeric(table.schema.field(name).type)]
    if texts:
        values = enumerate(table[texts[0]].to_pylist())
        row, value = next(((row, value) for row, value in values if not _is_number(value)), (0, None))
        example = "" if value is None else f", for example {value!r} of the task {table[task_column][row].as_py()!r}"
        raise InputError(f"features must be numbers, and {preview(texts)} is not{example}; encode it, or leave it out")
    columns = [table[name].cast(pa.float64()).to_numpy() for name in names]
    rows = np.stack(columns, axis=1) if columns else np.empty((len(table), 0))
    return Features(pd.Index(table[task_column].to_pandas(), name=None), rows, tuple(names))


def _find_task_column(names: list[str], task: str | None) -> str:
    """Return the column of task ids: the one that the user names, one called like it, or else the first."""
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise InputError(f"several columns are called {preview(sorted(repeated))}")
    try:
        return find_column(names, "task", task)
    except MissingColumn:
        if task is not None or not names:
            raise
        _LOG.info("read %r as the task column", names[0])
        return names[0]


def _counts_rows(column: pa.ChunkedArray) -> bool:
    return pa.types.is_integer(column.type) and column.to_pylist() == list(range(len(column)))


def _is_number(value: Any) -> bool:
    """Return whether a value is missing or a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def _is_numeric(kind: pa.DataType) -> bool:
    return (
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    )
