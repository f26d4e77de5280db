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
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.tables.parquet import read_schema, read_truth, read_votes, write_votes
from wisecrowd.io.tables.vote_columns import VoteColumns
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.files import read_json, write_json

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
    with _atomic_folder(Path(path)) as folder:
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
    schema = read_schema(file)
    is_floating = pa.types.is_floating(schema.field(VoteColumns.choose(schema.names, options).label).type)
    numeric = options.numeric or meta.get("numeric", is_floating) is True
    return replace(
        read_votes(file, options),
        numeric=numeric,
        ordered=not numeric and meta.get("ordinal") is True,
        tasks=_read_vocabulary(path, "task"),
        workers=None if options.worker is False else _read_vocabulary(path, "worker"),
        classes=None if numeric else meta.get("classes"),
    )


def _read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable | None:
    file = path / TRUTH
    return read_truth(file, task, truth) if file.is_file() else None


def _read_features(path: Path) -> pd.DataFrame | None:
    arrays, table = path / "features.npz", path / "features.parquet"
    if table.is_file():
        return _index_by_task(pd.read_parquet(table), table.name)
    if not arrays.is_file():
        return None
    try:
        with np.load(arrays, allow_pickle=False) as content:
            tasks, X = content["task"], content["X"]
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"features.npz should hold the arrays 'task' and 'X': {error}") from None
    if X.ndim != 2 or tasks.shape != X.shape[:1]:
        raise InputError(f"features.npz should hold a row of X for each task; got {tasks.shape} and {X.shape}")
    return _index_by_task(pd.DataFrame(X).assign(task=tasks), arrays.name)


def _read_texts(path: Path) -> pd.DataFrame | None:
    file = path / "texts.parquet"
    return _index_by_task(pd.read_parquet(file), file.name) if file.is_file() else None


def _read_meta(path: Path) -> dict[str, Any]:
    file = path / META
    if not file.is_file():
        return {}
    try:
        meta = read_json(file)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"meta.json is not JSON: {error}") from None
    if not isinstance(meta, dict):
        raise InputError(f"meta.json should hold an object; got {type(meta).__name__}")
    return meta


def _index_by_task(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    if "task" not in frame.columns:
        raise InputError(f"{name} has no column 'task'; its columns are {preview(frame.columns, 12)}")
    if frame["task"].duplicated().any():
        raise InputError(f"{name} has several rows for {preview(frame['task'][frame['task'].duplicated()])}")
    return frame.set_index("task")


def _read_vocabulary(path: Path, name: str) -> pd.Index | None:
    file = path / f"{name}s.parquet"
    return pd.Index(pq.read_table(file, columns=[name])[name].to_pandas(), name=None) if file.is_file() else None


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
def _atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``path`` when the block ends without an error."""
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UsageError(f"{path} exists already; remove it first, or choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}-", dir=path.parent))
    try:
        yield partial
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        if path.is_dir():
            path.rmdir()
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


FOLDER = FormatReader(
    read_votes=_read_votes,
    detect=lambda path: (path / ANNOTATIONS).is_file(),
    read_truth=_read_truth,
    read_features=_read_features,
    read_texts=_read_texts,
    read_meta=_read_meta,
    write_votes=lambda crowd, path: write_dataset(path, crowd),
)
