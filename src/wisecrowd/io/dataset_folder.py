"""A dataset as a folder: the votes, and whatever else is known about the tasks.

| file | holds |
| --- | --- |
| ``annotations.parquet`` | the votes: task, worker, label, and weight and observed where they say something |
| ``truth.parquet`` | task, label, and perhaps split |
| ``features.npz`` or ``features.parquet`` | arrays ``task`` and ``X``, or a table with a task column |
| ``texts.parquet`` | a table with a task column |
| ``meta.json`` | name, classes (in order), counts, source, citation, licence |
| ``tasks.parquet``, ``workers.parquet`` | the vocabularies, where the votes alone do not tell them |
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
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.tables.parquet import read_schema, read_truth, read_votes, write_votes
from wisecrowd.io.tables.votes_table import Columns
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
    """Write a dataset folder, whole or not at all; truth, splits, features and texts are indexed by task.

    >>> from wisecrowd import load_dataset
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> write_dataset("pets", crowd, truth=pd.Series({"t1": "cat"}))
    >>> load_dataset("pets").truth.to_dict()
    {'t1': 'cat'}
    """
    with _whole_folder(Path(path)) as folder:
        write_votes(crowd, folder / ANNOTATIONS)
        for name, index in (("task", crowd.tasks), ("worker", crowd.workers)):
            if index is not None and not _told_by_votes(crowd, name, index):
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
        write_json(folder / META, _described(Path(path).name, crowd, truth, meta or {}))


def _votes(path: Path, options: Options) -> Votes:
    file, meta = path / ANNOTATIONS, _meta(path)
    if meta.get("worker_ids") is False and options.worker is None:
        options = replace(options, worker=False)
    schema = read_schema(file)
    floating = pa.types.is_floating(schema.field(Columns.choose(schema.names, options).label).type)
    numeric = options.numeric or meta.get("numeric", floating) is True
    return replace(
        read_votes(file, options),
        numeric=numeric,
        tasks=_vocabulary(path, "task"),
        workers=None if options.worker is False else _vocabulary(path, "worker"),
        classes=None if numeric else meta.get("classes"),
    )


def _truth(path: Path, task: str | None, truth: str | None) -> Truth | None:
    file = path / TRUTH
    return read_truth(file, task, truth) if file.is_file() else None


def _features(path: Path) -> pd.DataFrame | None:
    arrays, table = path / "features.npz", path / "features.parquet"
    if table.is_file():
        return _by_task(pd.read_parquet(table), table.name)
    if not arrays.is_file():
        return None
    try:
        with np.load(arrays, allow_pickle=False) as held:
            tasks, X = held["task"], held["X"]
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"features.npz should hold the arrays 'task' and 'X': {error}") from None
    if X.ndim != 2 or tasks.shape != X.shape[:1]:
        raise InputError(f"features.npz should hold a row of X for each task; got {tasks.shape} and {X.shape}")
    return _by_task(pd.DataFrame(X).assign(task=tasks), arrays.name)


def _texts(path: Path) -> pd.DataFrame | None:
    file = path / "texts.parquet"
    return _by_task(pd.read_parquet(file), file.name) if file.is_file() else None


def _meta(path: Path) -> dict[str, Any]:
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


def _by_task(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    if "task" not in frame.columns:
        raise InputError(f"{name} has no column 'task'; its columns are {some(frame.columns, 12)}")
    if frame["task"].duplicated().any():
        raise InputError(f"{name} has several rows for {some(frame['task'][frame['task'].duplicated()])}")
    return frame.set_index("task")


def _vocabulary(path: Path, name: str) -> pd.Index | None:
    file = path / f"{name}s.parquet"
    return pd.Index(pq.read_table(file, columns=[name])[name].to_pandas(), name=None) if file.is_file() else None


def _told_by_votes(crowd: Crowd, name: str, index: pd.Index) -> bool:
    """Whether reading the votes alone gives this vocabulary: all ids used, in ascending order."""
    codes = crowd.task if name == "task" else crowd.worker
    used = np.bincount(np.asarray(codes), minlength=len(index)) > 0
    return bool(used.all()) and index.is_monotonic_increasing


def _write_features(features: pd.DataFrame, folder: Path) -> None:
    if "task" in features.columns:
        raise InputError("a feature is called 'task', as the ids are; give it another name")
    nameless = features.columns.equals(pd.RangeIndex(features.shape[1]))  # an array has no place for names
    if features.index.inferred_type == "string":  # nor for zeros at the end of a text
        nameless = nameless and not features.index.str.endswith("\0").any()
    if nameless and features.dtypes.nunique() == 1 and features.dtypes.iloc[0].kind in "fiub":
        tasks = features.index.to_numpy()
        tasks = tasks.astype(str) if tasks.dtype.kind == "O" else tasks  # arrays of objects would need pickle
        np.savez_compressed(folder / "features.npz", task=tasks, X=features.to_numpy())
    else:
        table = features.rename(columns=str).rename_axis("task").reset_index()
        table.to_parquet(folder / "features.parquet", index=False)


def _described(name: str, crowd: Crowd, truth: pd.Series[Any] | None, meta: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, **meta, "numeric": crowd.is_numeric, "worker_ids": crowd.has_workers}
    told |= {"n_tasks": crowd.n_tasks, "n_votes": crowd.n_votes, "n_gold": 0 if truth is None else len(truth)}
    told["n_gold_with_annotations"] = 0 if truth is None else int(truth.index.isin(crowd.tasks).sum())
    if crowd.workers is not None:
        told["n_workers"] = len(crowd.workers)
    if crowd.classes is not None:
        told["n_classes"] = len(crowd.classes)
        if crowd.classes.inferred_type in ("string", "integer", "boolean"):
            told["classes"] = crowd.classes.tolist()
    return told


@contextlib.contextmanager
def _whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that takes its place when all its files are written."""
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UsageError(f"{path} is already there; remove it first, or choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}-", dir=path.parent))
    try:
        yield unfinished
        umask = os.umask(0)
        os.umask(umask)
        unfinished.chmod(0o777 & ~umask)
        if path.is_dir():
            path.rmdir()
        unfinished.replace(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


FOLDER = Format(
    name="folder",
    about="a dataset folder with annotations.parquet",
    patterns=(),
    votes=_votes,
    sniff=lambda path: (path / ANNOTATIONS).is_file(),
    truth=_truth,
    features=_features,
    texts=_texts,
    meta=_meta,
    write=lambda crowd, path: write_dataset(path, crowd),
)
