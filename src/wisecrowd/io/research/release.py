"""Votes for others to learn from: a row per task with what each worker said and a soft label, under names that tell nothing.

A worker goes by a keyed hash (HMAC-SHA256): the same key gives the same names, so that releases can be joined, and without
the key nobody can try ids to see which name comes out. Whoever holds the key can; keep it, or destroy it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.tools.answers import set_of
from wisecrowd.utils.files import atomic_path

__all__ = ["pseudonyms", "release_key", "write_release"]

#: The environment variable with the key, and the fewest bytes that a key may have.
VARIABLE, FEWEST = "WISECROWD_KEY", 16
#: Letters of a name; more, where two workers would share one.
_LETTERS = 16
_PORTION = 1 << 16


def release_key(file: str | os.PathLike[str] | None = None) -> bytes:
    """The key for pseudonyms: the first line of a file, or the environment variable ``WISECROWD_KEY``.

    >>> os.environ.pop("WISECROWD_KEY", None) and None
    >>> release_key()
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: worker ids are only released under a key, and there is none: ...
    """
    if file is not None:
        try:
            key = Path(file).read_bytes().split(b"\n", 1)[0].strip()
        except OSError as error:
            raise UsageError(f"the file of the key cannot be read: {error.strerror}") from None
    else:
        key = os.environ.get(VARIABLE, "").encode(errors="surrogateescape")
    if not key:
        raise UsageError(
            f"worker ids are only released under a key, and there is none: put one into the variable {VARIABLE} or into a "
            f'file (--key-file). A good one: python -c "import secrets; print(secrets.token_hex())"'
        )
    if len(key) < FEWEST:
        raise UsageError(f"the key has {len(key)} bytes, and can be guessed; {FEWEST} or more were wanted")
    return key


def pseudonyms(workers: Iterable[Any], key: bytes) -> list[str]:
    """Names that tell nothing, one for each worker.

    >>> pseudonyms(["ann", "bob"], b"a key of sixteen") == pseudonyms(["ann", "bob"], b"a key of sixteen")
    True
    >>> len(set(pseudonyms(["ann", "bob"], b"a key of sixteen")))
    2
    """
    if len(key) < FEWEST:
        raise UsageError(f"a key of {FEWEST} bytes or more was wanted; got {len(key)}")
    full = [hmac.new(key, str(worker).encode(errors="surrogatepass"), hashlib.sha256).hexdigest() for worker in workers]
    short = [name[:_LETTERS] for name in full]
    return short if len(set(short)) == len(short) else full


def write_release(
    crowd: Crowd,
    path: str | os.PathLike[str],
    *,
    key: bytes,
    answers: pd.DataFrame | None = None,
    posterior: pd.DataFrame | None = None,
    sets: bool = False,
) -> None:
    """Write a table that Hugging Face ``datasets`` loads, to ``.parquet`` or ``.jsonl``.

    Columns: ``task``; ``workers`` (pseudonyms) and ``labels``, lists of one length; ``soft_label``, the share of each class, from
    ``posterior`` (by task, a column for each class) or else of the votes; ``label`` and ``confidence`` from ``answers``. With
    ``sets``, labels are sets of options. Times are left out: they may tell who was at work.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> write_release(crowd, "votes.jsonl", key=b"a key of sixteen")
    >>> row = json.loads(Path("votes.jsonl").read_text())
    >>> sorted(row["labels"]), row["soft_label"]
    (['cat', 'dog'], {'cat': 0.5, 'dog': 0.5})
    """
    target = Path(path)
    if target.suffix not in (".parquet", ".jsonl"):
        raise UsageError(f"cannot tell from the name of {target} what to write; end it in .parquet or .jsonl")
    if crowd.workers is None:
        raise InputError("these votes have no worker ids, so that there is nothing to release of any worker")
    table = _table(crowd, pseudonyms(crowd.workers, key), sets)
    if crowd.classes is not None:
        table = table.append_column("soft_label", _soft(crowd, posterior))
    for name in ("label", "confidence") if answers is not None else ():
        if name in answers:  # type: ignore[operator]  # it is there
            table = table.append_column(name, _aligned(answers[name], crowd.tasks))  # type: ignore[index]
    with atomic_path(target) as unfinished:
        if target.suffix == ".parquet":
            pq.write_table(table, unfinished, compression="zstd")
            return
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            for batch in table.to_batches(_PORTION):
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())


def _table(crowd: Crowd, names: list[str], sets: bool) -> pa.Table:
    """Votes by task, in the order of the pseudonyms: that of the ids would tell something of them."""
    place = np.argsort(np.argsort(np.array(names, dtype=object)))
    order = np.lexsort((place[crowd.worker], crowd.task))
    offset = pa.array(crowd.offset.astype(np.int32))
    workers = pa.array(names, pa.string()).take(pa.array(crowd.worker[order]))  # type: ignore[index]  # they have ids
    labels: Any = pa.array(crowd.label[order])
    if crowd.classes is not None:
        classes = [str(name) for name in crowd.classes]
        labels = pa.array([list(set_of(name)) for name in classes] if sets else classes).take(labels)
    columns = {
        "task": pa.array(crowd.tasks),
        "workers": pa.ListArray.from_arrays(offset, workers),
        "labels": pa.ListArray.from_arrays(offset, labels),
    }
    return pa.table(columns)


def _soft(crowd: Crowd, posterior: pd.DataFrame | None) -> pa.StructArray:
    if posterior is None:
        votes = crowd.votes
        shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        names = [str(name) for name in crowd.classes]  # type: ignore[union-attr]  # the caller looked
    else:
        names = [str(name) for name in posterior.columns]
        shares = posterior.reindex(_same_ids(posterior.index, crowd.tasks)).to_numpy(dtype=np.float64)
        if np.isnan(shares).any():
            unknown = crowd.tasks[np.isnan(shares).any(axis=1)]
            raise InputError(f"{len(unknown):,} tasks have no probabilities: {some(unknown)}")
    return pa.StructArray.from_arrays([pa.array(shares[:, code]) for code in range(len(names))], names=names)


def _aligned(column: pd.Series[Any], tasks: pd.Index) -> pa.Array:
    return pa.array(column.reindex(_same_ids(column.index, tasks)).array, from_pandas=True)


def _same_ids(there: pd.Index, tasks: pd.Index) -> pd.Index:
    """Tasks as the other table calls them: text, where it comes from a file."""
    return (
        tasks.astype(str) if pd.api.types.is_string_dtype(there) and not pd.api.types.is_string_dtype(tasks) else tasks
    )
