"""Features of tasks in files: arrays (npz), tables (CSV, TSV, Parquet) and dataset folders."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from wisecrowd.data.alignment import MAX_FEATURE
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.data.vocabulary import as_id_index, match_id_type
from wisecrowd.errors import InputError, preview
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.problems import MissingColumn, prefix_errors
from wisecrowd.io.source_files import fetch_source
from wisecrowd.io.tables.arrays import read_npz
from wisecrowd.io.tables.columns import find_column, find_columns
from wisecrowd.io.tables.csv import read_header
from wisecrowd.io.tables.excel import SUFFIXES as EXCEL_SUFFIXES
from wisecrowd.io.tables.excel import read_sheet
from wisecrowd.io.tables.matched_columns import ColumnReader, match_task_column, note_matched
from wisecrowd.io.tables.parquet import read_table
from wisecrowd.io.tables.plain_tables import SEPARATORS, get_uncompressed_suffix, read_delimited
from wisecrowd.io.tables.spellings import match_spellings
from wisecrowd.utils.text import count_noun

_LOG = logging.getLogger("wisecrowd.io")
#: Names of the row numbers that pandas writes by default.
_ROW_NUMBER_NAMES = ("", "Unnamed: 0")
#: Number with a decimal comma, or an integer.
_COMMA_NUMBER = r"^[+-]?(\d+|\d*,\d+)([eE][+-]?\d+)?$"


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
    def shape(self) -> tuple[int, ...]:
        """Shape of the features of one task."""
        return self.rows.shape[1:]

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
            Features of the tasks, in the order of the crowd.
        crowd : Crowd
            Votes, in a form that ``fit(X, crowd)`` takes together with ``X``, also through a pipeline that drops the index.

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
        positions = _find_positions(self.tasks, crowd)
        ordered = crowd.replace_fields(has_task_order=True)
        return (self.table.iloc[positions] if self.rows.ndim == 2 else self.rows[positions]), ordered


@dataclass(frozen=True, eq=False)
class MixedFeatures:
    """Features of tasks in a table with strings or dates, one row per task.

    Parameters
    ----------
    table : DataFrame
        Columns of numbers, strings and dates, indexed by task.

    Examples
    --------
    >>> MixedFeatures(pd.DataFrame({"colour": ["red"], "size": [2]}, index=["t1"])).shape
    (2,)
    """

    table: pd.DataFrame

    @property
    def tasks(self) -> pd.Index:
        """Task ids."""
        return self.table.index

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of columns."""
        return self.table.shape[1:]

    def align(self, crowd: Crowd) -> tuple[pd.DataFrame, Crowd]:
        """Match the features with a crowd by task.

        Parameters
        ----------
        crowd : Crowd
            Votes.

        Returns
        -------
        X : DataFrame
            Features of the tasks, in the order of the crowd.
        crowd : Crowd
            Votes, in a form that ``fit(X, crowd)`` takes together with ``X``.

        Raises
        ------
        InputError
            If a task of the crowd has no features.
        """
        return self.table.iloc[_find_positions(self.tasks, crowd)], crowd.replace_fields(has_task_order=True)


def _find_positions(tasks: pd.Index, crowd: Crowd) -> NDArray[np.intp]:
    """Return the rows of the tasks of a crowd, or raise if one has no features."""
    positions = tasks.get_indexer(match_id_type(crowd.tasks, tasks))
    if n_absent := int((positions < 0).sum()):
        absent = crowd.tasks[positions < 0]
        other_spelling = match_spellings(absent, tasks).isin(tasks)
        if other_spelling.any():
            advice = (
                f"They have another spelling of {count_noun(int(other_spelling.sum()), 'task')}; unify it with --normalise (in "
                "Python: read(..., normalise=True) and read_features(..., match=crowd))"
            )
        elif n_absent == len(positions):
            advice = "Compare the ids in both files"
        else:
            advice = (
                f"Compare the ids in both files. {count_noun(len(positions) - n_absent, 'task')} of {len(positions):,} have "
                "features; to use only these, leave out the votes on the others: wisecrowd learn --features-missing drop (in "
                "Python: crowd[crowd.tasks.isin(features.tasks)])"
            )
        raise InputError(
            f"no features for {count_noun(n_absent, 'task')}, for example {preview(absent)}; the features are of "
            f"{preview(tasks)}. {advice}"
        )
    return positions


def read_features(
    path: str | os.PathLike[str],
    *,
    task: str | None = None,
    match: Crowd | None = None,
    votes: Crowd | None = None,
    max_unpacked: int | str | None = None,
) -> Features:
    """Read the features of tasks.

    Parameters
    ----------
    path : path-like
        File of arrays ``task`` and ``X`` (npz), table with a column of task ids and numbers in all others, or dataset folder
        with either of them, called ``features``.
    task : str, optional
        Column of task ids. Without it, a column called ``task`` or similar, or else one with tasks of ``votes``, or else the first
        one.
    match : Crowd, optional
        Votes that were read with ``normalise=True``. Tasks that differ from theirs only by case, space, Unicode form, invisible
        characters or number form take the spelling of the votes.
    votes : Crowd, optional
        Votes whose tasks identify the column of task ids if its name does not.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, such as ``"16GB"`` (see :func:`wisecrowd.read`).

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
    features = _read(path, task, match, votes, max_unpacked, mixed=False)
    assert isinstance(features, Features)
    return features


def read_mixed_features(
    path: str | os.PathLike[str],
    *,
    task: str | None = None,
    match: Crowd | None = None,
    votes: Crowd | None = None,
    max_unpacked: int | str | None = None,
) -> Features | MixedFeatures:
    """Read the features of tasks, whose columns may also be strings and dates.

    Parameters
    ----------
    path : path-like
        File or dataset folder; see `read_features`.
    task : str, optional
        Column of task ids.
    match : Crowd, optional
        Votes whose spelling of task ids is used; see `read_features`.
    votes : Crowd, optional
        Votes whose tasks identify the column of task ids; see `read_features`.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to.

    Returns
    -------
    Features or MixedFeatures
        Features, if all columns are numbers.

    Raises
    ------
    InputError
        If a task has several rows, or the file cannot be read.

    Examples
    --------
    >>> _ = Path("X.csv").write_text("task,size,colour\\nt1,1.5,red\\nt2,0.5,\\n")
    >>> read_mixed_features("X.csv").table["colour"].isna().to_dict()
    {'t1': False, 't2': True}
    """
    return _read(path, task, match, votes, max_unpacked, mixed=True)


def _read(
    path: str | os.PathLike[str],
    task: str | None,
    match: Crowd | None,
    votes: Crowd | None,
    max_unpacked: int | str | None,
    *,
    mixed: bool,
) -> Features | MixedFeatures:
    """Read and check features; only with ``mixed`` may columns be strings or dates."""
    file = fetch_source(path)
    if file.is_dir():
        files = [file / name for name in ("features.npz", "features.parquet") if (file / name).is_file()]
        if not files:
            raise InputError(f"{file}: this folder has no features (features.npz or features.parquet)")
        file = files[0]
    with limit_unpacked(max_unpacked), prefix_errors(file):
        vote_tasks = next((crowd.tasks for crowd in (votes, match) if crowd is not None), None)
        features = _read_file(file, task, vote_tasks, mixed=mixed)
        if match is not None:
            tasks = match_spellings(features.tasks, match.tasks)
            if isinstance(features, MixedFeatures):
                features = MixedFeatures(features.table.set_axis(tasks))
            else:
                features = replace(features, tasks=tasks)
        _check_unique(
            features.tasks,
            [*map(str, features.table.columns)] if isinstance(features, MixedFeatures) else [*(features.names or ())],
        )
        if not len(features.tasks) or 0 in features.shape:
            raise InputError("there are no features in it; expected a column of task ids and columns of numbers")
        if isinstance(features, Features):
            _check_range(features)
        return features


def _check_unique(tasks: pd.Index, names: list[str]) -> None:
    """Raise an error if a task has several rows."""
    if tasks.is_unique:
        return
    repeated = preview(tasks[tasks.duplicated()].unique())
    try:
        columns = find_columns(names, {"worker": None, "label": None})
    except MissingColumn:
        advice = "keep one per task. If this is not a task id, call the column of task ids 'task'"
    else:
        votes = f"it looks like a file of votes, with the columns {preview(columns.values())}"
        advice = f"{votes}; expected a row of features for each task"
    raise InputError(f"several rows for {repeated}; {advice}")


def _check_range(features: Features) -> None:
    """Raise an error if features are too large for any method. Missing features may be imputed."""
    rows = features.rows.reshape(len(features.rows), -1)
    is_large = (rows > MAX_FEATURE) | (rows < -MAX_FEATURE)
    tasks = np.flatnonzero(is_large.any(axis=1))
    if tasks.size:
        value = float(rows[tasks[0]][is_large[tasks[0]]][0])
        raise InputError(
            f"features of {count_noun(tasks.size, 'task')} are too large, for example {value!r} of "
            f"{preview(features.tasks[tasks[:1]])}; scale them to between {-MAX_FEATURE:g} and {MAX_FEATURE:g}"
        )


def _read_file(path: Path, task: str | None, vote_tasks: pd.Index | None, *, mixed: bool) -> Features | MixedFeatures:
    if not path.is_file():
        raise InputError("there is no such file; check its name")
    suffix = get_uncompressed_suffix(path)
    if suffix == ".npz":
        return _read_arrays(path)
    if suffix == ".parquet":
        table = read_table(path)
        task_column = _find_task_column(table.column_names, task, table.select, vote_tasks)
        return _from_table(table, task_column, mixed=mixed)
    if suffix in EXCEL_SUFFIXES:
        sheet = read_sheet(path)
        task_column = _find_task_column(sheet.columns, task, sheet.to_table, vote_tasks)
        return _from_table(sheet.to_table(sheet.columns, text_columns=[task_column]), task_column, mixed=mixed)
    if suffix in SEPARATORS:
        names, separator = read_header(path, SEPARATORS[suffix])

        def read_texts(columns: Sequence[str]) -> pa.Table:
            return read_delimited(path, separator, text_columns=columns).select(list(columns))

        task_column = _find_task_column(names, task, read_texts, vote_tasks)
        table = read_delimited(path, separator, text_columns=[task_column])
        return _from_table(table, task_column, mixed=mixed, may_have_commas=separator != ",")
    raise InputError("features are read from .npz, .csv, .tsv, .xlsx or .parquet files, or from a dataset folder")


def read_feature_arrays(path: Path) -> tuple[pd.Index, NDArray[Any]]:
    """Read the arrays ``task`` and ``X`` of an npz file.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    tasks : Index
        Task ids.
    rows : ndarray of shape (n_tasks, n_features, ...)
        Numbers.

    Raises
    ------
    InputError
        If the file is damaged, or its arrays do not fit each other.

    Examples
    --------
    >>> np.savez("X.npz", task=["t1"], X=[[0.5, 1.0]])
    >>> read_feature_arrays(Path("X.npz"))[0].tolist()
    ['t1']
    """
    arrays = read_npz(path, ("task", "X"))
    tasks, rows = arrays["task"], arrays["X"]
    if tasks.ndim != 1 or rows.ndim < 2 or len(rows) != len(tasks):
        raise InputError(
            "expected the arrays 'task' (ids) and 'X' (a row for each), as in np.savez('X.npz', task=ids, X=X); they are of "
            f"shape {tasks.shape} and {rows.shape}"
        )
    if rows.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers; 'X' holds {rows.dtype}")
    if tasks.dtype.kind == "S":
        raise InputError("the task ids are bytes; save them as text: np.savez('X.npz', task=ids.astype(str), X=X)")
    return as_id_index(pa.chunked_array([pa.array(tasks)]), "task"), rows


def _read_arrays(path: Path) -> Features:
    tasks, rows = read_feature_arrays(path)
    return Features(tasks, rows.astype(np.float64))


def _from_table(
    table: pa.Table, task_column: str, *, mixed: bool, may_have_commas: bool = False
) -> Features | MixedFeatures:
    """Return the features in a table; numbers with a decimal comma are read only if no comma separates its columns."""
    task_position = table.column_names.index(task_column)
    columns = {
        name: column
        for position, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True))
        if position != task_position and name != "__index_level_0__"
    }
    row_numbers = [name for name in _ROW_NUMBER_NAMES if name in columns and _counts_rows(columns[name])]
    if row_numbers:
        _LOG.info("left out %r, which only counts the rows", row_numbers[0])
        columns = {name: column for name, column in columns.items() if name not in row_numbers}
    tasks = as_id_index(table.column(task_position), "task")
    columns |= _convert_comma_numbers(columns, tasks, may_have_commas=may_have_commas)
    texts = [name for name, column in columns.items() if not _is_numeric(column.type)]
    if texts:
        if not mixed:
            raise _not_numbers(texts, columns[texts[0]], tasks)
        frame = pd.DataFrame({name: column.to_pandas().to_numpy() for name, column in columns.items()}, index=tasks)
        return MixedFeatures(frame.replace({"": None}))
    rows = np.empty((len(table), len(columns)))
    for position, column in enumerate(columns.values()):
        rows[:, position] = column.cast(pa.float64()).to_numpy()
    return Features(tasks, rows, tuple(columns))


def _convert_comma_numbers(
    columns: dict[str, pa.ChunkedArray], tasks: pd.Index, *, may_have_commas: bool
) -> dict[str, pa.ChunkedArray]:
    """Return the columns of numbers with a decimal comma as numbers, or raise where these are not expected."""
    converted = {}
    for name, column in columns.items():
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        values = pc.utf8_trim_whitespace(column)
        is_missing = pc.is_in(values, pa.array(arrow_csv.ConvertOptions().null_values, values.type))
        values = pc.if_else(is_missing, pa.scalar(None, values.type), values)
        has_comma = pc.fill_null(pc.match_substring(values, ","), fill_value=False).to_numpy()
        if not has_comma.any() or not pc.all(pc.match_substring_regex(values, _COMMA_NUMBER)).as_py():
            continue
        if not may_have_commas:
            row = int(has_comma.argmax())
            raise InputError(
                f"{preview([name])} has numbers with a decimal comma, for example {preview([column[row].as_py()])} of the task "
                f"{preview([tasks[row]])}; write them with a point, or separate the columns by semicolons"
            )
        converted[name] = pc.replace_substring(values, ",", ".").cast(pa.float64())
    if converted:
        _LOG.info("read numbers with a decimal comma in %s", preview(list(converted)))
    return converted


def _not_numbers(names: list[str], column: pa.ChunkedArray, tasks: pd.Index) -> InputError:
    example = ""
    if pa.types.is_string(column.type):
        values = enumerate(column.to_pylist())
        row = next((row for row, value in values if not _is_number(value)), None)
        example = (
            "" if row is None else f", for example {preview([column[row].as_py()])} of the task {preview([tasks[row]])}"
        )
    return InputError(f"features must be numbers, and {preview(names)} is not{example}; encode it, or leave it out")


def _find_task_column(names: list[str], task: str | None, read: ColumnReader, vote_tasks: pd.Index | None) -> str:
    """Return the column of task ids: the one that the user names, one called like it, one with tasks, or else the first."""
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise InputError(f"several columns are called {preview(sorted(repeated))}; give each a name of its own")
    try:
        return find_column(names, "task", task)
    except MissingColumn:
        if task is not None or not names:
            raise
        matched = None if vote_tasks is None else match_task_column(names, read, vote_tasks)
        if matched is not None:
            note_matched(matched, "task")
            return matched
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
