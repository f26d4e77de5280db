"""Datasets by name: votes, truth, features and texts that belong together; some can be downloaded.

A name is looked up in the folders that ``WISECROWD_DATA`` lists and in the cache, which is the user's cache folder
unless ``WISECROWD_CACHE`` names another.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd._rows import Duplicates
from wisecrowd.crowd import Crowd
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError, did_you_mean
from wisecrowd.io.folder import ANNOTATIONS, FOLDER, TRUTH, write_dataset
from wisecrowd.io.formats import Options, about, find_format


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Votes and what is known beside them; everything but the votes is indexed by task, and may be missing.

    ``truth`` also has tasks without votes, such as those of a test split.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> Dataset(name="pets", crowd=crowd, truth=pd.Series({"t1": "cat"}))
    Dataset('pets', Crowd(2 labels: 1 tasks x 2 workers, 2 classes, 2.0 labels/task), truth of 1 tasks)
    """

    name: str
    crowd: Crowd
    truth: pd.Series[Any] | None = None
    features: pd.DataFrame | None = None
    splits: pd.Series[Any] | None = None
    texts: pd.DataFrame | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    folder: Path | None = None

    def __repr__(self) -> str:
        parts = [repr(self.name), repr(self.crowd)]
        if self.truth is not None:
            parts.append(f"truth of {len(self.truth):,} tasks")
        if self.features is not None:
            parts.append(f"{self.features.shape[1]:,} features")
        if self.splits is not None:
            parts.append("splits " + ", ".join(f"{name} {n:,}" for name, n in self.splits.value_counts().items()))
        if self.texts is not None:
            parts.append("texts")
        return f"Dataset({', '.join(parts)})"


def load_dataset(name_or_folder: str | os.PathLike[str], *, duplicates: Duplicates | None = None) -> Dataset:
    """Load a dataset by name, or from a folder or file of any format that wisecrowd reads.

    Datasets as published often hold a worker's repeated votes on one task. ``duplicates`` says what to do about them, as
    for :func:`wisecrowd.read`; without it the dataset's own ``meta.json`` may say (``"duplicates": "keep"``), and
    otherwise exact repeats are dropped and different answers all kept (``"distinct"``, the usual protocol), with a warning.

    >>> from wisecrowd.io.folder import write_dataset
    >>> path = Path(tempfile.mkdtemp()) / "pets"
    >>> write_dataset(path, Crowd.from_triples([("t1", "ann", "cat")]), truth=pd.Series({"t1": "cat"}))
    >>> load_dataset(path)
    Dataset('pets', Crowd(1 labels: 1 tasks x 1 workers, 1 classes, 1.0 labels/task), truth of 1 tasks)
    """
    path = _locate(name_or_folder)
    form = find_format(path)
    with about(path):
        meta = {} if form.meta is None else form.meta(path)
        votes = form.votes(path, Options())
        wanted = duplicates or meta.get("duplicates")
        crowd = votes.crowd(Options(duplicates=wanted or "distinct"))
        known = None if form.truth is None or not form.holds_truth(path) else form.truth(path, None, None)
        dropped = votes.table.num_rows - crowd.n_labels
        if dropped and wanted is None:
            warnings.warn(
                f"{path.name}: {dropped:,} votes repeat the same worker's same answer to the same task and were dropped; "
                "say duplicates='distinct' if that is right, or 'keep' to count them all",
                DataWarning,
                stacklevel=2,
            )
        return Dataset(
            name=str(meta.get("name", path.stem)),
            crowd=crowd,
            truth=None if known is None else known["truth"],
            splits=known["split"] if known is not None and "split" in known else None,
            features=None if form.features is None else form.features(path),
            texts=None if form.texts is None else form.texts(path),
            meta=MappingProxyType(meta),
            folder=path,
        )
