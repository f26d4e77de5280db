"""Release of votes for research: a row per task with the labels of pseudonymous workers and a soft label.

The pseudonym of a worker is a keyed hash (HMAC-SHA256). The same key gives the same pseudonyms, so releases can be joined.
Without the key, nobody can test which id belongs to a pseudonym. Keep the key secret, or destroy it.
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
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.tools.label_sets import parse_label_set
from wisecrowd.utils.files import atomic_path
from wisecrowd.utils.text import count_noun

__all__ = ["load_release_key", "make_pseudonyms", "write_release"]

#: Environment variable with the key.
VARIABLE = "WISECROWD_KEY"
#: Shorter keys can be guessed.
MIN_KEY_BYTES = 16
#: Hexadecimal digits of a pseudonym. All 64 are used if two workers would share a pseudonym.
_PSEUDONYM_DIGITS = 16
#: Rows that are converted to JSON at a time.
_PORTION_ROWS = 1 << 16


def load_release_key(file: str | os.PathLike[str] | None = None) -> bytes:
    """Load the key for pseudonyms from a file or from the environment variable ``WISECROWD_KEY``.

    Parameters
    ----------
    file : path-like, optional
        File with the key on its first line.

    Returns
    -------
    bytes
        Key.

    Raises
    ------
    UsageError
        If there is no key, or it is too short.

    Examples
    --------
    >>> os.environ.pop("WISECROWD_KEY", None) and None
    >>> load_release_key()
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: there is no key for the pseudonyms of workers; put one into the variable WISECROWD_KEY ...
    """
    if file is not None:
        try:
            key = Path(file).read_bytes().split(b"\n", 1)[0].strip()
        except OSError as error:
            raise UsageError(f"the key file cannot be read: {error.strerror}") from None
    else:
        key = os.environ.get(VARIABLE, "").encode(errors="surrogateescape")
    if not key:
        raise UsageError(
            f"there is no key for the pseudonyms of workers; put one into the variable {VARIABLE} or into a file "
            '(--key-file). This makes a good one: python -c "import secrets; print(secrets.token_hex())"'
        )
    _check_key(key)
    return key


def _check_key(key: bytes) -> None:
    if len(key) < MIN_KEY_BYTES:
        raise UsageError(f"the key has {len(key)} bytes and can be guessed; use {MIN_KEY_BYTES} or more")


def make_pseudonyms(workers: Iterable[Any], key: bytes) -> list[str]:
    """Return a pseudonym for each worker.

    Parameters
    ----------
    workers : iterable
        Worker ids.
    key : bytes
        Secret key of at least 16 bytes.

    Returns
    -------
    list of str
        Pseudonyms.

    Examples
    --------
    >>> make_pseudonyms(["ann", "bob"], b"a key of sixteen") == make_pseudonyms(["ann", "bob"], b"a key of sixteen")
    True
    >>> len(set(make_pseudonyms(["ann", "bob"], b"a key of sixteen")))
    2
    """
    _check_key(key)
    full = [hmac.new(key, str(worker).encode(errors="surrogatepass"), hashlib.sha256).hexdigest() for worker in workers]
    short = [name[:_PSEUDONYM_DIGITS] for name in full]
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
    """Write a table that Hugging Face ``datasets`` loads.

    Columns are ``task``, ``workers`` (pseudonyms) and ``labels`` (lists of one length), ``soft_label`` (share of each class),
    and ``label`` and ``confidence`` if answers are given. Times are left out, because they may identify workers.

    Parameters
    ----------
    crowd : Crowd
        Votes with worker ids.
    path : path-like
        File that ends in ``.parquet`` or ``.jsonl``.
    key : bytes
        Secret key for the pseudonyms.
    answers : DataFrame, optional
        Columns ``label`` and ``confidence``, indexed by task.
    posterior : DataFrame, optional
        Probabilities by task, with a column per class. Without it, the soft label is the share of votes.
    sets : bool, default=False
        Whether labels are sets of options.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> write_release(crowd, "votes.jsonl", key=b"a key of sixteen")
    >>> row = json.loads(Path("votes.jsonl").read_text())
    >>> sorted(row["labels"]), row["soft_label"]
    (['cat', 'dog'], {'cat': 0.5, 'dog': 0.5})
    """
    target = Path(path)
    if target.suffix not in (".parquet", ".jsonl"):
        raise UsageError(f"the name of {target} does not imply a format; end it in .parquet or .jsonl")
    if crowd.workers is None:
        raise InputError("these votes have no worker ids, which a release needs")
    table = _build_table(crowd, make_pseudonyms(crowd.workers, key), sets)
    if crowd.classes is not None:
        table = table.append_column("soft_label", _build_soft_labels(crowd, posterior))
    if answers is not None:
        for name in ("label", "confidence"):
            if name in answers:
                table = table.append_column(name, _align_column(answers[name], crowd.tasks))
    with atomic_path(target) as partial_path:
        if target.suffix == ".parquet":
            pq.write_table(table, partial_path, compression="zstd")
            return
        with partial_path.open("w", encoding="utf-8", newline="\n") as file:
            for batch in table.to_batches(_PORTION_ROWS):
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())


def _build_table(crowd: Crowd, names: list[str], sets: bool) -> pa.Table:
    """Build the table of votes by task in the order of the pseudonyms. The order of the ids would leak information."""
    rank = np.argsort(np.argsort(np.array(names, dtype=object)))
    order = np.lexsort((rank[crowd.worker], crowd.task))
    offset = pa.array(crowd.offset.astype(np.int32))
    workers = pa.array(names, pa.string()).take(pa.array(crowd.worker[order]))  # type: ignore[index]  # they have ids
    labels: Any = pa.array(crowd.label[order])
    if crowd.classes is not None:
        classes = [str(name) for name in crowd.classes]
        labels = pa.array([list(parse_label_set(name)) for name in classes] if sets else classes).take(labels)
    columns = {
        "task": pa.array(crowd.tasks),
        "workers": pa.ListArray.from_arrays(offset, workers),
        "labels": pa.ListArray.from_arrays(offset, labels),
    }
    return pa.table(columns)


def _build_soft_labels(crowd: Crowd, posterior: pd.DataFrame | None) -> pa.StructArray:
    if posterior is None:
        votes = crowd.vote_counts
        shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        names = [str(name) for name in crowd.classes]  # type: ignore[union-attr]  # checked by the caller
    else:
        names = [str(name) for name in posterior.columns]
        shares = posterior.reindex(_match_ids(posterior.index, crowd.tasks)).to_numpy(dtype=np.float64)
        if np.isnan(shares).any():
            missing = crowd.tasks[np.isnan(shares).any(axis=1)]
            raise InputError(
                f"no probabilities for {count_noun(len(missing), 'task')}: {preview(missing)}; give a row for every task"
            )
    return pa.StructArray.from_arrays([pa.array(shares[:, code]) for code in range(len(names))], names=names)


def _align_column(column: pd.Series[Any], tasks: pd.Index) -> pa.Array:
    return pa.array(column.reindex(_match_ids(column.index, tasks)).array, from_pandas=True)


def _match_ids(index: pd.Index, tasks: pd.Index) -> pd.Index:
    """Return the tasks as text if the other table has text, because it was read from a file."""
    is_text = pd.api.types.is_string_dtype(index) and not pd.api.types.is_string_dtype(tasks)
    return tasks.astype(str) if is_text else tasks
