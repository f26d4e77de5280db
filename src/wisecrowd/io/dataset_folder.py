"""Dataset folders: votes together with truth, features and texts of the tasks.

| file | content |
| --- | --- |
| ``annotations.parquet`` | votes: task, worker, label, and weight and observed if they hold information |
| ``truth.parquet`` | task, label, and optionally split |
| ``features.npz`` or ``features.parquet`` | arrays ``task`` and ``X``, or a table with a task column |
| ``texts.parquet`` | a table with a task column |
| ``meta.json`` | name, classes (in order), counts, source, citation, licence |
| ``tasks.parquet``, ``workers.parquet`` | vocabularies, if the votes do not determine them |
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_id_index
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.features import read_feature_arrays
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import convert_errors
from wisecrowd.io.tables.json_text import read_json_file
from wisecrowd.io.tables.parquet import read_table, read_truth, read_votes, write_votes
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.files import atomic_folder, write_json

ANNOTATIONS, TRUTH, META = "annotations.parquet", "truth.parquet", "meta.json"


def write_dataset(
    path: str | os.PathLike[str],
    crowd: Crowd,
    *,
    truth: pd.Series[Any] | None = None,
    splits: pd.Series[Any] | None = None,
    features: pd.DataFrame | None = None,
    texts: pd.DataFrame | None = None,
    meta: dict[str, Any] | None = None,
) -> None:
    """Write a dataset folder. It appears complete or not at all.

    Parameters
    ----------
    path : path-like
        Folder that does not exist or is empty.
    crowd : Crowd
        Votes.
    truth, splits : Series, optional
        True label and split by task.
    features, texts : DataFrame, optional
        Features and texts, indexed by task.
    meta : dict, optional
        Description of the dataset, such as source and licence.

    Raises
    ------
    UsageError
        If the folder exists and is not empty.

    Examples
    --------
    >>> from wisecrowd import load_dataset
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> write_dataset("pets", crowd, truth=pd.Series({"t1": "cat"}))
    >>> load_dataset("pets").truth.to_dict()
    {'t1': 'cat'}
    """
    with _new_folder(Path(path)) as folder:
        write_votes(crowd, folder / ANNOTATIONS)
        for name, index in (("task", crowd.tasks), ("worker", crowd.workers)):
            if index is not None and not _is_implied_by_votes(crowd, name, index):
                pq.write_table(pa.table({name: pa.array(index)}), folder / f"{name}s.parquet")
        if truth is not None:
            columns = {"task": truth.index, "label": truth.array}
            if splits is not None:
                columns["split"] = splits.reindex(truth.index).array
            pd.DataFrame(columns).to_parquet(folder / TRUTH, index=False)
        if features is not None:
            _write_features(features, folder)
        if texts is not None:
            texts.rename_axis("task").reset_index().to_parquet(folder / "texts.parquet", index=False)
        write_json(folder / META, _build_meta(Path(path).name, crowd, truth, meta or {}))


def _read_votes(path: Path, options: ReadOptions) -> VoteTable:
    file, meta = path / ANNOTATIONS, _read_meta(path)
    if meta.get("worker_ids") is False and options.worker is None:
        options = replace(options, worker=False)
    with _name_file(file):
        votes = read_votes(file, options)
    numeric = options.numeric or meta.get("numeric", pa.types.is_floating(votes.table["label"].type)) is True
    return replace(
        votes,
        numeric=numeric,
        ordered=not numeric and meta.get("ordinal") is True,
        tasks=_read_vocabulary(path, "task"),
        workers=None if options.worker is False else _read_vocabulary(path, "worker"),
        classes=None if numeric else _get_classes(meta),
    )


def _read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable | None:
    file = path / TRUTH
    if not file.is_file():
        return None
    with _name_file(file):
        return read_truth(file, task, truth)


def _read_features(path: Path) -> pd.DataFrame | None:
    arrays, table = path / "features.npz", path / "features.parquet"
    if table.is_file():
        return read_task_table(table)
    if not arrays.is_file():
        return None
    with _name_file(arrays):
        tasks, rows = read_feature_arrays(arrays)
        if rows.ndim != 2:
            raise InputError(f"X should hold a row of numbers for each task; it is of shape {rows.shape}")
        _check_distinct(tasks)
    return pd.DataFrame(rows.copy(), index=tasks.rename("task"))


def _read_texts(path: Path) -> pd.DataFrame | None:
    file = path / "texts.parquet"
    return read_task_table(file) if file.is_file() else None


def _read_meta(path: Path) -> dict[str, Any]:
    file = path / META
    if not file.is_file():
        return {}
    meta = read_json_file(file)
    if not isinstance(meta, dict):
        raise InputError(f"meta.json should hold an object; got {type(meta).__name__}")
    return meta


def _get_classes(meta: dict[str, Any]) -> list[Any] | None:
    """Return the classes that the description lists."""
    classes = meta.get("classes")
    if classes is None:
        return None
    if not isinstance(classes, list) or not all(isinstance(name, str | int) for name in classes):
        raise InputError(f"'classes' in meta.json should be a list of texts or whole numbers; got {preview([classes])}")
    return classes


def read_task_table(file: Path) -> pd.DataFrame:
    """Read a Parquet table with a column ``task``.

    Parameters
    ----------
    file : Path
        Table of a dataset folder.

    Returns
    -------
    DataFrame
        Other columns, indexed by task.

    Raises
    ------
    InputError
        If there is no such column, or a task has several rows.

    Examples
    --------
    >>> pq.write_table(pa.table({"task": ["t1"], "text": ["Is this a cat?"]}), "texts.parquet")
    >>> read_task_table(Path("texts.parquet")).to_dict()
    {'text': {'t1': 'Is this a cat?'}}
    """
    with _name_file(file):
        table = read_table(file)
        if "task" not in table.column_names:
            raise InputError(f"there is no column 'task'; the columns are {preview(table.column_names, 12)}")
        tasks = as_id_index(table["task"], "task")
        _check_distinct(tasks)
        # Columns of pandas' row numbers carry no information.
        names = [name for name in table.column_names if name not in ("task", "__index_level_0__")]
        return table.select(names).to_pandas(ignore_metadata=True).set_index(tasks.rename("task"))


def _read_vocabulary(path: Path, name: str) -> pd.Index | None:
    file = path / f"{name}s.parquet"
    if not file.is_file():
        return None
    with _name_file(file):
        return as_id_index(read_table(file, [name])[name], name)


def _check_distinct(tasks: pd.Index) -> None:
    if not tasks.is_unique:
        raise InputError(f"there are several rows for {preview(tasks[tasks.duplicated()].unique())}; keep one per task")


@contextlib.contextmanager
def _name_file(file: Path) -> Iterator[None]:
    """Put the name of a file of the folder in front of errors. The folder is added by the caller."""
    try:
        with convert_errors():
            yield
    except InputError as error:
        error.args = (f"{file.name}: {error}",)
        raise


def _is_implied_by_votes(crowd: Crowd, name: str, index: pd.Index) -> bool:
    """Return whether the votes alone give this vocabulary: all ids are used and in ascending order."""
    codes = crowd.task if name == "task" else crowd.worker
    is_used = np.bincount(np.asarray(codes), minlength=len(index)) > 0
    return bool(is_used.all()) and index.is_monotonic_increasing


def _write_features(features: pd.DataFrame, folder: Path) -> None:
    if "task" in features.columns:
        raise InputError("a feature is called 'task', the name of the id column; rename it")
    fits_array = features.columns.equals(pd.RangeIndex(features.shape[1]))  # arrays have no column names
    if features.index.inferred_type == "string":  # arrays of text drop trailing zero characters
        fits_array = fits_array and not features.index.str.endswith("\0").any()
    if fits_array and features.dtypes.nunique() == 1 and features.dtypes.iloc[0].kind in "fiub":
        tasks = features.index.to_numpy()
        tasks = tasks.astype(str) if tasks.dtype.kind == "O" else tasks  # arrays of objects would need pickle
        np.savez_compressed(folder / "features.npz", task=tasks, X=features.to_numpy())
    else:
        table = features.rename(columns=str).rename_axis("task").reset_index()
        table.to_parquet(folder / "features.parquet", index=False)


def _build_meta(name: str, crowd: Crowd, truth: pd.Series[Any] | None, meta: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"name": name, **meta, "numeric": crowd.is_numeric, "worker_ids": crowd.has_workers}
    content |= {"n_tasks": crowd.n_tasks, "n_votes": crowd.n_votes, "n_gold": 0 if truth is None else len(truth)}
    content["n_gold_with_annotations"] = 0 if truth is None else int(truth.index.isin(crowd.tasks).sum())
    if crowd.workers is not None:
        content["n_workers"] = len(crowd.workers)
    if crowd.classes is not None:
        content["n_classes"] = len(crowd.classes)
        content["ordinal"] = crowd.is_ordered
        if crowd.classes.inferred_type in ("string", "integer", "boolean"):
            content["classes"] = crowd.classes.tolist()
    return content


@contextlib.contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path``, which must not exist, when the block ends without an error."""
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UsageError(f"{path} exists already; remove it first, or choose another name")
    with atomic_folder(path) as partial:
        yield partial


FOLDER = FormatReader(
    read_votes=_read_votes,
    detect=lambda path: (path / ANNOTATIONS).is_file(),
    read_truth=_read_truth,
    read_features=_read_features,
    read_texts=_read_texts,
    read_meta=_read_meta,
    write_votes=lambda crowd, path: write_dataset(path, crowd),
)
